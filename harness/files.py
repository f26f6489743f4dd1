"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from filelock import Timeout


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write ``path`` so that a reader, now or after a crash, finds the old content or the new, never a part.

    Missing parent folders are made. Text is written as UTF-8 with LF line ends.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place when the block ends without an error.

    The file is flushed to disk before it is renamed; after an error it is removed and ``path`` is as before.
    The temporary name keeps the suffix, since writers such as ``numpy.save`` look at it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{uuid.uuid4().hex}{path.suffix}")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock among processes within the block; the operating system frees it when its holder dies.

    Args:
        path: The lock's file, made if need be; it stays.
        wait: Wait until nobody else holds it.

    Gives:
        Whether it is held: not where somebody else has it and ``wait`` is false, nor on a file system without locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except (NotImplementedError, Timeout):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def flush(path: Path) -> None:
    """Force a file, or a folder's list of names, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
