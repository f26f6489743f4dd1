"""A place of images, whichever way it is packed."""

from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path

from harness.errors import MissingInput
from harness.images.folder import folder_images
from harness.images.folder import list_folder
from harness.images.imageset import EncodedImages
from harness.images.tar import list_tars
from harness.images.tar import tar_images
from harness.images.zip import list_zip
from harness.images.zip import zip_images


def open_images(place: Path, ids: Sequence[str]) -> EncodedImages:
    """Return the images ``<class>/<file>`` of a zip archive, or of a folder that holds a folder or a tar per class.

    A class that has both is read from its folder.

    Raises:
        MissingInput: the place or a listed image does not exist.
        CorruptInput: an archive is damaged.
        ConfigError: an id is listed twice.
    """
    if place.suffix == ".zip":
        return zip_images(place, ids)
    classes = {_class_of(identity) for identity in ids}
    packed = _packed(place, classes)
    if not packed:
        return folder_images(place, ids)
    if packed == classes:
        return tar_images(place, ids)
    tars = tar_images(place, [identity for identity in ids if _class_of(identity) in packed])
    folders = folder_images(place, [identity for identity in ids if _class_of(identity) not in packed])
    contents = dict(zip(tars.ids + folders.ids, tars.contents + folders.contents, strict=True))

    def read(identity: str) -> bytes:
        return (tars if _class_of(identity) in packed else folders).read(identity)

    return EncodedImages(tuple(ids), tuple(contents[identity] for identity in ids), read)


def list_images(place: Path, classes: Iterable[str] | None = None) -> list[str]:
    """Return the ids ``<class>/<file>`` of all images of the given classes, or of all classes, sorted.

    Raises:
        MissingInput: the place or a class does not exist.
        CorruptInput: an archive is damaged.
    """
    if place.suffix == ".zip":
        return list_zip(place, classes)
    if not place.is_dir():
        raise MissingInput(f"{place}: no such folder of images")
    wanted = {path.stem for path in place.iterdir() if _holds_class(path)} if classes is None else set(classes)
    packed = _packed(place, wanted)
    if absent := sorted(name for name in wanted - packed if not (place / name).is_dir()):
        raise MissingInput(f"{place}: neither a folder nor a tar of {', '.join(absent[:5])}")
    return sorted([*list_tars(place, packed), *list_folder(place, wanted - packed)])


def _holds_class(path: Path) -> bool:
    return path.is_dir() or path.suffix == ".tar"


def _packed(place: Path, classes: Iterable[str]) -> set[str]:
    """Return the classes that have a tar and no folder. Other tars beside them do not count."""
    return {name for name in classes if not (place / name).is_dir() and (place / f"{name}.tar").is_file()}


def _class_of(identity: str) -> str:
    return identity.partition("/")[0]
