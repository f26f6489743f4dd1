"""GPU leases, with a program in place of nvidia-smi: one worker a share, waits, deaths, usage errors."""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from harness.devices import Gpu
from harness.plugin.leases import Lease
from harness.runs import Pulse
from harness.runs import read_heartbeats
from tests.plugin.test_scheduling import CONFTEST
from tests.plugin.test_scheduling import MODELS
from tests.plugin.test_scheduling import ROOT
from tests.plugin.test_scheduling import SUITE

CASES = """
import json
import os
import time

import pytest

pytestmark = pytest.mark.cog


def trace(case, event):
    gpu, worker = os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open("trace.jsonl", "a") as file:
        file.write(json.dumps([time.time(), case.name, event, gpu, worker]) + "\\n")


def test_linear(case, record):
    trace(case, "begin")
    if case.name == os.environ.get("DIES"):
        os._exit(9)
    time.sleep(0.15)
    trace(case, "end")
"""


@pytest.fixture
def gpus(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with six cases, each of its own unit, on a machine with two GPUs."""
    path = pytester.path
    listing = "".join(f"echo 'GPU {n}: Fake (UUID: GPU-{n}{n}{n}{n}-0000)'\n" for n in range(2))
    (path / "bin").mkdir()
    (path / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\n{listing}")
    (path / "bin" / "nvidia-smi").chmod(0o755)
    (path / "tmp").mkdir()
    for name in [name for name in os.environ if name.startswith(("PYTEST_XDIST", "CUDA_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(path / "tmp"))
    monkeypatch.setenv("HARNESS_CACHE", str(path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    splits = ("seen", "L1", "L2", "L3", "L4", "L5")
    addopts = "-p no:harness.plugin.summary -p no:cacheprovider -p no:hypothesispytest"
    files = {
        "conftest.py": CONFTEST,
        "models.yaml": MODELS,
        "suite.yaml": SUITE,
        "test_cog.py": CASES,
        "lengths.json": json.dumps(dict.fromkeys(f"tiny-{split}" for split in splits)),
        "pytest.ini": f"[pytest]\nharness_suite = suite.yaml\naddopts = {addopts}\n",
    }
    for name, content in files.items():
        (path / name).write_text(content)
    return pytester


def by_gpu(project: pytest.Pytester) -> dict[str, set[str]]:
    """Return the workers that ran cases on each GPU."""
    workers: dict[str, set[str]] = defaultdict(set)
    for line in (project.path / "trace.jsonl").read_text().splitlines():
        _, _, _, gpu, worker = json.loads(line)
        workers[gpu].add(worker)
    return workers


def test_each_worker_has_its_own_gpu(gpus: pytest.Pytester) -> None:
    gpus.runpytest_subprocess("-n2").assert_outcomes(passed=6)
    workers = by_gpu(gpus)
    assert sorted(workers) == ["GPU-0000-0000", "GPU-1111-0000"]
    assert [len(names) for names in workers.values()] == [1, 1]


def test_workers_without_a_gpu_get_no_cases(gpus: pytest.Pytester) -> None:
    result = gpus.runpytest_subprocess("-n4")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines("GPUs: room for 2 of 4 workers, the others wait. Say -n 2*")
    workers = by_gpu(gpus)
    assert sorted(workers) == ["GPU-0000-0000", "GPU-1111-0000"]
    assert [len(names) for names in workers.values()] == [1, 1]


def test_gpus_are_leased_before_they_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus = [Gpu(n, "Fake", f"GPU-{n}") for n in range(2)]
    leases, taken = [], []
    for _ in range(4):
        leases.append(Lease(gpus, 2, Pulse(tmp_path, "main"), tmp_path / "locks"))
        taken.append(os.environ["CUDA_VISIBLE_DEVICES"])
    for lease in reversed(leases):
        lease.close()
    assert taken == ["GPU-0", "GPU-1", "GPU-0", "GPU-1"]


def test_several_workers_share_a_gpu_if_told_to(gpus: pytest.Pytester) -> None:
    gpus.runpytest_subprocess("-n4", "--workers-per-gpu=2").assert_outcomes(passed=6)
    assert [len(names) for names in by_gpu(gpus).values()] == [2, 2]


def test_a_dead_worker_leaves_its_gpu_to_the_one_that_waits(
    gpus: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIES", "tiny-L1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    gpus.runpytest_subprocess("-n2").assert_outcomes(passed=5, failed=1)
    assert len(by_gpu(gpus)["GPU-1111-0000"]) == 2


@pytest.mark.parametrize(
    ("options", "listed", "seen"),
    [
        (["-n1"], "1", "GPU-1111-0000"),
        (["-n0"], "GPU-0000", "GPU-0000-0000"),
        (["-p", "no:xdist"], None, "GPU-0000-0000"),
        (["-n1", "--device=cpu"], "1", "1"),
        (["-n0", "--device=cuda:1"], None, None),
        (["-n2"], "", ""),
    ],
)
def test_what_cuda_sees(
    gpus: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    listed: str | None,
    seen: str | None,
) -> None:
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    gpus.runpytest_subprocess(*options).assert_outcomes(passed=6)
    assert set(by_gpu(gpus)) == {seen}


def test_auto_means_a_worker_for_each_share(gpus: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = gpus.runpytest_subprocess("-n", "auto", "--workers-per-gpu=2")
    result.stdout.fnmatch_lines("4 workers *")
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "3")
    gpus.runpytest_subprocess("-n", "auto").stdout.fnmatch_lines("3 workers *")


def test_more_workers_than_gpus_under_another_scheduler_is_a_usage_error(gpus: pytest.Pytester) -> None:
    result = gpus.runpytest_subprocess("-n4", "--dist=load")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*4 workers and room for 2 on GPUs*-n 2*--workers-per-gpu*")
    gpus.runpytest_subprocess("-n4", "--dist=load", "--device=cpu").assert_outcomes(passed=6)
    gpus.runpytest_subprocess("-n2", "--dist=load").assert_outcomes(passed=6)
    assert gpus.runpytest_subprocess("--workers-per-gpu=0").ret == pytest.ExitCode.USAGE_ERROR


HOLD = """
import sys, time
from pathlib import Path
from harness.devices import visible_gpus
from harness.plugin.leases import Lease
from harness.runs import Pulse

lease = Lease(visible_gpus(), 1, Pulse(Path("other"), "main"))
assert lease.held.is_set()
print("held", flush=True)
time.sleep(60)
"""


def test_one_process_waits_with_a_message_until_another_is_killed(
    gpus: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    holder = subprocess.Popen([sys.executable, "-c", HOLD], cwd=gpus.path, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    command = [sys.executable, "-u", "-m", "pytest", "-n0"]
    run = subprocess.Popen(command, cwd=gpus.path, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    said = ""
    while "waiting for a GPU" not in said:
        said = run.stdout.readline()
        assert said
    assert "GPU 0: Fake" in said
    time.sleep(0.5)
    assert not (gpus.path / "trace.jsonl").exists()
    holder.kill()
    holder.wait()
    run.communicate(timeout=60)
    assert run.returncode == 0
    assert set(by_gpu(gpus)) == {"GPU-0000-0000"}


def test_a_lease_says_what_it_waits_for_and_what_it_got(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = [Gpu(3, "Fake", "GPU-3333")]
    with Pulse(tmp_path / "a", "gw0").beating() as one, Pulse(tmp_path / "b", "gw1").beating() as other:
        first = Lease(gpu, 1, one, tmp_path / "locks")
        second = Lease(gpu, 1, other, tmp_path / "locks")
        assert first.held.is_set()
        assert not second.held.wait(0.7)
        assert [beat.device for name in "ab" for beat in read_heartbeats(tmp_path / name)] == ["GPU 3: Fake", "waiting"]
        first.close()
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
        assert second.held.wait(10)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-3333"
        assert [beat.device for beat in read_heartbeats(tmp_path / "b")] == ["GPU 3: Fake"]
        second.close()
