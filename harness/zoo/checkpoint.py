"""Checkpoints of every published format, read without running anything that they hold."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from harness.errors import CorruptInput
from harness.errors import HarnessError
from harness.zoo.containers import READERS
from harness.zoo.containers import Unpickled
from harness.zoo.contents import Kind
from harness.zoo.contents import recognise
from harness.zoo.inert import plain


@dataclass(frozen=True)
class Checkpoint:
    """The content of a weights file.

    Attributes:
        path: the file.
        kind: its format.
        reader: ``safetensors``, ``torch weights_only`` or ``inert unpickler``.
        content: tensors (on the CPU) in dicts, lists and tuples, with plain values between them.
        dropped: what was left out, as ``path (class)``.
    """

    path: Path
    kind: Kind
    reader: str
    content: object
    dropped: tuple[str, ...]


def read_checkpoint(path: Path, inert: Sequence[str] = ()) -> Checkpoint:
    """Read a weights file: safetensors, torch zip, legacy stream, legacy tar or TorchScript.

    torch's own ``weights_only`` loader goes first where it knows the format. What it refuses is read by an unpickler
    that replaces all but tensors by inert stand-ins.

    Args:
        path: the file.
        inert: names of classes and functions, such as ``argparse.Namespace``, that may be left out.

    Raises:
        CorruptInput: the file is no checkpoint, is damaged, or holds objects that are neither tensors nor in ``inert``.
    """
    kind = recognise(path)
    try:
        if kind is Kind.SAFETENSORS:
            return Checkpoint(path, kind, "safetensors", load_file(path), ())
        content, refused = _weights_only(path) if kind in {Kind.ZIP, Kind.STREAM} else (None, True)
        if not refused:
            dropped: list[str] = []
            return Checkpoint(path, kind, "torch weights_only", plain(content, dropped), tuple(dropped))
        return _read_inert(path, kind, READERS[kind](path), inert)
    except HarnessError:
        raise
    except Exception as error:  # whatever a damaged pickle or archive raises means just that
        raise CorruptInput(f"{path} ({kind}) is damaged or truncated: {type(error).__name__}: {error}") from error


def _weights_only(path: Path) -> tuple[object, bool]:
    """Return what torch's own safe loader finds, and whether it refused the file for what it holds."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True), False
    except pickle.UnpicklingError:
        return None, True


def _read_inert(path: Path, kind: Kind, found: Unpickled, inert: Sequence[str]) -> Checkpoint:
    dropped: list[str] = []
    content = plain(found.content, dropped)
    unlisted = sorted(found.foreign - set(inert))
    if unlisted:
        where = f" at {', '.join(dropped[:5])}" if dropped else ""
        raise CorruptInput(
            f"{path} ({kind}) holds more than tensors: {', '.join(unlisted)}{where}. None of it was run. If that is "
            "known of this file, list these names under surgery.inert of the entry: they will be left out"
        )
    return Checkpoint(path, kind, "inert unpickler", content, tuple(dropped))
