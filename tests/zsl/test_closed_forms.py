"""ESZSL, SAE and GFZSL against independent solutions."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.linalg import solve_sylvester
from scipy.stats import multivariate_normal

from harness.zsl.methods.eszsl import Eszsl
from harness.zsl.methods.eszsl import EszslModel
from harness.zsl.methods.gfzsl import Gaussians
from harness.zsl.methods.gfzsl import Gfzsl
from harness.zsl.methods.sae import Sae
from harness.zsl.methods.sae import SaeModel

if TYPE_CHECKING:
    from harness.zsl.problem import Floats
    from harness.zsl.problem import TrainSet
    from tests.zsl.conftest import MakeSet

ALL = np.arange(10)


def one_hot(train: "TrainSet") -> "Floats":
    return np.eye(len(train.classes))[train.targets]


@pytest.mark.parametrize("targets", ["zero", "minus"])
@pytest.mark.parametrize(("gamma", "penalty"), [(1e-3, 1e3), (1.0, 1e-3), (1e3, 0.1)])
def test_eszsl_is_where_the_gradient_of_its_objective_vanishes(
    make_set: "MakeSet", targets: str, gamma: float, penalty: float
) -> None:
    train = make_set()
    point = {"gamma": gamma, "lambda": penalty}
    [[model]] = Eszsl(targets=targets).fit([train], [point], 0)  # type: ignore[arg-type] # a parameter of the test
    assert isinstance(model, EszslModel)
    x, s, w = train.features, train.seen.T, model.weights
    t = one_hot(train) if targets == "zero" else 2 * one_hot(train) - 1
    gradient = x.T @ (x @ w @ s - t) @ s.T + gamma * w @ s @ s.T + penalty * x.T @ x @ w + gamma * penalty * w
    assert np.abs(gradient).max() < 1e-8 * np.abs(x.T @ t @ s.T).max()
    np.testing.assert_allclose(
        model.scores(x[:5], ALL), x[:5] @ w @ train.embeddings.values[ALL].T, rtol=1e-9, atol=1e-12
    )


def test_eszsl_grid_equals_solving_each_point(make_set: "MakeSet") -> None:
    sets = [make_set(seed) for seed in range(2)]
    grid = Eszsl().grid("AWA1")
    points = [{"gamma": float(g), "lambda": float(p)} for g in grid["gamma"] for p in grid["lambda"]]
    fitted = Eszsl().fit(sets, points, 0)
    for train, models in zip(sets, fitted, strict=True):
        x, s = train.features, train.seen.T
        for model, point in zip(models, points, strict=True):
            left = np.linalg.solve(x.T @ x + point["gamma"] * np.eye(x.shape[1]), x.T @ one_hot(train) @ s.T)
            expected = np.linalg.solve(s @ s.T + point["lambda"] * np.eye(len(s)), left.T).T
            assert isinstance(model, EszslModel)
            np.testing.assert_allclose(model.weights, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("penalty", [1e-2, 1.0, 1e6])
def test_sae_solves_its_sylvester_equation(make_set: "MakeSet", penalty: float) -> None:
    train = make_set(images=80)
    [[model]] = Sae(rows="free").fit([train], [{"lambda": penalty, "direction": "F2S"}], 0)
    assert isinstance(model, SaeModel)
    x = (train.features / np.linalg.norm(train.features, axis=1, keepdims=True)).T
    s = train.embeddings.values[train.labels].T
    expected = solve_sylvester(s @ s.T, penalty * x @ x.T, (1 + penalty) * s @ x.T)
    np.testing.assert_allclose(model.weights, expected, atol=1e-8 * np.abs(expected).max())


def test_sae_scores_are_cosines_of_both_directions(make_set: "MakeSet") -> None:
    train = make_set()
    [[one, other]] = Sae().fit([train], [{"lambda": 1.0, "direction": name} for name in ("F2S", "S2F")], 0)
    assert isinstance(one, SaeModel)
    w, y = one.weights, train.embeddings.values
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1)
    x = train.features[3]
    cosine = [[u @ v / np.linalg.norm(u) / np.linalg.norm(v) for v in y] for u in (w @ x,)]
    np.testing.assert_allclose(one.scores(x[None], ALL), cosine)
    np.testing.assert_allclose(
        other.scores(x[None], ALL[::-1]), [[x @ w.T @ v / np.linalg.norm(x) / np.linalg.norm(v @ w) for v in y[::-1]]]
    )


def test_sae_without_data_in_some_directions_is_finite(make_set: "MakeSet") -> None:
    train = make_set(images=6, classes=4, d=20, a=8)
    [[model]] = Sae().fit([train], [{"lambda": 1.0, "direction": "F2S"}], 0)
    assert np.isfinite(model.scores(train.features, np.arange(7))).all()


def test_gfzsl_scores_are_the_densities_of_scipy(make_set: "MakeSet") -> None:
    train = make_set(images=90)
    l1, l2, reg = 0.1, 2.0, 0.05
    [[model]] = Gfzsl().fit([train], [{"l1": l1, "l2": l2, "reg": reg}], 0)
    y, seen = train.embeddings.values, train.seen
    groups = [train.features[train.labels == label] for label in train.classes]
    mean, variance = np.array([group.mean(0) for group in groups]), np.array([group.var(0) for group in groups])
    gram = (1 + seen @ seen.T) ** 2
    for label in ALL:
        kernel = (1 + seen @ y[label]) ** 2
        if label in train.classes:
            row = train.classes.tolist().index(label)
            mu, var = mean[row], variance[row]
        else:
            mu = np.linalg.inv(gram + l1 * np.eye(7)) @ kernel @ mean
            var = np.exp(np.linalg.inv(gram + l2 * np.eye(7)) @ kernel @ np.log(variance + 1e-3))
        expected = multivariate_normal(mu, np.diag(var + reg)).logpdf(train.features)
        np.testing.assert_allclose(model.scores(train.features, np.array([label]))[:, 0], expected, rtol=1e-8)


def test_gfzsl_may_regress_seen_classes_too(make_set: "MakeSet") -> None:
    train = make_set()
    point = {"l1": 10.0, "l2": 1e6, "reg": 0.05}
    [[empirical]] = Gfzsl().fit([train], [point], 0)
    [[regressed]] = Gfzsl(seen="regressed").fit([train], [point], 0)
    assert isinstance(empirical, Gaussians)
    assert isinstance(regressed, Gaussians)
    unseen = np.setdiff1d(ALL, train.classes)
    np.testing.assert_array_equal(empirical.means[unseen], regressed.means[unseen])
    assert not np.allclose(empirical.means[train.classes], regressed.means[train.classes])
