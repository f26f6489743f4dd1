"""Folders of records made one, whatever the order: what shards on several machines have found.

Of the records of one case the result keeps a measured one before a failed one before a skipped one, and of several the
latest; ties are broken by content. A failure later than the measurement is kept as its last attempt, as the record book
does. So merging is commutative, associative and idempotent, to the byte. Records of a case that were measured under
another key, or have other numbers, are a conflict: one is kept all the same, and both are named.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any

from harness.digest import Plain
from harness.digest import canonical_json
from harness.durations import Durations
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.files import write_atomic
from harness.records.book import RecordBook
from harness.records.record import Attempt
from harness.records.record import Record
from harness.store import differences

DURATIONS = "durations.json"
"""Beside the folder of records."""

_RANKS = {"skipped": 0, "failed": 1, "passed": 2}


@dataclass(frozen=True)
class Conflict:
    """Two sources that disagree about one thing."""

    what: str
    kept: str
    """The source whose version is kept."""
    other: str
    fields: Mapping[str, tuple[Plain, Plain]]
    """By dotted path what differs: (kept, other)."""


@dataclass
class Merged:
    """What came of merging."""

    new: int = 0
    changed: int = 0
    same: int = 0
    """Files of the target that are as they were."""
    conflicts: list[Conflict] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """Files that could not be used, with the reason; they stay where they are."""


def merge_reports(sources: Sequence[Path], target: Path) -> Merged:
    """Merge the records, rankings and durations of reports folders into one. Nothing in the sources is changed.

    Args:
        sources: Reports folders, each with a folder ``records``.
        target: The reports folder that takes them up, with what it has already; made if need be.

    Raises:
        ConfigError: a source is no reports folder.
    """
    for source in sources:
        if not RecordBook(source).root.is_dir():
            raise ConfigError(f"{source}: not a reports folder: it has no folder {RecordBook(source).root.name}")
    with RecordBook(target).lock():
        return _merge(sources, target)


def _merge(sources: Sequence[Path], target: Path) -> Merged:
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in dict.fromkeys([target, *sources]):
        for path in _files(folder):
            found[path.relative_to(folder).as_posix()].append(folder)
    merged = Merged()
    for name, folders in sorted(found.items()):
        contents = {str(folder): (folder / name).read_bytes() for folder in folders}
        content = combine(name, contents, merged)
        if content is None:
            continue
        path = target / name
        if content == contents.get(str(target)):
            merged.same += 1
            continue
        merged.changed += path.exists()
        merged.new += not path.exists()
        write_atomic(path, content)
    return merged


def combine(name: str, contents: Mapping[str, bytes], merged: Merged) -> bytes | None:
    """Return the one content of the versions of a file; None where none can be used.

    Args:
        name: Path within a reports folder.
        contents: Its versions by source.
        merged: Takes up conflicts and what is left.
    """
    if name == DURATIONS:
        return _durations(contents, merged, name)
    if name.endswith(".csv"):
        kept = max(contents, key=lambda source: contents[source])
        others = {source: content for source, content in contents.items() if content != contents[kept]}
        merged.conflicts += [Conflict(name, kept, other, {"content": ("kept", "differs")}) for other in sorted(others)]
        return contents[kept]
    records = {}
    for source, content in contents.items():
        try:
            records[source] = _record(name, content)
        except ValueError as fault:
            merged.left[f"{source}/{name}"] = str(fault)
    if not records:
        return None
    merged.conflicts += conflicts(records)
    return (join(records.values()).model_dump_json(indent=1) + "\n").encode()


def join(records: Iterable[Record]) -> Record:
    """Return what is kept of the records of one case."""
    records = list(records)
    base = max(records, key=_order)
    attempts = [record.last_attempt for record in records if record.last_attempt is not None]
    if base.measured:
        attempts += [_as_attempt(record) for record in records if record.status == "failed"]
        attempts = [attempt for attempt in attempts if attempt.time > _time(base)]
    latest = max(attempts, key=lambda attempt: (attempt.time, attempt.status, attempt.reason), default=None)
    return base.model_copy(update={"last_attempt": latest})


def conflicts(records: Mapping[str, Record]) -> Iterator[Conflict]:
    """Yield how measured records of one case differ from the one that is kept, in key or numbers.

    Args:
        records: By source.
    """
    measured = {source: record for source, record in sorted(records.items()) if record.measured}
    if not measured:
        return
    kept = max(measured, key=lambda source: _order(measured[source]))
    base = measured[kept]
    for source, record in measured.items():
        if fields := differences(_finding(base), _finding(record)):
            yield Conflict(f"{base.case.id} (suite {base.case.suite})", kept, source, fields)


def _finding(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json", include={"key", "metrics"})


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files that are merged; those that begin with a dot are of writers that were killed."""
    if (folder / DURATIONS).is_file():
        yield folder / DURATIONS
    for path in RecordBook(folder).root.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            yield path


def _record(name: str, content: bytes) -> Record:
    """Read a record.

    Raises:
        ValueError: it is none, or lies where the record of another case belongs.
    """
    if not name.endswith(".json"):
        raise ValueError("not a record")
    try:
        record = Record.model_validate(json.loads(content))
    except ValueError as error:
        raise ValueError(f"not a valid record: {' '.join(str(error).split())[:200]}") from error
    if PurePosixPath(name) != PurePosixPath(RecordBook(Path()).path(record.case.case()).as_posix()):
        raise ValueError(f"a copy of the record of {record.case.id}")
    return record


def _order(record: Record) -> tuple[int, str, str, str]:
    """Return a total order of the records of a case: the greatest is kept."""
    text = record.model_copy(update={"last_attempt": None}).model_dump_json()
    return _RANKS[record.status], _time(record), record.reason or "", text


def _time(record: Record) -> str:
    return record.provenance.measured if record.provenance else ""


def _as_attempt(record: Record) -> Attempt:
    return Attempt(status=record.status, reason=record.reason or "", time=_time(record))


def _durations(contents: Mapping[str, bytes], merged: Merged, name: str) -> bytes | None:
    """Return all durations; of those of one case the longest, which is of where it was computed."""
    rows: dict[str, list[Any]] = {}
    version = None
    for source, content in contents.items():
        try:
            found = json.loads(Durations.from_json(content.decode()).to_json())
        except (UnicodeDecodeError, CorruptInput) as fault:
            merged.left[f"{source}/{name}"] = str(fault)
            continue
        version = found["version"]
        for row in found["cases"]:
            identity = canonical_json(row[:-2])
            rows[identity] = max(row, rows.get(identity, row), key=lambda row: row[-2:])
    if version is None:
        return None
    return Durations.from_json(json.dumps({"version": version, "cases": list(rows.values())})).to_json().encode()
