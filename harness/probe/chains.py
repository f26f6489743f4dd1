"""Independent chains of work side by side on the CPU's threads."""

from collections import deque
from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias
from typing import TypeVar

import torch

T = TypeVar("T")
Chain: TypeAlias = Generator[None, None, T]
"""Work that pauses now and then by ``yield`` and returns its result."""


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

    Several workers each take the chain that waited longest as far as its next pause, so that all are busy until fewer
    chains than workers are left; one worker finishes chain after chain. With at least as many chains as threads every
    chain computes on one thread: what it computes then depends neither on the number of threads nor on its neighbours,
    and there are no barriers between threads, which cost most on small problems and on busy machines.
    """
    total = torch.get_num_threads()
    workers = min(total, len(chains))
    results: dict[int, T] = {}
    waiting = deque(enumerate(chains))
    if workers == 1:
        for item in waiting:
            _work(deque([item]), results)
        return [results[index] for index in range(len(chains))]
    each = partial(torch.set_num_threads, total // workers)
    with threads(total), ThreadPoolExecutor(workers, initializer=each) as pool:
        done = [pool.submit(_work, waiting, results) for _ in range(workers)]
        try:
            for future in done:
                future.result()
        finally:
            waiting.clear()
    return [results[index] for index in range(len(chains))]


def _work(waiting: deque[tuple[int, Chain[T]]], results: dict[int, T]) -> None:
    with torch.inference_mode():
        while waiting:
            try:
                index, chain = waiting.popleft()
                next(chain)
                waiting.append((index, chain))
            except StopIteration as stop:
                results[index] = stop.value
