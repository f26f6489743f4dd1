"""What was selected and what has been reported, on the process that the user sees: xdist's controller, or the only one.

Workers of xdist count nothing but what they deselect.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Literal

import pytest

_Outcome = Literal["passed", "failed", "skipped"]
_DESELECTED = "harness_deselected"


class Tally:
    """Selected cases and the outcomes of those that have ended, by node id."""

    def __init__(self) -> None:
        self.selected: dict[str, None] = {}
        """In the order of the run."""
        self.collected = False
        self.outcomes: dict[str, _Outcome] = {}
        """Of cases that have ended."""
        self.seconds: dict[str, float] = {}
        """What each case took so far, setup and teardown included."""
        self.deselected = 0
        self._unfinished: dict[str, _Outcome] = {}

    def select(self, ids: Iterable[str]) -> None:
        """Take node ids as selected."""
        self.selected.update(dict.fromkeys(ids))
        self.collected = True

    def add(self, report: pytest.TestReport) -> None:
        """Take a report. A case has ended with its teardown, or with the crash of its worker."""
        node = report.nodeid
        if node not in self.selected:  # the teardown of what several cases share
            return
        self.seconds[node] = self.seconds.get(node, 0.0) + report.duration
        outcome = _worse(self._unfinished.get(node, "passed"), report.outcome)
        if report.when in {"setup", "call"}:
            self._unfinished[node] = outcome
        else:
            self.outcomes[node] = _worse(self.outcomes.get(node, "passed"), outcome)

    def count(self, outcome: _Outcome) -> int:
        """Return how many cases had an outcome."""
        return list(self.outcomes.values()).count(outcome)  # a copy, as another thread may count

    def unreported(self) -> list[str]:
        """Return the node ids that were selected and have not ended."""
        return [node for node in list(self.selected) if node not in self.outcomes]


TALLY = pytest.StashKey[Tally]()
"""Absent on workers of xdist, and where nothing is to be run."""

_COUNT = pytest.StashKey[int]()


def is_worker(config: pytest.Config) -> bool:
    """Say whether this process is a worker of xdist."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    if not is_worker(config) and not config.option.collectonly:
        config.stash[TALLY] = Tally()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what this process deselects."""
    if items:
        stash = items[0].config.stash
        stash[_COUNT] = stash.get(_COUNT, 0) + len(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without xdist: take what is to be run."""
    if (tally := session.config.stash.get(TALLY, None)) is not None:
        tally.select(item.nodeid for item in session.items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """With xdist: take what a worker collected, the same for all unless something is wrong."""
    if (tally := node.config.stash.get(TALLY, None)) is not None:
        tally.select(ids)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """On a worker: send how many cases it deselected."""
    if is_worker(session.config):
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]  # xdist gives it to workers
        output[_DESELECTED] = session.config.stash.get(_COUNT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take how many cases a worker deselected: each deselects the same."""
    if (tally := node.config.stash.get(TALLY, None)) is not None:
        count = getattr(node, "workeroutput", {}).get(_DESELECTED, 0)
        tally.deselected = max(tally.deselected, count)


def _worse(one: _Outcome, other: _Outcome) -> _Outcome:
    outcomes: tuple[_Outcome, ...] = ("failed", "skipped")
    return next((outcome for outcome in outcomes if outcome in {one, other}), "passed")
