"""How far the work of this process is: said where the work is done, heard by whoever shows it."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Listener: TypeAlias = Callable[[str, int | None, int | None], None]

FEATURES = "features"
"""The stage in which a case extracts features, or waits for another process that extracts them."""

_listeners: list[Listener] = []


def report(stage: str, done: int | None = None, total: int | None = None) -> None:
    """Say which stage of a case has begun or gone on, and how much of it is done. Costs nothing without a listener."""
    for listener in _listeners:
        listener(stage, done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with each report of this process within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
