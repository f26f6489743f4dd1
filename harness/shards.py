"""Shards: cases dealt out to machines that know nothing of each other, each to the same end.

A shard depends on nothing but the cases that are selected and the durations they are given, so that every machine that
is told the same finds the same. Cases of one extraction stay together, whole models too where that costs little.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.case import Case
from harness.case import unit_of
from harness.digest import digest_of
from harness.errors import ConfigError

Unit: TypeAlias = tuple[str, ...]
Estimate: TypeAlias = Callable[[Case], float]

SLACK = 1.1
"""How much longer than need be the longest shard may take for the sake of whole models."""

_VERSION = 1
"""Raised with every change that deals cases out otherwise: machines of different versions are not of one plan."""


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run."""

    number: int
    """From 1."""
    count: int


@dataclass(frozen=True)
class Plan:
    """Which shard each case is in."""

    name: str
    """Six hex digits: equal for shards that fit together."""
    shards: Sequence[frozenset[str]]
    """Ids of the cases of each."""
    seconds: Sequence[float]
    """Expected, of each."""


def parse_shard(text: str) -> Shard:
    """Read ``2/4``.

    Raises:
        ConfigError: it is not of that form, or there is no such shard.
    """
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--shard {text}: expected I/N, from 1/N to N/N with N up to 9999, such as 2/4")
    return Shard(int(match[1]), int(match[2]))


def deal(cases: Iterable[Case], count: int, features: Estimate, work: Estimate) -> Plan:
    """Deal cases out to ``count`` shards, none of which extracts what another one does.

    Args:
        cases: All that is selected, in any order.
        count: Number of shards; some stay empty where there are fewer extractions.
        features: Expected seconds of the extraction that a case needs.
        work: Expected seconds of the case once features are there.

    Returns:
        The plan. Its longest shard takes at most `SLACK` times as long as if the longest extractions, each with its
        cases, were dealt first and each to the shard that is free first.
    """
    cases = sorted(cases, key=lambda case: case.id)
    units: dict[Unit, list[Case]] = defaultdict(list)
    for case in cases:
        units[unit_of(case)].append(case)
    loads = {unit: max(map(features, members)) + sum(map(work, members)) for unit, members in units.items()}
    apart = _longest_first(loads, count)
    limit = SLACK * max(_totals(apart, loads, count), default=0.0)
    together = _models_together(loads, count, limit)
    chosen = together if max(_totals(together, loads, count), default=0.0) <= limit else apart
    place_of = {case.id: chosen[unit_of(case)] for case in cases}
    members: list[set[str]] = [set() for _ in range(count)]
    for identity, place in place_of.items():
        members[place].add(identity)
    suites = sorted({case.suite for case in cases})
    name = digest_of([_VERSION, suites, count, sorted(place_of.items())])
    return Plan(name[:6], [frozenset(ids) for ids in members], _totals(chosen, loads, count))


def _longest_first(loads: Mapping[Unit, float], count: int) -> dict[Unit, int]:
    """Deal units out, the longest first, each to the shard with the least to do (Graham, 1969: at most 4/3 - 1/3n)."""
    totals = [0.0] * count
    chosen = {}
    for unit in _descending(loads):
        place = totals.index(min(totals))
        chosen[unit] = place
        totals[place] += loads[unit]
    return chosen


def _models_together(loads: Mapping[Unit, float], count: int, limit: float) -> dict[Unit, int]:
    """Deal whole models out, the longest first; one that no shard has room for under the limit is parted."""
    models: dict[Unit, dict[Unit, float]] = defaultdict(dict)
    for unit, load in loads.items():
        models[unit[:2]][unit] = load
    sizes = {model: sum(units.values()) for model, units in models.items()}
    totals = [0.0] * count
    chosen = {}
    for model in _descending(sizes):
        least = totals.index(min(totals))
        homes: set[int] = set()
        whole = totals[least] + sizes[model] <= limit
        for unit in _descending(models[model]):
            roomy = [home for home in sorted(homes) if totals[home] + loads[unit] <= limit]
            place = least if whole else roomy[0] if roomy else totals.index(min(totals))
            homes.add(place)
            chosen[unit] = place
            totals[place] += loads[unit]
    return chosen


def _descending(loads: Mapping[Unit, float]) -> list[Unit]:
    return sorted(loads, key=lambda unit: (-loads[unit], unit))


def _totals(chosen: Mapping[Unit, int], loads: Mapping[Unit, float], count: int) -> list[float]:
    totals = [0.0] * count
    for unit, place in sorted(chosen.items()):
        totals[place] += loads[unit]
    return totals
