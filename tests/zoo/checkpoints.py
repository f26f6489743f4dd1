"""Checkpoints with the layout of published ones."""

import io
import json
import pickle
import struct
import tarfile
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness import data


def published_layout(model: str) -> "OrderedDict[str, Tensor]":
    """Return tensors of the published names, shapes and types.

    Each is one element expanded, so that files stay small; floating ones differ from each other.
    """
    layout = json.loads(data.path(f"models/{model}.json").read_text())
    tensors: OrderedDict[str, Tensor] = OrderedDict()
    for number, (key, shape, dtype) in enumerate(layout["tensors"]):
        tensors[key] = torch.full((), 1e-3 + number * 1e-6).to(getattr(torch, dtype)).expand(shape)
    return tensors


def storage_of(tensor: Tensor) -> torch.TypedStorage:
    """Return the storage of a tensor as ``torch.save`` pickles it."""
    typed: Callable[..., torch.TypedStorage] = torch.TypedStorage
    return typed(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


def write_legacy_tar(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write tensors as ``torch.save`` did before torch 0.1.10."""
    storages, described, views = io.BytesIO(), io.BytesIO(), []
    pickle.dump(len(tensors), storages, protocol=2)
    pickle.dump(len(tensors), described, protocol=2)
    for number, tensor in enumerate(tensors.values()):
        flat = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)
        kind = "Long" if tensor.dtype is torch.int64 else "Float"
        pickle.dump((10_000 + number, "cpu", getattr(torch, f"{kind}Storage")), storages, protocol=2)
        storages.write(struct.pack("<q", flat.numel()) + flat.numpy().tobytes())
        views.append((20_000 + number, 10_000 + number, 0, flat.numel()))
        pickle.dump((30_000 + number, 20_000 + number, getattr(torch, f"{kind}Tensor")), described, protocol=2)
        described.write(struct.pack("<i4x", tensor.ndim))
        described.write(struct.pack(f"<{2 * tensor.ndim}q", *tensor.shape, *tensor.stride()))
        described.write(struct.pack("<q", tensor.storage_offset()))
    pickle.dump(views, storages, protocol=2)
    members = {
        "sys_info": pickle.dumps({"protocol_version": 1000, "little_endian": True, "type_sizes": {}}, protocol=2),
        "pickle": _pickle_of_tensors(tensors),
        "storages": storages.getvalue(),
        "tensors": described.getvalue(),
    }
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


class _OldParameter:
    """Pickles as a ``Parameter`` of torch 0.1: its data, then (requires_grad, volatile, hooks)."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> tuple[type, tuple[Tensor], tuple[bool, bool, OrderedDict[str, Any]]]:
        return torch.nn.Parameter, (self.tensor,), (True, False, OrderedDict())


def _pickle_of_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    numbers = {id(tensor): str(30_000 + number) for number, tensor in enumerate(tensors.values())}

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: object) -> str | None:
            return numbers.get(id(obj))

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump(
        OrderedDict(
            (key, _OldParameter(tensor) if tensor.is_floating_point() and "running" not in key else tensor)
            for key, tensor in tensors.items()
        )
    )
    return buffer.getvalue()
