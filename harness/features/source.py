"""Features of any model on any image set, for the fixture ``features`` and for notebooks."""

import sys
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.devices import visible_gpus
from harness.digest import Plain
from harness.errors import ConfigError
from harness.features.cached import features
from harness.features.matrix import FeatureMatrix
from harness.features.options import Options
from harness.features.options import Precision
from harness.features.options import feature_key
from harness.images import ImageSet
from harness.store import Store
from harness.zoo.models import Models
from harness.zoo.spec import ModelSpec
from harness.zoo.spec import identity
from harness.zoo.spec import with_resize
from harness.zoo.weights import fetch
from harness.zoo.weights import weights_digest

if TYPE_CHECKING:
    from harness.zoo.backbone import Backbone

_GPU_FILES = ("nvidia[0-9]*", "kfd", "dxg")
"""Under /dev: NVIDIA's, AMD's, and those of Windows' subsystem for Linux."""


@dataclass
class FeatureSource:
    """Where cases get their features from.

    Attributes:
        models: The models file.
        store: Where features are kept.
        weights_dir: Where weights lie.
        options: How to extract; its device is a device of torch, see `torch_device`.
        download: Fetch missing weights rather than fail for them.
    """

    models: Models
    store: Store
    weights_dir: Path
    options: Options = field(default_factory=Options)
    download: bool = False
    _loaded: "tuple[ModelSpec, Backbone] | None" = field(default=None, init=False, repr=False)

    def __call__(
        self,
        model: str,
        images: ImageSet,
        *,
        resize: int | None = None,
        precision: Precision = "float32",
        drop_unreadable: bool = False,
    ) -> FeatureMatrix:
        """Return the features of ``model`` on ``images``, extracted where the store does not have them.

        Args:
            model: A name from the models file.
            images: The image set; its order is that of the rows.
            resize: Shortest side before the crop, in place of the entry's.
            precision: The lowest that may be used, see `Options`; this one holds, not that of ``options``.
            drop_unreadable: Leave out images that cannot be decoded, rather than fail.

        Raises:
            ConfigError: there is no such model, ``resize`` does not suit it, or features are not of the stated length.
            MissingInput: weights or images are not here.
            CorruptInput: weights or images are damaged.
        """
        spec = self.spec(model, resize)
        options = replace(self.options, precision=precision, unreadable="drop" if drop_unreadable else "fail")
        key = self.key(model, images, resize=resize, precision=precision)
        matrix = features(self.store, images, key, lambda: self._load(spec), options)
        stated, found = spec.feature.dim, matrix.features.shape[1]
        if stated not in {None, found}:  # features from the store, of an entry that stated no length or another
            raise ConfigError(f"{spec.name}: features have {found} dimensions, but feature.dim is {stated}")
        return matrix

    def key(
        self, model: str, images: ImageSet, *, resize: int | None = None, precision: Precision = "float32"
    ) -> dict[str, Plain]:
        """Return the key under which the features are kept, by the arguments that they are asked for with.

        Raises:
            MissingInput: the weights are not here, so that their digest is not known.
        """
        options = replace(self.options, precision=precision)
        return feature_key(identity(self.spec(model, resize)), self.weights(model), images.digest, options)

    def weights(self, model: str) -> str:
        """Return the digest of a model's weights, fetched first where they are missing and may be.

        Raises:
            MissingInput: the weights are not here.
        """
        spec = self.spec(model)
        if self.download:
            fetch(spec, self.weights_dir)
        return weights_digest(spec, self.weights_dir)

    def spec(self, model: str, resize: int | None = None) -> ModelSpec:
        """Return the entry of a model."""
        return with_resize(self.models.find(model), resize)

    def _load(self, spec: ModelSpec) -> "Backbone":
        """Return the backbone; the latest one is kept, since its image sets come one after the other."""
        from harness.zoo.backbone import load_backbone

        if self._loaded is None or self._loaded[0] != spec:
            self._loaded = None  # two large networks need not fit beside each other
            self._loaded = spec, load_backbone(spec, self.weights_dir, self.options.device, offline=not self.download)
        return self._loaded[1]


def torch_device(device: str) -> str:
    """Return a device of torch: for ``auto`` a GPU where there is one.

    Raises:
        ConfigError: a GPU is asked for that is not there.
    """
    require_device(device)
    if device == "cpu" or (device == "auto" and _no_gpu()):
        return "cpu"  # a run whose results are all cached need not import torch to learn that
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {device}: torch finds {torch.cuda.device_count()} GPUs on this machine")
    return device


def require_device(device: str) -> None:
    """Refuse a GPU where there plainly is none, without importing torch.

    Raises:
        ConfigError: it is asked for.
    """
    if device.startswith("cuda") and _no_gpu() and not visible_gpus():
        raise ConfigError(f"--device {device}: this machine has no GPU, expected auto or cpu")


def _no_gpu() -> bool:
    return sys.platform == "linux" and not any(path for name in _GPU_FILES for path in Path("/dev").glob(name))
