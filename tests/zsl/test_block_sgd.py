"""Block-exact SGD of all points and sets at once gives the weights of the plain loop over images."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from harness.zsl.methods.ale import Ale
from harness.zsl.methods.ale import Devise
from harness.zsl.methods.bilinear import Bilinear
from harness.zsl.methods.blocks import Draws
from harness.zsl.methods.latem import Latem
from harness.zsl.methods.ranking import Ranking
from harness.zsl.methods.sje import Sje
from harness.zsl.problem import TrainSet
from tests.zsl import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.zsl.conftest import MakeSet

METHODS = [
    (Sje(), plain.sje, 0),
    (Devise(), plain.devise, 0),
    (Devise(sampling="first"), plain.devise_first, 99),
    (Ale(), plain.ale_author, 99),
    (Ale(sampling="wsabie"), plain.ale_wsabie, 99),
    (Ale(sampling="rank"), plain.ale_rank, 0),
    (Latem(), plain.latem, 1),
]
NAMES = ["SJE", "DEVISE", "DEVISE-first", "ALE", "ALE-wsabie", "ALE-rank", "LATEM"]


def official(train: TrainSet) -> np.ndarray:
    z = train.features - train.features.mean(0)
    z = z / np.sqrt((z**2).mean(0))
    return np.asarray(z / z.max())


def expected(rule: plain.Rule, train: TrainSet, model: Bilinear, *, draws: int, epochs: int, seed: int) -> np.ndarray:
    start = model.starts[list(model.planes)]
    x, y = official(train), train.seen.T
    return plain.plain_sgd(rule, start, x, y, train.targets, draws=draws, epochs=epochs, seed=seed)


@pytest.mark.parametrize("shape", [{"a": 5, "classes": 7}, {"a": 12, "classes": 4}], ids=["wide", "tall"])
@pytest.mark.parametrize(("method", "rule", "draws"), METHODS, ids=NAMES)
def test_weights_equal_those_of_the_plain_loop(
    make_set: "MakeSet",
    method: Ranking,
    rule: "Callable[[float], plain.Rule]",
    draws: int,
    shape: dict[str, int],
) -> None:
    sets = [make_set(1, images=150, **shape), make_set(2, images=97, **shape)]
    points = [{"eta": 0.03, "epochs": 3, "K": 2}, {"eta": 0.5, "epochs": 3, "K": 3, "start": 1}]
    for train, models in zip(sets, method.fit(sets, points, 5), strict=True):
        for model, point in zip(models, points, strict=True):
            assert isinstance(model, Bilinear)
            plain_weights = expected(
                rule(float(point["eta"])),
                train,
                model,
                draws=draws and min(draws, len(train.classes)),
                epochs=3,
                seed=5,
            )
            assert np.abs(model.change).max() > 1e-3
            np.testing.assert_allclose(model.weights, plain_weights, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("method", "rule", "draws"), METHODS, ids=NAMES)
def test_sets_of_different_numbers_of_classes_and_points_of_different_epochs(
    make_set: "MakeSet", method: Ranking, rule: "Callable[[float], plain.Rule]", draws: int
) -> None:
    sets = [make_set(1, images=70, a=6, classes=4, unseen=6), make_set(2, images=40, a=6, classes=8, unseen=2)]
    points = [{"eta": 0.2, "epochs": 3, "K": 2}, {"eta": 0.2, "epochs": 1, "K": 2}]
    for train, models in zip(sets, method.fit(sets, points, 0), strict=True):
        for model, point in zip(models, points, strict=True):
            assert isinstance(model, Bilinear)
            epochs = int(point["epochs"])
            number = draws and min(draws, len(train.classes))
            plain_weights = expected(rule(0.2), train, model, draws=number, epochs=epochs, seed=0)
            np.testing.assert_allclose(model.weights, plain_weights, atol=1e-10, rtol=1e-10)


def test_single_precision_stays_close(make_set: "MakeSet") -> None:
    train = make_set(3)
    points = [{"eta": 0.01, "epochs": 2}]
    for method in (Sje(), Ale(), Devise()):
        [[double]], [[single]] = (
            method.fit([train], points, 0),
            replace(method, precision="float32").fit([train], points, 0),
        )
        assert isinstance(single, Bilinear)
        assert single.change.dtype == np.float32
        classes = np.arange(10)
        np.testing.assert_allclose(
            single.scores(train.features, classes), double.scores(train.features, classes), atol=1e-3
        )


def test_first_weights_are_normal_with_variance_one_over_d(make_set: "MakeSet") -> None:
    [[model, other]] = Sje().fit([make_set(d=400, a=30)], [{"eta": 1e-9, "epochs": 1, "start": s} for s in (0, 1)], 3)
    assert isinstance(model, Bilinear)
    assert isinstance(other, Bilinear)
    assert model.weights.std() * 20 == pytest.approx(1, abs=0.03)
    assert not np.allclose(model.weights, other.weights)


def test_scores_are_the_largest_of_all_maps(make_set: "MakeSet") -> None:
    train = make_set()
    [[model]] = Latem().fit([train], [{"eta": 0.1, "epochs": 2, "K": 3}], 0)
    assert isinstance(model, Bilinear)
    x, classes = official(train), np.array([9, 0, 4])
    one_by_one = [[max(row @ w @ train.embeddings.values[c] for w in model.weights) for c in classes] for row in x]
    np.testing.assert_allclose(model.scores(train.features, classes), one_by_one, atol=1e-12)


def test_draws_do_not_depend_on_blocks_and_never_hit_the_label() -> None:
    labels = np.random.default_rng(0).integers(0, 5, 1000)
    whole, parts = Draws(1, 5), Draws(1, 5)
    drawn = whole.negatives(labels, 3)
    np.testing.assert_array_equal(
        drawn, np.concatenate([parts.negatives(part, 3) for part in np.split(labels, [1, 77])])
    )
    assert (drawn != labels[:, None]).all()
    counts = np.bincount(drawn[labels == 2].ravel(), minlength=5)
    assert counts[2] == 0
    assert counts.sum() / 4 * 0.7 < counts[[0, 1, 3, 4]].min()


def test_one_class_is_refused(make_set: "MakeSet") -> None:
    with pytest.raises(ValueError, match="one class"):
        Sje().fit([make_set(classes=1)], [{"eta": 1.0, "epochs": 1}], 0)
