"""The scheduler of xdist's controller: each worker gets one item at a time, when it is idle.

A worker of xdist takes the item after the next from its queue before it runs the next, as fixtures are torn down by
what follows. So an item behind a long one is stuck, and a worker with one item does not begin. Here each item is sent
with a filler (`harness.plugin.scheduler_worker`), which runs nothing: the item begins at once, the worker then waits in
the filler, and nothing is ever sent ahead that would have to be taken back.
"""

import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Protocol

import pytest

from harness.devices import WAITING
from harness.plugin.scheduler_queue import CaseQueue
from harness.plugin.scheduler_queue import Task
from harness.progress import FEATURES
from harness.runs import Heartbeat
from harness.runs import read_heartbeats

POLL_SECONDS = 0.2


class Node(Protocol):
    """What is used of xdist's ``WorkerController``."""

    gateway: Any

    @property
    def shutting_down(self) -> bool:
        """Whether it was told to end, or has."""

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Put items into the worker's queue."""

    def shutdown(self) -> None:
        """Tell the worker to end after what is in its queue."""

    def notify_inproc(self, eventname: str, **kwargs: object) -> None:
        """Put an event into the queue of the controller."""


@dataclass
class _Worker:
    collected: list[str] | None = None
    running: int | None = None
    loaded: str | None = None
    """The model whose features it extracted last."""
    waits: bool = False
    """For a device."""


class CaseScheduling:
    """Implements ``xdist.scheduler.Scheduling``. All methods are called in the controller's main thread.

    Args:
        config: Of the controller.
        number: How many workers collect before the first item runs.
        tasks_of: Returns what is known of the collected items.
        folder: Where the workers' heartbeats are.
    """

    def __init__(
        self, config: pytest.Config, number: int, tasks_of: Callable[[Sequence[str]], list[Task]], folder: Path
    ) -> None:
        self._config = config
        self._number = number
        self._tasks_of = tasks_of
        self._folder = folder
        self._workers: dict[Node, _Worker] = {}
        self._ids: list[str] = []
        self._tasks: list[Task] = []
        self._queue: CaseQueue | None = None
        self._passed: set[str] = set()
        self._watch = _Watch(folder, self._tell)

    @property
    def nodes(self) -> list[Node]:
        """All workers."""
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        """Whether enough workers have collected to begin."""
        collected = sum(worker.collected is not None for worker in self._workers.values())
        return self._queue is not None or collected >= self._number

    @property
    def tests_finished(self) -> bool:
        """Whether every item has ended."""
        return self._queue is not None and not self.has_pending

    @property
    def has_pending(self) -> bool:
        """Whether an item runs or is still to run."""
        running = any(worker.running is not None for worker in self._workers.values())
        return running or bool(self._queue)

    def add_node(self, node: Node) -> None:
        """Take a worker that has started and begins to collect."""
        self._workers[node] = _Worker()

    def add_node_collection(self, node: Node, collection: Sequence[str]) -> None:
        """Take what a worker has collected. One that takes another's place must have collected the same."""
        self._workers[node].collected = list(collection)
        if self._queue is not None and not self._same([node]):
            node.shutdown()

    def schedule(self) -> None:
        """Hand out items; xdist calls it when enough workers have collected, and for each one that comes later."""
        if self._queue is None:
            self._begin()
        self._look()
        self._hand_out()

    def mark_test_complete(self, node: Node, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 - xdist's
        """Take note that an item has ended on a worker."""
        worker, queue = self._workers[node], self._begun()
        if item_index != worker.running:  # a filler
            return
        worker.running = None
        if self._ids[item_index] in self._passed:
            queue.extracted(item_index)
        queue.ended(item_index)
        self._hand_out()

    def passed(self, item: str) -> None:
        """Take note that the call of an item passed: the features that it needs are there."""
        self._passed.add(item)

    def mark_test_pending(self, item: str) -> None:
        """Run an item again, as plugins ask for that repeat what crashed."""
        self._begun().put_back(self._ids.index(item))
        self._hand_out()

    def remove_pending_tests_from_node(self, node: Node, indices: Sequence[int]) -> None:  # noqa: ARG002 - xdist's
        """Hear that a heartbeat has news: nothing else sends xdist's event of tests that a worker gave back."""
        if self._queue is not None:
            self._look()
            self._hand_out()

    def remove_node(self, node: Node) -> str | None:
        """Forget a worker that has ended; return the item that it ran, if it died over one.

        Raises:
            KeyError: xdist never added it.
        """
        item = self._workers.pop(node).running
        if item is None:
            return None
        self._begun().ended(item)
        self._hand_out()
        return self._ids[item]

    def close(self) -> None:
        """Stop reading heartbeats."""
        self._watch.close()

    def _begin(self) -> None:
        collected = [node for node, worker in self._workers.items() if worker.collected is not None]
        self._ids = self._workers[collected[0]].collected or []
        self._tasks = self._tasks_of(self._ids) if self._same(collected[1:]) else []
        self._queue = CaseQueue(self._tasks, len(collected))
        self._watch.start()

    def _begun(self) -> CaseQueue:
        if self._queue is None:
            raise RuntimeError("xdist reports on an item before any was handed out")
        return self._queue

    def _same(self, nodes: Iterable[Node]) -> bool:
        """Report each worker that collected something else, as xdist's own schedulers do."""
        from xdist.report import report_collection_diff

        first = next(node.gateway.id for node, worker in self._workers.items() if worker.collected is not None)
        same = True
        for node in nodes:
            name = node.gateway.id
            if message := report_collection_diff(self._ids, self._workers[node].collected, first, name):
                report = pytest.CollectReport(nodeid=name, outcome="failed", longrepr=message, result=[])
                self._config.hook.pytest_collectreport(report=report)
                same = False
        return same

    def _look(self) -> None:
        """Read heartbeats: who is past extraction, who waits for a device."""
        beats = {beat.worker: beat for beat in read_heartbeats(self._folder)}
        for node, worker in self._workers.items():
            beat = beats.get(node.gateway.id)
            if beat is None:
                continue
            worker.waits = beat.device == WAITING
            if worker.running is not None and _past_extraction(beat, self._ids[worker.running]):
                self._begun().extracted(worker.running)

    def _hand_out(self) -> None:
        """Give each idle worker an item, and let it go when there is none that it could ever get."""
        queue = self._begun()
        for node, worker in list(self._workers.items()):
            if worker.running is not None or worker.collected is None or node.shutting_down:
                continue
            if not queue:
                node.shutdown()
            elif not worker.waits and (item := queue.take(worker.loaded)) is not None:
                self._send(node, worker, item)

    def _send(self, node: Node, worker: _Worker, item: int) -> None:
        try:
            node.send_runtest_some([item, len(self._ids) + item])
        except OSError:  # it has died, and xdist is about to hear of it
            self._begun().put_back(item)
            worker.collected = None
            return
        worker.running = item
        if self._begun().is_pioneer(item):
            worker.loaded = self._tasks[item].model

    def _tell(self) -> None:
        """Called in the thread that watches: have `remove_pending_tests_from_node` called in the main one."""
        node = next(iter(self.nodes), None)
        if node is not None:
            node.notify_inproc("unscheduled", node=node, indices=[])


class _Watch:
    """A thread that reads heartbeats and tells of news in them."""

    def __init__(self, folder: Path, tell: Callable[[], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="harness-scheduling")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        known: set[tuple[object, ...]] = set()
        while not self._stop.wait(POLL_SECONDS):
            beats = read_heartbeats(self._folder)
            news: set[tuple[object, ...]] = {(beat.worker, beat.case, beat.stage, beat.device) for beat in beats}
            if news != known:
                known = news
                self._tell()


def _past_extraction(beat: Heartbeat, item: str) -> bool:
    return beat.case == item and beat.stage not in {None, FEATURES}
