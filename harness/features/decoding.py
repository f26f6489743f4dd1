"""Decoding and preprocessing in background threads, a few batches ahead of the network."""

from collections import deque
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from PIL import Image
from torch import Tensor

from harness.devices import share_of_cores
from harness.images import ImageSet
from harness.images import Unreadable

Inputs: TypeAlias = list[Tensor | Unreadable]

_AHEAD = 2
"""Batches that wait for the network: one may take longer than others without the network noticing."""


def default_workers() -> int:
    """Return one thread for each core that is for this process, at most eight."""
    return min(8, share_of_cores())


def decoded(
    images: ImageSet, preprocess: Callable[[Image.Image], Tensor], batches: Iterable[range], workers: int
) -> Generator[tuple[range, Inputs], None, None]:
    """Yield each batch of positions with its inputs, uint8 [3, S, S] each, in order.

    Threads suffice: Pillow and torch let go of the interpreter while they decode, resize and compute. At most
    ``_AHEAD`` finished batches are held besides the one yielded. What a thread raises is raised here.
    """

    def load(part: Sequence[int]) -> Inputs:
        return [image if isinstance(image, Unreadable) else preprocess(image) for image in images.decode(part)]

    pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
    waiting: deque[tuple[range, list[Future[Inputs]]]] = deque()
    try:
        for batch in batches:
            share = -(-len(batch) // workers)
            parts = [batch[start : start + share] for start in range(0, len(batch), share)]
            waiting.append((batch, [pool.submit(load, part) for part in parts]))
            if len(waiting) > _AHEAD:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(batch: range, parts: Iterable[Future[Inputs]]) -> tuple[range, Inputs]:
    return batch, [image for part in parts for image in part.result()]
