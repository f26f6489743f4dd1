"""Collection of 47,000 cases against a bare parametrised module of as many, and the time to the first case.

The project has 870 models in its models file, so that the paper suite has 46,980 cases; all weights are missing, so
every case that is started is skipped. Times are of the processor, but for the first case of ``-n 8``: there, eight
workers collect side by side on the cores that there are.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import data

ROOT = Path(__file__).resolve().parents[1]
MODELS = 870
CASES = 54 * MODELS
"""Six splits, each with all training images and with eight numbers of shots."""
DINO = ("s-DINO", "s-DINO-mini")
OURS = ("benchmarks", "--suite", "paper")
PLAIN = ("bare", "--noconftest")

ENTRY = """
  {name}:
    group: self-supervised
    architecture: {{source: torchvision, name: resnet50}}
    weights: {{source: file, path: {name}.pth}}
    surgery: {{sub_key: state_dict, keep: encoder_q., drop: ['^fc\\.'], missing: ['fc\\.weight', 'fc\\.bias']}}
    feature: {{take: identity, module: fc, dim: 2048}}
    parameters: 23.5
    training_data: ImageNet-1K, without labels
    licence: MIT
"""

BARE = """
import pytest
NAMES = [f"net-{number // 54:04d}-L{number - number // 54 * 54}-N001" for number in range(CASES)]
@pytest.mark.parametrize("case", [{"name": name} for name in NAMES], ids=NAMES)
def test_bare(case): pass
"""

CONFTEST = """
import os, sys, time
pytest_plugins = ["harness.plugin"]
HEAVY = {"torch", "torchvision", "timm", "nltk", "optuna", "matplotlib", "sklearn", "transformers"}
def pytest_collection_finish(session):
    print("collected", len(session.items), "heavy", sorted(HEAVY & sys.modules.keys()), file=sys.stderr)
def pytest_runtest_logstart():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        print("started", time.time(), file=sys.stderr)
"""

MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
with open(sys.argv[1], "w") as file:
    print(used.ru_utime + used.ru_stime, peak, file=file)
sys.exit(status)
"""
"""Runs a command from a small process: Linux counts the memory of the one that forks as its child's own."""


@dataclass(frozen=True)
class Run:
    """What one process of pytest used, its children apart, and what it said.

    Attributes:
        seconds: of processor time.
        peak: the most memory resident at once, bytes.
        status: its exit status.
        output: what it wrote to standard output.
        errors: what it wrote to standard error.
    """

    seconds: float
    peak: int
    status: int
    output: str
    errors: str


def write_project(folder: Path) -> None:
    """Write a project with 46,980 cases of the paper suite, and a bare module of as many."""
    names = [*DINO, *(f"net-{number:04d}" for number in range(MODELS - len(DINO)))]
    (folder / "models.yaml").write_text("models:\n" + "".join(ENTRY.format(name=name) for name in names))
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "benchmarks").mkdir()
    test = data.path("init/benchmarks/test_cog.py.template").read_text()
    (folder / "benchmarks" / "test_cog.py").write_text(test)
    (folder / "bare").mkdir()
    (folder / "bare" / "test_bare.py").write_text(BARE.replace("CASES", str(CASES)))


def environment(folder: Path) -> Mapping[str, str]:
    """Return the variables under which the project is run."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_CACHE": str(folder / "cache")}


def collect(folder: Path, *arguments: str) -> Run:
    """Collect in the project and run nothing."""
    quiet = ("--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist")
    with tempfile.NamedTemporaryFile("r") as used:
        command = [sys.executable, "-c", MEASURE, used.name, sys.executable, "-m", "pytest", *quiet, *arguments]
        done = subprocess.run(  # noqa: S603 - our own command
            command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )
        seconds, peak = used.read().split()
    return Run(float(seconds), int(peak), done.returncode, done.stdout, done.stderr)


def first_case(folder: Path, *arguments: str) -> float:
    """Run cases of the project; return after how many seconds the first was started."""
    began = time.time()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", *arguments]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    )
    starts = [float(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("started ")]
    return min(starts) - began


def main() -> None:
    """Print processor time, memory and the wall-clock time to the first case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder)
        collect(folder, *PLAIN)  # compiles what is compiled once
        bare = collect(folder, *PLAIN)
        print(f"{CASES} cases, {os.cpu_count()} cores")
        print(f"{'bare module':34} {bare.seconds:5.2f} s of processor time, {bare.peak / 1e6:4.0f} MB")
        for selection in ([], ["-k", "dino"], ["--select", "model=s-dino"]):
            ours = collect(folder, *OURS, *selection)
            label = " ".join(["ours", *selection])
            print(f"{label:34} {ours.seconds:5.2f} s of processor time, {ours.peak / 1e6:4.0f} MB", end="")
            print(f", {ours.seconds / bare.seconds:.2f} of the bare module's time")
        for workers in ("8", "2"):
            seconds = first_case(folder, *OURS, "-k", "dino", "-n", workers)
            print(f"-k dino -n {workers}: first case after {seconds:.1f} s of wall-clock time")


if __name__ == "__main__":
    main()
