"""Images that are parts of image files: the objects of aPascal-aYahoo, cut out by their bounding boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from typing import Self

from PIL import Image

from harness.digest import digest_of
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images import EncodedImages
from harness.images import Unreadable
from harness.zsl.names import plain_name

ANNOTATIONS = ("apascal_train.txt", "apascal_test.txt", "ayahoo_test.txt")
"""The published files: ``file class x1 y1 x2 y2`` and 64 attributes a line, separated by spaces."""

_CELLS = 6 + 64


class Box(NamedTuple):
    """Corners in pixels, counted from 1, both in the box, as PASCAL VOC has them."""

    left: int
    upper: int
    right: int
    lower: int


@dataclass(frozen=True, eq=False)
class BoxedImages:
    """An image set of boxes.

    Attributes:
        files: The image files.
        parts: Of each image, the position of its file in ``files`` and its box.
    """

    files: EncodedImages
    parts: tuple[tuple[int, Box], ...]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """File and corners; an object that is listed again gets a number too."""
        names = [f"{self.files.ids[file]}#{','.join(map(str, box))}" for file, box in self.parts]
        seen: dict[str, int] = {}
        unique = []
        for name in names:
            seen[name] = seen.get(name, 0) + 1
            unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        return tuple(unique)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over ids and the identity of the files."""
        return digest_of([self.ids, self.files.digest])

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.parts)

    def decode(self, indices: Sequence[int]) -> list[Image.Image | Unreadable]:
        """Return the boxes at these positions, in RGB; a file with several of them is read once."""
        wanted = list(dict.fromkeys(self.parts[index][0] for index in indices))
        decoded = dict(zip(wanted, self.files.decode(wanted), strict=True))
        return [self._cut(index, decoded[self.parts[index][0]]) for index in indices]

    def subset(self, indices: Sequence[int]) -> Self:
        """Return the set of the boxes at these positions, in this order."""
        return type(self)(self.files, tuple(self.parts[index] for index in indices))

    def _cut(self, index: int, image: Image.Image | Unreadable) -> Image.Image | Unreadable:
        if isinstance(image, Unreadable):
            return Unreadable(self.ids[index], image.reason)
        box = self.parts[index][1]
        left, upper = max(box.left - 1, 0), max(box.upper - 1, 0)
        right, lower = min(box.right, image.width), min(box.lower, image.height)
        if left >= right or upper >= lower:
            return Unreadable(self.ids[index], f"box {tuple(box)} is not in the image, {image.width} x {image.height}")
        return image.crop((left, upper, right, lower))


@dataclass(frozen=True)
class Annotation:
    """One line of a file of boxes."""

    file: str
    label: str
    box: Box


def read_annotations(folder: Path) -> list[Annotation]:
    """Read the three files of aPY.

    Raises:
        MissingInput: one is not there.
        CorruptInput: a line has another form; the message names file and line.
    """
    annotations = []
    for path in (folder / name for name in ANNOTATIONS):
        if not path.is_file():
            raise MissingInput(f"{path}: no such file; the images of aPY are cut out by the boxes it lists")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            cells = line.split()
            if cells:
                annotations.append(_annotation(f"{path}:{number}", cells))
    return annotations


def boxes_of(files: Sequence[str], classes: Sequence[str], annotations: Sequence[Annotation]) -> list[Box]:
    """Return the box of each image, by the name of its file and its class.

    Several objects of one class in one file are taken in the order of the annotations.

    Args:
        files: The path of each image's file.
        classes: The class of each image.
        annotations: At least one for each image.

    Raises:
        CorruptInput: an image has no annotation, or fewer than it takes.
    """
    waiting: dict[tuple[str, str], list[Box]] = {}
    for each in reversed(annotations):
        waiting.setdefault((Path(each.file).stem, plain_name(each.label)), []).append(each.box)
    boxes = []
    for number, (file, name) in enumerate(zip(files, classes, strict=True), start=1):
        found = waiting.get((Path(file).stem, plain_name(name)))
        if not found:
            raise CorruptInput(f"image {number}, {file}: no box of a {name}, or fewer than images in the annotations")
        boxes.append(found.pop())
    return boxes


def _annotation(where: str, cells: Sequence[str]) -> Annotation:
    if len(cells) != _CELLS:
        raise CorruptInput(f"{where}: {len(cells)} cells, expected {_CELLS}: file, class, 4 corners, 64 attributes")
    try:
        corners = [int(float(cell)) for cell in cells[2:6]]
    except ValueError as error:
        raise CorruptInput(f"{where}: corners {' '.join(cells[2:6])} are no numbers") from error
    return Annotation(cells[0], cells[1], Box(*corners))
