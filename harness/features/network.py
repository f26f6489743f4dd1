"""The network's side of extraction: precision and what fits into memory."""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from harness.errors import ConfigError
from harness.features.backbone import Backbone
from harness.features.options import Options

TOLERANCE = 1e-2
"""Greatest distance of a feature vector in reduced precision from the one in float32, relative to its length."""


class Network:
    """Runs a backbone over batches of inputs.

    Attributes:
        batch: Images per step; halved each time that the device's memory does not suffice.
        dtype: Precision of autocast, or None for float32.
    """

    def __init__(self, backbone: Backbone, options: Options) -> None:
        self.batch = options.batch
        self.dtype: torch.dtype | None = None
        self._backbone = backbone

    @property
    def precision(self) -> str:
        """The precision in use, by name."""
        return str(self.dtype or torch.float32).removeprefix("torch.")

    def reduce(self, dtype: torch.dtype, images: Tensor) -> float | None:
        """Go over to autocast in ``dtype`` if the features of these images stay within `TOLERANCE`.

        Returns:
            The greatest relative distance of a feature vector from the one in float32; None where it is not finite.
        """
        exact = self(images)
        self.dtype = dtype
        distances = np.linalg.norm(self(images) - exact, axis=1) / np.linalg.norm(exact, axis=1).clip(1e-12)
        greatest = float(distances.max())
        # Comparing this way round, NaN is not within the tolerance.
        if not greatest <= TOLERANCE:
            self.dtype = None
        return greatest if math.isfinite(greatest) else None

    def __call__(self, images: Tensor) -> npt.NDArray[np.float32]:
        """Return the features float32 [n, dim] of inputs uint8 [n, 3, S, S].

        Raises:
            torch.OutOfMemoryError: not even a single image fits.
            ConfigError: the backbone does not give vectors of its stated length.
        """
        parts: list[Tensor] = []
        start = 0
        while start < len(images):
            step = images[start : start + self.batch]
            features = self._fitting(step)
            if features is None:
                self.batch = len(step) // 2
                torch.cuda.empty_cache()
                continue
            parts.append(features)
            start += len(step)
        found = torch.cat(parts).numpy()
        if found.shape != (len(images), self._backbone.dim):
            raise ConfigError(
                f"{self._backbone.name}: {len(images)} images gave features of shape {list(found.shape)}, "
                f"expected [{len(images)}, {self._backbone.dim}]"
            )
        return found

    def _fitting(self, images: Tensor) -> Tensor | None:
        """Run one step; None where it does not fit into memory."""
        try:
            return self._backbone(images, autocast=self.dtype).float().cpu()
        except torch.OutOfMemoryError:
            if len(images) == 1:
                raise
            return None
