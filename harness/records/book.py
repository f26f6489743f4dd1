"""The record book: a folder of records, one file a case."""

import json
import warnings
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from harness.case import Case
from harness.files import locked
from harness.files import write_atomic
from harness.records.provenance import now
from harness.records.record import Attempt
from harness.records.record import Record


class RecordWarning(UserWarning):
    """A file among the records is not a record."""


class RecordBook:
    """The records of a reports folder, under ``records/<suite>/<benchmark>/<protocol>/<model>/``."""

    def __init__(self, reports_dir: Path) -> None:
        self.root = reports_dir / "records"

    def path(self, case: Case) -> Path:
        """Return where the record of a case is, or would be."""
        return self.root / case.suite / case.benchmark / case.protocol / case.model / f"{case.file_name}.json"

    def read(self, case: Case) -> Record | None:
        """Return the record of a case, or None where there is none that can be read."""
        path = self.path(case)
        return _read(path) if path.exists() else None

    def write(self, record: Record) -> None:
        """Write a record, whole or not at all. What was measured is never replaced by what was not.

        A skip leaves a measured record as it is; a failure is noted in it as its last attempt.
        """
        # Two runs may write the same record: what one has read must not change before it writes.
        with self.lock():
            self._write(record)

    def lock(self) -> AbstractContextManager[bool]:
        """Keep others from writing records within the block."""
        return locked(self.root.with_name(".records.lock"))

    def _write(self, record: Record) -> None:
        case = record.case.case()
        known = None if record.measured else self.read(case)
        if known is not None and record.status == "skipped" and (known.measured or known.reason == record.reason):
            return
        if known is not None and known.measured:
            attempt = Attempt(status=record.status, reason=record.reason or "", time=now())
            record = known.model_copy(update={"last_attempt": attempt})
        write_atomic(self.path(case), record.model_dump_json(indent=1) + "\n")

    def records(self) -> list[Record]:
        """Return all records in the order of suite, then id.

        Files that are no records, and copies that lie where another case's record belongs, are named in a warning.
        """
        found = []
        for path in sorted(self.root.rglob("*.json")):
            record = None if path.name.startswith(".") else _read(path)
            if record is None:
                continue
            if path == self.path(record.case.case()):
                found.append(record)
            else:
                _warn(f"{path} is a copy of the record of {record.case.id} and is passed over")
        return sorted(found, key=lambda record: (record.case.suite, record.case.id))


def _read(path: Path) -> Record | None:
    try:
        return Record.model_validate(json.loads(path.read_text()))
    except (OSError, ValueError, ValidationError) as error:
        _warn(f"{path} is not a valid record and is passed over: {error}")
        return None


def _warn(message: str) -> None:
    warnings.warn(message, RecordWarning, stacklevel=4)
