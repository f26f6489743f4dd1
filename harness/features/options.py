"""How features are extracted, and the key under which they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from typing import Literal
from typing import TypeAlias

from harness.digest import Plain
from harness.store import Overwrite

COMPUTATION = 1
"""Raised with every change of this package that can move a feature."""

Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]

LIBRARIES = ("pillow", "torch")
"""Those that compute every feature."""

_ANY = ("timm", "torchvision", "transformers")
NETWORK_LIBRARIES = {
    "torchvision": ("torchvision",),
    "timm": ("timm",),
    "hugging-face": ("timm", "transformers"),  # transformers has wrappers of timm's networks
    "torch-hub": _ANY,
    "import": _ANY,
}
"""Those that the network may be made of, by the source of its architecture: others move no feature of it."""


@dataclass(frozen=True)
class Options:
    """How to extract. Of these, device type, precision and (on a CPU) threads are part of the key."""

    device: str = "cpu"
    """A device of torch: ``cpu``, ``cuda``, ``cuda:1``."""
    precision: Precision = "float32"
    """The lowest precision that may be used: below float32 only while the features stay within a tolerance."""
    threads: int = 1
    """Threads of torch, for the duration of the extraction."""
    batch_size: int | None = None
    """Images per step; by default 16 on a CPU and 256 elsewhere. Moves features by rounding only."""
    workers: int | None = None
    """Threads that decode; by default one per core, at most eight."""
    unreadable: Literal["fail", "drop"] = "fail"
    """Whether images that cannot be decoded fail the case or are left out and listed."""
    overwrite: Overwrite = Overwrite.ONLY_MISSING

    @property
    def device_type(self) -> str:
        """The device without its number."""
        return self.device.partition(":")[0]

    @property
    def batch(self) -> int:
        """Images per step."""
        # Small batches stay in the cache of a CPU core.
        return self.batch_size or (16 if self.device_type == "cpu" else 256)


def feature_key(backbone: Mapping[str, Plain], weights: str, images: str, options: Options) -> dict[str, Plain]:
    """Return everything that can move the features, as plain values.

    Args:
        backbone: What identifies network and preprocessing, as `harness.zoo.spec.identity` returns it; the source of
            its architecture says which libraries compute the features.
        weights: Digest of the weights.
        images: Digest of the image set.
        options: Device type, precision and threads are taken from it.
    """
    architecture = backbone["architecture"]
    source = str(architecture["source"]) if isinstance(architecture, Mapping) else ""
    return {
        "backbone": dict(backbone),
        "weights": weights,
        "images": images,
        "device": options.device_type,
        "precision": options.precision,
        "threads": options.threads if options.device_type == "cpu" else None,
        "libraries": {name: _version(name) for name in (*LIBRARIES, *NETWORK_LIBRARIES[source])},
        "computation": COMPUTATION,
    }


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
