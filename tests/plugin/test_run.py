"""Whole runs on a small universe: the same numbers however they are run, and nothing lost whatever happens."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

from harness.store import Store
from tests.plugin.conftest import Project

MEASURED = 6
"""Cases of the one model that has weights: three splits, linear and few-shot."""


def entries(project: Project, kind: str) -> list[Path]:
    return sorted((project.path / "cache" / "store" / "entries" / kind).iterdir())


def written(project: Project) -> dict[str, bytes]:
    """Return tables and figures by name."""
    folder = project.path / "reports"
    return {path.name: path.read_bytes() for path in [*folder.glob("cog.*"), *(folder / "figures").iterdir()]}


def test_reports_are_written_once_however_many_workers(project: Project) -> None:
    (project.path / "conftest.py").write_text("""
import os
from pathlib import Path
from harness.session import Session

pytest_plugins = ["harness.plugin"]
write, here = Session.write_reports, Path(__file__).parent

def noted(session):
    with (here / "writers").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return write(session)

Session.write_reports = noted
""")
    project.run("benchmarks", "-n2", "-k", "absent").assert_outcomes(skipped=6, deselected=6)
    assert len((project.path / "writers").read_text().splitlines()) == 1


def test_numbers_do_not_depend_on_workers_nor_on_what_is_cached(project: Project) -> None:
    first = project.run("benchmarks", "-n2")
    first.assert_outcomes(passed=MEASURED, skipped=6)
    numbers = project.numbers()
    assert len(numbers) == MEASURED
    assert all(value is not None for values in numbers.values() for value in values)
    report = written(project)
    assert {"cog.csv", "cog.md", "cog.tex"} <= report.keys()
    measured = {name: record.provenance.measured for name, record in project.records().items() if record.provenance}

    again = project.run("benchmarks", "-n0")
    again.assert_outcomes(passed=MEASURED, skipped=6, deselected=0)
    assert project.numbers() == numbers
    assert all(
        record.provenance and record.provenance.cached for record in project.records().values() if record.measured
    )
    assert written(project) == report
    assert {name: r.provenance.measured for name, r in project.records().items() if r.provenance} == measured
    command = [sys.executable, "-c", "import sys; from harness.cli import main; sys.exit(main())", "report"]
    subprocess.run(command, cwd=project.path, check=True, capture_output=True)
    assert written(project).keys() == report.keys()
    assert {name for name in report if "similarity" in name}, "the ranking of concepts is drawn from records alone"

    fresh = project.run("benchmarks", "-p", "no:xdist", *project.fresh_cache(), "--junitxml=out.xml")
    fresh.assert_outcomes(passed=MEASURED, skipped=6)
    assert project.numbers() == numbers
    assert 'name="top1"' in (project.path / "out.xml").read_text()


def test_a_damaged_cache_is_set_aside_and_the_numbers_are_the_same(project: Project) -> None:
    project.run("benchmarks", "-k", "random and L1", "-p", "no:xdist").assert_outcomes(passed=2, deselected=10)
    numbers = project.numbers()
    for entry in entries(project, "probe"):
        path = entry / "score.json"
        path.write_bytes(path.read_bytes()[:-10])
    matrix = entries(project, "features")[0] / "features.npy"
    content = bytearray(matrix.read_bytes())
    content[-3] ^= 0xFF
    matrix.write_bytes(content)
    result = project.run("benchmarks", "-k", "random and L1", "-p", "no:xdist")
    result.assert_outcomes(passed=2, deselected=10, warnings=3)
    result.stdout.fnmatch_lines("*StoreWarning: damaged cache entry set aside to*")
    assert project.numbers() == numbers


def test_a_killed_probe_is_taken_up_and_earlier_records_stay(project: Project) -> None:
    project.run("benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist").assert_outcomes(
        passed=1, deselected=11
    )
    before = project.numbers()
    arguments = ["benchmarks", "-k", "random and (L1 or L2)", "-p", "no:xdist", "--protocol", "trials=12"]
    command = [sys.executable, "-m", "pytest", *arguments]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL)
    work = project.path / "cache" / "store" / "work"
    deadline = time.monotonic() + 120
    while not list(work.glob("probe/*/journal.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert {name: project.numbers()[name] for name in before} == before
    project.run(*arguments).assert_outcomes(passed=4, deselected=8)
    resumed = project.numbers()
    assert not list(work.glob("*/*"))
    project.run(*arguments, *project.fresh_cache()).assert_outcomes(passed=4, deselected=8)
    assert project.numbers() == resumed
    assert {name: resumed[name] for name in before} == before


def test_a_failed_case_is_recorded_and_does_not_replace_what_was_measured(project: Project) -> None:
    selected = ["benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist"]
    project.run(*selected).assert_outcomes(passed=1, deselected=11)
    numbers = project.numbers()
    broken = next((project.path / "pictures").rglob("1.png"))
    for picture in (project.path / "pictures").rglob("1.png"):
        picture.write_bytes(b"no picture")
    result = project.run(*selected)
    result.assert_outcomes(failed=1, deselected=11)
    result.stdout.fnmatch_lines(f"*images cannot be read: *{broken.name}*")
    assert project.numbers() == numbers
    (record,) = project.records().values()
    assert record.last_attempt is not None
    assert "cannot be read" in record.last_attempt.reason

    dropped = project.run(*selected, "--protocol", "unreadable=drop")
    dropped.assert_outcomes(passed=1, deselected=11)
    marked = project.records()["cog/linear/tiny-random-L1?unreadable=drop"]
    assert any("unreadable" in warning for warning in marked.warnings)


def test_a_full_disk_fails_the_case_and_leaves_earlier_records_valid(project: Project) -> None:
    project.run("benchmarks", "-k", "random and L1", "-p", "no:xdist").assert_outcomes(passed=2, deselected=10)
    before = project.numbers()
    with (project.path / "conftest.py").open("a") as file:
        file.write(FULL_DISK)
    result = project.run("benchmarks", "-k", "random and L2 and linear", "-p", "no:xdist")
    result.assert_outcomes(failed=1, deselected=11)
    result.stdout.fnmatch_lines("*No space left on device*")
    assert project.numbers() == before


FULL_DISK = """
import errno, numpy, harness.cog.outcome
def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")
harness.cog.outcome.save_file = full
"""


def test_overwrite(project: Project) -> None:
    selected = ["benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist"]
    absent = project.run(*selected, "--overwrite", "only-cache")
    absent.assert_outcomes(skipped=1, deselected=11)
    absent.stdout.fnmatch_lines("skipped 1 case: not in the cache*only-cache*")
    project.run(*selected).assert_outcomes(passed=1, deselected=11)
    first = entries(project, "probe")[0].stat().st_ino
    project.run(*selected, "--overwrite", "only-cache").assert_outcomes(passed=1, deselected=11)
    assert entries(project, "probe")[0].stat().st_ino == first
    features = [entry.stat().st_ino for entry in entries(project, "features")]
    probe = entries(project, "probe")[0].stat().st_ino
    project.run(*selected, "--overwrite-features", "always").assert_outcomes(passed=1, deselected=11)
    assert entries(project, "probe")[0].stat().st_ino != probe
    assert [entry.stat().st_ino for entry in entries(project, "features")] != features
    features = [entry.stat().st_ino for entry in entries(project, "features")]
    first = entries(project, "probe")[0].stat().st_ino
    project.run(*selected, "--overwrite", "always").assert_outcomes(passed=1, deselected=11)
    assert entries(project, "probe")[0].stat().st_ino != first
    assert [entry.stat().st_ino for entry in entries(project, "features")] == features
    kept = project.run(*selected, "--overwrite", "never", *project.fresh_cache())
    kept.stdout.fnmatch_lines("skipped 1 case: *measured already*")


def test_what_an_entry_holds(project: Project) -> None:
    project.run("benchmarks", "-k", "random and L1 and fewshot", "-p", "no:xdist").assert_outcomes(
        passed=1, deselected=11
    )
    (entry,) = entries(project, "probe")
    (record,) = project.records().values()
    assert record.provenance is not None
    assert record.provenance.digests["result"] == entry.name
    assert record.provenance.seeds == [1, 2]
    assert record.details["final_images"] == 2 * record.details["classes"] == 6
    assert record.details["group"] == "baseline"
    assert {"weights", "train_images", "test_images"} <= record.provenance.digests.keys()
    key = json.loads((entry / "key.json").read_text())
    assert Store(project.path / "cache" / "store").find("probe", key) == entry
    curves = json.loads((entry / "curves.json").read_text())
    assert [len(curve["trials"]) for curve in curves] == [3, 3]
    assert {path.name for path in entry.iterdir()} >= {"classifiers.safetensors", "predictions.npz", "score.json"}


def test_two_readings_stand_side_by_side(project: Project) -> None:
    selected = ["benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist"]
    project.run(*selected)
    project.run(*selected, "--protocol", "schedule=exact")
    assert sorted(project.records()) == [
        "cog/linear/tiny-random-L1",
        "cog/linear/tiny-random-L1?schedule=exact",
    ]
    report = (project.path / "reports" / "cog.md").read_text()
    assert "protocol options: none" in report
    assert "protocol options: schedule=exact" in report


def test_why_names_the_setting_that_differs(project: Project) -> None:
    project.run("benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist")

    def why(*options: str) -> str:
        given = ["--suite", "suite.yaml", "--data-root", ".", *options]
        command = [sys.executable, "-c", "import sys; from harness.cli import main; sys.exit(main())", "why"]
        run = subprocess.run(
            [*command, "tiny-random-L1", *given], cwd=project.path, capture_output=True, text=True, check=True
        )
        return run.stdout

    cached = why()
    assert "result: cached" in cached
    assert "record    passed" in cached
    changed = why("--protocol", "trials=4", "--protocol", "momentum=0.5")
    assert "features of train: cached" in changed
    assert "settings.momentum: 0.9 there, 0.5 now" in changed
    assert "settings.trials: 3 there, 4 now" in changed


BAD_WEIGHTS = """
  tiny-{name}:
    group: architecture
    architecture: {{source: torchvision, name: resnet18}}
    weights: {{source: file, path: "{path}"{more}}}
    surgery: {{keep: "{keep}"}}
    feature: {{take: identity, module: fc}}
    input: {{size: 32}}
    training_data: none
    licence: none
"""


class Payload:
    """Would leave a file behind if it were called."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch executed",)


def test_bad_weights_fail_their_case_with_one_message_each(project: Project) -> None:
    (project.path / "page.pth").write_text("<!DOCTYPE html><html><title>Sign in</title></html>")
    torch.save({"state_dict": Payload()}, project.path / "code.pth")
    torch.save({"module.fc.weight": torch.zeros(2)}, project.path / "good.pth")
    bad = [("page", "page.pth", "", ""), ("code", "code.pth", "", ""), ("prefix", "good.pth", "", "encoder.")]
    bad.append(("checksum", "good.pth", ", sha256: '00000000'", ""))
    with (project.path / "models.yaml").open("a") as file:
        for name, path, more, keep in bad:
            file.write(BAD_WEIGHTS.format(name=name, path=project.path / path, more=more, keep=keep))
    chosen = "L1 and linear and (page or code or prefix or checksum)"
    result = project.run("benchmarks", "-k", chosen, "-p", "no:xdist", "--tb=short")
    result.assert_outcomes(failed=4, deselected=32)
    assert result.ret == 1
    result.stdout.fnmatch_lines_random(
        ["tiny-page: *HTML*", "tiny-code: *system*", "tiny-prefix: *encoder.*", "tiny-checksum: *sha256*00000000*"]
    )
    assert not (project.path / "executed").exists()
    assert {record.status for record in project.records().values()} == {"failed"}


def test_a_universe_of_ones_own_is_part_of_the_identity_by_its_name(project: Project) -> None:
    (project.path / "sub").mkdir()
    moved = project.path / "sub" / "other.yaml"
    moved.write_text((project.path / "universe.yaml").read_text().replace("name: shapes", "name: others"))
    for name in ("seen.txt", "concepts.csv"):
        (project.path / "sub" / name).write_text((project.path / name).read_text())
    selected = ["benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist"]
    project.run(*selected, "--universe", str(moved)).assert_outcomes(passed=1, deselected=11)
    (name,) = project.records()
    assert re.fullmatch(r"cog/linear/tiny-random-L1\?universe=others@[0-9a-f]{8}", name)
    figures = [path.name for path in (project.path / "reports" / "figures").iterdir()]
    assert any("similarity" in name for name in figures)
    project.run(*selected).assert_outcomes(passed=1, deselected=11)
    assert len(project.records()) == 2


def test_a_damaged_journal_is_set_aside_and_the_search_starts_over(project: Project) -> None:
    selected = ["benchmarks", "-k", "random and L1 and linear", "-p", "no:xdist"]
    project.run(*selected)
    numbers = project.numbers()
    (entry,) = entries(project, "probe")
    work = project.path / "cache" / "store" / "work" / "probe" / f"{entry.name}.left"
    entry.rename(work)
    (work / "journal.jsonl").write_text("{}\n{}\n")
    result = project.run(*selected)
    result.assert_outcomes(passed=1, deselected=11, warnings=1)
    result.stdout.fnmatch_lines("*journal*set aside*starts over*")
    assert project.numbers() == numbers


def test_a_record_that_cannot_be_written_fails_its_case_and_the_run_goes_on(project: Project) -> None:
    (project.path / "reports").write_text("no folder")
    result = project.run("benchmarks", "-k", "L1 and linear", "-p", "no:xdist")
    assert result.ret == 1
    result.stdout.fnmatch_lines("*cannot be written*")
    assert "INTERNALERROR" not in result.stdout.str()
