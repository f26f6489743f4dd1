"""Independent chains of work side by side on the CPU's threads."""

from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import Empty
from queue import SimpleQueue
from threading import Event
from typing import TypeAlias
from typing import TypeVar

import torch

T = TypeVar("T")
Chain: TypeAlias = Generator[None, None, T]
"""Work that pauses now and then by ``yield`` and returns its result."""
_Queue: TypeAlias = "SimpleQueue[tuple[int, Chain[T]]]"


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Give torch ``count`` threads within the block and what it had before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(chains: Sequence[Chain[T]]) -> list[T]:
    """Run chains to their end on as many threads as torch has, and return their results in order.

    Each worker takes the chain that waited longest as far as its next pause, so that all are busy until fewer chains
    than workers are left. With at least as many chains as threads every chain computes on one thread: what it computes
    then depends neither on the number of threads nor on its neighbours, and no thread waits for another in the middle
    of a step, which costs much on a busy machine.
    """
    total = torch.get_num_threads()
    workers = min(total, len(chains))
    waiting: _Queue[T] = SimpleQueue()
    for item in enumerate(chains):
        waiting.put(item)
    results: dict[int, T] = {}
    stop = Event()
    if workers == 1:
        _work(waiting, results, stop)
        return [results[index] for index in range(len(chains))]
    each = partial(torch.set_num_threads, total // workers)
    with threads(total), ThreadPoolExecutor(workers, initializer=each) as pool:
        done = [pool.submit(_work, waiting, results, stop) for _ in range(workers)]
        try:
            for future in done:
                future.result()
        finally:
            stop.set()
    return [results[index] for index in range(len(chains))]


def _work(waiting: "_Queue[T]", results: dict[int, T], stop: Event) -> None:
    with torch.inference_mode():
        while not stop.is_set():
            try:
                index, chain = waiting.get_nowait()
            except Empty:
                return
            try:
                next(chain)
            except StopIteration as end:
                results[index] = end.value
            except BaseException:
                stop.set()
                raise
            else:
                waiting.put((index, chain))
