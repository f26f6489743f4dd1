"""CONSE: convex combination of the embeddings of likely seen classes (Norouzi et al., ICLR 2014; facts 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.zsl.methods.classifier import COSTS
from harness.zsl.methods.classifier import Classifier
from harness.zsl.methods.classifier import class_signs
from harness.zsl.methods.classifier import fit_classifiers
from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import unit_rows
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class ConseModel:
    """Cosine between a class and the mean of the ``top`` seen classes, weighted by their probabilities."""

    classifier: Classifier
    top: int
    seen: Floats
    embeddings: Floats

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return cosines, float64 [m, c]; also seen classes are judged by their embedding."""
        p = self.classifier.probabilities(features)
        if self.top < p.shape[1]:
            rest = np.argsort(-p, axis=1, kind="stable")[:, self.top :]
            np.put_along_axis(p, rest, 0, 1)
        return unit_rows(p @ self.seen) @ unit_rows(self.embeddings[classes]).T


@dataclass(frozen=True)
class Conse(Options):
    """Classify among seen classes, then look where their embeddings point.

    A point has the classifier's ``C`` and ``T``, how many classes are combined (a number, or "all").

    Options:
        features: normalisation.
    """

    features: Normalization = "l2"

    name: ClassVar[str] = "CONSE"
    needs: ClassVar[str] = "torch"

    def grid(self, _dataset: str, /) -> Grid:
        """Return 45 points."""
        return {"C": COSTS, "T": (1, 2, 5, 10, "all")}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Train one classifier per set and C; T costs nothing."""
        return [self._fit(train, points) for train in sets]

    def _fit(self, train: TrainSet, points: Sequence[Point]) -> list[Model]:
        costs = [float(point["C"]) for point in points]
        classifiers = fit_classifiers(train, self.features, class_signs(train), costs)
        tops = [len(train.classes) if point["T"] == "all" else int(point["T"]) for point in points]
        return [
            ConseModel(classifiers[cost], top, train.seen, train.embeddings.values)
            for cost, top in zip(costs, tops, strict=True)
        ]
