"""Features as the solver wants them: one copy, on the device, normalised, with a constant column for the bias."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from harness.errors import CorruptInput

Features: TypeAlias = "npt.NDArray[np.floating] | torch.Tensor"

_BLOCK = 8192
_LINE = 64


def load_matrix(
    features: Features,
    *,
    device: torch.device,
    dtype: torch.dtype,
    l2_normalize: bool,
    name: str = "features",
) -> torch.Tensor:
    """Copy features block by block onto the device.

    Column d is 1, so that the bias is one more weight with the same update; further columns, up to a whole number of
    cache lines, are 0.

    Args:
        features: [n, d], any floating type; a memory-mapped array is read once.
        device: where the matrix goes.
        dtype: how it is stored.
        l2_normalize: divide each row by its length (at least 1e-12), in float32 before it is stored.
        name: what messages call the matrix.

    Returns:
        [n, D] of ``dtype`` on ``device``.

    Raises:
        CorruptInput: a value is infinite or not a number.
    """
    n, d = features.shape
    line = _LINE // dtype.itemsize
    matrix = empty((n, -(-(d + 1) // line) * line), dtype, device)
    matrix[:, d:] = 0
    matrix[:, d] = 1
    work = dtype if dtype == torch.float64 else torch.float32
    for start in range(0, n, _BLOCK):
        part = features[start : start + _BLOCK]
        block = (part if isinstance(part, torch.Tensor) else torch.from_numpy(np.array(part))).to(device, work)
        finite = block.isfinite().all(1)
        if not finite.all():
            raise CorruptInput(f"{name}: row {start + int(finite.int().argmin())} holds a value that is not finite")
        matrix[start : start + len(block), :d] = torch.nn.functional.normalize(block) if l2_normalize else block
    return matrix


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return uninitialised memory; on a CPU it starts at a cache line and may lie in huge pages.

    numpy asks the kernel for huge pages and torch does not; with them a gather of random rows of a matrix of 100 MB
    takes about half the time.
    """
    if device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return torch.from_numpy(memory[start : start + size]).view(dtype).reshape(shape)
