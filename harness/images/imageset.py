"""What an image set is, and the kind that reads encoded files."""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol
from typing import Self

from PIL import Image

from harness.digest import digest_of
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images.decode import decode_image

SUFFIXES = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
"""File names with these endings, in either case, count as images where a root is listed."""


@dataclass(frozen=True)
class Unreadable:
    """Stands in place of an image that cannot be decoded."""

    id: str
    reason: str


class ImageSet(Protocol):
    """An ordered set of images. All methods may be called from several threads at once."""

    @property
    def ids(self) -> Sequence[str]:
        """Unique, stable sample ids, in the order of the rows of everything computed from the set."""

    @property
    def digest(self) -> str:
        """SHA-256 over the ids, in their order, and the identity of each image's content."""

    def __len__(self) -> int:
        """Return the number of images, unreadable ones included."""

    def decode(self, indices: Sequence[int]) -> list[Image.Image | Unreadable]:
        """Return the images at these positions, in RGB.

        Raises:
            MissingInput: a file has gone since the set was made.
        """

    def subset(self, indices: Sequence[int]) -> Self:
        """Return the set of the images at these positions, in this order."""


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """An `ImageSet` of files in formats that Pillow reads.

    Args:
        ids: One id per image, for example ``n01440764/n01440764_10026.JPEG``.
        contents: What identifies the content of each image beside its id, such as its size in bytes.
        read: Returns the encoded bytes of an id; thread-safe. ``CorruptInput`` makes the image unreadable.

    Raises:
        ConfigError: an id stands twice, or contains a line break.
    """

    ids: tuple[str, ...]
    contents: tuple[str, ...]
    read: Callable[[str], bytes]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for identity in self.ids:
            if identity in seen or "\n" in identity:
                raise ConfigError(f"image ids must be unique and of one line: {identity!r}")
            # Python reads a file name that is not UTF-8 with lone surrogates, which no list of ids can hold.
            if identity != identity.encode("utf-8", "replace").decode():
                raise ConfigError(f"the file name {identity!r} is not valid UTF-8: rename the file")
            seen.add(identity)

    def __len__(self) -> int:
        """Return the number of images, unreadable ones included."""
        return len(self.ids)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over ids and contents, in their order."""
        return digest_of([self.ids, self.contents])

    def decode(self, indices: Sequence[int]) -> list[Image.Image | Unreadable]:
        """Return the images at these positions, in RGB."""
        return [self._decode(self.ids[index]) for index in indices]

    def subset(self, indices: Sequence[int]) -> Self:
        """Return the set of the images at these positions, in this order."""
        ids = tuple(self.ids[index] for index in indices)
        return type(self)(ids, tuple(self.contents[index] for index in indices), self.read)

    def _decode(self, identity: str) -> Image.Image | Unreadable:
        try:
            decoded = decode_image(self.read(identity))
        except CorruptInput as error:
            return Unreadable(identity, str(error))
        return decoded


def is_image(name: str) -> bool:
    """Say whether a file name has the ending of an image."""
    return name.lower().endswith(SUFFIXES)


def missing(place: object, names: Sequence[str], total: int) -> MissingInput:
    """Make the error for listed images that ``place`` does not hold; up to five are named."""
    return MissingInput(
        f"{place}: {len(names)} of {total} listed images are missing: "
        f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    )
