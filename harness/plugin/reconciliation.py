"""Every selected case reports: a run that lost one never ends with status 0, and names it.

Interruptions (``-x``, ``--maxfail``, Ctrl-C, ``pytest.exit``) are a cause: then the number of cases not run is said.
"""

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.plugin.crashes import fate_of
from harness.plugin.tally import TALLY
from harness.plugin.tally import Tally

_NAMED = 20
"""How many lost cases are named without ``-v``."""

_INTERNAL = "internal error"
_FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_configure(config: pytest.Config) -> None:
    """Watch over the run, on the process that the user sees."""
    if (tally := config.stash.get(TALLY, None)) is not None:
        config.pluginmanager.register(_Reconciliation(config, tally), "harness-reconciliation")


class _Reconciliation:
    """Compares what was selected with what was reported. A plugin of its own, as one hook does not say the run."""

    def __init__(self, config: pytest.Config, tally: Tally) -> None:
        self._config = config
        self._tally = tally
        self._faults: list[str] = []
        self._lines: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note a worker that died."""
        if error:
            self._faults.append(f"worker {node.gateway.id} died: {fate_of(node) or error}")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Note an internal error, of this process or of a worker."""
        lines = str(excrepr).splitlines()
        messages = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
        said = [line for line in messages or lines if "Error: " in line] or messages or lines
        self._faults.append(f"{_INTERNAL}: {said[-1] if said else 'unknown'}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tick a case off."""
        self._tally.add(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None]:
        """Judge, and set the exit status where something was lost."""
        self._lines = self._findings(interrupted=_interrupted(session, exitstatus))
        if self._lines and exitstatus in _FINE:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._tally.deselected and self._reporter:
            # Only their number is known here; plugins look into whatever stands in the statistics.
            self._reporter.stats.setdefault("deselected", [SimpleNamespace() for _ in range(self._tally.deselected)])
        yield
        self._say()  # after an internal error, or if asked to, pytest shows no summary

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self) -> None:
        """Name what was lost, and why as far as is known."""
        self._say()

    def _findings(self, *, interrupted: bool) -> list[str]:
        tally, faults = self._tally, self._faults
        lost = tally.unreported()
        if interrupted:
            return [f"interrupted: {len(lost)} of {len(tally.selected)} selected cases were not run"] if lost else []
        if lost:
            named = lost if self._config.getoption("verbose", 0) > 0 or len(lost) <= _NAMED else lost[:_NAMED]
            more = [f"... and {len(lost) - len(named)} more (-v names all)"] if len(named) < len(lost) else []
            return [f"{len(lost)} of {len(tally.selected)} selected cases did not report:", *named, *more, *faults]
        if faults and not tally.collected:
            return ["nothing was run: no worker finished its collection", *faults]
        return [fault for fault in faults if fault.startswith(_INTERNAL)]

    def _say(self) -> None:
        if self._lines and self._reporter:
            self._reporter.write_sep("=", "reconciliation", red=True, bold=True)
            for line in self._lines:
                self._reporter.write_line(line, red=True)
        self._lines = []

    @property
    def _reporter(self) -> Any:
        """None under ``-p no:terminal``."""
        return self._config.pluginmanager.getplugin("terminalreporter")


def _interrupted(session: pytest.Session, exitstatus: int) -> bool:
    return exitstatus == pytest.ExitCode.INTERRUPTED or bool(session.shouldfail or session.shouldstop)
