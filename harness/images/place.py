"""A place of images, whichever way it is packed."""

from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path

from harness.images.folder import folder_images
from harness.images.folder import list_folder
from harness.images.imageset import EncodedImages
from harness.images.tar import list_tars
from harness.images.tar import tar_images
from harness.images.zip import list_zip
from harness.images.zip import zip_images


def open_images(place: Path, ids: Sequence[str]) -> EncodedImages:
    """Return the images ``<class>/<file>`` of a zip archive, of a folder of class tars or of class folders.

    Raises:
        MissingInput: the place or a listed image does not exist.
        CorruptInput: an archive is damaged.
        ConfigError: an id is listed twice.
    """
    if place.suffix == ".zip":
        return zip_images(place, ids)
    return tar_images(place, ids) if _has_tars(place) else folder_images(place, ids)


def list_images(place: Path, classes: Iterable[str] | None = None) -> list[str]:
    """Return the ids ``<class>/<file>`` of all images of the given classes, or of all classes, sorted.

    Raises:
        MissingInput: the place or a class does not exist.
        CorruptInput: an archive is damaged.
    """
    if place.suffix == ".zip":
        return list_zip(place, classes)
    return list_tars(place, classes) if _has_tars(place) else list_folder(place, classes)


def _has_tars(place: Path) -> bool:
    return next(place.glob("*.tar"), None) is not None
