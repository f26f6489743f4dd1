"""Compatibility models: F(x, y) = x W y, or the largest of several such products (facts 1.1, 2.7)."""

from dataclasses import dataclass

import numpy as np

from harness.zsl.methods.scaling import Scaling
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels


@dataclass(frozen=True, eq=False)
class Bilinear:
    """``max_k x (start_k + change_k basis') y`` with x normalised.

    The weights stay in two parts because the first is shared by all points of a grid and the second is small.

    Attributes:
        start: [K, d, a].
        change: [K, d, r].
        basis: [a, r].
    """

    scaling: Scaling
    start: Floats
    change: Floats
    basis: Floats
    embeddings: ClassEmbeddings

    @property
    def weights(self) -> Floats:
        """The K matrices W, float64 [K, d, a]."""
        weights: Floats = self.start + self.change @ self.basis.T
        return weights

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return F, float64 [m, c]."""
        y = self.embeddings.values[classes].T
        x = self.scaling.apply(features)
        columns = self.start @ y + self.change @ (self.basis.T @ y)
        best = x @ columns[0]
        for column in columns[1:]:
            np.maximum(best, x @ column, out=best)
        return best
