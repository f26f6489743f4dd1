"""Workers that Slurm starts: each with its own GPU, replaced when they die. ``fake`` is a stand-in for srun."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import run

CASES = """
import json, os, signal, time
from pathlib import Path
from typing import Any
import pytest

TRACE = Path(__file__).with_name("trace.jsonl")

@pytest.mark.parametrize("number", range(12))
def test_case(number):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    gpu = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS")}
    with TRACE.open("a") as trace:
        trace.write(json.dumps({"worker": worker, "number": number, **gpu}) + "\\n")
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + 90
    while '"gw2"' not in TRACE.read_text():  # the one that lives leaves work for the successor of the dead one
        assert time.monotonic() < deadline
        time.sleep(0.05)
"""


def trace(project: pytest.Pytester) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / "trace.jsonl").read_text().splitlines()]


def test_each_worker_has_its_own_gpu_and_the_successor_of_a_dead_one_the_freed_one(
    project: pytest.Pytester, slurm: str
) -> None:
    project.makepyfile(CASES)
    result = run(project, "-n2", "--launcher", "slurm")
    result.assert_outcomes(passed=11, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*gw[01]*crashed*test_case?0?*"])
    seen = trace(project)
    assert sorted(line["number"] for line in seen) == list(range(12)), slurm
    gpus = {line["worker"]: line["CUDA_VISIBLE_DEVICES"] for line in seen}
    assert gpus == {line["worker"]: line["SLURM_STEP_GPUS"] for line in seen}
    (dead,) = {line["worker"] for line in seen if line["number"] == 0}
    (alive,) = {"gw0", "gw1"} - {dead}
    assert gpus.keys() == {dead, alive, "gw2"}
    assert {gpus[dead], gpus[alive]} == {"0", "1"}
    assert gpus["gw2"] == gpus[dead]


@pytest.mark.usefixtures("slurm")
def test_what_slurm_refuses_ends_the_run_with_its_own_words(project: pytest.Pytester) -> None:
    project.makepyfile("def test_case(): pass")
    result = run(project, "-n2", "--launcher", "slurm", "--launcher-args=--partition=nix")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*srun: error: *nix*", "ERROR: worker gw0 did not start*--partition=nix*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "gres"), [((), True), (("--device", "cpu"), False), (("--launcher-args=--gpus=1",), False)]
)
def test_a_worker_asks_for_a_gpu_unless_told_otherwise(
    project: pytest.Pytester, fake_slurm: Path, arguments: tuple[str, ...], gres: bool
) -> None:
    project.makepyfile("def test_case(): pass")
    result = run(project, "-n2", "--launcher", "slurm", "-v", *arguments)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["scheduling tests via CaseScheduling"])
    calls = (fake_slurm / "calls.txt").read_text().splitlines()
    assert len(calls) == 2
    assert all(("--gres=gpu:1" in call) is gres for call in calls)


@pytest.mark.usefixtures("fake_slurm")
def test_a_worker_has_a_thread_for_each_core_that_slurm_gives_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    project.makepyfile("import os\ndef test_case(): assert os.environ['OMP_NUM_THREADS'] == '7'")
    run(project, "-n2", "--launcher", "slurm", "--launcher-args=-c7").assert_outcomes(passed=1)
