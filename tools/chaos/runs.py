"""A run of pytest as a process, its workers, and how they are killed. Linux only: workers are found in ``/proc``."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.runs import read_heartbeats
from harness.runs import read_runs
from harness.runs import runs_dir
from tools.chaos.project import ROOT

_WORKER = b"exec(eval(sys.stdin.readline()))"
"""In the command line of every process that execnet starts."""


class Controller:
    """Pytest in a process of its own.

    Args:
        folder: The project, whose ``cache`` it uses.
        command: The command line.
        number: Of this run, for the names of its files.
    """

    def __init__(self, folder: Path, command: Sequence[str], number: int) -> None:
        self.log = folder / f"run{number}.log"
        self._output = folder / f"run{number}.out"
        self._began = time.monotonic()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self._cache = folder / "cache"
        environment = {**clean, "CHAOS_LOG": str(self.log), "HARNESS_CACHE": str(self._cache), "PYTHONPATH": str(ROOT)}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._began

    def workers(self) -> list[int]:
        """Return the process ids of the workers, from the first moment of each."""
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                parent = int(status.read_text().rpartition(")")[2].split()[1])
                if parent == self.process.pid and _WORKER in (status.parent / "cmdline").read_bytes():
                    found.append(int(status.parent.name))
        return sorted(found)

    def runs_a_case(self) -> bool:
        """Say whether a worker has begun a case."""
        runs = read_runs(runs_dir(self._cache))
        mine = [folder for folder, run in runs.items() if run.pid == self.process.pid]
        return any(beat.case is not None for folder in mine for beat in read_heartbeats(folder))

    def kill(self, pid: int) -> None:
        """Kill the process or one of its workers."""
        os.kill(pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended."""
        self.process.wait(timeout=seconds)

    def output(self) -> str:
        """Return what it has printed."""
        return self._output.read_text(errors="replace")
