"""SSE: images and classes as mixtures of seen classes (Zhang and Saligrama, ICCV 2015; facts 2.6).

The objective is unverified: no public source of it is known. Every number of this method needs that remark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.methods.scaling import unit_rows
from harness.zsl.methods.sse_objective import Objective
from harness.zsl.methods.sse_objective import Profile
from harness.zsl.methods.sse_objective import memberships
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class SseModel:
    """``f(x, c) = sum_y z_cy <w, psi_y(x)>``.

    Attributes:
        mixtures: z of every class, [C, k].
        w: [d].
        v: profile of each seen class, [k, d].
        profile: "int" or "relu".
    """

    scaling: Scaling
    mixtures: Floats
    w: Floats
    v: Floats
    profile: Profile

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return f, float64 [m, c]."""
        device = torch.get_default_device()
        x, w, v = (torch.from_numpy(part).to(device) for part in (self.scaling.apply(features), self.w, self.v))
        belongs: Floats = memberships(x, w, v, self.profile).cpu().numpy()
        return belongs @ self.mixtures[classes].T


@dataclass(frozen=True)
class Sse(Options):
    """A point has ``gamma`` of the mixtures, ``points`` (training images used, a number or "all") and ``rounds``.

    Options:
        features: normalisation; profiles are made for features that are not negative.
        profile: ``psi_y(x)`` is min(x, v_y) (int) or max(0, x - v_y) (relu).
        decay: penalty of profiles.
        steps_w, steps_v: of L-BFGS on w and of projected subgradients on v, in each round.
    """

    features: Normalization = "raw"
    profile: Profile = "int"
    decay: float = 1e-3
    steps_w: int = 20
    steps_v: int = 5

    name: ClassVar[str] = "SSE"
    needs: ClassVar[str] = "torch"

    def grid(self, _dataset: str, /) -> Grid:
        """Return 30 points: what the released code is said to hard-code, with values of ours."""
        return {
            "gamma": tuple(10.0**power for power in range(-3, 2)),
            "points": ("all", 5000),
            "rounds": (1, 2, 5),
        }

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], seed: int, /) -> list[list[Model]]:
        """Train one after the other; points that differ in rounds only are stages of one training."""
        return [self._fit(train, points, seed) for train in sets]

    def _fit(self, train: TrainSet, points: Sequence[Point], seed: int) -> list[Model]:
        scaling = fit_scaling(self.features, train.features)
        images = [_images(point, train) for point in points]
        models: dict[int, Model] = {}
        for gamma, number in sorted(
            {(float(point["gamma"]), count) for point, count in zip(points, images, strict=True)}
        ):
            mixtures = simplex_mixtures(train.embeddings.values, train.seen, gamma)
            some = [p for p, point in enumerate(points) if (float(point["gamma"]), images[p]) == (gamma, number)]
            rounds = [int(points[p]["rounds"]) for p in some]
            rows = np.arange(len(train.labels))
            if number < len(rows):
                rows = np.random.default_rng(seed).permutation(len(rows))[:number]
            stages = self._train(scaling.apply(train.features[rows]), train, rows, mixtures, max(rounds))
            for p, last in zip(some, rounds, strict=True):
                models[p] = SseModel(scaling, mixtures, *stages[last - 1], self.profile)
        return [models[p] for p in range(len(points))]

    def _train(
        self, x: Floats, train: TrainSet, rows: Labels, mixtures: Floats, rounds: int
    ) -> list[tuple[Floats, Floats]]:
        """Return w and v after each round: w with v fixed, then v with w fixed; v starts at class means."""
        objective = Objective(
            x,
            train.targets[rows],
            mixtures[train.classes],
            1 - unit_rows(train.seen) @ unit_rows(train.seen).T,
            profile=self.profile,
            decay=self.decay,
        )
        w, v, stages = np.zeros(x.shape[1]), objective.class_means(), []
        for _ in range(rounds):
            w = objective.fit_w(w, v, self.steps_w)
            v = objective.fit_v(w, v, self.steps_v)
            stages.append((w, v))
        return stages


def _images(point: Point, train: TrainSet) -> int:
    return len(train.labels) if point["points"] == "all" else min(int(point["points"]), len(train.labels))


def simplex_mixtures(embeddings: Floats, seen: Floats, gamma: float) -> Floats:
    """Return ``argmin over the simplex of gamma/2 |z|^2 + 1/2 |s - sum_y z_y s_y|^2`` for each class, [C, k].

    On the simplex the residual is ``sum_y z_y (s - s_y)``, so the objective is a quadratic form z'Hz/2. Its minimum
    there is the minimum of ``z'Hz/2 - sum z`` over z >= 0, scaled to sum 1: non-negative least squares, exact by
    active sets.
    """
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    mixtures = np.empty((len(embeddings), len(seen)))
    for row, embedding in zip(mixtures, embeddings, strict=True):
        residuals = seen - embedding
        lower = np.linalg.cholesky(residuals @ residuals.T + gamma * np.eye(len(seen)))
        row[:] = nnls(lower.T, solve_triangular(lower, np.ones(len(seen)), lower=True))[0]
    scaled: Floats = mixtures / mixtures.sum(1, keepdims=True)
    return scaled
