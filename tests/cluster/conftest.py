"""Slurm, real where it can be started and a stand-in everywhere, and a project without models or torch."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import fake_srun
from tools.slurm import cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real_slurm() -> Iterator[dict[str, str]]:
    """The environment of a Slurm cluster of this machine alone."""
    with ExitStack() as stack:
        reason = cluster.missing()
        if reason is None:
            folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # pytest's own has too long a path for munge's socket
            stack.callback(shutil.rmtree, folder)
            try:
                environment = stack.enter_context(cluster.running(folder))
            except (OSError, RuntimeError) as fault:
                reason = str(fault)
        if reason is not None:
            # A warning, since a skip is a mere letter in a quiet run; `python -m tools.slurm` installs what is missing.
            warnings.warn(f"{reason}: only stand-ins for Slurm are tried", stacklevel=1)
            pytest.skip(reason)
        yield environment


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ``srun`` on the path; its folder has each call's options in ``calls.txt``."""
    program = tmp_path / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("python3")} {fake_srun.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("FAKE_SRUN", str(tmp_path))
    return tmp_path


@pytest.fixture(params=["fake", "real"])
def slurm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Slurm's ``srun`` on the path: a stand-in, then the real one where it can be started."""
    if request.param == "real":
        monkeypatch.setenv("SLURM_CONF", request.getfixturevalue("real_slurm")["SLURM_CONF"])
    else:
        request.getfixturevalue("fake_slurm")
    return str(request.param)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder where pytest has the harness, and a cache of its own."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["harness.plugin"]')
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, as a user does."""
    # A plugin of this repository's tests that takes a second to import.
    return project.runpytest_subprocess("-p", "no:hypothesispytest", *arguments, timeout=180)
