"""Ranks with ties, and their mean over cases that all ranked models share."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MeanRanks:
    """The mean rank of every model that was measured in every case."""

    cases: tuple[str, ...]
    """The cases measured for at least one model: those the means run over."""
    means: Mapping[str, float]
    """Mean rank per complete model; 1 is best."""
    missing: Mapping[str, tuple[str, ...]]
    """The other models, which have no mean rank, with the cases they lack."""


def ranks(values: Sequence[float | None], *, higher_is_better: bool = True) -> list[float | None]:
    """Rank ``values`` from 1 (best); equal values share the mean of their places, None has no rank."""
    measured = [value for value in values if value is not None]
    return [None if value is None else _rank(value, measured, higher_is_better) for value in values]


def _rank(value: float, measured: Sequence[float], higher_is_better: bool) -> float:
    better = sum(other > value if higher_is_better else other < value for other in measured)
    return better + (measured.count(value) + 1) / 2


def standings(values: Sequence[float | None], *, higher_is_better: bool = True) -> list[int]:
    """Say which values are best (1) and second (2), ties included; 0 for all others.

    Among fewer than two values there is no best, among fewer than three no second.
    """
    measured = [value for value in values if value is not None]
    distinct = sorted(set(measured), reverse=higher_is_better)
    places = {value: place for place, value in enumerate(distinct[:2], start=1) if len(measured) > place}
    return [0 if value is None else places.get(value, 0) for value in values]


def mean_ranks(scores: Mapping[str, Mapping[str, float | None]], *, higher_is_better: bool = True) -> MeanRanks:
    """Rank models in each case and average per model, never over unequal sets of cases.

    A model that lacks a case which another model has is left out of all ranks, so that the ranks of the others
    do not depend on where it failed.

    Args:
        scores: model -> case -> value; a missing key is as good as None.
        higher_is_better: direction of all values.
    """
    measured = {model: {case for case, value in row.items() if value is not None} for model, row in scores.items()}
    cases = tuple(dict.fromkeys(case for model, row in scores.items() for case in row if case in measured[model]))
    complete = [model for model in scores if cases and measured[model] == set(cases)]
    by_case = [ranks([scores[model][case] for model in complete], higher_is_better=higher_is_better) for case in cases]
    columns = zip(*by_case, strict=True)
    means = {model: sum(filter(None, column)) / len(cases) for model, column in zip(complete, columns, strict=True)}
    missing = {
        model: tuple(case for case in cases if case not in measured[model]) for model in scores if model not in means
    }
    return MeanRanks(cases, means, missing)
