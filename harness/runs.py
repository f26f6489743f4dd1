"""Runs under way: each process of a run keeps a small file that says what it is doing.

The files of a run lie in ``<cache>/runs/<run>/``: ``run.json`` of the controller for the run as a whole, and
``<worker>.beat.json`` of each process that runs cases. The controller reads the latter to schedule and to show
progress, ``harness status`` reads both from another terminal.
"""

import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import Generic
from typing import TypeVar

BEAT_SECONDS = 5.0
"""How often a living process renews its file, whether or not there is news."""

SILENT_SECONDS = 30.0
"""A file that was not renewed for so long tells of a process that is gone, or stopped."""

KEPT_RUNS = 20
"""How many folders of past runs are kept."""

_NEWS_SECONDS = 0.2
"""How often progress within a stage is written; a new stage is written at once."""

_DAY = 86400.0


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

    def silent(self, now: float) -> bool:
        """Say whether nothing was heard of the process for so long that it is gone, or stopped."""
        return now - self.updated > SILENT_SECONDS or is_gone(self.host, self.pid)


@dataclass(frozen=True)
class Run:
    """What a run is doing as a whole, as its controller says. Times are seconds since the epoch."""

    host: str
    pid: int
    began: float
    command: str
    """As it was typed, without the path of Python."""
    suite: str
    workers: int = 1
    selected: int | None = None
    """Number of selected cases; None until they are collected."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds_left: float | None = None
    """Expected seconds until the end; None where nothing is known."""
    stuck: Mapping[str, str] = field(default_factory=dict)
    """What the controller finds wrong with a worker, by its name."""
    updated: float = 0.0
    ended: float | None = None
    exit_status: int | None = None

    @property
    def reported(self) -> int:
        """Number of cases whose outcome is known."""
        return self.passed + self.failed + self.skipped

    def dead(self, now: float) -> bool:
        """Say whether the controller went without ending the run: killed, or its machine with it."""
        return self.ended is None and (now - self.updated > SILENT_SECONDS or is_gone(self.host, self.pid))


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


def heartbeat_path(folder: Path, worker: str) -> Path:
    """Return the heartbeat file of a worker."""
    return folder / f"{worker}.beat.json"


def run_path(folder: Path) -> Path:
    """Return the file of the run as a whole."""
    return folder / "run.json"


def read_runs(runs: Path) -> dict[Path, Run]:
    """Return all runs by folder, the earliest first. One whose file cannot be read now is passed over."""
    found = {}
    for folder in sorted(runs.glob("*/")):
        with suppress(OSError, ValueError, TypeError):
            found[folder] = Run(**json.loads(run_path(folder).read_text()))
    return found


def remove_old_runs(runs: Path, keep: int = KEPT_RUNS) -> None:
    """Remove the folders of all but the newest runs, never that of a run which may be under way."""
    now = time.time()
    known = read_runs(runs)
    for folder in sorted(runs.glob("*/"))[:-keep]:
        run = known.get(folder)
        with suppress(OSError):  # another run cleans up as well
            # A stopped run may go on, and a folder without a run file may be that of a run about to begin.
            last = run.updated if run else folder.stat().st_mtime
            if (run and (run.ended or is_gone(run.host, run.pid))) or now - last > _DAY:
                shutil.rmtree(folder)


def is_gone(host: str, pid: int) -> bool:
    """Say whether a process is known to have ended. Of another machine's processes nothing is known."""
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is there, and another user's
    return False


State = TypeVar("State", bound=Heartbeat | Run)


class StateFile(Generic[State]):
    """Keeps a file that says the state of this process, renewed as long as the process lives.

    Args:
        path: The file; its folder is made if need be.
        state: What it says at first.

    What cannot be written, on a full disk for example, is not said: a case never fails for it.
    """

    def __init__(self, path: Path, state: State) -> None:
        self.path = path
        self.state = state
        self.written = 0.0
        self._lock = threading.Lock()  # the renewing thread and the case both write
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name="harness-pulse")

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the file within the block."""
        self.write()
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def say(self, **news: Any) -> None:
        """Change fields of the state, and write it."""
        with self._lock:
            self.state = replace(self.state, **news)
        self.write()

    def write(self) -> None:
        """Write the state as it is."""
        with self._lock, suppress(OSError):
            self.written = time.time()
            text = json.dumps(asdict(replace(self.state, updated=self.written)))
            temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_text(text)
                temporary.replace(self.path)  # not flushed: it is worth nothing after a crash of the machine
            finally:
                temporary.unlink(missing_ok=True)

    def _renew(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            self.write()


class Pulse:
    """Keeps the heartbeat file of this process.

    Args:
        folder: Of the run; made if need be.
        worker: Name of this process within the run.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        beat = Heartbeat(worker, socket.gethostname(), os.getpid())
        self._file: StateFile[Heartbeat] = StateFile(heartbeat_path(folder, worker), beat)

    @contextmanager
    def beating(self) -> Iterator["Pulse"]:
        """Renew the file within the block and remove it at the end."""
        try:
            with self._file.renewed():
                yield self
        finally:
            with suppress(OSError):
                self._file.path.unlink(missing_ok=True)

    def begin(self, case: str) -> None:
        """Say that a case begins."""
        self._say(case=case, case_began=time.time(), stage=None, done=None, total=None)

    def end(self) -> None:
        """Say that the case has ended."""
        self._say(case=None, stage=None, done=None, total=None)

    def stage(self, stage: str, done: int | None, total: int | None) -> None:
        """Say how far the case is: a listener of `harness.progress`."""
        if stage != self._file.state.stage or done == total or time.time() - self._file.written >= _NEWS_SECONDS:
            self._say(stage=stage, done=done, total=total)

    def device(self, device: str | None) -> None:
        """Say which device is leased or waited for."""
        self._say(device=device)

    def _say(self, **news: object) -> None:
        self._file.say(progressed=time.time(), **news)
