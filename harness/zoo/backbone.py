"""Backbones: frozen networks with their own preprocessing and feature layer."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch import nn

from harness.digest import Plain
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.zoo.architectures import build_network
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.preprocess import preprocess
from harness.zoo.readout import make_readout
from harness.zoo.sources import RandomWeights
from harness.zoo.spec import ModelSpec
from harness.zoo.spec import with_resize
from harness.zoo.surgery import CheckpointReport
from harness.zoo.surgery import load_checkpoint
from harness.zoo.weights import naming
from harness.zoo.weights import verify


class Backbone:
    """A frozen network that turns square images into features.

    Features of an image do not depend on the batch it is in: equal within 1e-5 of the largest feature in float32 on a
    CPU. On CUDA, convolutions in TF32 are off for the same reason, unless autocast is asked for.

    Attributes:
        spec: the entry, with the resize in use.
        device: where the network is.
        dim: length of a feature vector.
        report: what became of the checkpoint's keys; None for random weights.
    """

    def __init__(
        self, spec: ModelSpec, network: nn.Module, device: torch.device, report: CheckpointReport | None
    ) -> None:
        self.spec = spec
        self.device = device
        self.report = report
        self._readout = make_readout(network, spec.feature)
        self._network = network.eval().requires_grad_(requires_grad=False)
        self._network.to(device).to(memory_format=torch.channels_last)
        self._mean = torch.tensor(spec.input.mean, device=device).view(3, 1, 1)
        self._std = torch.tensor(spec.input.std, device=device).view(3, 1, 1)
        self.dim = self._probe()

    @property
    def name(self) -> str:
        """The name of the entry."""
        return self.spec.name

    def describe(self) -> dict[str, Plain]:
        """Return what became of the checkpoint's content, see `CheckpointReport`; empty for random weights."""
        return {} if self.report is None else self.report.describe()

    def preprocess(self, image: Image.Image) -> Tensor:
        """Resize and crop one image for this network; for decoding threads.

        Returns:
            uint8 tensor [3, size, size] on the CPU.
        """
        return preprocess(image, self.spec.input)

    def normalize(self, batch: Tensor) -> Tensor:
        """Return what the network is fed: float32 [n, 3, size, size] on its device, from uint8 on any device."""
        pixels = batch.to(self.device, non_blocking=True).to(torch.float32, memory_format=torch.channels_last)
        normalized = pixels.div_(255).sub_(self._mean).div_(self._std)
        return normalized.flip(1) if self.spec.input.channels == "BGR" else normalized

    def __call__(self, batch: Tensor, autocast: torch.dtype | None = None) -> Tensor:
        """Return the features of a batch.

        Args:
            batch: uint8 [n, 3, size, size] on any device, as `preprocess` makes them.
            autocast: element type for the heavy operations; None: all in float32.

        Returns:
            float32 [n, dim] on the network's device.

        Raises:
            RuntimeError: a module of the network is in training mode.
        """
        if any(module.training for module in self._network.modules()):
            raise RuntimeError(f"{self.name} was put into training mode: a backbone is frozen")
        with torch.inference_mode(), _precision(self.device, autocast):
            return self._readout(self.normalize(batch))

    def _probe(self) -> int:
        size = self.spec.input.size
        features = self(torch.zeros(1, 3, size, size, dtype=torch.uint8))
        dim = features.shape[1]
        if self.spec.feature.dim not in {None, dim}:
            raise ConfigError(f"features have {dim} dimensions, but feature.dim is {self.spec.feature.dim}")
        if not features.isfinite().all():
            raise CorruptInput("the features of a black image are not finite: the weights are damaged")
        return dim


@contextlib.contextmanager
def _precision(device: torch.device, autocast: torch.dtype | None) -> Iterator[None]:
    if autocast is not None:
        with torch.autocast(device.type, dtype=autocast):
            yield
    elif device.type == "cuda":
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    else:
        yield


def load_backbone(
    spec: ModelSpec,
    weights_dir: Path,
    device: torch.device | str = "cpu",
    *,
    offline: bool = True,
    resize: int | None = None,
) -> Backbone:
    """Build the network of an entry, load its weights strictly and freeze it.

    Args:
        spec: the entry.
        weights_dir: where fetched weights are; see `harness.zoo.weights.fetch`.
        device: where the network goes.
        offline: never reach for the network; weights are not fetched here in any case.
        resize: length of the shortest side before the crop, in place of the entry's.

    Raises:
        MissingInput: weights, code or an optional package are not on this machine.
        CorruptInput: the weights are not what the entry says, or do not fit.
        ConfigError: the entry does not fit the network.
    """
    spec = with_resize(spec, resize)
    path = verify(spec, weights_dir)
    seed = spec.weights.seed if isinstance(spec.weights, RandomWeights) else 0
    with naming(spec.name):
        network = build_network(spec.architecture, seed, offline=offline)
        report = None
        if path is not None:
            report = load_checkpoint(network, read_checkpoint(path, spec.surgery.inert), spec.surgery)
        return Backbone(spec, network, torch.device(device), report)
