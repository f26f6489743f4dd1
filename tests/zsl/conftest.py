"""Small planted problems that the tests of methods share."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import TrainSet

MakeSet: TypeAlias = Callable[..., TrainSet]


def embeddings_of(values: Floats, original: Floats | None = None) -> ClassEmbeddings:
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    return ClassEmbeddings(tuple(f"class {row}" for row in range(len(values))), unit, original, "att")


def small_set(
    seed: int = 0, *, images: int = 60, d: int = 9, a: int = 5, classes: int = 7, unseen: int = 3, flat: bool = False
) -> TrainSet:
    """Return images of the classes with odd and even ids mixed, non-negative features unless ``flat``."""
    rng = np.random.default_rng(seed)
    seen = np.sort(rng.permutation(classes + unseen)[:classes])
    labels = rng.permutation(np.concatenate([seen, rng.choice(seen, images - classes)]))
    embeddings = embeddings_of(rng.random((classes + unseen, a)))
    features = embeddings.values[labels] @ rng.normal(size=(a, d)) + 0.3 * rng.normal(size=(images, d))
    return TrainSet(features if flat else np.abs(features), labels, seen, embeddings)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Keep torch to one thread: with tiny matrices beside other work, a second one waits far longer than it works."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture
def make_set() -> MakeSet:
    return small_set


@pytest.fixture(scope="session")
def wordnet_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that keeps the arrays of WordNet, which take seconds to make."""
    return tmp_path_factory.mktemp("wordnet")
