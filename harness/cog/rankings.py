"""The ranking behind the levels of a run, kept beside its records: reports then need neither WordNet nor a universe."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from harness.digest import digest_of
from harness.files import write_atomic

Ranking: TypeAlias = list[tuple[int, float, int | None]]
"""(rank from 1, similarity to the nearest seen concept, level from 1 or None in a gap) of every unseen concept."""


def save_ranking(records: Path, suite: str, options: Mapping[str, str], ranking: Ranking) -> None:
    """Write the ranking of a suite under some options, unless it stands there already."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("rank", "similarity", "level"), *ranking])
    path = _path(records, suite, options)
    if not path.exists() or path.read_text() != text.getvalue():
        write_atomic(path, text.getvalue())


def read_ranking(records: Path, suite: str, options: Mapping[str, str]) -> Ranking | None:
    """Return a ranking, or None where no run has left it."""
    path = _path(records, suite, options)
    if not path.exists():
        return None
    rows = list(csv.reader(path.read_text().splitlines()))[1:]
    return [(int(rank), float(similarity), int(level) if level else None) for rank, similarity, level in rows]


def _path(records: Path, suite: str, options: Mapping[str, str]) -> Path:
    suffix = f"~{digest_of(dict(options))[:10]}" if options else ""
    return records / suite / "cog" / f"levels{suffix}.csv"
