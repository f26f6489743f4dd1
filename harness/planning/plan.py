"""The plan of a run: what is there, what is missing, and what the rest will take."""

import os
import shutil
from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.case import unit_of
from harness.durations import UNKNOWN
from harness.durations import Durations
from harness.planning.needs import Extraction
from harness.planning.needs import Need
from harness.planning.rates import Rates
from harness.zoo.spec import ModelSpec

FLOAT = 4
"""Bytes of a feature."""

_Number = TypeVar("_Number", int, float)

_LIBRARIES = 500_000_000
"""Bytes that a worker has before it holds any data: torch and what comes with it, roughly."""


@dataclass(frozen=True)
class Part:
    """What a part of a run has and needs: one model, or all together. None is what cannot be estimated."""

    model: str
    cases: int
    cached: int
    """Cases whose results are in the store."""
    missing: int
    """Cases that will be skipped, since data or weights are not here."""
    to_do: int
    features: int
    """Matrices of features that the cases which can run are computed from."""
    features_cached: int
    extraction_seconds: float | None
    scaled: bool
    """Whether the extraction of a model is estimated from other models."""
    probe_seconds: float | None
    disk: int | None
    """Bytes of the features that are to be extracted."""


@dataclass(frozen=True)
class Plan:
    """What a run will do."""

    models: Sequence[Part]
    total: Part
    missing: Mapping[str, int]
    """What is wanted, with the number of cases that wait for it."""
    states: Mapping[str, str]
    """By id of a case: ``cached``, ``missing`` or ``to do``."""
    unknown: Sequence[str]
    """Models of which some time, or the size of the features, is unknown: they are not in the totals."""
    wall_seconds: float
    """On the given number of workers, at least."""
    workers: int
    memory: int
    """Bytes that a worker needs for the largest case, roughly."""
    memory_here: int
    disk_free: int


def make_plan(
    found: Sequence[Need],
    rates: Rates,
    durations: Durations,
    models: Mapping[str, ModelSpec],
    *,
    workers: int,
    cache_dir: Path,
) -> Plan:
    """Estimate what cases will take.

    Args:
        found: What each case needs.
        rates: How fast models extract.
        durations: How long cases take once features are there.
        models: The models file.
        workers: On how many workers the run would be.
        cache_dir: Where features will lie.
    """
    estimate = _Estimate(rates, durations, models)
    by_model: dict[str, list[Need]] = defaultdict(list)
    for need in found:
        by_model[need.case.model].append(need)
    parts = [estimate.part(model, of_model) for model, of_model in by_model.items()]
    chains = estimate.chains(found)
    seconds = sum((part.extraction_seconds or 0) + (part.probe_seconds or 0) for part in parts)
    return Plan(
        models=parts,
        total=_total(parts),
        missing=dict(Counter(reason for need in found for reason in need.missing)),
        states={need.case.id: _state(need) for need in found},
        unknown=[part.model for part in parts if None in (part.extraction_seconds, part.probe_seconds, part.disk)],
        wall_seconds=max([seconds / workers, *chains]),
        workers=workers,
        memory=_LIBRARIES + max([estimate.memory(need) for need in found if need.to_do], default=0),
        memory_here=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        disk_free=shutil.disk_usage(_existing(cache_dir)).free,
    )


class _Estimate:
    """Estimates of parts of a run."""

    def __init__(self, rates: Rates, durations: Durations, models: Mapping[str, ModelSpec]) -> None:
        self._rates = rates
        self._durations = durations
        self._models = models

    def part(self, model: str, found: Sequence[Need]) -> Part:
        """Return what the cases of one model have and need."""
        to_do = [need for need in found if need.to_do]
        every = _different(found)
        absent = self._absent(to_do)
        rate = self._rates.of(self._models[model])
        return Part(
            model=model,
            cases=len(found),
            cached=sum(need.result is not None for need in found),
            missing=sum(bool(need.missing) for need in found),
            to_do=len(to_do),
            features=len(every),
            features_cached=sum(extraction.entry is not None for extraction in every),
            extraction_seconds=_summed(self._extraction(extraction) for extraction in absent),
            scaled=bool(absent) and rate is not None and not rate.measured,
            probe_seconds=_summed(self._probe(need) for need in to_do),
            disk=_summed(self._bytes(extraction) for extraction in absent),
        )

    def chains(self, found: Iterable[Need]) -> list[float]:
        """Return the seconds of what cannot be done at once: an extraction and the longest case that waits for it."""
        units: dict[tuple[str, ...], list[Need]] = defaultdict(list)
        for need in found:
            if need.to_do:
                units[unit_of(need.case)].append(need)
        return [
            sum(self._extraction(extraction) or 0 for extraction in self._absent(unit))
            + max(self._probe(need) or 0 for need in unit)
            for unit in units.values()
        ]

    def memory(self, need: Need) -> int:
        """Return the bytes of the features that a case holds; 0 where they are unknown."""
        return sum(self._bytes(extraction) or 0 for extraction in need.extractions)

    def _absent(self, found: Iterable[Need]) -> list[Extraction]:
        return [extraction for extraction in _different(found) if extraction.entry is None]

    def _extraction(self, extraction: Extraction) -> float | None:
        rate = self._rates.of(self._models[extraction.model])
        return None if rate is None else len(extraction.images) / rate.images_per_second

    def _probe(self, need: Need) -> float | None:
        seconds = self._durations.work(need.case)
        return None if seconds == UNKNOWN else seconds

    def _bytes(self, extraction: Extraction) -> int | None:
        dim = self._rates.dim(self._models[extraction.model])
        return None if dim is None else len(extraction.images) * dim * FLOAT


def _total(parts: Sequence[Part]) -> Part:
    def total(name: str) -> int:
        return sum(getattr(part, name) or 0 for part in parts)

    return Part(
        model="total",
        cases=total("cases"),
        cached=total("cached"),
        missing=total("missing"),
        to_do=total("to_do"),
        features=total("features"),
        features_cached=total("features_cached"),
        extraction_seconds=sum(part.extraction_seconds or 0.0 for part in parts),
        scaled=any(part.scaled for part in parts),
        probe_seconds=sum(part.probe_seconds or 0.0 for part in parts),
        disk=total("disk"),
    )


def _different(found: Iterable[Need]) -> list[Extraction]:
    """Return each extraction once: the cases of a split share theirs."""
    return list({extraction.id: extraction for need in found for extraction in need.extractions}.values())


def _summed(amounts: "Iterable[_Number | None]") -> "_Number | None":
    """Return the sum; None where one of the amounts is unknown."""
    known = []
    for amount in amounts:
        if amount is None:
            return None
        known.append(amount)
    return sum(known)


def _state(need: Need) -> str:
    return "missing" if need.missing else "cached" if need.result is not None else "to do"


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that is there."""
    return next(path for path in [folder.resolve(), *folder.resolve().parents] if path.exists())
