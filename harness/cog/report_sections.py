"""Records of one suite under one reading of the protocol: what may stand side by side in a table or a figure."""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from textwrap import shorten
from typing import Any
from typing import NamedTuple

from harness.cog.cases import shots_of
from harness.digest import digest_of
from harness.errors import ConfigError
from harness.records.record import Metric
from harness.records.record import Record
from harness.report.style import GROUP_COLOURS
from harness.report.table import Cell
from harness.suite import CogProtocol
from harness.suite import Suite
from harness.suite import with_options

_METRIC = "top1"
_NOT_RUN = "not run"


class Place(NamedTuple):
    """Where a model is measured: on a split, with all its training images or with ``shots`` of each class."""

    split: str
    shots: int | None = None


@dataclass(frozen=True)
class Section:
    """The records of one suite under one set of options. Numbers of two sections are never compared."""

    suite_name: str
    options: Mapping[str, str]
    """Protocol options that differ from the suite's own."""
    suite: Suite | None
    """None where no suite of this name is known: its title, note, baseline and number of trials are left out."""
    records: Mapping[tuple[str, Place], Record]
    """By model and place."""

    @cached_property
    def groups(self) -> dict[str, str]:
        """Group of every model; ``other`` where no record says it."""
        groups = dict.fromkeys((model for model, _ in self.records), "other")
        for (model, _), record in self.records.items():
            if "group" in record.details:
                groups[model] = str(record.details["group"])
        return groups

    @cached_property
    def models(self) -> tuple[str, ...]:
        """All models: the baseline, the others by group in the order of the paper's Table 1, then by name."""
        order = list(GROUP_COLOURS)

        def position(model: str) -> tuple[bool, int, str, str, str]:
            group = self.groups[model]
            place = order.index(group) if group in order else len(order)
            return model != self.baseline, place, group, model.casefold(), model

        return tuple(sorted(self.groups, key=position))

    @property
    def measured(self) -> bool:
        """Whether any case of the section is measured."""
        return any(record.measured for record in self.records.values())

    @cached_property
    def unmeasured(self) -> dict[str, list[str]]:
        """The models without any measured case, by the reason."""
        found: dict[str, list[str]] = {}
        for model in self.models:
            records = [record for (name, _), record in self.records.items() if name == model]
            if not any(record.measured for record in records):
                reasons = dict.fromkeys(_why_not(record).removeprefix(f"{model}: ") for record in records)
                found.setdefault("; ".join(reasons), []).append(model)
        return found

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All places with a record: seen classes first, then the levels; few shots before many, all images last."""
        return tuple(sorted({place for _, place in self.records}, key=_position))

    @property
    def linear_places(self) -> tuple[Place, ...]:
        """The places where all images are used."""
        return tuple(place for place in self.places if place.shots is None)

    @property
    def fewshot_places(self) -> tuple[Place, ...]:
        """The places where few are."""
        return tuple(place for place in self.places if place.shots is not None)

    @property
    def baseline(self) -> str | None:
        """The model that curves are relative to: the suite's, else the only one of the group ``baseline``."""
        if self.suite and self.suite.baseline:
            return self.suite.baseline
        named = [model for model, group in self.groups.items() if group == "baseline"]
        return named[0] if len(named) == 1 else None

    @cached_property
    def protocol(self) -> CogProtocol | None:
        """The protocol behind the numbers; None where the suite is not known, or no longer has such options."""
        if self.suite is None:
            return None
        try:
            return with_options(self.suite, tuple(f"cog.{key}={value}" for key, value in self.options.items()))[0].cog
        except ConfigError:
            return None

    @property
    def title(self) -> str:
        """Suite and options, for every title."""
        suite = self.suite.title if self.suite else f"suite {self.suite_name}"
        if "universe" in self.options:  # its title would speak of other images
            suite = f"{self.suite_name} protocol on a universe of one's own"
        options = ", ".join(f"{key}={value}" for key, value in sorted(self.options.items()))
        return f"{suite}, protocol options: {options or 'none'}"

    @property
    def note(self) -> str:
        """What has to be said wherever numbers of this suite are shown."""
        return self.suite.note if self.suite and "universe" not in self.options else ""

    @property
    def effort(self) -> str:
        """Number of seeds behind a mean, and of trials behind each seed: ``5 seeds, 30 trials each``."""
        measured = {len(metric.per_seed) for metric in map(_metric, self.records.values()) if metric}
        planned = [len(self.protocol.seeds)] if self.protocol else []
        counts = sorted(measured) or planned
        seeds = " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")
        trials = sorted({int(record.key["settings"]["trials"]) for record in self.records.values() if record.key})
        trials = trials or ([self.protocol.trials] if self.protocol else [])
        return f"{seeds}, {' or '.join(map(str, trials))} trials each" if trials else seeds

    @property
    def slug(self) -> str:
        """A part of file names that no other section has."""
        options = "-".join(f"{key}={value}" for key, value in sorted(self.options.items()))
        safe = re.sub(r"[^\w.,=-]", "_", options)[:60]
        digest = "" if safe == options else f"-{digest_of(dict(self.options))[:8]}"
        return "-".join(filter(None, [self.suite_name, safe])) + digest

    def metric(self, model: str, place: Place) -> Metric | None:
        """Return the top-1 accuracy of a measured case, else None."""
        record = self.records.get((model, place))
        return _metric(record) if record else None

    def value(self, model: str, place: Place) -> float | None:
        """Return the top-1 accuracy of a model at a place, in percent, else None."""
        metric = self.metric(model, place)
        return metric.value if metric else None

    def ranked(self, model: str, place: Place) -> float | None:
        """Return the value that ranks a model at a place; None where it cannot be compared with the others."""
        return None if (model, place) in self.stale else self.value(model, place)

    @cached_property
    def stale(self) -> dict[tuple[str, Place], list[str]]:
        """What of a measured case differs from the latest one that it stands beside.

        A row is of one network and its weights, a column of one set of images, all of one set of seeds and settings.
        """
        found: dict[tuple[str, Place], list[str]] = {}
        measured = [
            (record.provenance.measured, record.case.id, key)
            for key, record in self.records.items()
            if record.measured and record.key and record.provenance
        ]
        latest: dict[object, Any] = {}
        for _, _, (model, place) in sorted(measured, reverse=True):
            key = self.records[model, place].key
            for name, scope, value in _comparable(key, model, place):
                if latest.setdefault((name, scope), value) != value:
                    found.setdefault((model, place), []).append(name)
        return found

    def similarity(self, place: Place) -> float | None:
        """Return the mean similarity of a split's concepts to their nearest seen ones, where records say it."""
        said = [record.details.get("mean_similarity") for (_, where), record in self.records.items() if where == place]
        return next((float(value) for value in said if value is not None), None)

    def cell(self, model: str, place: Place) -> Cell:
        """Return the top-1 accuracy of a model at a place, or the reason why there is none."""
        record = self.records.get((model, place))
        if record is None:
            return Cell(reason=_NOT_RUN)
        metric = _metric(record)
        if metric is None:
            return Cell(reason=_why_not(record))
        marks = list(record.warnings)
        if other := self.stale.get((model, place)):
            marks.append(f"not ranked: measured with other {' and '.join(other)} than the latest; run it again")
        if record.last_attempt:
            marks.append(f"latest run {record.last_attempt.status}: {record.last_attempt.reason}")
        reason = "" if metric.value is not None else metric.reason or "no value"
        return Cell(metric.value, metric.std, reason, tuple(marks))


def _comparable(key: Mapping[str, Any], model: str, place: Place) -> list[tuple[str, object, object]]:
    """Return (name, scope, value) of everything that has to be equal among the measured cases of a scope."""
    train, test = key["train"], key["test"]
    settings = {name: value for name, value in key["settings"].items() if name != "fewshot_val"}
    return [
        ("network or weights", model, (train["backbone"], train["weights"])),
        ("images or concepts", place.split, (train["images"], test["images"], key["labels"])),
        ("seeds or settings", None, (key["seeds"], settings)),
    ]


def sections(records: Iterable[Record], suites: Mapping[str, Suite]) -> list[Section]:
    """Part the ImageNet-CoG records among ``records`` by suite and options, in a fixed order.

    Raises:
        ValueError: two records are of the same case.
    """
    parted: dict[tuple[str, tuple[tuple[str, str], ...]], dict[tuple[str, Place], Record]] = {}
    for record in sorted(records, key=lambda record: (record.case.suite, record.case.id)):
        case = record.case.case()
        if case.benchmark != "cog":
            continue
        key = (case.model, Place(case.tokens["split"], shots_of(case)))
        section = parted.setdefault((case.suite, tuple(sorted(case.options.items()))), {})
        if key in section:
            raise ValueError(f"two records of {case.id} in suite {case.suite}")
        section[key] = record
    return [
        Section(suite, dict(options), suites.get(suite), found) for (suite, options), found in sorted(parted.items())
    ]


def _metric(record: Record) -> Metric | None:
    return record.metrics.get(_METRIC) if record.measured else None


def _why_not(record: Record) -> str:
    """Return the reason of a skip whole, since it names what is wanted, and the start of that of a failure."""
    reason = record.reason or "no reason given"
    return shorten(f"failed: {reason}", 200) if record.status == "failed" else " ".join(reason.split())


def _position(place: Place) -> tuple[int, str, float]:
    level = re.fullmatch(r"L(\d+)", place.split)
    shots = float("inf") if place.shots is None else place.shots
    return int(level[1]) if level else 0, place.split, shots
