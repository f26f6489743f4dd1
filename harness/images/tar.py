"""One uncompressed tar per class, ``<root>/<class>.tar``, read in place (ImageNet-21K is distributed so)."""

import os
import re
import tarfile
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images.imageset import EncodedImages
from harness.images.imageset import is_image
from harness.images.imageset import missing

_BLOCK = 512
_REGULAR = (b"0", b"\0")
_OCTAL = re.compile(rb"[0-7]+")

Span: TypeAlias = tuple[int, int]
"""Offset and size of a member's content in its tar, in bytes."""


def tar_images(root: Path, ids: Sequence[str]) -> EncodedImages:
    """Return the images ``<class>/<member>`` of ``<root>/<class>.tar``, identified by member name and size.

    The archives are indexed once per process and not hashed: those of one ImageNet-21K level hold over 100 GB.

    Raises:
        MissingInput: a tar or a listed member does not exist.
        CorruptInput: a tar is compressed, truncated or none at all.
        ConfigError: an id is listed twice.
    """
    indexes = {name: _index(root / f"{name}.tar") for name in dict.fromkeys(map(_class_of, ids))}
    spans = {identity: indexes[_class_of(identity)].get(identity.partition("/")[2]) for identity in ids}
    if absent := [identity for identity, span in spans.items() if span is None]:
        raise missing(root, [f"{_class_of(identity)}.tar: {identity}" for identity in absent], len(ids))
    found = {identity: span for identity, span in spans.items() if span is not None}

    def read(identity: str) -> bytes:
        return _read(root / f"{_class_of(identity)}.tar", found[identity])

    return EncodedImages(tuple(ids), tuple(str(found[identity][1]) for identity in ids), read)


def list_tars(root: Path, classes: Iterable[str] | None = None) -> list[str]:
    """Return the ids ``<class>/<member>`` of all images in the tars of ``root``, sorted.

    Raises:
        MissingInput: ``root`` or the tar of a class does not exist.
        CorruptInput: a tar is compressed, truncated or none at all.
    """
    if not root.is_dir():
        raise MissingInput(f"{root}: no such folder of tars")
    if classes is None:
        classes = [path.stem for path in root.glob("*.tar")]
    return sorted(f"{name}/{member}" for name in set(classes) for member in _index(root / f"{name}.tar"))


def _class_of(identity: str) -> str:
    return identity.partition("/")[0]


def _index(path: Path) -> Mapping[str, Span]:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise MissingInput(f"{path}: no such tar") from None
    return _scan(path, status.st_size, status.st_mtime_ns)


@cache
def _scan(path: Path, size: int, mtime_ns: int) -> Mapping[str, Span]:  # noqa: ARG001 - the time is part of the memo key
    """Return where each image lies, under the name it has in a class folder: no ``./`` and no ``<class>/``."""
    spans = _plain_members(path)
    if spans is None:
        spans = _any_members(path)
    if any(offset + length > size for offset, length in spans.values()):
        raise CorruptInput(f"{path}: truncated, a member ends after the file")
    return {
        name.removeprefix("./").removeprefix(f"{path.stem}/"): span for name, span in spans.items() if is_image(name)
    }


def _plain_members(path: Path) -> dict[str, Span] | None:
    """Index a tar of nothing but plain files with short names; None for any other.

    Ten times as fast as the general reader, which needs 40 s for the million members of one ImageNet-21K level.
    """
    spans: dict[str, Span] = {}
    offset = 0
    with path.open("rb", buffering=0) as file:
        while header := os.pread(file.fileno(), _BLOCK, offset):
            if header == bytes(_BLOCK):
                return spans
            name, digits = header[:100].rstrip(b"\0"), header[124:136].strip(b" \0")
            plain = header[156:157] in _REGULAR and not header[345:346].strip(b"\0") and name.isascii()
            if not plain or not _OCTAL.fullmatch(digits):
                return None
            length = int(digits, 8)
            spans[name.decode()] = (offset + _BLOCK, length)
            offset += _BLOCK + -(-length // _BLOCK) * _BLOCK
    return None


def _any_members(path: Path) -> dict[str, Span]:
    try:
        with tarfile.open(path, "r:") as archive:
            return {member.name: (member.offset_data, member.size) for member in archive if member.isreg()}
    except tarfile.TarError as error:
        raise CorruptInput(f"{path}: not an uncompressed tar ({error})") from error


def _read(path: Path, span: Span) -> bytes:
    offset, size = span
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise MissingInput(f"{path}: no such tar") from None
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)
