"""How long a run may yet take: from what its cases took before, and how this run compares with that."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass

from harness.case import Case
from harness.case import unit_of
from harness.durations import UNKNOWN
from harness.durations import Durations
from harness.progress import FEATURES
from harness.runs import Heartbeat


@dataclass(frozen=True)
class State:
    """How far a run is."""

    outcomes: Mapping[str, str]
    """Of the cases that have ended, by node id."""
    seconds: Mapping[str, float]
    """What each of these took."""
    beats: Iterable[Heartbeat]
    workers: int
    now: float
    """Seconds since the epoch."""


class Estimate:
    """Expected seconds of cases and of the rest of a run.

    Args:
        cases: By node id, in the order of the run; None for a test that is no case, which is expected to take no time.
        durations: What is known of their durations.
    """

    def __init__(self, cases: Mapping[str, Case | None], durations: Durations) -> None:
        known = {node: case for node, case in cases.items() if case is not None}
        self._unit = {node: (case.suite, *unit_of(case)) for node, case in known.items()}
        self._work = {node: durations.work(case) for node, case in known.items()}
        self._features = {self._unit[node]: durations.features(case) for node, case in known.items()}
        self._informed = any(seconds != UNKNOWN for seconds in self._work.values())

    def case(self, node: str | None) -> float | None:
        """Return the expected seconds of a case that has to extract features first, None where nothing is known."""
        if not self._informed or node not in self._work:
            return None
        return self._work[node] + self._features[self._unit[node]]

    def left(self, state: State) -> float | None:
        """Return the expected seconds until the run ends, None where nothing is known yet."""
        skipped = {self._unit.get(node) for node, outcome in state.outcomes.items() if outcome == "skipped"}
        done = [node for node, outcome in state.outcomes.items() if outcome != "skipped" and node in self._work]
        running = {beat.case: beat for beat in state.beats if beat.case in self._work}
        begun = {self._unit[node] for node in done}
        begun |= {self._unit[node] for node, beat in running.items() if beat.stage not in {None, FEATURES}}
        # What one case of a unit misses, data or weights, the others miss as well.
        waiting = [n for n in self._work if n not in state.outcomes and self._unit[n] not in skipped]
        pace = self._pace(done, state.seconds)
        if pace is None:
            return None
        rest = []
        for node in [*running.keys() & set(waiting), *(node for node in waiting if node not in running)]:
            unit = self._unit[node]
            expected = pace * (self._work[node] + (0.0 if unit in begun else self._features[unit]))
            begun.add(unit)
            elapsed = state.now - running[node].case_began if node in running else 0.0
            rest.append(max(expected - elapsed, 0.0))
        return max(sum(rest) / state.workers, max(rest, default=0.0))

    def _pace(self, done: list[str], seconds: Mapping[str, float]) -> float | None:
        """Return how this run compares with what was expected; where that is something, with the weight of a case."""
        units = {self._unit[node] for node in done}
        expected = sum(self._work[node] for node in done) + sum(self._features[unit] for unit in units)
        took = sum(seconds[node] for node in done)
        if self._informed:
            usual = sum(self._work.values()) / len(self._work)
            return (took + usual) / (expected + usual) if expected + usual else 1.0
        return took / expected if done else None
