"""Compatibility models: F(x, y) = x W y, or the largest of several such products (facts 1.1, 2.7)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.zsl.methods.scaling import Scaling
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels


@dataclass(frozen=True, eq=False)
class Bilinear:
    """``max_k x (start_k + change_k basis') y`` with x normalised.

    The weights stay in two parts because the first are shared by all points of a grid and the second are small.

    Attributes:
        starts: first weights, [s, d, a].
        planes: which of them each of the K matrices started from.
        change: what training added, [K, d, r].
        basis: [a, r].
    """

    scaling: Scaling
    starts: Floats
    planes: Sequence[int]
    change: Floats
    basis: Floats
    embeddings: ClassEmbeddings

    @property
    def weights(self) -> Floats:
        """The K matrices W, float64 [K, d, a]."""
        weights: Floats = self.starts[list(self.planes)] + self.change @ self.basis.T
        return weights

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return F, float64 [m, c]."""
        y = self.embeddings.values[classes].T
        x = self.scaling.apply(features)
        columns = (self.starts @ y)[list(self.planes)] + self.change @ (self.basis.T @ y)
        best: Floats = x @ columns[0]
        for column in columns[1:]:
            np.maximum(best, x @ column, out=best)
        return best
