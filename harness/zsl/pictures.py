"""The images that published features were computed from, found on this machine, so that any backbone can take them."""

from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images import EncodedImages
from harness.images import ImageSet
from harness.images import folder_images
from harness.zsl.boxes import ANNOTATIONS
from harness.zsl.boxes import BoxedImages
from harness.zsl.boxes import boxes_of
from harness.zsl.boxes import read_annotations
from harness.zsl.matfile import MatFile
from harness.zsl.task import Task
from harness.zsl.xlsa17 import Folders


def published_images(folders: Folders, task: Task) -> ImageSet:
    """Return the images of a published data set, in the order of its labels.

    ``image_files`` of res101.mat names them by their place on the authors' machine. Any ending of such a path may lie
    below the data root or its folder of the data set's name: ``/BS/.../CUB_200_2011/images/001.X/1.jpg`` is found as
    ``<data-root>/CUB_200_2011/images/001.X/1.jpg`` or ``<data-root>/CUB/001.X/1.jpg``. Images of aPY are cut out by the
    boxes of its annotation files, which lie in ``<data-root>/APY``.

    Raises:
        MissingInput: an image or an annotation file is not there.
        CorruptInput: res101.mat lists other images than it has labels of, or an image of aPY has no box.
    """
    data_root = folders.data_root
    files = MatFile(folders.res101).texts("image_files")
    if len(files) != task.labels.size:
        raise CorruptInput(f"{folders.res101}: {len(files)} image_files, but {task.labels.size} labels")
    found = resolve(data_root, task.name, files)
    if task.name != "APY":
        return folder_images(data_root, found)
    boxes = boxes_of(files, [task.names[label] for label in task.labels], read_annotations(_annotations(data_root)))
    unique = list(dict.fromkeys(found))
    place = {file: row for row, file in enumerate(unique)}
    images: EncodedImages = folder_images(data_root, unique)
    return BoxedImages(images, tuple((place[file], box) for file, box in zip(found, boxes, strict=True)))


def resolve(data_root: Path, name: str, files: Sequence[str]) -> list[str]:
    """Return the paths of files of another machine relative to the data root.

    The longest ending that is found counts; files that share the part before it are looked for there first.

    Raises:
        MissingInput: a file is not found.
    """
    known: dict[tuple[str, ...], str] = {}
    found = []
    for number, file in enumerate(files, start=1):
        parts = tuple(part for part in file.replace("\\", "/").split("/") if part not in {"", ".", ".."})
        for cut, candidate in _candidates(parts, name, known):
            if (data_root / candidate).is_file():
                known.setdefault(parts[:cut], candidate.removesuffix("/".join(parts[cut:])))
                found.append(candidate)
                break
        else:
            raise MissingInput(
                f"{data_root}: image {number} of {len(files)}, {file}, is not there: no ending of this path is a file "
                f"below {data_root} or {data_root / name}"
            )
    return found


def _candidates(parts: Sequence[str], name: str, known: dict[tuple[str, ...], str]) -> Iterator[tuple[int, str]]:
    for cut in range(len(parts)):
        if tuple(parts[:cut]) in known:
            yield cut, known[tuple(parts[:cut])] + "/".join(parts[cut:])
    for cut in range(len(parts)):
        for place in ("", f"{name}/"):
            yield cut, place + "/".join(parts[cut:])


def _annotations(data_root: Path) -> Path:
    places = [data_root / "APY", data_root / "APY" / "attribute_data", data_root / "attribute_data", data_root]
    return next((place for place in places if (place / ANNOTATIONS[0]).is_file()), places[0])
