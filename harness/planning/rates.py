"""How fast models extract: from the features in the store, else from those of other models."""

import json
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from harness.entry import KEY
from harness.entry import UNREADABLE
from harness.features.cached import KIND
from harness.features.matrix import FEATURES
from harness.features.options import Options
from harness.store import Store
from harness.zoo.spec import ModelSpec

_ABOUT = "extraction.json"


@dataclass(frozen=True)
class Rate:
    """How fast a model extracts."""

    images_per_second: float
    measured: bool
    """With this model and input size on such a device; else scaled from other models."""


class Rates:
    """The rates that a store tells of.

    Args:
        store: Its features say how fast they were extracted.
        options: Only what was extracted on this type of device, by this number of threads, counts.
        models: The models file, for sizes.
    """

    def __init__(self, store: Store, options: Options, models: Mapping[str, ModelSpec]) -> None:
        self._models = models
        self.dims: dict[str, int] = {}
        """Length of the features of a model, as far as there are any."""
        spent: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
        for entry in store.entries():
            if entry.parent.name == KIND and (found := _read(entry)) is not None:
                key, about, dim = found
                name = str(about["backbone"])
                self.dims[name] = dim
                threads = options.threads if options.device_type == "cpu" else None
                if (key["device"], key["threads"]) == (options.device_type, threads):
                    images = int(about["images"]) - int(about["resumed_at"])
                    spent[name, int(key["backbone"]["input"]["size"])].append((images, about["images_per_second"]))
        self._rates = {known: rate for known, found in spent.items() if (rate := _overall(found)) is not None}

    def of(self, spec: ModelSpec) -> Rate | None:
        """Return the rate of a model; None where no model has been measured."""
        own = self._rates.get((spec.name, spec.input.size))
        if own is not None:
            return Rate(own, measured=True)
        scaled = [rate * self._cost(name, size, spec) for (name, size), rate in self._rates.items()]
        return Rate(median(scaled), measured=False) if scaled else None

    def dim(self, spec: ModelSpec) -> int | None:
        """Return the length of a model's features, as far as its entry or the store tell."""
        return spec.feature.dim or self.dims.get(spec.name)

    def _cost(self, name: str, size: int, spec: ModelSpec) -> float:
        """Return how much more a model that was measured has to compute than ``spec``: by parameters and pixels."""
        other = self._models[name].parameters if name in self._models else None
        parameters = other / spec.parameters if other and spec.parameters else 1.0
        return parameters * (size / spec.input.size) ** 2


def _read(entry: Path) -> tuple[dict[str, Any], dict[str, Any], int] | None:
    """Return key, notes and row length of features; None of damaged ones and of those from other programs."""
    try:
        key, about = (json.loads((entry / name).read_text()) for name in (KEY, _ABOUT))
        dim = np.load(entry / FEATURES, mmap_mode="r").shape[1]
        return (key, about, dim) if {"backbone", "device"} <= key.keys() and "images_per_second" in about else None
    except (*UNREADABLE, IndexError):
        return None


def _overall(found: Iterable[tuple[int, float | None]]) -> float | None:
    """Return images per second of several extractions together."""
    timed = [(images, rate) for images, rate in found if images > 0 and rate]
    seconds = sum(images / rate for images, rate in timed)
    return sum(images for images, _ in timed) / seconds if seconds else None
