"""What extraction asks of a backbone; those of the zoo are made so."""

from typing import Protocol

import torch
from PIL import Image
from torch import Tensor

from harness.digest import Plain


class Backbone(Protocol):
    """A frozen network in eval mode, with its own preprocessing and feature layer."""

    @property
    def name(self) -> str:
        """The model's name, for messages."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    def describe(self) -> dict[str, Plain]:
        """Say what became of the content of its checkpoint, for the record; empty where there is none."""

    def preprocess(self, image: Image.Image, /) -> Tensor:
        """Turn an RGB image into uint8 [3, S, S]. Called from several threads at once."""

    def __call__(self, batch: Tensor, /, autocast: torch.dtype | None = None) -> Tensor:
        """Turn uint8 [n, 3, S, S] on the CPU, n at least 1, into floating-point features [n, dim] on any device.

        With ``autocast`` the heavy operations have that element type, else everything is float32.
        """
