"""GFZSL: each class is a Gaussian whose parameters are regressed from its embedding (Verma and Rai, ECML 2017).

Facts 2.14. The released constants are the centre of the grid only; they were likely tuned on the test set.
"""

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
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A Gaussian with independent features for every class, uniform prior.

    Attributes:
        means: [C, d].
        variances: [C, d], without ``floor``.
        floor: added to every variance.
    """

    scaling: Scaling
    means: Floats
    variances: Floats
    floor: float

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return log-densities, float64 [m, c]."""
        x = self.scaling.apply(features)
        means, precision = self.means[classes], 1 / (self.variances[classes] + self.floor)
        square = (x * x) @ precision.T - 2 * x @ (means * precision).T + (means**2 * precision).sum(1)
        density: Floats = 0.5 * (np.log(precision).sum(1) - square - x.shape[1] * np.log(2 * np.pi))
        return density


@dataclass(frozen=True)
class Gfzsl(Options):
    """Ridge regression of class means and log-variances with the kernel ``(1 + a'b)^2`` of class embeddings.

    Options:
        features: normalisation; the released code shows none.
        seen: what seen classes use at test: the mean and variance of their images, or the regressed ones.
        offset: added to variances before the logarithm.
    """

    features: Normalization = "raw"
    seen: Literal["empirical", "regressed"] = "empirical"
    offset: float = 1e-3

    name: ClassVar[str] = "GFZSL"

    def grid(self, _dataset: str, /) -> Grid:
        """Return 48 points: the penalties of means (l1) and variances (l2), and what is added to variances (reg)."""
        return {"l1": (0.01, 0.1, 1.0, 10.0), "l2": (1e6, 1e7, 1e8, 1e9), "reg": (0.01, 0.05, 0.1)}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], _seed: int, /) -> list[list[Model]]:
        """Solve once for each set and each value of l1 and l2, for all classes together."""
        return [self._fit(train, points) for train in sets]

    def _fit(self, train: TrainSet, points: Sequence[Point]) -> list[Model]:
        scaling = fit_scaling(self.features, train.features)
        x = scaling.apply(train.features)
        counts = np.bincount(train.targets)[:, None]
        mean = class_sums(x, train) / counts
        variance = np.maximum(class_sums(x * x, train) / counts - mean**2, 0)
        means = {l1: self._regress(train, mean, l1) for l1 in {float(point["l1"]) for point in points}}
        logs = np.log(variance + self.offset)
        variances = {l2: np.exp(self._regress(train, logs, l2)) for l2 in {float(point["l2"]) for point in points}}
        if self.seen == "empirical":
            for table, known in ((means, mean), (variances, variance)):
                for values in table.values():
                    values[train.classes] = known
        return [
            Gaussians(scaling, means[float(point["l1"])], variances[float(point["l2"])], float(point["reg"]))
            for point in points
        ]

    @staticmethod
    def _regress(train: TrainSet, values: Floats, penalty: float) -> Floats:
        from scipy.linalg import solve

        kernel = (1 + train.embeddings.values @ train.seen.T) ** 2
        matrix = kernel[train.classes] + penalty * np.eye(len(train.classes))
        regressed: Floats = kernel @ solve(matrix, values, assume_a="pos")
        return regressed
