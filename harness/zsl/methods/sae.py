"""SAE: a linear auto-encoder through the class embedding (Kodirov et al., CVPR 2017; facts 2.13, 8.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np

from harness.zsl.methods.eszsl import class_sums
from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.methods.scaling import unit_rows
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class SaeModel:
    """Cosine between image and class, in the space of embeddings (F2S) or of features (S2F).

    Attributes:
        weights: W as used at test, [a, d].
        direction: "F2S" or "S2F".
    """

    scaling: Scaling
    weights: Floats
    direction: str
    embeddings: ClassEmbeddings

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return cosines, float64 [m, c]."""
        x, y = self.scaling.apply(features), self.embeddings.values[classes]
        if self.direction == "F2S":
            return unit_rows(x @ self.weights.T) @ unit_rows(y).T
        return unit_rows(x) @ unit_rows(y @ self.weights).T


@dataclass(frozen=True)
class Sae(Options):
    """Minimise ``|X - W'S|^2 + lambda |W X - S|^2`` over W [a, d].

    Options:
        features: normalisation, the same in training and test.
        rows: whether the rows of W get unit length before the test, as in the authors' code.
    """

    features: Normalization = "l2"
    rows: Literal["unit", "free"] = "unit"

    name: ClassVar[str] = "SAE"

    def grid(self, _dataset: str, /) -> Grid:
        """Return lambda over nine decades, each with both directions of the test."""
        return {"lambda": tuple(10.0**power for power in range(-2, 7)), "direction": ("F2S", "S2F")}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Solve all lambda of a set from one eigendecomposition of features and one of embeddings."""
        return [self._fit(train, points) for train in sets]

    def _fit(self, train: TrainSet, points: Sequence[Point]) -> list[Model]:
        scaling = fit_scaling(self.features, train.features)
        solve = sylvester(scaling.apply(train.features), train)
        weights = {penalty: solve(penalty) for penalty in {float(point["lambda"]) for point in points}}
        if self.rows == "unit":
            weights = {penalty: unit_rows(weight) for penalty, weight in weights.items()}
        return [
            SaeModel(scaling, weights[float(point["lambda"])], str(point["direction"]), train.embeddings)
            for point in points
        ]


class sylvester:  # noqa: N801 - used as a function: what it computes on creation serves every call
    """Solve ``A W + lambda W B = (1 + lambda) S X'`` with A = SS', B = XX' for any lambda.

    In the eigenvectors of A and B the equation is one division per entry of W.
    """

    def __init__(self, x: Floats, train: TrainSet) -> None:
        counts = np.bincount(train.targets)
        self.p, self.P = np.linalg.eigh((train.seen.T * counts) @ train.seen)
        self.q, self.Q = np.linalg.eigh(x.T @ x)
        self.M = self.P.T @ (train.seen.T @ class_sums(x, train)) @ self.Q

    def __call__(self, penalty: float) -> Floats:
        """Return W, float64 [a, d]; directions without any data get 0."""
        spectrum = self.p[:, None].clip(0) + penalty * self.q.clip(0)
        empty = spectrum <= 1e-13 * spectrum.max()
        middle = np.where(empty, 0, (1 + penalty) * self.M / np.where(empty, 1, spectrum))
        weights: Floats = self.P @ middle @ self.Q.T
        return weights
