"""A zip archive of images, stored or deflated, read in place."""

import zipfile
import zlib
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images.imageset import EncodedImages
from harness.images.imageset import is_image
from harness.images.imageset import missing


def zip_images(archive: Path, ids: Sequence[str]) -> EncodedImages:
    """Return the members of these names, identified by name, size and the CRC-32 that the archive states for each.

    The CRC-32 sees a changed image without reading the whole archive, and other members may come and go.

    Raises:
        MissingInput: the archive or a listed member does not exist.
        CorruptInput: not a zip archive.
        ConfigError: a name is listed twice.
    """
    opened = _open(archive)
    members = {member.filename: member for member in opened.infolist()}
    if absent := [identity for identity in ids if identity not in members]:
        raise missing(archive, absent, len(ids))
    lock = Lock()

    def read(identity: str) -> bytes:
        # ZipFile counts its open members without a lock of its own.
        try:
            with lock:
                return opened.read(identity)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise CorruptInput(f"{archive.name}: {error}") from error

    contents = tuple(f"{members[identity].file_size}:{members[identity].CRC:08x}" for identity in ids)
    return EncodedImages(tuple(ids), contents, read)


def list_zip(archive: Path, classes: Iterable[str] | None = None) -> list[str]:
    """Return the ids ``<class>/<file>`` of all images in the archive, sorted; of the given classes or of all.

    Raises:
        MissingInput: the archive does not exist, or has no image of a class.
        CorruptInput: not a zip archive.
    """
    with _open(archive) as opened:
        names = sorted(name for name in opened.namelist() if is_image(name))
    if classes is None:
        return names
    wanted = set(classes)
    chosen = [name for name in names if name.partition("/")[0] in wanted]
    if absent := sorted(wanted - {name.partition("/")[0] for name in chosen}):
        raise MissingInput(f"{archive}: no images of {', '.join(absent[:5])}")
    return chosen


def _open(archive: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(archive)
    except FileNotFoundError:
        raise MissingInput(f"{archive}: no such archive of images") from None
    except zipfile.BadZipFile as error:
        raise CorruptInput(f"{archive}: {error}") from error
