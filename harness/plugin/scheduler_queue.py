"""Which item an idle worker gets. Knows nothing of pytest, of processes, of clocks.

Cases of a unit need the same features. The first to run, the unit's pioneer, extracts them; the others wait until it is
past extraction. Of all that may run, what has the longest way to go behind it comes first. So no worker idles while
anything may run, and a run of m workers takes at most total / m + (1 - 1/m) chain seconds, where ``chain`` is the
longest of extraction and one case (Graham 1969, bounds on multiprocessing timing anomalies).
"""

from bisect import insort
from collections.abc import Sequence
from heapq import heappop
from heapq import heappush
from typing import NamedTuple
from typing import TypeAlias

Unit: TypeAlias = tuple[str, ...]

_NEARLY = 0.9
"""An extraction this near to the most urgent one may go before it, on a worker that has its model loaded."""


class Task(NamedTuple):
    """What is known of an item beforehand."""

    unit: Unit | None = None
    """The extraction that it waits for; None: it waits for nothing."""
    model: str | None = None
    features: float = 0.0
    """Expected seconds of extraction."""
    work: float = 1.0
    """Expected seconds of the rest."""


class _Expedition(NamedTuple):
    """A unit whose extraction may begin, sorted by urgency."""

    urgency: float
    """Negated: the seconds from its start to the end of its last case, if all workers help."""
    pioneer: int
    unit: Unit


class CaseQueue:
    """Items that wait for a worker, by their position.

    Args:
        tasks: All items in the order of collection, which decides where nothing else does.
        workers: How many workers there are about to be.
    """

    def __init__(self, tasks: Sequence[Task], workers: int) -> None:
        self._tasks = tasks
        self._workers = max(1, workers)
        self._ready: list[tuple[float, int]] = []
        self._waiting: dict[Unit, list[int]] = {}
        self._expeditions: list[_Expedition] = []
        self._pioneers: dict[int, Unit] = {}
        self._extracted: set[Unit] = set()
        self._left = 0
        for item, task in enumerate(tasks):
            self._store(item, task.unit)
        for unit in self._waiting:
            self._plan(unit)

    def __len__(self) -> int:
        """Return how many items no worker has taken."""
        return self._left

    def take(self, loaded: str | None = None) -> int | None:
        """Hand out the item that is to run now, None where all that are left wait for extraction.

        Args:
            loaded: The model that the worker has loaded.
        """
        expedition = self._most_urgent(loaded) if self._expeditions else None
        if expedition is None and not self._ready:
            return None
        self._left -= 1
        if expedition is None or (self._ready and self._ready[0][0] < expedition.urgency):
            return heappop(self._ready)[1]
        self._expeditions.remove(expedition)
        self._waiting[expedition.unit].remove(expedition.pioneer)
        self._pioneers[expedition.pioneer] = expedition.unit
        return expedition.pioneer

    def extracted(self, item: int) -> None:
        """Take note that a running item is past extraction: the others of its unit may run."""
        unit = self._pioneers.pop(item, None)
        if unit is None:
            return
        self._extracted.add(unit)
        for waiting in self._waiting.pop(unit):
            heappush(self._ready, (-self._tasks[waiting].work, waiting))

    def ended(self, item: int) -> None:
        """Take note that an item has ended. If it was to extract and was never past that, the next one tries."""
        unit = self._pioneers.pop(item, None)
        if unit is not None:
            self._plan(unit)

    def put_back(self, item: int) -> None:
        """Take an item back that was handed out: it is to run again."""
        self.ended(item)
        unit = self._tasks[item].unit
        self._store(item, unit)
        if unit in self._waiting and unit not in self._pioneers.values():
            self._expeditions = [expedition for expedition in self._expeditions if expedition.unit != unit]
            self._plan(unit)

    def is_pioneer(self, item: int) -> bool:
        """Say whether others wait for the extraction of an item."""
        return item in self._pioneers

    def _store(self, item: int, unit: Unit | None) -> None:
        self._left += 1
        if unit is None or unit in self._extracted:
            heappush(self._ready, (-self._tasks[item].work, item))
        else:
            self._waiting.setdefault(unit, []).append(item)

    def _plan(self, unit: Unit) -> None:
        """Let the longest case extract, as nothing of the unit ends later than extraction and that case."""
        items = self._waiting[unit]
        if not items:
            return
        pioneer = min(items, key=lambda item: (-self._tasks[item].work, item))
        longest = self._tasks[pioneer]
        behind = sum(self._tasks[item].work for item in items) / self._workers
        insort(self._expeditions, _Expedition(-longest.features - max(longest.work, behind), pioneer, unit))

    def _most_urgent(self, loaded: str | None) -> _Expedition:
        first = self._expeditions[0]
        for expedition in self._expeditions:
            if expedition.urgency > _NEARLY * first.urgency:  # both are negative
                break
            if self._tasks[expedition.pioneer].model == loaded:
                return expedition
        return first
