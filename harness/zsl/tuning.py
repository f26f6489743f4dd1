"""Selection of hyper-parameters on validation splits (facts 1.4): by accuracy on their classes, per class.

Test images play no part: all that this module is given are training images and images of validation classes.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import product

import numpy as np

from harness.zsl.metrics import Generalized
from harness.zsl.metrics import best_classes
from harness.zsl.metrics import class_accuracy
from harness.zsl.metrics import predict
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Method
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet
from harness.zsl.problem import Validation
from harness.zsl.problem import Value

HELD_OUT = 0.2
"""Part of each seen class that stands for seen test images where a choice changes generalized scores only."""

WIDENINGS = 3
"""Decades at most by which a grid grows at each of its ends."""


@dataclass(frozen=True)
class Trial:
    """One point with its figures in percent: accuracy on each split, then H on each split where that was asked for."""

    point: Point
    accuracy: tuple[float, ...]
    h: tuple[float, ...] = ()


@dataclass(frozen=True)
class Selected:
    """The outcome of one selection.

    Attributes:
        point: the best point; the first of those that are equal.
        splits: the splits whose mean decided, as indices.
        score: what the point reached there: the mean accuracy in percent.
        edges: hyper-parameters whose best value is the first or last of several in the final grid.
        grid: the final grid, wider than the first where the method widens it.
        trials: everything that was tried, in the order of the grid.
    """

    point: Point
    splits: tuple[int, ...]
    score: float
    edges: tuple[str, ...]
    grid: Grid
    trials: tuple[Trial, ...]


def points_of(grid: Grid) -> Iterator[dict[str, Value]]:
    """Yield every combination, the last hyper-parameter changing fastest."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def select(
    method: Method,
    validations: Sequence[Validation],
    selections: Sequence[Sequence[int]],
    grid: Grid,
    seed: int,
) -> list[Selected]:
    """Choose a point for each selection: a set of splits over which accuracy is averaged.

    All splits and points are fitted together, once, however many selections use them. What a selection finds does not
    depend on the others.

    Args:
        method: what to fit.
        validations: one per class-wise split.
        selections: e.g. (0,), (1,), (2,) for one choice per split and (0, 1, 2) for the choice of the main tables.
        grid: values to try.
        seed: of the method.

    Raises:
        ValueError: a hyper-parameter has no values.
    """
    for key, values in grid.items():
        if not values:
            raise ValueError(f"{method.name}: the grid has no value of {key}")
    search = _Search(method, validations, seed)
    first = {key: values[:1] if key in method.generalized else values for key, values in grid.items()}
    used = sorted({split for splits in selections for split in splits})
    search.try_points(first, used)
    chosen = [search.choose(first, tuple(splits)) for splits in selections]
    return [_route(method, validations, one, grid, seed) for one in chosen] if method.generalized else chosen


class _Search:
    """Accuracy of points on splits, each computed once."""

    def __init__(self, method: Method, validations: Sequence[Validation], seed: int) -> None:
        self._method, self._validations, self._seed = method, validations, seed
        self._found: dict[tuple[int, tuple[tuple[str, Value], ...]], float] = {}

    def try_points(self, grid: Grid, splits: Sequence[int]) -> None:
        """Fit what is missing on any of the splits, all together."""
        missing = [p for p in points_of(grid) if any((split, tuple(p.items())) not in self._found for split in splits)]
        if not missing:
            return
        sets = [self._validations[split].train for split in splits]
        for split, models in zip(splits, self._method.fit(sets, missing, self._seed), strict=True):
            _, features, labels, classes = self._validations[split]
            for point, scores in zip(missing, self._method.scores(models, features, classes), strict=True):
                accuracy = class_accuracy(best_classes(scores, classes), labels).mean
                self._found[split, tuple(point.items())] = accuracy

    def choose(self, grid: Grid, splits: tuple[int, ...]) -> Selected:
        """Return the best point over some splits, on a grid that grows at its edges where the method says so."""
        ends = {(key, end): 0 for key in self._method.widens for end in (0, -1) if len(grid[key]) > 1}
        selected = self._best(grid, splits)
        while True:
            wider = dict(grid)
            for (key, end), decades in ends.items():
                if decades < WIDENINGS and selected.point[key] == grid[key][end]:
                    ends[key, end] = decades + 1
                    wider[key] = _widened(wider[key], end)
            if wider == grid:
                return selected
            grid = wider
            self.try_points(grid, splits)
            selected = self._best(grid, splits, selected)

    def _best(self, grid: Grid, splits: tuple[int, ...], before: Selected | None = None) -> Selected:
        """Return the first of the best points; the one found before, unless another is better."""
        trials = tuple(
            Trial(point, tuple(self._found[split, tuple(point.items())] for split in splits))
            for point in points_of(grid)
        )
        means = [float(np.mean(trial.accuracy)) for trial in trials]
        best = int(np.argmax(means))
        point, score = trials[best].point, means[best]
        if before is not None and before.score >= score:
            point, score = before.point, before.score
        return Selected(point, splits, score, edges_of(grid, point), grid, trials)


def edges_of(grid: Grid, point: Point) -> tuple[str, ...]:
    """Return the hyper-parameters whose value is the first or last of an ordered grid of at least two numbers."""
    return tuple(
        key
        for key, values in grid.items()
        if len(values) > 1
        and not any(isinstance(value, str) for value in values)
        and point[key] in (values[0], values[-1])
    )


def _widened(values: Sequence[Value], end: int) -> Sequence[Value]:
    return (float(values[0]) / 10, *values) if end == 0 else (*values, 10 * float(values[-1]))


def _route(method: Method, validations: Sequence[Validation], selected: Selected, grid: Grid, seed: int) -> Selected:
    """Choose the hyper-parameters that change generalized scores only: by H, all others as they were selected.

    Of each training class a part is held out and stands for seen test images; validation classes stand for unseen ones.
    """
    fixed: Mapping[str, Sequence[Value]] = {
        key: values if key in method.generalized else (selected.point[key],) for key, values in grid.items()
    }
    points = list(points_of(fixed))
    parts = [hold_out(validations[split].train, seed) for split in selected.splits]
    fitted = method.fit([kept for kept, _ in parts], points, seed)
    h = [
        [generalized_on(model, held, validations[split]).h for model in models]
        for models, (_, held), split in zip(fitted, parts, selected.splits, strict=True)
    ]
    best = int(np.argmax(np.mean(h, 0)))
    accuracy = next(trial.accuracy for trial in selected.trials if _agree(trial.point, selected.point, method))
    trials = tuple(Trial(point, accuracy, tuple(row[p] for row in h)) for p, point in enumerate(points))
    merged = {**selected.grid, **{key: grid[key] for key in method.generalized}}
    return replace(
        selected,
        point=points[best],
        edges=edges_of(merged, points[best]),
        grid=merged,
        trials=(*selected.trials, *trials),
    )


def _agree(one: Point, other: Point, method: Method) -> bool:
    return all(one[key] == other[key] for key in one if key not in method.generalized)


def generalized_on(model: Model, held: TrainSet, split: Validation) -> Generalized:
    """Return ts on validation images and tr on held-out images, argmax among the classes of both."""
    classes: Labels = np.union1d(held.classes, split.classes)
    ts = class_accuracy(predict(model, split.features, classes), split.labels).mean
    return Generalized(ts, class_accuracy(predict(model, held.features, classes), held.labels).mean)


def hold_out(train: TrainSet, seed: int) -> tuple[TrainSet, TrainSet]:
    """Split the images of each class at random: those to fit on, and a fifth (rounded) that is held out.

    A class of one image keeps it; one of two or more keeps at least one.

    Raises:
        ValueError: nothing can be held out, since every class is too small.
    """
    order = np.random.default_rng([seed, 3]).permutation(len(train.labels))
    held = np.zeros(len(order), bool)
    for row in range(len(train.classes)):
        mine = order[train.targets[order] == row]
        held[mine[: min(round(HELD_OUT * len(mine)), len(mine) - 1)]] = True
    if not held.any():
        raise ValueError(f"no class has the {round(0.6 / HELD_OUT)} images it takes to hold one out")
    return _rows(train, ~held), _rows(train, held)


def _rows(train: TrainSet, rows: "np.ndarray") -> TrainSet:
    labels = train.labels[rows]
    return replace(train, features=train.features[rows], labels=labels, classes=np.unique(labels))
