"""The classifier of seen classes under CONSE and IAP: one-versus-rest logistic regression (facts 2.2, 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.zsl.methods.linear import fit_path
from harness.zsl.methods.linear import logistic
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.problem import Floats
from harness.zsl.problem import TrainSet

COSTS = tuple(2.0**power for power in range(-4, 5))


@dataclass(frozen=True, eq=False)
class Classifier:
    """Logistic regressions without bias, one per column of ``weights`` [d, k]."""

    scaling: Scaling
    weights: Floats

    def sigmoids(self, features: Floats) -> Floats:
        """Return the probability of each column by itself, float64 [m, k]."""
        from scipy.special import expit

        probabilities: Floats = expit(self.scaling.apply(features) @ self.weights)
        return probabilities

    def probabilities(self, features: Floats) -> Floats:
        """Return the probabilities of exclusive classes, renormalised to sum to 1, float64 [m, k]."""
        each = self.sigmoids(features)
        # where all underflow, every class is as likely
        each = np.where(each.sum(1, keepdims=True) == 0, 1, each)
        normalised: Floats = each / each.sum(1, keepdims=True)
        return normalised


def fit_classifiers(
    train: TrainSet, kind: Normalization, signs: Floats, costs: Sequence[float]
) -> dict[float, Classifier]:
    """Minimise ``|w|^2 / 2 + C sum log(1 + exp(-sign x w))`` (liblinear -s 0) for signs [n, k] and each C."""
    scaling = fit_scaling(kind, train.features)
    penalties = {cost: 1 / cost for cost in costs}
    x = scaling.apply(train.features)
    found = fit_path(x, logistic(signs), signs.shape[1], list(penalties.values()), curvature=0.25)
    return {cost: Classifier(scaling, found[penalty]) for cost, penalty in penalties.items()}


def class_signs(train: TrainSet) -> Floats:
    """Return 1 where the image is of the class and -1 elsewhere, [n, k]."""
    return 2.0 * np.eye(len(train.classes))[train.targets] - 1
