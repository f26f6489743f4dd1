"""Runs under way: each process of a run keeps a small file that says what it is doing.

The files of a run lie in ``<cache>/runs/<run>/``, ``<worker>.beat.json`` for each worker. The controller reads them to
schedule and to show progress, and ``harness status`` from another terminal.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

BEAT_SECONDS = 5.0
"""How often a living process renews its file, whether or not there is news."""

_NEWS_SECONDS = 0.2
"""How often progress within a stage is written; a new stage is written at once."""


@dataclass(frozen=True)
class Heartbeat:
    """What one process is doing. Times are seconds since the epoch."""

    worker: str
    """``gw0`` ..., or ``main`` without xdist."""
    host: str
    pid: int
    case: str | None = None
    """Node id of the running case; None while idle."""
    case_began: float = 0.0
    stage: str | None = None
    """``features``, ``probe`` ...: what the case last reported."""
    done: int | None = None
    """Steps of the stage done so far."""
    total: int | None = None
    progressed: float = 0.0
    """When case, stage or steps last changed."""
    updated: float = 0.0
    """When the file was last written: long ago means that the process is gone, or stopped."""
    device: str | None = None
    """The leased GPU; ``waiting`` while there is none free; None where none is needed."""


def runs_dir(cache_dir: Path) -> Path:
    """Return where the folders of runs lie."""
    return cache_dir / "runs"


def run_name(began: float) -> str:
    """Return a new name for a run that began at ``began``; names sort by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(began))}-{uuid.uuid4().hex[:6]}"


def read_heartbeats(folder: Path) -> list[Heartbeat]:
    """Return the latest word of each process of a run, by worker. A file that cannot be read now is passed over."""
    found = []
    for path in sorted(folder.glob("*.beat.json")):
        with suppress(OSError, ValueError, TypeError):
            found.append(Heartbeat(**json.loads(path.read_text())))
    return found


class Pulse:
    """Keeps the heartbeat file of this process.

    Args:
        folder: Of the run; made if need be.
        worker: Name of this process within the run.

    What cannot be written, on a full disk for example, is not said: a case never fails for its heartbeat.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self.path = folder / f"{worker}.beat.json"
        self._beat = Heartbeat(worker, socket.gethostname(), os.getpid())
        self._lock = threading.Lock()  # the renewing thread and the case both write
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name="harness-pulse")
        self._written = 0.0

    @contextmanager
    def beating(self) -> Iterator["Pulse"]:
        """Renew the file within the block and remove it at the end."""
        self._write()
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def begin(self, case: str) -> None:
        """Say that a case begins."""
        self._say(case=case, case_began=time.time(), stage=None, done=None, total=None)

    def end(self) -> None:
        """Say that the case has ended."""
        self._say(case=None, stage=None, done=None, total=None)

    def stage(self, stage: str, done: int | None, total: int | None) -> None:
        """Say how far the case is: a listener of `harness.progress`."""
        if stage != self._beat.stage or done == total or time.time() - self._written >= _NEWS_SECONDS:
            self._say(stage=stage, done=done, total=total)

    def device(self, device: str | None) -> None:
        """Say which device is leased or waited for."""
        self._say(device=device)

    def _say(self, **news: object) -> None:
        with self._lock:
            self._beat = replace(self._beat, progressed=time.time(), **news)  # type: ignore[arg-type]  # fields of Heartbeat
        self._write()

    def _renew(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            self._write()

    def _write(self) -> None:
        with self._lock, suppress(OSError):
            self._written = time.time()
            text = json.dumps(asdict(replace(self._beat, updated=self._written)))
            temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_text(text)
                temporary.replace(self.path)  # not flushed: it is worth nothing after a crash of the machine
            finally:
                temporary.unlink(missing_ok=True)
