"""A small network with the interface of a backbone, a few real images and an empty store."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch import nn

from harness import data
from harness.digest import Plain
from harness.images import EncodedImages
from harness.images import list_images
from harness.images import open_images
from harness.store import Store


class FakeBackbone:
    """A convolution, a rectifier, the mean over positions and a linear map."""

    name = "fake"
    dim = 12

    def __init__(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            self.network = nn.Sequential(
                nn.Conv2d(3, 8, 5, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, self.dim)
            ).eval()
        self.batches: list[int] = []
        self.threads: set[int] = set()

    def describe(self) -> dict[str, Plain]:
        return {"format": "none"}

    def preprocess(self, image: Image.Image) -> Tensor:
        resized = image.resize((40, 40), Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(resized)).permute(2, 0, 1)

    def __call__(self, batch: Tensor, autocast: torch.dtype | None = None) -> Tensor:
        assert batch.dtype == torch.uint8
        self.batches.append(len(batch))
        self.threads.add(torch.get_num_threads())
        with torch.inference_mode(), torch.autocast("cpu", autocast, enabled=autocast is not None):
            return cast("Tensor", self.network(batch.float() / 255))


@pytest.fixture
def backbone() -> FakeBackbone:
    return FakeBackbone()


@pytest.fixture
def images() -> EncodedImages:
    """Fifty drawings of the embedded universe."""
    place = data.path("mini/minicog.zip")
    return open_images(place, list_images(place)[::120][:50])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")
