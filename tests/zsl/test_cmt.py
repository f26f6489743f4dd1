"""CMT: its gradient, its networks, and the routing of CMT-nd."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from harness.zsl.methods.cmt import Cmt
from harness.zsl.methods.cmt import CmtModel
from harness.zsl.methods.cmt import Layers
from harness.zsl.methods.cmt import cost
from harness.zsl.methods.novelty import CmtNovelty
from harness.zsl.methods.novelty import Mixture
from harness.zsl.methods.novelty import RoutedModel

if TYPE_CHECKING:
    from harness.zsl.problem import Floats
    from harness.zsl.problem import Point
    from tests.zsl.conftest import MakeSet

POINT: "Point" = {"hidden": 6, "lambda": 1e-3}


def test_gradient_equals_finite_differences() -> None:
    rng = np.random.default_rng(0)
    layers = Layers(4, 3, 2)
    x, wanted = torch.from_numpy(rng.normal(size=(9, 4))), torch.from_numpy(rng.normal(size=(9, 2)))

    def value(flat: "Floats") -> float:
        return float(cost(x, wanted, layers, torch.from_numpy(flat), 0.1, biases=True)[0])

    def gradient(flat: "Floats") -> "Floats":
        return np.asarray(cost(x, wanted, layers, torch.from_numpy(flat), 0.1, biases=True)[1])

    assert check_grad(value, gradient, rng.normal(size=layers.size)) < 1e-6


def test_cost_by_hand() -> None:
    layers = Layers(1, 1, 1)
    x, wanted = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]])
    w1, w2, b1, b2 = 0.5, -2.0, 0.1, 0.3
    value, _ = cost(x, wanted, layers, torch.tensor([w1, w2, b1, b2]), 0.2, biases=True)
    miss = [w2 * np.tanh(w1 * n + b1) + b2 - t for n, t in ((1, 0), (2, 1))]
    penalty = 0.1 * (w1**2 + w2**2 + b1**2 + b2**2)
    assert float(value) == pytest.approx((miss[0] ** 2 + miss[1] ** 2) / 4 + penalty)


def test_training_lowers_the_cost_and_biases_can_be_left_out(make_set: "MakeSet") -> None:
    train = make_set(images=80)
    [[model]], [[without]] = Cmt().fit([train], [POINT], 0), Cmt(biases="no").fit([train], [POINT], 0)
    assert isinstance(model, CmtModel)
    assert isinstance(without, CmtModel)
    assert (without.flat[-model.layers.h - model.layers.a :] == 0).all()
    assert (model.flat[-model.layers.a :] != 0).all()
    wanted = train.embeddings.values[train.labels]
    fitted = ((model.map(train.features) - wanted) ** 2).mean()
    assert fitted < 0.9 * ((wanted.mean(0) - wanted) ** 2).mean()


def test_scores_are_distances_to_embeddings(make_set: "MakeSet") -> None:
    train = make_set()
    [[model]] = Cmt(iterations=5).fit([train], [POINT], 0)
    assert isinstance(model, CmtModel)
    mapped, y = model.map(train.features[:3]), train.embeddings.values
    expected = [[-((row - y[c]) ** 2).sum() for c in (9, 2)] for row in mapped]
    np.testing.assert_allclose(model.scores(train.features[:3], np.array([9, 2])), expected)


def test_density_of_the_mixture() -> None:
    centres, variances, shares = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 2.0]), np.array([0.25, 0.75])
    point = np.array([0.3, 0.4])
    density = sum(
        share * multivariate_normal(centre, variance * np.eye(2)).pdf(point)
        for share, centre, variance in zip(shares, centres, variances, strict=True)
    )
    mixture = Mixture(centres, variances, np.log(shares))
    np.testing.assert_allclose(mixture.log_density(point[None]), [np.log(density)])


def test_variances_of_seen_classes(make_set: "MakeSet") -> None:
    train = make_set(images=50)
    point = {**POINT, "quantile": 0.5}
    [[own]], [[everyone]] = (CmtNovelty(divisor=name).fit([train], [point], 0) for name in ("class", "all"))
    assert isinstance(own, RoutedModel)
    assert isinstance(everyone, RoutedModel)
    first = train.labels == train.classes[0]
    misses = own.network.map(train.features[first]) - train.seen[0]
    assert own.mixture.variances[0] == pytest.approx((misses**2).mean())
    assert everyone.mixture.variances[0] == pytest.approx((misses**2).mean() * first.sum() / 50)


def test_routing(make_set: "MakeSet") -> None:
    train = make_set(images=100)
    points = [{**POINT, "quantile": quantile} for quantile in (0.0, 0.3, 1.0)]
    [models] = CmtNovelty().fit([train], points, 0)
    everything, unseen = np.arange(10), np.setdiff1d(np.arange(10), train.classes)
    shares = [np.isin(model.scores(train.features, everything).argmax(1), unseen).mean() for model in models]
    assert shares == [0.0, pytest.approx(0.3, abs=0.011), 0.99]
    [[plain]] = Cmt().fit([train], [POINT], 0)
    for model in models:
        for classes in (unseen, train.classes):
            np.testing.assert_array_equal(model.scores(train.features, classes), plain.scores(train.features, classes))
    routed = models[2].scores(train.features, everything)
    np.testing.assert_array_equal(
        routed[:99][:, unseen].max(1) > -np.inf, np.isneginf(routed[:99][:, train.classes]).all(1)
    )


def test_seen_branch_is_a_classifier_of_raw_features(make_set: "MakeSet") -> None:
    train = make_set(images=100)
    [[model]] = CmtNovelty().fit([train], [{**POINT, "quantile": 0.0}], 0)
    predicted = model.scores(train.features, np.arange(10)).argmax(1)
    [[plain]] = Cmt().fit([train], [POINT], 0)
    nearest = train.classes[plain.scores(train.features, train.classes).argmax(1)]
    assert (predicted == train.labels).mean() > (nearest == train.labels).mean()
