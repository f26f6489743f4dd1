"""SYNC: classifiers synthesised from those of seen classes (Changpinyo et al., CVPR 2016; facts 2.12).

The fast form: phantom classes are the seen classes. Which loss CVPR 2017 used is unverified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np

from harness.zsl.methods.classifier import class_signs
from harness.zsl.methods.linear import fit_path
from harness.zsl.methods.linear import largest_margin
from harness.zsl.methods.linear import squared_hinge
from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class SyncModel:
    """Linear classifiers: of seen classes as learnt, of others mixed from them.

    Attributes:
        weights: of seen classes, [d, k].
        mixtures: what every class takes of them, [C, k]; rows of the identity for seen classes.
    """

    scaling: Scaling
    weights: Floats
    mixtures: Floats

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return the classifiers' scores, float64 [m, c]."""
        return self.scaling.apply(features) @ (self.weights @ self.mixtures[classes].T)


@dataclass(frozen=True)
class Sync(Options):
    """A point has ``lambda``, the penalty of classifiers, and ``scale``, the sharpness of similarity.

    Options:
        features: normalisation.
        loss: ``ovo`` squared hinge, one against the others; ``cs`` Crammer-Singer; ``struct`` the same with the
            distance of class embeddings as margin. ``cs`` and ``struct`` are not smooth; as in the authors' code
            L-BFGS follows a subgradient and stops where it finds no descent.
        tolerance: L-BFGS stops where the largest derivative has fallen to this part of its first value.
    """

    features: Normalization = "l2"
    loss: Literal["ovo", "cs", "struct"] = "ovo"
    tolerance: float = 1e-8

    name: ClassVar[str] = "SYNC"
    needs: ClassVar[str] = "torch"

    def grid(self, _dataset: str, /) -> Grid:
        """Return 132 points, those of the authors' code for ResNet features."""
        return {
            "lambda": tuple(2.0**power for power in range(-30, -7, 2)),
            "scale": tuple(2.0**power for power in range(-5, 6)),
        }

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Train one set of classifiers per set and lambda; the scale costs nothing."""
        return [self._fit(train, points) for train in sets]

    def _fit(self, train: TrainSet, points: Sequence[Point]) -> list[Model]:
        distances = signature_distances(train.embeddings.values)[:, train.classes]
        scaling = fit_scaling(self.features, train.features)
        weights = self._classifiers(train, scaling, distances, [float(point["lambda"]) for point in points])
        mixtures = {
            scale: _mixtures(distances, train.classes, scale) for scale in {float(point["scale"]) for point in points}
        }
        return [SyncModel(scaling, weights[float(p["lambda"])], mixtures[float(p["scale"])]) for p in points]

    def _classifiers(
        self, train: TrainSet, scaling: Scaling, distances: Floats, penalties: Sequence[float]
    ) -> dict[float, Floats]:
        x, signs = scaling.apply(train.features), class_signs(train)
        n, k = signs.shape
        if self.loss == "ovo":
            return fit_path(x, squared_hinge(signs), k, penalties, curvature=2 / (n * k), tolerance=self.tolerance)
        own = (signs + 1) / 2
        margins = 1 - own if self.loss == "cs" else distances[train.classes][train.targets]
        return fit_path(x, largest_margin(margins, own), k, penalties, curvature=1 / n, tolerance=self.tolerance)


def signature_distances(embeddings: Floats) -> Floats:
    """Return Euclidean distances between all classes in units of their median (zeros left out), float64 [C, C]."""
    squares = (embeddings**2).sum(1)
    distances = np.sqrt((squares[:, None] + squares - 2 * embeddings @ embeddings.T).clip(0))
    np.fill_diagonal(distances, 0)
    pairs = distances[np.triu_indices(len(distances), 1)]
    scaled: Floats = distances / np.median(pairs[pairs > 0])
    return scaled


def _mixtures(distances: Floats, seen: Labels, scale: float) -> Floats:
    from scipy.special import softmax

    similarity = softmax(-scale * distances**2, axis=1)
    mixtures: Floats = similarity @ np.linalg.pinv(similarity[seen])
    mixtures[seen] = np.eye(len(seen))
    return mixtures
