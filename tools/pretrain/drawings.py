"""The drawings that the mini backbones may learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from harness.cog.splits import load_split
from harness.cog.universe import Families
from harness.cog.universe import load_universe
from harness.images import ImageSet

VALIDATION_FAMILY = "emojione"
"""Held out of the training families to draw curves with; it decides nothing."""


@dataclass(frozen=True, eq=False)
class Drawings:
    """Drawings of known concepts.

    Attributes:
        ids: ``<wnid>/<artist>.webp`` of each.
        pixels: uint8 [n, 3, 80, 80], channels R, G, B.
        labels: int64 [n], the position of the concept among the sorted seen ones.
    """

    ids: tuple[str, ...]
    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def subset(self, indices: Sequence[int]) -> "Drawings":
        """Return the drawings at these positions."""
        chosen = torch.tensor(indices)
        return Drawings(tuple(self.ids[i] for i in indices), self.pixels[chosen], self.labels[chosen])


def load_drawings() -> tuple[Drawings, Drawings]:
    """Return the drawings of the 228 seen mini concepts by artists of the training families: to learn, to validate.

    The split is the one that the linear probe makes, so whatever the universe holds out for testing is not here.
    """
    universe = load_universe("mini")
    split = load_split("seen", universe.seen_concepts("mini"), universe.images, None, {})
    every = Drawings(tuple(split.train.ids), _decoded(split.train), torch.from_numpy(split.train_labels))
    if not isinstance(universe.images.test, Families):
        raise TypeError("the mini universe holds out families")
    family = universe.images.test.artists
    held_out = [family[artist_of(identity)] == VALIDATION_FAMILY for identity in every.ids]
    return every.subset(np.flatnonzero(~np.array(held_out)).tolist()), every.subset(np.flatnonzero(held_out).tolist())


def artist_of(identity: str) -> str:
    """Return the artist of a drawing ``<wnid>/<artist>.webp`` or ``<wnid>/<artist>-2.webp``."""
    return identity.partition("/")[2].removesuffix(".webp").removesuffix("-2")


def _decoded(images: ImageSet) -> Tensor:
    decoded = [np.array(image) for image in images.decode(range(len(images))) if isinstance(image, Image.Image)]
    return torch.from_numpy(np.stack(decoded)).permute(0, 3, 1, 2).contiguous()
