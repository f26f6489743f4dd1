"""The scheduler of the controller, with workers that are no processes: what it sends, and when."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from typing import cast

import pytest

pytest.importorskip("xdist", reason="the scheduler is xdist's")

from harness.devices import WAITING
from harness.plugin import scheduler_xdist
from harness.plugin.scheduler_queue import Task
from harness.plugin.scheduler_xdist import CaseScheduling
from harness.plugin.scheduler_xdist import Node
from harness.runs import Heartbeat

IDS = [f"test_cog.py::test_linear[{model}-{n}]" for model in "ab" for n in range(3)]


class Worker:
    """Keeps what it is sent."""

    def __init__(self, name: str) -> None:
        self.gateway: Any = SimpleNamespace(id=name)
        self.sent: list[int] = []
        self.shutting_down = False
        self.dead = False
        self.events: list[str] = []

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        if self.dead:
            raise OSError("cannot send to a closed channel")
        item, filler = indices
        assert filler == len(IDS) + item
        self.sent.append(item)

    def shutdown(self) -> None:
        self.shutting_down = True

    def notify_inproc(self, eventname: str, **kwargs: object) -> None:
        assert kwargs == {"node": self, "indices": []}
        self.events.append(eventname)


class Run:
    """A scheduler, its workers and the heartbeats that it sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.beats: dict[str, Heartbeat] = {}
        monkeypatch.setattr(scheduler_xdist, "read_heartbeats", lambda _: list(self.beats.values()))
        self.reports: list[pytest.CollectReport] = []
        hook = SimpleNamespace(pytest_collectreport=self._report)
        tasks = [Task((name.partition("[")[2][0],), None, 10, 3 - n % 3) for n, name in enumerate(IDS)]
        config = cast("pytest.Config", SimpleNamespace(hook=hook))
        self.scheduling = CaseScheduling(config, number, lambda ids: tasks[: len(ids)], Path("none"))
        self.workers = [Worker(f"gw{n}") for n in range(number)]
        for worker in self.workers:
            self.add(worker)

    def _report(self, report: pytest.CollectReport) -> None:
        self.reports.append(report)

    def add(self, worker: Worker, ids: Sequence[str] = IDS) -> None:
        node: Node = worker
        self.scheduling.add_node(node)
        self.beats[worker.gateway.id] = Heartbeat(worker.gateway.id, "here", 1)
        self.scheduling.add_node_collection(node, ids)
        if self.scheduling.collection_is_completed:
            self.scheduling.schedule()

    def says(self, worker: Worker, **news: Any) -> None:
        self.beats[worker.gateway.id] = replace(self.beats[worker.gateway.id], **news)
        self.scheduling.remove_pending_tests_from_node(worker, [])

    def ends(self, worker: Worker, *, passed: bool = True) -> None:
        item = worker.sent[-1]
        if passed:
            self.scheduling.passed(IDS[item])
        self.scheduling.mark_test_complete(worker, item)

    def sent(self) -> list[list[int]]:
        return [worker.sent for worker in self.workers]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch, 3)


def test_cases_wait_until_a_heartbeat_is_past_extraction(run: Run) -> None:
    one, _, _ = run.workers
    assert run.sent() == [[0], [3], []]
    run.says(one, case=IDS[0], stage="features")
    assert run.sent() == [[0], [3], []]
    run.says(one, case=IDS[1], stage="probe")  # of another case: what it said before
    assert run.sent() == [[0], [3], []]
    run.says(one, case=IDS[0], stage="probe")
    assert run.sent() == [[0], [3], [1]]


def test_a_case_that_passed_has_extracted_and_one_that_failed_lets_the_next_one_try(run: Run) -> None:
    one, two, three = run.workers
    run.ends(two, passed=False)
    assert run.sent() == [[0], [3, 4], []]
    run.scheduling.mark_test_complete(two, len(IDS) + 3)  # the filler
    run.ends(one)
    assert run.sent() == [[0, 1], [3, 4], [2]]
    run.ends(two)
    run.ends(one)
    run.ends(three)
    assert not run.scheduling.tests_finished
    assert [worker.shutting_down for worker in run.workers] == [True, False, True]
    run.ends(two)
    assert run.scheduling.tests_finished
    assert run.sent() == [[0, 1], [3, 4, 5], [2]]


def test_the_case_of_a_dead_worker_is_named_and_another_extracts(run: Run) -> None:
    one, _, three = run.workers
    assert run.scheduling.remove_node(one) == IDS[0]
    assert three.sent == [1]
    with pytest.raises(KeyError):
        run.scheduling.remove_node(one)
    run.scheduling.mark_test_pending(IDS[0])
    successor = Worker("gw3")
    run.add(successor)
    assert successor.sent == []
    run.says(three, case=IDS[1], stage="probe")
    assert successor.sent == [0]


def test_an_idle_worker_that_dies_ran_nothing(run: Run) -> None:
    assert run.scheduling.remove_node(run.workers[2]) is None


def test_what_cannot_be_sent_goes_to_another(run: Run) -> None:
    one, two, three = run.workers
    three.dead = True
    run.says(one, case=IDS[0], stage="probe")
    assert run.sent() == [[0], [3], []]
    run.ends(two)
    assert run.sent() == [[0], [3, 1], []]
    assert run.scheduling.remove_node(three) is None


def test_a_worker_that_waits_for_a_device_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, 0)
    waiting, other = Worker("gw0"), Worker("gw1")
    run.beats["gw0"] = Heartbeat("gw0", "here", 1, device=WAITING)
    run.scheduling.add_node(waiting)
    run.scheduling.add_node_collection(waiting, IDS)
    run.scheduling.schedule()
    run.add(other)
    assert (waiting.sent, other.sent) == ([], [0])
    run.says(waiting, device="GPU 0: Fake")
    assert waiting.sent == [3]


def test_a_successor_that_collects_something_else_is_sent_home(run: Run) -> None:
    odd = Worker("gw3")
    run.add(odd, IDS[:-1])
    assert odd.shutting_down
    assert odd.sent == []
    assert "Different tests were collected between gw0 and gw3" in str(run.reports[0].longrepr)


def test_news_in_heartbeats_reach_the_main_thread_as_an_event(run: Run) -> None:
    one = run.workers[0]
    for _ in range(100):
        if "unscheduled" in one.events:
            break
        time.sleep(0.1)
    run.scheduling.close()
    assert one.events == ["unscheduled"]
