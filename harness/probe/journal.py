"""Finished rounds of a probe, kept so that a killed probe replays them instead of running them again."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Protocol
from typing import cast

from harness.digest import Plain
from harness.errors import CorruptInput

Entry = Mapping[str, Plain]


class JournalError(CorruptInput):
    """A journal is damaged, or that of another probe. Without it the search starts over and finds the same."""


class Journal(Protocol):
    """A list of plain mappings that outlives the process."""

    def read(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first."""

    def append(self, entry: Entry) -> None:
        """Add an entry; when this returns, the entry survives a crash."""


class FileJournal:
    """A journal in a file of JSON lines.

    A process killed while it appends leaves a torn last line, which was never promised: it is cut off when the
    journal is next read. A damaged line before the last is not the work of a kill and raises ``JournalError``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, Any]]:
        """Return all whole entries and cut off a torn last line."""
        content = self._path.read_bytes() if self._path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))
        return [self._parse(number, line) for number, line in enumerate(whole.splitlines(), start=1)]

    def append(self, entry: Entry) -> None:
        """Write one line in one call and force it to disk."""
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        with self._path.open("ab", buffering=0) as file:
            file.write(line)
            os.fsync(file.fileno())

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise JournalError(
                f"{self._path}, line {number}: not JSON ({error}); remove the file to start over"
            ) from error
        if not isinstance(entry, dict):
            raise JournalError(f"{self._path}, line {number}: expected a JSON object; remove the file to start over")
        return cast("dict[str, Any]", entry)
