"""What a probe learns from and is tested on, checked and brought onto the device."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from harness.digest import digest_of
from harness.errors import ConfigError
from harness.probe.matrix import Features
from harness.probe.matrix import load_matrix
from harness.probe.sampling import Rows
from harness.probe.settings import ProbeSettings

Labels: TypeAlias = "npt.NDArray[np.integer] | torch.Tensor"
Labelled: TypeAlias = tuple[Features, Labels]
"""Features [n, d] of any floating type and their classes [n], integers from 0."""

_SAMPLE = 64
_VERSION = 1


@dataclass(frozen=True)
class ProbeData:
    """Training and test data.

    Attributes:
        x: [n, D], training features with constant and padding.
        y: int64 [n], their classes, on the device.
        labels: int64 [n], the same on the CPU, for the draws.
        test_x: [m, D].
        test_labels: int64 [m], on the CPU.
        classes: number of classes.
        d: number of features.
    """

    x: torch.Tensor
    y: torch.Tensor
    labels: Rows
    test_x: torch.Tensor
    test_labels: Rows
    classes: int
    d: int


def load_data(train: Labelled, test: Labelled, settings: ProbeSettings, device: torch.device) -> ProbeData:
    """Check the data against each other and load them.

    Raises:
        ConfigError: shapes, types or classes do not fit, or the precision does not fit the device.
        CorruptInput: features are not finite.
    """
    if settings.precision == "float16" and device.type == "cpu":
        raise ConfigError("probe precision float16 needs an accelerator; bfloat16 also runs on CPUs")
    labels, test_labels = _labels(*train, "training"), _labels(*test, "test")
    classes, d = int(labels.max()) + 1, train[0].shape[1]
    if empty := np.flatnonzero(np.bincount(labels) == 0).tolist():
        raise ConfigError(f"classes {empty[:5]} of {classes} have no training image")
    if test_labels.max() >= classes:
        raise ConfigError(f"test class {test_labels.max()} is none of the {classes} training classes 0..{classes - 1}")
    if test[0].shape[1] != d:
        raise ConfigError(f"test features have {test[0].shape[1]} columns: expected {d}, as in training")
    dtype = getattr(torch, settings.precision)
    x, test_x = (
        load_matrix(part, device=device, dtype=dtype, l2_normalize=settings.l2_normalize, name=name)
        for part, name in ((train[0], "training features"), (test[0], "test features"))
    )
    return ProbeData(x, torch.from_numpy(labels).to(device), labels, test_x, test_labels, classes, d)


def identity(data: ProbeData, seeds: Sequence[int], settings: ProbeSettings, shots: int | None) -> str:
    """Return a digest of all that can move the trials of a probe; of the features it sees a sample of rows.

    ``_VERSION`` goes up when the solver, the draws or the form of a journal entry change.
    """
    sample = np.linspace(0, len(data.x) - 1, _SAMPLE).astype(np.int64)
    content = hashlib.sha256(data.labels.tobytes())
    content.update(data.x[torch.from_numpy(sample).to(data.x.device)].float().cpu().numpy().tobytes())
    return digest_of(
        {
            "version": _VERSION,
            "settings": asdict(settings),
            "seeds": list(seeds),
            "shots": shots,
            "shape": list(data.x.shape),
            "content": content.hexdigest(),
        }
    )


def _labels(x: Features, y: Labels, name: str) -> Rows:
    if not isinstance(x, np.ndarray | torch.Tensor):
        raise ConfigError(f"{name} features are a {type(x).__name__}: expected an array or a tensor [images, features]")
    if x.ndim != 2 or 0 in x.shape:
        raise ConfigError(f"{name} features have shape {tuple(x.shape)}: expected a matrix [images, features]")
    labels = np.asarray(y.cpu() if isinstance(y, torch.Tensor) else y)
    if labels.shape != (x.shape[0],) or not np.issubdtype(labels.dtype, np.integer):
        raise ConfigError(
            f"{name} labels have shape {labels.shape} and type {labels.dtype}: expected one integer for each of the "
            f"{x.shape[0]} rows of the features"
        )
    if labels.min() < 0:
        raise ConfigError(f"{name} labels hold {labels.min()}: expected classes counted from 0")
    return labels.astype(np.int64)
