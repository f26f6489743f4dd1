"""An unpickler that rebuilds tensors and nothing else.

A pickle names functions and classes and says with what to call them. Here a name is only ever looked up in the short
table below; every other name becomes an inert stand-in that swallows its arguments. No module is imported, nothing that
a file names is called.
"""

import pickle
from _compat_pickle import IMPORT_MAPPING
from _compat_pickle import NAME_MAPPING
from collections import OrderedDict
from collections.abc import Callable
from typing import IO
from typing import Any
from typing import Self
from typing import TypeAlias

import torch
from torch import Tensor

DTYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}
"""Element types by the names that storage and tensor classes begin with."""

Storages: TypeAlias = Callable[[Any], object]
"""Resolves a persistent id of the pickle."""


class _Frozen(type):
    """Keeps a pickle from changing stand-in classes by BUILD."""

    def __setattr__(cls, name: str, value: object) -> None:
        raise pickle.UnpicklingError(f"the pickle tries to set {name} of {cls.__name__}")


class Inert(metaclass=_Frozen):
    """Stands for an object that is not rebuilt. ``origin`` is the name in the file, ``state`` what it was to hold."""

    origin = ""
    state: Any = None

    def __new__(cls, *_arguments: object, **_keywords: object) -> Self:
        """Swallow the arguments. Not in ``__init__``, which unpicklers pass by."""
        return super().__new__(cls)

    def __init__(self, *_arguments: object, **_keywords: object) -> None:
        """Swallow the arguments once more, where the file calls the class."""

    def __call__(self, *_arguments: object, **_keywords: object) -> "Inert":
        """Swallow a call of what the file took from an object."""
        return self

    def __setstate__(self, state: Any) -> None:
        """Keep what BUILD hands over."""
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        """Swallow an item of a dict."""

    def append(self, item: object) -> None:
        """Swallow an item of a list."""


class OldTensor(Inert):
    """A tensor as torch 0.1 pickled it: an empty instance, then (storage, offset, size, stride) as its state."""

    @property
    def tensor(self) -> Tensor:
        """The tensor."""
        storage, offset, size, stride = self.state
        return view(storage, offset, size, stride)


class OldParameter(Inert):
    """A ``Parameter`` as torch 0.1 pickled it: its data as argument, or first in a state of five."""

    first_argument: object = None

    def __new__(cls, *arguments: object, **keywords: object) -> Self:
        """Keep the data."""
        instance = super().__new__(cls, *arguments, **keywords)
        instance.first_argument = arguments[0] if arguments else None
        return instance

    @property
    def data(self) -> object:
        """The tensor, or an `OldTensor`."""
        in_state = isinstance(self.state, tuple) and len(self.state) == 5
        return self.state[0] if in_state else self.first_argument


def view(storage: object, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """Return a tensor laid over a storage, which is a 1-D tensor here.

    Raises:
        RuntimeError: it would reach beyond the storage.
    """
    if not isinstance(storage, Tensor):
        raise pickle.UnpicklingError("a tensor is to be laid over something that is no storage")
    return storage.as_strided(tuple(size), tuple(stride), offset)


class _RebuildTensor:
    """``torch._utils._rebuild_tensor`` and ``_rebuild_tensor_v2``; gradients and hooks are left out."""

    __slots__ = ()

    def __call__(self, storage: object, offset: int, size: Any, stride: Any, *_more: object) -> Tensor:
        return view(storage, offset, size, stride)


class _RebuildParameter:
    """``torch._utils._rebuild_parameter``: the data alone."""

    __slots__ = ()

    def __call__(self, data: object, *_more: object) -> object:
        return data


class InertUnpickler(pickle.Unpickler):
    """Reads one pickle; ``foreign`` collects the names that were not rebuilt."""

    def __init__(self, file: IO[bytes], storages: Storages | None = None) -> None:
        super().__init__(file, encoding="utf-8")
        self.foreign: set[str] = set()
        self._storages = storages

    def persistent_load(self, pid: Any) -> object:
        """Resolve a tensor or a storage that lies outside the pickle."""
        if self._storages is None:
            raise pickle.UnpicklingError("a reference to tensor data where none is expected")
        return self._storages(pid)

    def find_class(self, module: str, name: str) -> Any:
        """Look a name up in the table; make a stand-in for any other, under its name in Python 3."""
        if module in {"torch", "torch.cuda"}:
            if name.endswith("Storage") and name.removesuffix("Storage") in DTYPES:
                return DTYPES[name.removesuffix("Storage")]
            if name.endswith("Tensor") and name.removesuffix("Tensor") in DTYPES:
                return OldTensor
            if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
                return getattr(torch, name)
        known = _KNOWN.get((module, name))
        if known is not None:
            return known
        origin = ".".join(NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name)))
        self.foreign.add(origin)
        return type(name, (Inert,), {"origin": origin})


_KNOWN: dict[tuple[str, str], object] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("__builtin__", "set"): set,
    ("builtins", "set"): set,
    ("torch", "Size"): tuple,
    ("torch._utils", "_rebuild_tensor"): _RebuildTensor(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    ("torch.nn.parameter", "Parameter"): OldParameter,
}


class _Dropped:
    """Marks what `plain` leaves out."""


_DROPPED = _Dropped()
_PLAIN = (Tensor, type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


def plain(value: object, dropped: list[str], path: str = "") -> object:
    """Return a tree without stand-ins: dicts, lists, tuples, tensors and plain values.

    Args:
        value: what an unpickler returned.
        dropped: takes a line ``path (class)`` for each object left out.
        path: where ``value`` stands; parts divided by ``/``.
    """
    result = _plain(value, dropped, path)
    return None if result is _DROPPED else result


def _plain(value: object, dropped: list[str], path: str) -> object:
    if isinstance(value, OldParameter):
        value = value.data
    if isinstance(value, OldTensor):
        value = value.tensor
    if isinstance(value, dict):
        items = {key: _plain(item, dropped, f"{path}/{key}".lstrip("/")) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _DROPPED}
    if isinstance(value, (list, tuple, set)):
        parts = [_plain(item, dropped, f"{path}/{index}".lstrip("/")) for index, item in enumerate(value)]
        kept = [part for part in parts if part is not _DROPPED]
        return kept if isinstance(value, list) else tuple(kept)
    if isinstance(value, _PLAIN):
        return value.detach() if isinstance(value, Tensor) else value
    origin = value.origin if isinstance(value, Inert) else type(value).__name__
    dropped.append(f"{path or 'the root'} ({origin})")
    return _DROPPED
