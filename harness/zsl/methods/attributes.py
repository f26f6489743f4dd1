"""DAP and IAP: probabilities of binary attributes, then the class they fit best (Lampert et al., CVPR 2009, PAMI 2014).

Facts 2.1 and 2.2.
"""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.zsl.methods.classifier import COSTS
from harness.zsl.methods.classifier import class_signs
from harness.zsl.methods.classifier import fit_classifiers
from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class AttributeModel:
    """``sum_m log p(a_m = a_m^c | x) - log p(a_m = a_m^c)``.

    Attributes:
        probabilities: of each attribute, from features [m, d] to [m, A].
        binary: 0 or 1, [C, A].
        prior: of a 1, the mean over seen classes, [A]; 1/2 where all of them agree.
        clip: probabilities are kept this far from 0 and 1.
    """

    probabilities: Callable[[Floats], Floats]
    binary: Floats
    prior: Floats
    clip: float

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return log-odds over the prior, float64 [m, c]."""
        p = self.probabilities(features).clip(self.clip, 1 - self.clip)
        present = self.binary[classes].T
        scores: Floats = np.log(p / self.prior) @ present + np.log((1 - p) / (1 - self.prior)) @ (1 - present)
        return scores


@dataclass(frozen=True)
class Attributes(Options):
    """Base of both.

    Options:
        features: normalisation.
        clip: keeps probabilities from 0 and 1.
    """

    features: Normalization = "l2"
    clip: float = 1e-6

    needs: ClassVar[str] = "torch"

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Train the classifiers of all values of C for each set."""
        return [self._fit(train, [float(point["C"]) for point in points]) for train in sets]

    def _fit(self, train: TrainSet, costs: Sequence[float]) -> list[Model]:
        table = binary(train.embeddings)
        prior = table[train.classes].mean(0)
        mixed = (prior > 0) & (prior < 1)
        prior[~mixed] = 0.5
        estimates = self.estimates(train, table[train.classes][:, mixed], costs)
        return [AttributeModel(_with_rest(estimates[cost], mixed), table, prior, self.clip) for cost in costs]

    def estimates(
        self, train: TrainSet, attributes: Floats, costs: Sequence[float]
    ) -> dict[float, Callable[[Floats], Floats]]:
        """Return functions from features to probabilities of attributes, of which seen classes have [k, A]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Dap(Attributes):
    """Direct prediction: one logistic regression per attribute, all with the same C.

    Options: features, clip.
    """

    name: ClassVar[str] = "DAP"

    def grid(self, _dataset: str, /) -> Grid:
        """Return seven decades of C."""
        return {"C": tuple(10.0**power for power in range(-3, 4))}

    def estimates(
        self, train: TrainSet, attributes: Floats, costs: Sequence[float]
    ) -> dict[float, Callable[[Floats], Floats]]:
        """Train on each image's class's attributes."""
        found = fit_classifiers(train, self.features, 2 * attributes[train.targets] - 1, costs)
        return {cost: classifier.sigmoids for cost, classifier in found.items()}


@dataclass(frozen=True)
class Iap(Attributes):
    """Indirect prediction: the probabilities of seen classes, summed over those that have the attribute.

    Options: features, clip.
    """

    name: ClassVar[str] = "IAP"

    def grid(self, _dataset: str, /) -> Grid:
        """Return the C of CONSE, whose classifier this is."""
        return {"C": COSTS}

    def estimates(
        self, train: TrainSet, attributes: Floats, costs: Sequence[float]
    ) -> dict[float, Callable[[Floats], Floats]]:
        """Train the classifier of seen classes."""
        found = fit_classifiers(train, self.features, class_signs(train), costs)
        return {
            cost: lambda features, of=classifier: of.probabilities(features) @ attributes  # type: ignore[misc] # the default binds the loop's value
            for cost, classifier in found.items()
        }


def binary(embeddings: ClassEmbeddings) -> Floats:
    """Return 1 where an attribute exceeds the mean of the whole matrix, else 0, float64 [C, A].

    The raw attributes are used where there are any. Equals the published binary matrices of AWA, CUB and SUN.
    """
    values = embeddings.values if embeddings.original is None else embeddings.original
    return np.where(values > values.mean(), 1.0, 0.0)


def _with_rest(estimate: Callable[[Floats], Floats], mixed: "np.ndarray") -> Callable[[Floats], Floats]:
    """Put 1/2 for attributes on which all seen classes agree: with prior 1/2 they drop out."""

    def probabilities(features: Floats) -> Floats:
        p = np.full((len(features), len(mixed)), 0.5)
        p[:, mixed] = estimate(features)
        return p

    return probabilities
