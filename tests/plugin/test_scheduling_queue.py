"""The core of scheduling, without pytest and clocks: simulated runs of random units, durations and faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from heapq import heappop
from heapq import heappush
from typing import NamedTuple

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from harness.plugin.scheduler_queue import CaseQueue
from harness.plugin.scheduler_queue import Task


class Fate(NamedTuple):
    """What an item does when it runs, whatever was expected of it."""

    features: float
    work: float
    extracts: bool = True
    """False: it ends during extraction, if it is the one that extracts."""
    again: bool = False
    """It ends during extraction as its worker dies, is put back, and then runs to its end."""


@dataclass
class Run:
    """A simulated run: handing out is checked at each moment against what may run by definition."""

    tasks: Sequence[Task]
    fates: Sequence[Fate]
    workers: int
    now: float = 0.0
    order: list[int] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = CaseQueue(self.tasks, self.workers)
        self.left = set(range(len(self.tasks)))
        self.repeated: set[int] = set()
        self.extracting: dict[int, object] = {}
        self.there: set[object] = set()
        self.idle = list(range(self.workers))
        self.events: list[tuple[float, int, str, int, int]] = []

    def to_its_end(self) -> "Run":
        self.hand_out()
        while self.events:
            self.now, _, kind, worker, item = heappop(self.events)
            getattr(self, kind)(worker, item)
            self.hand_out()
        assert not self.left
        assert not self.queue
        assert self.queue.take() is None
        return self

    def may_run(self) -> bool:
        waits = {*self.extracting.values()}
        return any(
            (unit := self.tasks[item].unit) is None or unit in self.there or unit not in waits for item in self.left
        )

    def hand_out(self) -> None:
        while self.idle and (item := self.queue.take()) is not None:
            self.begin(self.idle.pop(0), item)
        assert len(self.queue) == len(self.left)
        assert not (self.idle and self.may_run()), "a worker idles while something may run"

    def begin(self, worker: int, item: int) -> None:
        self.left.remove(item)
        self.order.append(item)
        unit, fate = self.tasks[item].unit, self.fates[item]
        if unit is None or unit in self.there:
            assert not self.queue.is_pioneer(item)
            self.at(fate.work, "end", worker, item)
            return
        assert unit not in self.extracting.values(), "two extract the same"
        assert self.queue.is_pioneer(item)
        self.extracting[item] = unit
        if fate.again and item not in self.repeated:
            self.at(fate.features / 2, "die", worker, item)
        elif fate.extracts:
            self.at(fate.features, "extract", worker, item)
        else:
            self.at(fate.features / 2, "end", worker, item)

    def extract(self, worker: int, item: int) -> None:
        self.there.add(self.extracting.pop(item))
        self.queue.extracted(item)
        self.at(self.fates[item].work, "end", worker, item)

    def end(self, worker: int, item: int) -> None:
        self.extracting.pop(item, None)
        self.queue.ended(item)
        self.idle.append(worker)

    def die(self, worker: int, item: int) -> None:
        self.repeated.add(item)
        self.extracting.pop(item)
        self.left.add(item)
        self.queue.put_back(item)
        self.idle.append(worker)

    def at(self, seconds: float, kind: str, worker: int, item: int) -> None:
        heappush(self.events, (self.now + seconds, len(self.spans), kind, worker, item))
        self.spans.append((self.now, self.now + seconds))


SECONDS = st.floats(0.001, 1000)
UNITS = st.one_of(st.none(), st.sampled_from("abcdef").map(lambda letter: ("cog", letter)))


@st.composite
def runs(draw: st.DrawFn, *, faults: bool) -> Run:
    tasks, fates = [], []
    extraction = {letter: draw(SECONDS) for letter in "abcdef"}
    for unit in draw(st.lists(UNITS, max_size=40)):
        tasks.append(Task(unit, unit and unit[1], draw(SECONDS), draw(SECONDS)))
        extracts, again = (draw(st.booleans()), draw(st.booleans())) if faults else (True, False)
        fates.append(Fate(extraction[unit[1]] if unit else 0.0, draw(SECONDS), extracts, again))
    return Run(tasks, fates, draw(st.integers(1, 9)))


@settings(deadline=None)
@given(runs(faults=True))
def test_every_item_runs_once_and_no_worker_idles_while_one_may_run(run: Run) -> None:
    run.to_its_end()
    assert sorted(run.order) == sorted([*range(len(run.tasks)), *run.repeated])


@settings(deadline=None)
@given(runs(faults=False))
def test_no_run_takes_longer_than_the_bound_whatever_was_expected(run: Run) -> None:
    run.to_its_end()
    extraction = {task.unit: fate.features for task, fate in zip(run.tasks, run.fates, strict=True)}
    total = sum(extraction.values()) + sum(fate.work for fate in run.fates)
    chain = max((fate.features + fate.work for fate in run.fates), default=0.0)
    assert run.now <= (total / run.workers + (1 - 1 / run.workers) * chain) * (1 + 1e-9)


def order(tasks: Sequence[Task], workers: int = 1) -> list[int]:
    fates = [Fate(task.features, task.work) for task in tasks]
    return Run(tasks, fates, workers).to_its_end().order


def test_the_longest_comes_first_and_equals_in_the_order_of_collection() -> None:
    assert order([Task(work=1), Task(work=5), Task(work=3), Task(work=5)]) == [1, 3, 2, 0]


def test_the_longest_case_of_a_unit_extracts() -> None:
    unit = ("cog", "a", "L1")
    assert order([Task(unit, "a", 10, work) for work in (1, 5, 3)]) == [1, 2, 0]


def test_the_extraction_with_most_behind_it_comes_first() -> None:
    short = [Task(("a",), "a", 10, 1)]
    long_chain = [Task(("b",), "b", 10, 20)]
    much_work = [Task(("c",), "c", 10, 4)] * 20
    assert order([*short, *long_chain, *much_work], workers=2)[:3] == [2, 1, 0]  # 10 + 80 / 2, 10 + 20, 10 + 1
    assert order([*short, *long_chain, *much_work], workers=8)[:3] == [1, 2, 0]  # 10 + 20, 10 + 80 / 8, 10 + 1


def test_a_worker_goes_on_with_its_model_where_that_costs_little() -> None:
    tasks = [Task(("a", "L1"), "a", 10, 1), Task(("b", "L1"), "b", 9.9, 1), Task(("b", "L2"), "b", 5, 1)]
    assert CaseQueue(tasks, 2).take("b") == 1
    assert CaseQueue(tasks, 2).take("a") == 0
    queue = CaseQueue(tasks, 2)
    assert [queue.take(None), queue.take("c"), queue.take("b")] == [0, 1, 2]


def test_when_extraction_fails_the_next_case_tries_alone() -> None:
    queue = CaseQueue([Task(("a",), "a", 10, work) for work in (3, 2, 1)], 8)
    assert queue.take() == 0
    assert queue.take() is None
    queue.ended(0)
    assert queue.take() == 1
    assert queue.take() is None
    queue.extracted(1)
    assert queue.take() == 2
    queue.ended(1)
    queue.ended(2)
    assert not queue


def test_an_item_put_back_runs_again_in_its_turn() -> None:
    queue = CaseQueue([Task(("a",), "a", 10, work) for work in (3, 2, 1)], 8)
    assert queue.take() == 0
    queue.put_back(0)
    assert queue.take() == 0
    queue.extracted(0)
    assert queue.take() == 1
    queue.put_back(0)
    assert [queue.take(), queue.take(), queue.take()] == [0, 2, None]
    assert not queue


def test_forty_thousand_items_are_handed_out_without_looking_at_each() -> None:
    units = [("cog", f"model{n % 3000}") for n in range(40_000)]
    tasks = [Task(unit, unit[1], 1 + n % 7, 1 + n % 11) for n, unit in enumerate(units)]
    assert len(set(order(tasks, workers=8))) == len(tasks)
