"""How long cases take: from records where they have run, else from cases like them."""

import json
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from statistics import median
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

from harness.case import Case
from harness.case import unit_of
from harness.errors import CorruptInput
from harness.progress import FEATURES
from harness.records.book import RecordBook
from harness.records.record import Record

UNKNOWN = 1.0
"""Seconds of a case when nothing like it has run: all equal, so that nothing is preferred."""

_VERSION = 1

_Key: TypeAlias = tuple[object, ...]


class Timing(NamedTuple):
    """What one case took when it was computed, in seconds."""

    case: Case
    features: float
    """Extraction; next to nothing where another case of the unit had extracted before."""
    work: float
    """Everything else."""


class Durations:
    """Expected seconds of any case, from what similar ones took.

    Args:
        records: Records; those that hold no measured times are passed over.
        timings: Times from elsewhere, such as a file that `to_json` wrote. A record of the same case goes before.
    """

    def __init__(self, records: Iterable[Record], timings: Iterable[Timing] = ()) -> None:
        found = {_identity(timing.case): timing for timing in (*timings, *_timings(records))}
        self._timings = list(found.values())
        extractions: dict[_Key, Timing] = {}
        for timing in self._timings:
            # The case that extracted took longest, the others of its unit read what it had written.
            unit = (timing.case.suite, *unit_of(timing.case), *timing.case.options.items())
            extractions[unit] = max(timing, extractions.get(unit, timing), key=lambda timing: timing.features)
        self._features = _medians((timing.case, timing.features, _unit_keys) for timing in extractions.values())
        self._work = _medians((timing.case, timing.work, _keys) for timing in self._timings)
        self._known = found.keys()

    def features(self, case: Case) -> float:
        """Return the expected seconds of extracting what the case needs, if it is not there yet."""
        return _first(self._features, _unit_keys(case))

    def work(self, case: Case) -> float:
        """Return the expected seconds of the case once features are there."""
        return _first(self._work, _keys(case))

    def known(self, case: Case) -> bool:
        """Say whether this very case has run before."""
        return _identity(case) in self._known

    def to_json(self) -> str:
        """Return everything that was measured: sorted, a line for each case, fit to be committed."""
        rows = sorted(json.dumps(_row(timing)) for timing in self._timings)
        return f'{{"version": {_VERSION}, "cases": [\n' + ",\n".join(rows) + "\n]}\n"

    @classmethod
    def from_json(cls, text: str) -> "Durations":
        """Read what `to_json` wrote.

        Raises:
            CorruptInput: it is not that.
        """
        try:
            found = json.loads(text)
            if found["version"] != _VERSION:
                raise CorruptInput(f"durations of version {found['version']}: this harness reads version {_VERSION}")
            return cls((), [_timing(row) for row in found["cases"]])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptInput(f"not a file of durations: {error!r}") from error


def durations_for(book: RecordBook, cases: Sequence[Case]) -> Durations:
    """Return what is to be expected of some cases, from as much of the book as tells about them.

    Thousands of records take seconds to read, and a run of a few cases asks for their own first.
    """
    own = Durations(record for case in cases if (record := book.read(case)) is not None)
    return own if all(own.known(case) for case in cases) else Durations(book.records())


def _timings(records: Iterable[Record]) -> Iterator[Timing]:
    for record in records:
        seconds = record.provenance.seconds if record.measured and record.provenance else {}
        if seconds:
            work = sum(duration for phase, duration in seconds.items() if phase != FEATURES)
            yield Timing(record.case.case(), seconds.get(FEATURES, 0.0), work)


def _medians(found: Iterable[tuple[Case, float, Any]]) -> dict[_Key, float]:
    groups: dict[_Key, list[float]] = defaultdict(list)
    for case, seconds, keys in found:
        for key in keys(case):
            groups[key].append(seconds)
    return {key: median(group) for key, group in groups.items()}


def _first(medians: Mapping[_Key, float], keys: Iterable[_Key]) -> float:
    return next((medians[key] for key in keys if key in medians), UNKNOWN)


def _keys(case: Case) -> list[_Key]:
    """Return what a case has in common with others, the most telling first; suites share nothing."""
    kind = (case.suite, case.benchmark, case.protocol)
    tokens = tuple(case.tokens.items())
    options = tuple(sorted(case.options.items()))
    return [(*kind, case.model, tokens, options), (*kind, tokens, options), (*kind, options), (*kind, tokens), kind]


def _unit_keys(case: Case) -> list[_Key]:
    """Return what an extraction has in common with others: a model with itself rather than a split with itself."""
    benchmark, model, *rest = unit_of(case)
    kind = (case.suite, benchmark)
    options = tuple(sorted(case.options.items()))
    exact = (*kind, model, *rest)
    return [(*exact, options), exact, (*kind, "of model", model), (*kind, "of split", *rest), kind]


def _identity(case: Case) -> _Key:
    return _keys(case)[0]


def _row(timing: Timing) -> list[Any]:
    case, features, work = timing
    names = [case.suite, case.benchmark, case.protocol, case.model, dict(case.tokens), dict(case.options)]
    return [*names, float(f"{features:.3g}"), float(f"{work:.3g}")]


def _timing(row: list[Any]) -> Timing:
    suite, benchmark, protocol, model, tokens, options, features, work = row
    case = Case(benchmark, protocol, model, suite, dict(tokens.items()), dict(options.items()))
    return Timing(case, float(features), float(work))
