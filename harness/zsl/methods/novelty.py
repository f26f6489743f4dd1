"""CMT-nd: CMT that first decides whether an image is of a seen class at all (Socher et al., NIPS 2013; facts 2.5).

The first of the authors' two detectors, with hard routing; which one the benchmark ran is unverified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np

from harness.zsl.methods.cmt import Cmt
from harness.zsl.methods.cmt import CmtModel
from harness.zsl.methods.cmt import squared_distances
from harness.zsl.methods.linear import fit_path
from harness.zsl.methods.linear import softmax
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class Mixture:
    """A round Gaussian about the embedding of each seen class, weighted by its share of the images.

    Attributes:
        centres: [k, a].
        variances: of each dimension, [k].
        logs: logarithm of each class's share, [k].
    """

    centres: Floats
    variances: Floats
    logs: Floats

    def log_density(self, mapped: Floats) -> Floats:
        """Return the logarithm of the density of mapped images [m, a], [m]."""
        from scipy.special import logsumexp

        dimensions = self.centres.shape[1]
        square = squared_distances(mapped, self.centres) / self.variances
        each = self.logs - 0.5 * (square + dimensions * np.log(2 * np.pi * self.variances))
        density: Floats = logsumexp(each, axis=1)
        return density


@dataclass(frozen=True, eq=False)
class RoutedModel:
    """Images below the threshold compete among unseen classes by CMT, the others among seen ones by a classifier.

    Where only seen or only unseen classes are asked for there is nothing to decide: CMT alone answers.

    Attributes:
        classifier: softmax regression of raw features, [d, k].
        seen: int64 [k], ascending.
    """

    network: CmtModel
    mixture: Mixture
    threshold: float
    classifier: Floats
    seen: Labels

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return scores within the image's branch and -inf for classes of the other, float64 [m, c]."""
        scores, known = self.network.scores(features, classes), np.isin(classes, self.seen)
        if known.all() or not known.any():
            return scores
        novel = self.mixture.log_density(self.network.map(features)) < self.threshold
        columns = self.classifier[:, np.searchsorted(self.seen, classes[known])]
        scores[:, known] = features @ columns
        scores[novel[:, None] == known] = -np.inf
        return scores


@dataclass(frozen=True)
class CmtNovelty(Cmt):
    """CMT with the threshold ``quantile``: this share of the training images would be taken for unseen.

    Options:
        features, biases, iterations: those of CMT.
        divisor: of a class's variance: its own images (a variance), or all images as the released code has it.
        decay: penalty of the softmax regression, whose loss is a mean.
    """

    divisor: Literal["class", "all"] = "class"
    decay: float = 1e-3

    name: ClassVar[str] = "CMT-nd"
    generalized: ClassVar[tuple[str, ...]] = ("quantile",)

    def grid(self, dataset: str, /) -> Grid:
        """Return the grid of CMT times eleven quantiles."""
        return {**super().grid(dataset), "quantile": tuple(step / 10 for step in range(11))}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], seed: int, /) -> list[list[Model]]:
        """Train each network once; all quantiles share it and the classifier of its set."""
        return [self._route(train, points, seed) for train in sets]

    def _route(self, train: TrainSet, points: Sequence[Point], seed: int) -> list[Model]:
        classifier = self._classifier(train)
        models: list[Model] = []
        made: dict[int, tuple[Mixture, Floats]] = {}
        for network, point in zip(self.networks(train, points, seed), points, strict=True):
            if id(network) not in made:
                mapped = network.map(train.features)
                mixture = self._mixture(train, mapped)
                made[id(network)] = mixture, mixture.log_density(mapped)
            mixture, densities = made[id(network)]
            threshold = float(np.quantile(densities, float(point["quantile"])))
            models.append(RoutedModel(network, mixture, threshold, classifier, train.classes))
        return models

    def _mixture(self, train: TrainSet, mapped: Floats) -> Mixture:
        counts = np.bincount(train.targets)
        spread = np.bincount(train.targets, ((mapped - train.seen[train.targets]) ** 2).mean(1))
        divisor = counts if self.divisor == "class" else len(mapped)
        return Mixture(train.seen, spread / divisor, np.log(counts / len(mapped)))

    def _classifier(self, train: TrainSet) -> Floats:
        targets = np.eye(len(train.classes))[train.targets]
        return fit_path(train.features, softmax(targets), targets.shape[1], [self.decay], curvature=0.5 / len(targets))[
            self.decay
        ]
