"""``harness submit``: shards as jobs, through submitit, on this machine and on Slurm."""

import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.shard import Shard
from harness.cli.shard import ShardFailed
from harness.cli.submit import minutes
from harness.cli.submit import slurm_parameters
from harness.errors import ConfigError
from harness.records.book import RecordBook
from tests.cluster.conftest import ROOT
from tools.chaos.project import make

CASES = 18


@pytest.fixture
def benchmark(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose 18 cases need no torch."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    make(pytester.path, models=1)
    return pytester.path


def submit(*arguments: str) -> int:
    return main(["submit", "--shards", "2", *arguments])


def logs(project: Path) -> str:
    return "".join(path.read_text() for path in sorted((project / "cache" / "jobs").glob("*/*.out")))


def cases_run(project: Path) -> set[str]:
    return {record.case.id for record in RecordBook(project / "reports").records() if record.status == "passed"}


def test_two_shards_on_this_machine_run_every_case_once_and_then_from_the_cache(
    benchmark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("submitit")
    assert submit("--executor", "local", "--wait", "--", "benchmarks") == 0
    assert len(cases_run(benchmark)) == CASES
    printed = capsys.readouterr().out
    assert "shard 1/2: done" in printed
    assert "shard 2/2: done" in printed
    assert logs(benchmark).count("9 passed") == 2
    entries = {path: path.stat().st_ctime_ns for path in benchmark.glob("cache/store/entries/*/*")}
    assert submit("--executor", "local", "--wait", "--", "benchmarks") == 0
    assert {path: path.stat().st_ctime_ns for path in benchmark.glob("cache/store/entries/*/*")} == entries


def test_a_shard_that_fails_is_named(benchmark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("submitit")
    (benchmark / "benchmarks" / "test_other.py").write_text("def test_no_case(): assert False")
    assert submit("--executor", "local", "--wait", "--", "benchmarks") == 1
    printed = capsys.readouterr().out
    assert "shard 1/2: failed; see " in printed  # tests that are no case are of the first
    assert "shard 2/2: done" in printed
    assert len(cases_run(benchmark)) == CASES


def test_slurm_runs_the_shards_with_a_gpu_each(
    benchmark: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    real_slurm: dict[str, str],
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("SLURM_CONF", real_slurm["SLURM_CONF"])
    with (benchmark / "conftest.py").open("a") as conftest:
        conftest.write('\ndef pytest_unconfigure(): print("GPU", os.environ.get("CUDA_VISIBLE_DEVICES"))\n')
    assert submit("--slurm", "time=10", "--slurm", "partition=gpu", "--wait", "--", "benchmarks") == 0
    assert capsys.readouterr().out.count(": done") == 2
    assert len(cases_run(benchmark)) == CASES
    assert {line for line in logs(benchmark).splitlines() if line.startswith("GPU")} <= {"GPU 0", "GPU 1"}
    assert logs(benchmark).count("GPU ") == 2
    assert submit("--slurm", "time=10", "--slurm", "partition=nix", "--", "benchmarks") == 1
    assert "nix" in capsys.readouterr().err


@pytest.mark.parametrize(("here", "there"), [("2,3", "2,3"), (None, "unset")])
def test_a_shard_on_this_machine_sees_the_users_gpus_not_those_that_submitit_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str | None, there: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # what submitit sets for all of its jobs
    (tmp_path / "conftest.py").write_text('def pytest_addoption(parser): parser.addoption("--shard")')
    lines = "import os", "from pathlib import Path", "def test():"
    look = '    Path("gpus").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "unset"))'
    (tmp_path / "test_gpus.py").write_text("\n".join([*lines, look]))
    Shard(1, 1, ("test_gpus.py", "-q"), str(tmp_path), inherit_gpus=True, gpus=here)()
    assert (tmp_path / "gpus").read_text() == there


def test_a_shard_fails_where_pytest_does(tmp_path: Path) -> None:
    with pytest.raises(ShardFailed, match="shard 1/2: pytest ended with exit status 4"):
        Shard(1, 2, ("absent.py", "-p", "no:hypothesispytest"), str(tmp_path))()


def test_a_shard_goes_on_in_a_new_job_when_its_time_is_over() -> None:
    pytest.importorskip("submitit")
    shard = Shard(1, 2, ("benchmarks",), "folder")
    assert shard.checkpoint().function == shard


def test_a_dry_run_prints_the_commands_and_submits_nothing(benchmark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("--slurm", "time=1:30:00", "--slurm", "qos=low", "--dry-run", "--", "benchmarks", "-k", "a b") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [f"{sys.executable} -m pytest --shard {i}/2 benchmarks -k 'a b'" for i in (1, 2)]
    assert {"slurm    time=90", "slurm    qos=low", "slurm    gres=gpu:1"} <= set(printed)
    assert not (benchmark / "cache" / "jobs").exists()


def test_without_submitit_it_is_named_and_so_is_the_way_without(
    benchmark: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert submit("--slurm", "time=10", "--", "benchmarks") == 1
    message = capsys.readouterr().err
    assert "generalization-harness[cluster]" in message
    assert "pytest --shard 1/2 benchmarks" in message
    assert not cases_run(benchmark)


def test_a_machine_without_slurm_is_told_where_to_submit(
    benchmark: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(benchmark))
    assert submit("--slurm", "time=10", "--", "benchmarks") == 1
    assert "sbatch is not on the PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--slurm", "time=10", "--", "--shard=1/4"], "--shard is given by harness submit"),
        (["--", "benchmarks"], "--slurm time=8:00:00"),
        (["--slurm", "=gpu", "--", "benchmarks"], "expected KEY=VALUE"),
        (["--slurm", "time=10", "--slurm", "array_parallelism=x"], "expected a number"),
        (["--executor", "local", "--slurm", "time=10"], "--slurm says nothing to --executor local"),
        (["--shards", "0", "--slurm", "time=10"], "--shards 0: expected 1 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert submit(*arguments) == 2
    assert message in capsys.readouterr().err


def test_sbatch_gets_what_it_is_to_get() -> None:
    given = ["time=2-0", "cpus_per_task=8", "--partition=gpu", "exclusive", "array-parallelism=4"]
    assert slurm_parameters(given, ["benchmarks", "--device", "cpu"]) == {
        "time": 2880,
        "job_name": "harness",
        "array_parallelism": 4,
        "srun_args": ["--cpus-per-task=8"],
        "additional_parameters": {"cpus-per-task": "8", "partition": "gpu", "exclusive": True},
    }
    for own in ("gres=gpu:a100:1", "gpus-per-node=2", "gpus=1"):
        assert slurm_parameters(["time=5", own], [])["additional_parameters"].keys() == {own.partition("=")[0]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90:30", 91), ("1:30:00", 90), ("0:00:01", 1), ("1-12", 2160), ("1-12:30", 2190), ("2-0:0:1", 2881)],
)
def test_time_is_read_as_sbatch_reads_it(text: str, expected: int) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize("text", ["", "8h", "1:2:3:4", "-5", "0", "0:00", "1-", "1-1-1"])
def test_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--slurm time="):
        minutes(text)
