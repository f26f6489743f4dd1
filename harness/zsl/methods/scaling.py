"""How features are normalised: fitted on training images, then one object applies it to every image alike."""

from dataclasses import dataclass
from typing import Literal
from typing import TypeAlias

import numpy as np

from harness.zsl.problem import Floats

Normalization: TypeAlias = Literal["official", "l2", "raw"]
"""``official``: facts 1.5 (authors' normalization.m); ``l2``: each image to unit length; ``raw``: as they are."""

_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fitted normalisation: ``(x / |x|) * 1`` or ``(x - mean) / scale`` or neither."""

    mean: Floats | None = None
    scale: Floats | None = None
    l2: bool = False

    def apply(self, features: Floats) -> Floats:
        """Return features [m, d] normalised, float64; the same array where nothing is to do."""
        features = np.asarray(features, np.float64)
        if self.l2:
            return unit_rows(features)
        return features if self.mean is None or self.scale is None else (features - self.mean) / self.scale


def fit_scaling(kind: Normalization, features: Floats) -> Scaling:
    """Return the normalisation that training images [n, d] ask for.

    ``official``: z-scores with mean and deviation (population form, 0 becomes 1) of each column, all divided by the
    one largest z-score of the training matrix.
    """
    if kind != "official":
        return Scaling(l2=kind == "l2")
    mean = features.mean(0, dtype=np.float64)
    blocks = (features[start : start + _BLOCK] - mean for start in range(0, len(features), _BLOCK))
    deviation = np.sqrt(sum(np.einsum("ij,ij->j", block, block) for block in blocks) / len(features))
    # a constant column leaves the rounding of its mean, not 0
    deviation[deviation <= 1e-14 * np.abs(mean)] = 1
    largest = ((features.max(0) - mean) / deviation).max()
    return Scaling(mean, deviation * (largest if largest > 0 else 1))


def unit_rows(rows: Floats) -> Floats:
    """Return rows divided by their lengths; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length == 0, 1, length)
