"""What a run is doing, said while it runs: to the terminal, and in a file for ``harness status``."""

import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from harness.durations import durations_for
from harness.plugin.estimate import Estimate
from harness.plugin.estimate import State
from harness.plugin.nodes import cases_by_node
from harness.plugin.options import RUN
from harness.plugin.options import SESSION
from harness.plugin.tally import TALLY
from harness.plugin.tally import Tally
from harness.runs import Run
from harness.runs import StateFile
from harness.runs import read_heartbeats
from harness.runs import remove_old_runs
from harness.runs import run_path
from harness.watch import headline
from harness.watch import longest
from harness.watch import stuck_lines
from harness.watch import trouble
from harness.watch import worker_table

_LOOK_SECONDS = 1.0
_SPARED = 20.0
"""An estimate over many thousand cases takes a while: it is left alone for so many times as long as it took."""

_TERMINAL_SECONDS, _CI_SECONDS = 15.0, 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare how often progress is shown."""
    parser.getgroup("harness").addoption(
        "--progress-every",
        type=float,
        metavar="SECONDS",
        help=f"show progress this often, 0 for never (default: {_TERMINAL_SECONDS:.0f} on a terminal, "
        f"{_CI_SECONDS:.0f} elsewhere and in CI; never with -q; a line for each worker with -v)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Show progress on the process that the user sees."""
    if (tally := config.stash.get(TALLY, None)) is not None:
        config.pluginmanager.register(_Progress(config, tally), "harness-progress")


class _Progress:
    """Looks at the run every second, in a thread, as the main one is busy: without xdist with the cases themselves."""

    def __init__(self, config: pytest.Config, tally: Tally) -> None:
        self._config = config
        self._tally = tally
        session, folder = config.stash[SESSION], config.stash[RUN]
        run = Run(
            host=socket.gethostname(),
            pid=os.getpid(),
            began=session.settings.run_started,
            command=shlex.join(["pytest", *map(str, config.invocation_params.args)]),
            suite=session.suite.name,
        )
        self._folder = folder
        self._file: StateFile[Run] = StateFile(run_path(folder), run)
        self._estimate: Estimate | None = None
        self._left: float | None = None
        self._due = 0.0
        self._screen: int | None = None
        self._every = 0.0
        self._shown = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="harness-progress")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[object]) -> None:
        """Learn how many workers there are."""
        self._file.state = replace(self._file.state, workers=len(specs))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Begin to watch."""
        remove_old_runs(self._folder.parent)
        self._every = _interval(self._config)
        if self._every:
            with suppress(OSError, ValueError, AttributeError):  # what stands in for stdout may be no file
                # While a test runs, pytest points stdout elsewhere: a copy made now goes on to lead to the terminal.
                self._screen = os.dup(sys.stdout.fileno())
        self._file.write()
        self._thread.start()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Say that the run has ended, and how."""
        self._end()
        counts = self._counts()
        self._file.say(**counts, ended=time.time(), exit_status=int(session.exitstatus), seconds_left=0.0, stuck={})

    def pytest_unconfigure(self) -> None:
        """Stop, in case the session never finished."""
        self._end()

    def _end(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._screen is not None:
            os.close(self._screen)
            self._screen = None

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self._look(time.time())
            if self._screen is not None and self._every and time.monotonic() - self._shown >= self._every:
                self._shown = time.monotonic()
                self._show(time.time())

    def _counts(self) -> dict[str, Any]:
        tally = self._tally
        selected = len(tally.selected) if tally.collected else None
        return {
            "selected": selected,
            **{name: tally.count(name) for name in ("passed", "failed", "skipped")},
        }

    def _look(self, now: float) -> None:
        tally, beats = self._tally, read_heartbeats(self._folder)
        if self._estimate is None and tally.collected:
            self._estimate = self._expect()
        if self._estimate is None:
            self._file.say(**self._counts())
            return
        if now >= self._due:
            state = State(dict(tally.outcomes), dict(tally.seconds), beats, self._file.state.workers, now)
            self._left = self._estimate.left(state)
            self._due = now + _SPARED * (time.time() - now)
        stuck = {beat.worker: why for beat in beats if (why := trouble(beat, now, self._estimate.case(beat.case)))}
        self._file.say(**self._counts(), seconds_left=self._left, stuck=stuck)

    def _expect(self) -> Estimate:
        session, nodes = self._config.stash[SESSION], list(self._tally.selected)
        cases = cases_by_node(session, nodes)
        durations = durations_for(session.book, [case for case in cases if case is not None])
        return Estimate(dict(zip(nodes, cases, strict=True)), durations)

    def _show(self, now: float) -> None:
        run, beats = self._file.state, read_heartbeats(self._folder)
        if run.selected is None or self._screen is None:
            return
        lines = [f"progress: {headline(run, beats, now)}"]
        if self._config.option.verbose > 0:
            lines += worker_table(run, beats, now)
        elif running := longest(beats, now):
            lines[0] += f"; longest: {running}"
        lines += stuck_lines(run, beats)
        begun = "\n" if self._config.get_terminal_writer().width_of_current_line else ""
        with suppress(OSError):  # whoever read it is gone
            os.write(self._screen, (begun + "\n".join(lines) + "\n").encode())


def _interval(config: pytest.Config) -> float:
    """Return how often progress is shown, in seconds; 0 for never."""
    if not config.pluginmanager.hasplugin("terminalreporter") or config.option.verbose < 0:
        return 0.0
    if (given := config.getoption("--progress-every")) is not None:
        return float(given)
    return _CI_SECONDS if os.environ.get("CI") or not sys.stdout.isatty() else _TERMINAL_SECONDS
