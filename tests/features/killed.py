"""Extracts the means of the colour channels, slowly: run as a process that a test kills.

Arguments: folder of the store, file that gets a line per batch computed, seconds that each batch takes.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from harness import data
from harness.digest import Plain
from harness.features import Options
from harness.features import features
from harness.images import list_images
from harness.images import open_images
from harness.store import Store


class Means:
    """Not a network, but batches of images in and vectors out."""

    name = "means"
    dim = 3

    def __init__(self, log: Path, seconds: float) -> None:
        self.log = log
        self.seconds = seconds

    def describe(self) -> dict[str, Plain]:
        return {}

    def preprocess(self, image: Image.Image) -> Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1)

    def __call__(self, batch: Tensor, autocast: torch.dtype | None = None) -> Tensor:
        assert autocast is None
        with self.log.open("a") as log:
            log.write(f"{batch.float().mean()}\n")
        time.sleep(self.seconds)
        return batch.float().mean((2, 3))


def main(root: Path, log: Path, seconds: float) -> None:
    place = data.path("mini/minicog.zip")
    images = open_images(place, list_images(place)[:100])
    features(Store(root), images, {"means": images.digest}, lambda: Means(log, seconds), Options(batch_size=5))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
