"""What a file that is meant to hold weights really is, told from its bytes. Imports no torch."""

import re
import tarfile
import zipfile
from enum import StrEnum
from pathlib import Path

from harness.errors import CorruptInput

_HEAD_BYTES = 4096
_STREAM_MAGIC = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
"""The pickled number that ``torch.save`` wrote at the start of its files before the zip format."""
_COMPRESSED = {
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\x89HDF": "an HDF5 file",
}


class Kind(StrEnum):
    """The formats that weights come in."""

    SAFETENSORS = "safetensors"
    ZIP = "torch zip"
    STREAM = "torch legacy stream"
    TAR = "torch legacy tar"
    SCRIPT = "TorchScript archive"


def recognise(path: Path) -> Kind:
    """Return the format of a weights file.

    Raises:
        CorruptInput: it is none; the message says what it is instead: an HTML page, an archive, a Git LFS pointer ...
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"PK\x03\x04"):
        return _recognise_zip(path, _names_in_zip(path))
    if head[0:1] == b"\x80" and _STREAM_MAGIC in head[:32]:
        return Kind.STREAM
    if _is_safetensors(head, path.stat().st_size):
        return Kind.SAFETENSORS
    if not head.startswith(tuple(_COMPRESSED)) and (names := _names_in_tar(path)) is not None:
        return _recognise_tar(path, names)
    raise CorruptInput(f"{path} holds no weights: it is {_describe(head)}")


def html_title(head: bytes) -> str | None:
    """Return what an HTML page calls itself (empty if it does not), or None where ``head`` begins no such page."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not re.match(r"<(!doctype\s+html|html|head|body|\?xml|!--)", text, re.IGNORECASE):
        return None
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return " ".join(title.group(1).split())[:80] if title else ""


def describe_html(title: str) -> str:
    """Return the words for an HTML page in place of weights."""
    return f"an HTML page{f' titled {title!r}' if title else ''}, such as a login, quota or download page"


def _describe(head: bytes) -> str:
    if not head:
        return "empty"
    if (title := html_title(head)) is not None:
        return describe_html(title)
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "a Git LFS pointer: the repository was cloned without its large files (git lfs pull)"
    for magic, words in _COMPRESSED.items():
        if head.startswith(magic):
            return f"{words}, not a checkpoint"
    if head[0:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        return "a pickle that torch.save did not write; nothing in it was run"
    return f"of no known format (it begins with {head[:16]!r})"


def _names_in_zip(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except Exception as error:  # a damaged table of contents raises errors of many kinds
        raise CorruptInput(f"{path} is a damaged or truncated zip file: {error}") from error


def _recognise_zip(path: Path, names: list[str]) -> Kind:
    if not any(re.fullmatch(r"[^/]+/data\.pkl", name) for name in names):
        raise CorruptInput(f"{path} is a zip archive of other files, not a checkpoint; it holds {_some(names)}")
    is_script = any(re.match(r"[^/]+/(constants\.pkl|code/)", name) for name in names)
    return Kind.SCRIPT if is_script else Kind.ZIP


def _names_in_tar(path: Path) -> list[str] | None:
    try:
        if not tarfile.is_tarfile(path):
            return None
        with tarfile.open(path, "r:") as archive:
            return archive.getnames()
    except Exception as error:  # a damaged header raises errors of many kinds
        raise CorruptInput(f"{path} is a damaged or truncated tar file: {error}") from error


def _recognise_tar(path: Path, names: list[str]) -> Kind:
    if not {"pickle", "storages", "tensors"} <= set(names):
        raise CorruptInput(f"{path} is a tar archive of other files, not a checkpoint; it holds {_some(names)}")
    return Kind.TAR


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3]) or "nothing"
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _is_safetensors(head: bytes, size: int) -> bool:
    """An 8-byte little-endian length, then a JSON object of that length."""
    return len(head) > 8 and head[8:9] == b"{" and 8 + int.from_bytes(head[:8], "little") <= size
