"""Class folders: ``<root>/<class>/<file>``."""

import os
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path

from harness.errors import MissingInput
from harness.images.imageset import EncodedImages
from harness.images.imageset import is_image
from harness.images.imageset import missing


def folder_images(root: Path, ids: Sequence[str]) -> EncodedImages:
    """Return the images at these paths, relative to ``root``, identified by path and size in bytes.

    Raises:
        MissingInput: ``root`` or a listed file does not exist.
        ConfigError: a path is listed twice.
    """
    if not root.is_dir():
        raise MissingInput(f"{root}: no such folder of images")
    sizes = [_size(f"{root}/{identity}") for identity in ids]
    if absent := [identity for identity, size in zip(ids, sizes, strict=True) if size is None]:
        raise missing(root, absent, len(ids))

    def read(identity: str) -> bytes:
        try:
            return (root / identity).read_bytes()
        except FileNotFoundError:
            raise missing(root, [identity], len(ids)) from None

    return EncodedImages(tuple(ids), tuple(map(str, sizes)), read)


def list_folder(root: Path, classes: Iterable[str] | None = None) -> list[str]:
    """Return the ids ``<class>/<file>`` of all images below ``root``, sorted.

    Args:
        root: Holds one folder per class.
        classes: The classes to list; all that ``root`` has by default.

    Raises:
        MissingInput: ``root`` or the folder of a class does not exist.
    """
    if classes is None:
        classes = _names(root, folders=True)
    return sorted(
        f"{name}/{file}" for name in set(classes) for file in _names(root / name, folders=False) if is_image(file)
    )


def _names(folder: Path, *, folders: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir() == folders]
    except (FileNotFoundError, NotADirectoryError):
        raise MissingInput(f"{folder}: no such folder of images") from None


def _size(path: str) -> int | None:
    # 1.1 million files a level: a string and one system call each.
    try:
        return os.stat(path).st_size  # noqa: PTH116 - see above
    except (FileNotFoundError, NotADirectoryError):
        return None
