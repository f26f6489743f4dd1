"""Feature extraction against a plain DataLoader loop on the same images, network and number of threads.

The loop is what one writes by hand after naver/cog (extract_features.py): Pillow, torchvision's transforms, a
DataLoader, batches of 128, evaluation mode without gradients. It is run with two worker processes and with none; the
better of the two is the reference. It is run with our batch size too, since small batches are faster on a CPU
whatever the loop. All runs alternate, and medians are compared.
"""

import argparse
import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import timm
import torch
from PIL import Image
from torch import Tensor
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data import Dataset
from torchvision import transforms

from harness import data
from harness.features import Options
from harness.features import features
from harness.images import ImageSet
from harness.images import folder_images
from harness.images import list_images
from harness.images import open_images
from harness.store import Store
from harness.zoo.backbone import Backbone
from harness.zoo.models import load_models

SIZE = 224
OURS = "harness"
LIMIT = "our network alone"
Features = npt.NDArray[np.float32]


class Drawings(Dataset[Tensor]):
    """The images of a folder, as the network of the reference is fed."""

    def __init__(self, root: Path, ids: Sequence[str], mean: Sequence[float], std: Sequence[float]) -> None:
        self.paths = [root / identity for identity in ids]
        self.transform = transforms.Compose(
            [
                transforms.Resize(SIZE, transforms.InterpolationMode.BICUBIC),
                transforms.CenterCrop(SIZE),
                transforms.ToTensor(),
                transforms.Normalize(mean, std),
            ]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            return self.transform(image.convert("RGB"))


def plain_loop(network: nn.Module, drawings: Drawings, batch_size: int, workers: int) -> Features:
    """Extract features as by hand: float32 [n, 1280]."""
    rows: list[Tensor] = []
    with torch.inference_mode():
        rows.extend(network(batch) for batch in DataLoader(drawings, batch_size=batch_size, num_workers=workers))
    found: Features = torch.cat(rows).numpy()
    return found


def network_alone(backbone: Backbone, images: ImageSet, batch_size: int) -> Callable[[], Features]:
    """Return the network's run over inputs that lie ready: no extraction can be faster."""
    inputs = torch.stack([backbone.preprocess(image) for image in readable(images)])

    def run() -> Features:
        starts = range(0, len(inputs), batch_size)
        found: Features = torch.cat([backbone(inputs[start : start + batch_size]) for start in starts]).numpy()
        return found

    return run


def readable(images: ImageSet) -> list[Image.Image]:
    """Decode all images of a set, each of which can be decoded."""
    return [image for image in images.decode(range(len(images))) if isinstance(image, Image.Image)]


def contestants(root: Path, ids: Sequence[str], options: Options) -> dict[str, Callable[[], Features]]:
    """Return what is to be compared, by name; each gives features float32 [n, 1280]."""
    spec = load_models(Path(__file__).parents[1] / "models.yaml").find("efficientnet-lite0")
    spec = spec.model_copy(update={"input": spec.input.model_copy(update={"size": SIZE})})
    torch.manual_seed(0)
    network: nn.Module = timm.create_model("tf_efficientnet_lite0", num_classes=0).eval()
    backbone = Backbone(spec, copy.deepcopy(network), torch.device("cpu"), None)
    drawings = Drawings(root, ids, spec.input.mean, spec.input.std)

    def ours() -> Features:
        with tempfile.TemporaryDirectory() as folder:
            images = folder_images(root, ids)
            return np.array(features(Store(Path(folder)), images, {}, lambda: backbone, options).features)

    found: dict[str, Callable[[], Features]] = {OURS: ours}
    found[LIMIT] = network_alone(backbone, folder_images(root, ids), options.batch)
    for batch_size in (128, options.batch):
        for workers in (2, 0):
            name = f"loop, batch {batch_size}, {workers} workers"
            found[name] = partial(plain_loop, network, drawings, batch_size, workers)
    return found


def measure(runs: dict[str, Callable[[], Features]], rounds: int) -> tuple[dict[str, list[float]], dict[str, Features]]:
    """Run all in turn, ``rounds`` times over. Returns the seconds of each run, and the features that each found."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    found: dict[str, Features] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            found[name] = run()
            seconds[name].append(time.perf_counter() - began)
    return seconds, found


def unpack(root: Path, count: int) -> list[str]:
    """Write embedded drawings to class folders, evenly chosen; returns their ids."""
    archive = data.path("mini/minicog.zip")
    ids = list_images(archive)
    ids = ids[:: len(ids) // count][:count]
    read = open_images(archive, ids).read
    for identity in ids:
        (root / identity).parent.mkdir(exist_ok=True)
        (root / identity).write_bytes(read(identity))
    return ids


def main() -> None:
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    options = Options(threads=arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        ids = unpack(root, arguments.images)
        measure(contestants(root, ids[:32], options), 1)
        seconds, found = measure(contestants(root, ids, options), arguments.rounds)
    print(
        f"{len(ids)} images at {SIZE} px, tf_efficientnet_lite0, {arguments.threads} threads, {arguments.rounds} rounds"
    )
    for name, values in seconds.items():
        error = np.linalg.norm(found[name] - found[OURS], axis=1) / np.linalg.norm(found[OURS], axis=1)
        rates = [len(ids) / value for value in (statistics.median(values), max(values), min(values))]
        print(
            f"{name:28} {rates[0]:6.1f} images/s ({rates[1]:.1f}..{rates[2]:.1f}), features differ by {error.max():.0e}"
        )
    for batch_size in (128, options.batch):
        loops = [values for name, values in seconds.items() if f"batch {batch_size}," in name]
        print(
            f"ratio to the better loop with batch {batch_size}: "
            f"{min(map(statistics.median, loops)) / statistics.median(seconds[OURS]):.2f}x by medians, "
            f"{min(map(min, loops)) / min(seconds[OURS]):.2f}x by the fastest runs"
        )


if __name__ == "__main__":
    main()
