"""Features for probes: Gaussian clusters, one per class."""

import importlib.util
from collections.abc import Callable
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

Labelled: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]
Clusters: TypeAlias = Callable[..., tuple[Labelled, Labelled]]


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    if importlib.util.find_spec("torch") is None:
        yield  # the draws and settings need no torch
        return
    from harness.probe.chains import threads

    with threads(2):
        yield


@pytest.fixture
def clusters() -> Clusters:
    """Return a maker of training and test sets: ``clusters(classes, d, n_train, n_test)``, numbers per class."""
    return make_clusters


def make_clusters(
    classes: int, d: int, n_train: int, n_test: int, *, spread: float = 1.0, seed: int = 0
) -> tuple[Labelled, Labelled]:
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, d))

    def sample(n: int) -> Labelled:
        y = np.repeat(np.arange(classes), n)
        return (means[y] + spread * rng.normal(size=(len(y), d))).astype(np.float32), y

    return sample(n_train), sample(n_test)
