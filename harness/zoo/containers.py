"""The four file formats of ``torch.save`` and ``torch.jit.save``, read with `InertUnpickler`.

Formats as torch's own code writes and reads them (torch/serialization.py; torch/csrc/jit/serialization). Tensor data is
little-endian. Storages become 1-D tensors on the CPU, whatever device the file names; shared ones stay shared.
"""

import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from typing import Any

import torch
from torch import Tensor

from harness.zoo.contents import Kind
from harness.zoo.inert import Inert
from harness.zoo.inert import InertUnpickler


@dataclass(frozen=True)
class Unpickled:
    """What a file holds, stand-ins included, and the names in it that were not rebuilt."""

    content: object
    foreign: frozenset[str]


def read_zip(path: Path) -> Unpickled:
    """Read a file that ``torch.save`` wrote since torch 1.6."""
    with zipfile.ZipFile(path) as archive:
        return _read_zip(archive)


def read_script(path: Path) -> Unpickled:
    """Read the tensors of a TorchScript archive, named by attribute path as in ``state_dict()``, but not its code."""
    with zipfile.ZipFile(path) as archive:
        found = _read_zip(archive)
    tensors: dict[str, object] = {}
    _collect(found.content, "", tensors)
    own = ("__torch__.", "torch.jit._pickle.")
    return Unpickled(tensors, frozenset(name for name in found.foreign if not name.startswith(own)))


def _collect(module: object, prefix: str, tensors: dict[str, object]) -> None:
    if isinstance(module, Inert) and isinstance(module.state, dict):
        for name, value in module.state.items():
            if isinstance(value, Tensor):
                tensors[f"{prefix}{name}"] = value
            _collect(value, f"{prefix}{name}.", tensors)


def _read_zip(archive: zipfile.ZipFile) -> Unpickled:
    main = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
    root = main.removesuffix("data.pkl")
    if f"{root}byteorder" in archive.namelist():
        _expect_little_endian(archive.read(f"{root}byteorder") == b"little")
    storages: dict[str, Tensor] = {}

    def storage(pid: Any) -> Tensor:
        _, dtype, key, _, count = pid
        if key not in storages:
            info = archive.getinfo(f"{root}data/{key}")
            storages[key] = _empty(count, dtype, info.file_size)
            with archive.open(info) as file:
                _fill(storages[key], file)
        return storages[key]

    with archive.open(main) as file:
        unpickler = InertUnpickler(file, storage)
        return Unpickled(unpickler.load(), frozenset(unpickler.foreign))


def read_stream(path: Path) -> Unpickled:
    """Read a file that ``torch.save`` wrote from torch 0.1.10 to 1.5: pickles one after the other, then raw data."""
    storages: dict[str, Tensor] = {}
    size = path.stat().st_size

    def storage(pid: Any) -> object:
        if pid[0] != "storage":
            raise pickle.UnpicklingError(f"a whole {pid[0]} was pickled where tensor data is expected")
        _, dtype, key, _, count, view = pid
        if key not in storages:
            storages[key] = _empty(count, dtype, size)
        return storages[key] if view is None else storages[key][view[1] : view[1] + view[2]]

    with path.open("rb") as file:
        _magic, _protocol, system = (InertUnpickler(file).load() for _ in range(3))
        _expect_little_endian(system["little_endian"])
        unpickler = InertUnpickler(file, storage)
        content = unpickler.load()
        for key in InertUnpickler(file).load():
            _expect_count(file, storages[key])
            _fill(storages[key], file)
    return Unpickled(content, frozenset(unpickler.foreign))


def read_tar(path: Path) -> Unpickled:
    """Read a file that ``torch.save`` wrote before torch 0.1.10: a tar of sys_info, storages, tensors and pickle."""
    with tarfile.open(path, "r:") as archive:
        _expect_little_endian(InertUnpickler(_member(archive, "sys_info")).load()["little_endian"])
        objects = _tar_storages(_member(archive, "storages"), path.stat().st_size)
        objects |= _tar_tensors(_member(archive, "tensors"), objects)
        unpickler = InertUnpickler(_member(archive, "pickle"), lambda pid: objects[int(pid)])
        return Unpickled(unpickler.load(), frozenset(unpickler.foreign))


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise pickle.UnpicklingError(f"member {name!r} is no file")
    return file


def _tar_storages(file: IO[bytes], limit: int) -> dict[int, Tensor]:
    storages: dict[int, Tensor] = {}
    for _ in range(InertUnpickler(file).load()):
        key, _location, dtype = InertUnpickler(file).load()
        (count,) = struct.unpack("<q", file.read(8))
        storages[key] = _empty(count, dtype, limit)
        _fill(storages[key], file)
    for key, root, offset, count in InertUnpickler(file).load():
        storages[key] = storages[root][offset : offset + count]
    return storages


def _tar_tensors(file: IO[bytes], storages: Mapping[int, Tensor]) -> dict[int, Tensor]:
    tensors = {}
    for _ in range(InertUnpickler(file).load()):
        key, storage_key, _kind = InertUnpickler(file).load()
        (dimensions,) = struct.unpack("<i4x", file.read(8))
        numbers = struct.unpack(f"<{2 * dimensions + 1}q", file.read(8 * (2 * dimensions + 1)))
        size, stride, offset = numbers[:dimensions], numbers[dimensions:-1], numbers[-1]
        tensors[key] = storages[storage_key].as_strided(size, stride, offset)
    return tensors


def _expect_little_endian(little: object) -> None:
    if little is not True:
        raise pickle.UnpicklingError("tensor data is big-endian")


def _empty(count: int, dtype: object, limit: int) -> Tensor:
    """Make room for a storage; a damaged count must not ask for more memory than the file could fill."""
    if not isinstance(dtype, torch.dtype):
        raise pickle.UnpicklingError("tensor data of an unknown element type")
    if not 0 <= count * dtype.itemsize <= limit:
        raise pickle.UnpicklingError(f"{count} elements are announced, more than the file can hold")
    return torch.empty(count, dtype=dtype)


def _expect_count(file: IO[bytes], storage: Tensor) -> None:
    (count,) = struct.unpack("<q", file.read(8))
    if count != storage.numel():
        raise pickle.UnpicklingError(f"{count} elements stand where {storage.numel()} are announced")


def _fill(storage: Tensor, file: IO[bytes]) -> None:
    buffer = memoryview(storage.view(torch.uint8).numpy())  # type: ignore[arg-type]  # arrays have the buffer protocol
    filled = 0
    while filled < len(buffer):
        block = file.read(min(len(buffer) - filled, 1 << 24))
        if not block:
            raise EOFError(f"tensor data ends {len(buffer) - filled} bytes early")
        buffer[filled : filled + len(block)] = block
        filled += len(block)


READERS: dict[Kind, Callable[[Path], Unpickled]] = {
    Kind.ZIP: read_zip,
    Kind.STREAM: read_stream,
    Kind.TAR: read_tar,
    Kind.SCRIPT: read_script,
}
"""The reader of each format but safetensors."""
