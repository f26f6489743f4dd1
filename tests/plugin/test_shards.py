"""``--shard``: the same parts on every machine, with and without workers. No torch needed."""

import json
from itertools import chain
from pathlib import Path

import pytest

from harness.case import Case
from harness.durations import Durations
from harness.durations import Timing
from tests.plugin.conftest import Project

OWN_TEST = "def test_of_the_users_own():\n    assert True\n"


def collected(project: Project, *arguments: str) -> list[str]:
    result = project.run("benchmarks", "--collect-only", "-q", "-p", "no:xdist", *arguments)
    assert result.ret == 0
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def timings(project: Project, **seconds: float) -> Path:
    """Durations by model, as a user would commit them."""
    found = [
        Timing(Case("cog", "linear", model.replace("_", "-"), "shapes", {"split": split}), 0.0, work)
        for model, work in seconds.items()
        for split in ("seen", "L1", "L2")
    ]
    path = project.path / "durations.json"
    path.write_text(Durations((), found).to_json())
    return path


def test_shards_together_are_the_selection_and_share_no_extraction(project: Project) -> None:
    (project.path / "benchmarks" / "test_own.py").write_text(OWN_TEST)
    every = collected(project, "-k", "absent or own")
    parts = [collected(project, "-k", "absent or own", "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert sorted(chain.from_iterable(parts)) == sorted(every)
    assert len(every) == 7
    assert [len(_splits(part)) for part in parts] == [1, 1, 1]
    assert "test_of_the_users_own" in parts[0]


@pytest.mark.parametrize("workers", [["-n0"], ["-n2"], ["-p", "no:xdist"]], ids=["n0", "n2", "no-xdist"])
def test_a_shard_says_what_it_is_and_leaves_it_in_the_folder_of_the_run(project: Project, workers: list[str]) -> None:
    timings(project, tiny_random=1.0, tiny_absent=60.0)
    result = project.run("benchmarks", "-k", "absent", "--shard", "2/2", *workers)
    (line,) = [line for line in result.outlines if line.startswith("shard ")]
    (path,) = (project.path / "cache" / "runs").glob("*/shard.json")
    cut = json.loads(path.read_text())
    assert line == f"shard 2/2 of plan {cut['plan']}: 2 of 6 cases, about 61 s"
    result.assert_outcomes(skipped=2, deselected=10)
    assert cut["cases"] == [f"cog/{name}" for name in ("fewshot/tiny-absent-seen-N002", "linear/tiny-absent-seen")]
    assert {record.case.id for record in project.records().values()} == set(cut["cases"])


def test_records_of_this_machine_move_nothing_but_the_file_does(project: Project) -> None:
    arguments = ("--shard", "1/2")
    before = collected(project, *arguments)
    project.run("benchmarks", "-k", "absent")
    assert collected(project, *arguments) == before
    named = timings(project, tiny_random=100.0, tiny_absent=1.0).rename(project.path / "mine.json")
    assert collected(project, *arguments) == before
    balanced = collected(project, *arguments, "--shard-durations", str(named))
    assert balanced != before
    assert len(_splits(balanced)) < 3


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_an_empty_shard_passes(project: Project, workers: str) -> None:
    result = project.run("benchmarks", "-k", "absent and L1", "--shard", "2/2", workers)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines("shard 2/2 of plan ??????: 0 of 2 cases")
    assert project.run("benchmarks", "-k", "nothing", "--shard", "1/2", workers).ret == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "5/4"], "*--shard 5/4: expected I/N*"),
        (["--shard", ""], "*--shard : expected I/N*"),
        (["--shard", "1/2", "--shard-durations", "none.json"], "*--shard-durations none.json: no such file*"),
        (["--shard", "1/2", "--shard-durations", "models.yaml"], "*models.yaml: not a file of durations*"),
    ],
)
def test_wrong_shards_are_usage_errors(project: Project, arguments: list[str], message: str) -> None:
    result = project.run("benchmarks", "-n2", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_a_cache_that_cannot_be_written_and_no_terminal_stop_no_shard(project: Project, workers: str) -> None:
    (project.path / "benchmarks" / "test_mine.py").write_text(OWN_TEST)
    (project.path / "cache" / "runs").write_text("a file where a folder should be")
    shard = ("benchmarks", "-k", "own", "--shard", "1/2", workers)
    project.run(*shard).assert_outcomes(passed=1, deselected=12)
    (project.path / "cache" / "runs").unlink()
    assert project.run(*shard, "-p", "no:terminal").ret == 0


def test_a_shard_may_stand_in_the_ini_file(project: Project) -> None:
    with (project.path / "pytest.ini").open("a") as file:
        file.write("harness_shard = 1/2\n")
    assert 0 < len(collected(project)) < 12
    assert len(collected(project, "--shard", "1/1")) == 12


def _splits(names: list[str]) -> set[str]:
    return {name.split("-")[2].rstrip("]") for name in names if "[" in name}
