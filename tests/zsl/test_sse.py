"""SSE: mixtures against a solver of quadratic programs, the objective by hand, its subgradients by differences."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.optimize import minimize

from harness.zsl.methods.sse import Sse
from harness.zsl.methods.sse import SseModel
from harness.zsl.methods.sse import simplex_mixtures
from harness.zsl.methods.sse_objective import Objective
from harness.zsl.methods.sse_objective import Profile

if TYPE_CHECKING:
    from tests.zsl.conftest import MakeSet


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
def test_mixtures_solve_their_quadratic_programs(make_set: "MakeSet", gamma: float) -> None:
    train = make_set()
    y, seen = train.embeddings.values, train.seen
    mixtures = simplex_mixtures(y, seen, gamma)
    for z, s in zip(mixtures, y, strict=True):

        def objective(a: np.ndarray, s: np.ndarray = s) -> float:
            return float(gamma / 2 * a @ a + 0.5 * ((s - a @ seen) ** 2).sum())

        def gradient(a: np.ndarray, s: np.ndarray = s) -> np.ndarray:
            return np.asarray(gamma * a - seen @ (s - a @ seen))

        solved = minimize(
            objective,
            np.full(7, 1 / 7),
            jac=gradient,
            method="SLSQP",
            bounds=[(0, 1)] * 7,
            constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        assert objective(z) <= solved.fun + 1e-10
        np.testing.assert_allclose(z, solved.x, atol=2e-6)
        # the conditions of the optimum, to 1e-8: one multiplier where z > 0, none smaller elsewhere
        slope = gradient(z)
        assert z.min() >= 0
        assert z.sum() == pytest.approx(1, abs=1e-12)
        assert np.ptp(slope[z > 0]) < 1e-8
        assert (slope[z == 0] >= slope[z > 0].max() - 1e-8).all()


def by_hand(x: np.ndarray, targets: np.ndarray, z: np.ndarray, gaps: np.ndarray, w: np.ndarray, v: np.ndarray) -> float:
    f = np.array(
        [[sum(z[c, y] * (w * np.minimum(row, v[y])).sum() for y in range(len(z))) for c in range(len(z))] for row in x]
    )
    total = 0.5 * w @ w + 0.05 * (v**2).sum()
    for label in range(len(z)):
        for s in range(len(z)):
            if s != label:
                margins = f[targets == label, label] - f[targets == label, s]
                total += np.maximum(0, gaps[label, s] - margins).sum() + max(0, gaps[label, s] - margins.mean())
    return float(total)


Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def problem(profile: Profile = "int") -> tuple[Objective, Parts, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, targets = rng.random((12, 5)), np.arange(12) % 3
    z, gaps = rng.dirichlet(np.ones(3), 3), 0.3 * (1 - np.eye(3))
    w, v = rng.normal(size=5), rng.random((3, 5))
    return Objective(x, targets, z, gaps, profile=profile, decay=0.1), (x, targets, z, gaps), w, v


def test_objective_by_hand() -> None:
    objective, parts, w, v = problem()
    assert objective.value_and_gradients(w, v)[0] == pytest.approx(by_hand(*parts, w, v))


@pytest.mark.parametrize("profile", ["int", "relu"])
def test_subgradients_equal_finite_differences(profile: Profile) -> None:
    objective, _, w, v = problem(profile)
    _, by_w, by_v = objective.value_and_gradients(w, v)
    np.testing.assert_allclose(by_w, approx_fprime(w, lambda u: objective.value_and_gradients(u, v)[0]), atol=1e-5)
    numeric = approx_fprime(v.ravel(), lambda u: objective.value_and_gradients(w, u.reshape(3, 5))[0])
    np.testing.assert_allclose(by_v.ravel(), numeric, atol=1e-5)


def test_both_half_steps_lower_the_objective() -> None:
    objective, _, w, v = problem()
    start = objective.value_and_gradients(w, v)[0]
    w = objective.fit_w(w, v, 20)
    middle = objective.value_and_gradients(w, v)[0]
    moved = objective.fit_v(w, v, 10)
    assert start > middle > objective.value_and_gradients(w, moved)[0]
    assert moved.min() >= 0


def test_rounds_are_stages_of_one_training(make_set: "MakeSet") -> None:
    train = make_set()
    points = [{"gamma": 0.1, "points": number, "rounds": rounds} for number in ("all", 30) for rounds in (1, 3)]
    [together] = Sse().fit([train], points, 0)
    for model, point in zip(together, points, strict=True):
        [[alone]] = Sse().fit([train], [point], 0)
        assert isinstance(model, SseModel)
        assert isinstance(alone, SseModel)
        np.testing.assert_array_equal(model.w, alone.w)
        np.testing.assert_array_equal(model.v, alone.v)
    assert not np.allclose(
        together[0].scores(train.features, train.classes), together[1].scores(train.features, train.classes)
    )


def test_scores(make_set: "MakeSet") -> None:
    train = make_set()
    [[model]] = Sse(profile="relu").fit([train], [{"gamma": 0.1, "points": "all", "rounds": 1}], 0)
    assert isinstance(model, SseModel)
    x = train.features[4]
    psi = np.maximum(0, x - model.v)
    np.testing.assert_allclose(model.scores(x[None], np.array([8, 1]))[0], model.mixtures[[8, 1]] @ psi @ model.w)
