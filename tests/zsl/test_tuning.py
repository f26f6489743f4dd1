"""Selection: the planted best point is found, ties and edges are as published, widening goes as far as it should."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import ClassVar

import numpy as np
import pytest

from harness.zsl.methods.eszsl import Eszsl
from harness.zsl.methods.novelty import CmtNovelty
from harness.zsl.methods.novelty import RoutedModel
from harness.zsl.metrics import class_accuracy
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet
from harness.zsl.problem import Validation
from harness.zsl.problem import Value
from harness.zsl.tuning import edges_of
from harness.zsl.tuning import generalized_on
from harness.zsl.tuning import hold_out
from harness.zsl.tuning import points_of
from harness.zsl.tuning import select

if TYPE_CHECKING:
    from tests.zsl.conftest import MakeSet

VAL = np.array([3, 8])


@dataclass(frozen=True)
class Planted:
    """Right on a share of the images that depends on the point: everything at 0, less the farther from it."""

    best: Mapping[int, Point]
    name: str = "planted"
    needs: str = "numpy"
    generalized: tuple[str, ...] = ()
    widens: tuple[str, ...] = ()
    calls: ClassVar[list[tuple[int, int]]] = []

    @property
    def options(self) -> Mapping[str, Value]:
        return {}

    def grid(self, _dataset: str, /) -> Grid:
        return {}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        self.calls.append((len(sets), len(points)))
        return [[Wrong(self.best[int(train.features[0, 0])], point) for point in points] for train in sets]

    def scores(self, models: Sequence[Model], features: Floats, classes: Labels, /) -> Iterator[Floats]:
        return (model.scores(features, classes) for model in models)


@dataclass(frozen=True)
class Wrong:
    best: Point
    point: Point

    def scores(self, features: Floats, classes: Labels) -> Floats:
        distance = sum(
            abs(np.log10(float(self.point[key])) - np.log10(float(value))) for key, value in self.best.items()
        )
        right = np.where(features[:, :1] == classes, 1.0, 0.0)
        wrong = np.arange(len(features)) < min(distance, 9)
        return np.where(wrong[:, None], 1 - right, right)


def splits(count: int) -> list[Validation]:
    labels = np.repeat(VAL, 10)
    order = np.random.default_rng(0).permutation(20)
    return [
        Validation(
            TrainSet(np.full((2, 1), float(k)), np.array([0, 1]), np.array([0, 1]), None),  # type: ignore[arg-type] # not looked at
            labels[order, None].astype(float),
            labels[order],
            VAL,
        )
        for k in range(count)
    ]


GRID = {"a": (0.01, 0.1, 1.0, 10.0), "b": (1.0, 10.0, 100.0)}


def test_points_go_through_the_grid_in_order() -> None:
    points = list(points_of(GRID))
    assert points[:4] == [{"a": 0.01, "b": b} for b in (1.0, 10.0, 100.0)] + [{"a": 0.1, "b": 1.0}]
    assert len(points) == 12


def test_a_planted_optimum_inside_the_grid_is_found_for_each_split() -> None:
    best = [{"a": 0.1, "b": 10.0}, {"a": 1.0, "b": 10.0}, {"a": 0.1, "b": 10.0}]
    Planted.calls.clear()
    found = select(Planted(dict(enumerate(best))), splits(3), [(0,), (1,), (2,), (0, 1, 2)], GRID, 0)
    assert [one.point for one in found] == [*best, best[0]]
    assert [one.score for one in found[:3]] == [100.0] * 3
    assert found[3].score == pytest.approx((100 + 95 + 100) / 3)
    assert all(one.edges == () for one in found)
    assert Planted.calls == [(3, 12)]
    trial = found[3].trials[4]
    assert trial.point == best[0]
    assert trial.accuracy == pytest.approx((100, 95, 100), abs=0.6)


def test_of_equal_points_the_first_is_taken_and_edges_are_named() -> None:
    [found] = select(Planted({0: {"a": 1e6}}), splits(1), [(0,)], GRID, 0)
    assert found.point == {"a": 10.0, "b": 1.0}
    assert found.edges == ("a", "b")
    assert edges_of({"a": (1,), "T": (1, "all"), "c": (1, 2, 3)}, {"a": 1, "T": "all", "c": 2}) == ()


def test_a_grid_grows_by_decades_while_its_edge_is_best() -> None:
    best = {"a": 1000.0, "b": 0.1}
    [found] = select(Planted({0: best}, widens=("a", "b")), splits(1), [(0,)], GRID, 0)
    assert found.point == pytest.approx(best)
    assert found.edges == ()
    assert found.grid["a"] == pytest.approx((0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0))
    assert found.grid["b"] == pytest.approx((0.01, 0.1, 1.0, 10.0, 100.0))


def test_growth_has_an_end_and_does_not_touch_other_selections() -> None:
    method = Planted({0: {"a": 1e9}, 1: {"a": 0.1}}, widens=("a",))
    far, near = select(method, splits(2), [(0,), (1,)], GRID, 0)
    assert far.point["a"] == pytest.approx(1e4)
    assert far.edges == ("a", "b")
    assert near.grid == GRID
    assert near.point["a"] == 0.1
    [alone] = select(method, splits(2), [(1,)], GRID, 0)
    assert alone == near


def test_a_plateau_is_not_followed_and_a_single_value_stays() -> None:
    method = Planted({0: {}}, widens=("a", "b"))
    [found] = select(method, splits(1), [(0,)], {"a": (0.1, 1.0), "b": (10.0,)}, 0)
    assert found.point == {"a": 0.1, "b": 10.0}
    assert found.edges == ()
    assert found.grid["a"] == pytest.approx((0.01, 0.1, 1.0))
    assert found.grid["b"] == (10.0,)


def test_a_parameter_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no value of b"):
        select(Planted({}), [], [], {"a": (1.0,), "b": ()}, 0)


def as_validation(train: TrainSet, unseen: Labels) -> Validation:
    """Return a split whose validation images are of the last of the classes."""
    val = np.isin(train.labels, unseen)
    kept = TrainSet(train.features[~val], train.labels[~val], np.setdiff1d(train.classes, unseen), train.embeddings)
    return Validation(kept, train.features[val], train.labels[val], unseen)


def test_eszsl_is_selected_as_by_a_plain_loop(make_set: "MakeSet") -> None:
    train = make_set(5, images=200, d=20, a=8, classes=12)
    split = as_validation(train, train.classes[-4:])
    grid = Eszsl().grid("CUB")
    best, best_accuracy = None, -1.0
    for point in points_of(grid):
        w = np.linalg.solve(
            split.train.features.T @ split.train.features + float(point["gamma"]) * np.eye(20),
            split.train.features.T @ np.eye(8)[split.train.targets] @ split.train.seen,
        ) @ np.linalg.inv(split.train.seen.T @ split.train.seen + float(point["lambda"]) * np.eye(8))
        scores = split.features @ w @ train.embeddings.values[split.classes].T
        accuracy = class_accuracy(split.classes[scores.argmax(1)], split.labels).mean
        if accuracy > best_accuracy:
            best, best_accuracy = point, accuracy
    [found] = select(Eszsl(), [split], [(0,)], grid, 0)
    first = [trial for trial in found.trials if trial.point in list(points_of(grid))]
    assert max(first, key=lambda trial: trial.accuracy[0]).point == best
    assert found.score >= best_accuracy


def test_held_out_images_are_a_fifth_of_each_class(make_set: "MakeSet") -> None:
    train = make_set(images=200)
    kept, held = hold_out(train, 0)
    assert len(kept.labels) + len(held.labels) == 200
    for label in train.classes:
        assert (held.labels == label).sum() == round(0.2 * (train.labels == label).sum())
    np.testing.assert_array_equal(kept.classes, train.classes)
    both = np.concatenate([kept.features, held.features])
    np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(train.features[:, 0]))
    with pytest.raises(ValueError, match="no class has the 3 images"):
        hold_out(make_set(images=7), 0)


def test_threshold_of_novelty_is_chosen_by_h_after_all_else(make_set: "MakeSet") -> None:
    train = make_set(7, images=240, d=20, a=8, classes=8)
    split = as_validation(train, train.classes[-3:])
    method = CmtNovelty(iterations=60)
    grid: Grid = {"hidden": (4, 10), "lambda": (1e-4, 1e-2), "quantile": (0.0, 0.2, 0.5, 1.0)}
    [found] = select(method, [split], [(0,)], grid, 0)
    network = {key: found.point[key] for key in ("hidden", "lambda")}
    zero_shot, generalized = found.trials[:4], found.trials[4:]
    assert found.score == max(trial.accuracy[0] for trial in zero_shot)
    assert [trial.point for trial in generalized] == [{**network, "quantile": q} for q in grid["quantile"]]
    kept, held = hold_out(split.train, 0)
    [models] = method.fit([kept], [{**network, "quantile": q} for q in grid["quantile"]], 0)
    expected = [generalized_on(model, held, split).h for model in models]
    assert [trial.h[0] for trial in generalized] == pytest.approx(expected)
    assert found.point["quantile"] == grid["quantile"][int(np.argmax(expected))]
    assert all(isinstance(model, RoutedModel) for model in models)
    assert found.grid == grid
