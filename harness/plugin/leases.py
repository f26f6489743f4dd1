"""One GPU for each worker, or a share of one: a lock that the operating system frees when its holder dies."""

import getpass
import os
import tempfile
import threading
from collections.abc import Generator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from filelock import Timeout

from harness.devices import VISIBLE
from harness.devices import WAITING
from harness.devices import Gpu
from harness.devices import usable_cores
from harness.devices import visible_gpus
from harness.plugin.collection import case_of
from harness.plugin.pulse import PULSE
from harness.plugin.scheduling import OURS
from harness.runs import Pulse

RETRY_SECONDS = 0.5

_AUTO_WORKERS = "PYTEST_XDIST_AUTO_NUM_WORKERS"
_NOTE = pytest.StashKey[str]()
_LEASE = pytest.StashKey["Lease"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare how many workers share a GPU."""
    meaning = "workers that share one GPU (default: 1)"
    parser.getgroup("harness").addoption("--workers-per-gpu", type=_positive, default=1, metavar="N", help=meaning)


@pytest.hookimpl(wrapper=True, optionalhook=True)  # without xdist, pytest does not know this hook
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """For ``-n auto``: a worker for each share of a GPU; without GPUs one a core, as far as the container lets us."""
    cores = yield
    if os.environ.get(_AUTO_WORKERS):
        return cores
    shares = len(_gpus(config)) * config.getoption("workers_per_gpu")
    return shares or min(cores, usable_cores())


def pytest_configure(config: pytest.Config) -> None:
    """On the controller: refuse workers that would be given cases and have no GPU until others end."""
    option = config.option
    if getattr(option, "dist", "no") == "no" or option.collectonly:
        return
    workers = option.tx.count("popen")  # those of -n; where others run, they look for GPUs themselves
    slots = len(_gpus(config)) * config.getoption("workers_per_gpu")
    if not 0 < slots < workers:
        return
    advice = f"Say -n {slots}, or a higher --workers-per-gpu"
    if not config.stash[OURS]:
        raise pytest.UsageError(
            f"{workers} workers and room for {slots} on GPUs: --dist {option.dist} gives cases to all of them. "
            f"{advice}, or leave --dist off: then cases go to those with a GPU"
        )
    config.stash[_NOTE] = f"GPUs: room for {slots} of {workers} workers, the others wait. {advice}"


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that workers will wait for others."""
    return config.stash.get(_NOTE, None)


@pytest.hookimpl(trylast=True)  # after the heartbeat has begun
def pytest_sessionstart(session: pytest.Session) -> None:
    """Where cases run: take a GPU, or go on trying in the background."""
    config = session.config
    pulse = config.stash.get(PULSE, None)
    if pulse is None or not (gpus := _gpus(config)):
        return
    lease = config.stash[_LEASE] = Lease(gpus, config.getoption("workers_per_gpu"), pulse)
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if not lease.held.is_set() and reporter is not None and not hasattr(config, "workerinput"):
        reporter.write_line(f"waiting for a GPU: other runs hold all of {', '.join(map(str, gpus))}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no case begin without a GPU."""
    lease = item.config.stash.get(_LEASE, None)
    if lease is not None and case_of(item) is not None:
        lease.held.wait()
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Free the GPU."""
    if (lease := config.stash.get(_LEASE, None)) is not None:
        lease.close()


class Lease:
    """A share of a GPU for this process. ``held`` is set once there is one; from then on CUDA sees that GPU alone.

    Args:
        gpus: Any of them will do.
        shares: How many processes may share one.
        pulse: Where to say which GPU it is, or that there is none yet.
        folder: Of the locks of this user on this machine.
    """

    def __init__(self, gpus: Sequence[Gpu], shares: int, pulse: Pulse, folder: Path | None = None) -> None:
        self.held = threading.Event()
        self._gpus = gpus
        self._shares = shares
        self._pulse = pulse
        self._folder = folder or _locks_dir()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock: FileLock | None = None
        self._before = os.environ.get(VISIBLE)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep_trying, daemon=True, name="harness-lease")
        if not self._try():
            pulse.device(WAITING)
            self._thread.start()

    def close(self) -> None:
        """Free the GPU, or stop waiting for one."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._lock is not None:
            self._lock.release()
            if self._before is None:
                os.environ.pop(VISIBLE, None)
            else:
                os.environ[VISIBLE] = self._before

    def _keep_trying(self) -> None:
        while not self._closed.wait(RETRY_SECONDS):
            if self._try():
                return

    def _try(self) -> bool:
        """Take a share where most are free: the first of each GPU before the second of any."""
        for share in range(self._shares):
            for gpu in self._gpus:
                path = self._folder / f"gpu-{gpu.uuid.replace('/', '-')}.slot{share}.lock"
                # Held by the process, whichever of its threads took it.
                lock = FileLock(path, thread_local=False)
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    continue
                self._lock = lock
                os.environ[VISIBLE] = gpu.uuid
                self._pulse.device(str(gpu))
                self.held.set()
                return True
        return False


def _gpus(config: pytest.Config) -> list[Gpu]:
    """Return the GPUs to lease: none with ``--device cpu``, nor with ``cuda:1``, which is the user's own choice."""
    device = config.getoption("harness_device") or config.getini("harness_device") or "auto"
    return visible_gpus() if device in {"auto", "cuda"} else []


def _locks_dir() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir()) / f"generalization-harness-{user}" / "gpus"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
