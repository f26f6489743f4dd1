"""The drawings, read once."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tools.pretrain.drawings import Drawings


@pytest.fixture(scope="session")
def drawings() -> "tuple[Drawings, Drawings]":
    """Those to learn from and those to validate on."""
    from tools.pretrain.drawings import load_drawings

    return load_drawings()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Curves are those of one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
