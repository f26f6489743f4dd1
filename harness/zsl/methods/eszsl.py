"""ESZSL: a bilinear map in closed form (Romera-Paredes and Torr, ICML 2015; facts 2.11, 8.3)."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np

from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class EszslModel:
    """``x left diag(1 / (values + lambda)) vectors' y``: the maps of one gamma differ in a diagonal only."""

    scaling: Scaling
    left: Floats
    values: Floats
    vectors: Floats
    penalty: float
    embeddings: ClassEmbeddings

    @property
    def weights(self) -> Floats:
        """W, float64 [d, a]."""
        return (self.left / (self.values + self.penalty)) @ self.vectors.T

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return x W y, float64 [m, c]."""
        return self.scaling.apply(features) @ (self.left @ self.right(classes))

    def right(self, classes: Labels) -> Floats:
        """Return what images times ``left`` are multiplied with, [a, c]."""
        rotated: Floats = self.vectors.T @ self.embeddings.values[classes].T
        return rotated / (self.values + self.penalty)[:, None]


@dataclass(frozen=True)
class Eszsl(Options):
    """Minimise ``|X W S - T|^2 + gamma |W S|^2 + lambda |X W|^2 + gamma lambda |W|^2``.

    Options:
        features: normalisation; no source normalises.
        targets: what T holds for the wrong classes, 0 or -1; the released code uses 0.
    """

    features: Normalization = "raw"
    targets: Literal["zero", "minus"] = "zero"

    name: ClassVar[str] = "ESZSL"
    widens: ClassVar[tuple[str, ...]] = ("gamma", "lambda")

    def grid(self, _dataset: str, /) -> Grid:
        """Return 7 x 7 points, gamma for features and lambda for classes."""
        decades = tuple(10.0**power for power in range(-3, 4))
        return {"gamma": decades, "lambda": decades}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Solve with one Cholesky factor per set and gamma; all lambda share the spectrum of the class embeddings."""
        return [self._fit(train, points) for train in sets]

    def scores(self, models: Sequence[Model], features: Floats, classes: Labels, /) -> Iterator[Floats]:
        """Yield the scores of each model; images meet the large matrix of a gamma once for all lambda."""
        projected: dict[int, Floats] = {}
        for model in models:
            if not isinstance(model, EszslModel):
                raise TypeError(f"not a model of ESZSL: {model!r}")
            if id(model.left) not in projected:
                projected[id(model.left)] = model.scaling.apply(features) @ model.left
            yield projected[id(model.left)] @ model.right(classes)

    def _fit(self, train: TrainSet, points: Sequence[Point]) -> list[Model]:
        scaling = fit_scaling(self.features, train.features)
        x = scaling.apply(train.features)
        gram, sums = x.T @ x, class_sums(x, train)
        targets = sums if self.targets == "zero" else 2 * sums - sums.sum(0)
        values, vectors = np.linalg.eigh(train.seen.T @ train.seen)
        target = (targets.T @ train.seen) @ vectors
        left = {gamma: _ridge(gram, gamma, target) for gamma in {float(point["gamma"]) for point in points}}
        return [
            EszslModel(scaling, left[float(point["gamma"])], values, vectors, float(point["lambda"]), train.embeddings)
            for point in points
        ]


def class_sums(x: Floats, train: TrainSet) -> Floats:
    """Return the sum of the images of each seen class, [k, d]: T'X for one-hot T."""
    from scipy.sparse import csr_array

    rows = np.arange(len(x))
    sums: Floats = csr_array((np.ones(len(x)), (train.targets, rows)), (len(train.classes), len(x))) @ x
    return sums


def _ridge(gram: Floats, gamma: float, target: Floats) -> Floats:
    from scipy.linalg import cho_factor
    from scipy.linalg import cho_solve

    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] += gamma
    # the transpose is what LAPACK takes without a copy
    solution: Floats = cho_solve(cho_factor(shifted.T, lower=True, overwrite_a=True, check_finite=False), target)
    return solution
