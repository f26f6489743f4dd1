"""Digests of plain values and of files: the names by which everything in the store is found."""

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"

_BLOCK = 1 << 20


def canonical_json(value: Plain) -> str:
    """Return ``value`` as JSON with sorted keys and no white space: equal values, equal text.

    Raises:
        ValueError: a float is NaN or infinite, which JSON cannot say.
        TypeError: the value is not made of plain types.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Plain) -> str:
    """Return the SHA-256 (64 hex digits) of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (64 hex digits) of a file's bytes.

    Remembered within the process for as long as size and modification time stay the same, since weights of
    hundreds of megabytes are named in the key of every case.
    """
    status = path.stat()
    return _file_digest(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - size and time are part of the memo key
    return read_digest(path)


def read_digest(path: Path) -> str:
    """Return the SHA-256 of a file, always read anew: what a store entry is verified with."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha.update(block)
    return sha.hexdigest()
