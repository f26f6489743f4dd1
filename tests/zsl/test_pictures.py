"""The images that published features were computed from, and the boxes of aPY."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images import Unreadable
from harness.images import folder_images
from harness.zsl.boxes import ANNOTATIONS
from harness.zsl.boxes import Annotation
from harness.zsl.boxes import Box
from harness.zsl.boxes import BoxedImages
from harness.zsl.boxes import boxes_of
from harness.zsl.boxes import read_annotations
from harness.zsl.matfile import MatFile
from harness.zsl.pictures import published_images
from harness.zsl.pictures import resolve
from harness.zsl.xlsa17 import find_folders
from harness.zsl.xlsa17 import load_task
from tests.zsl.xlsa17_files import write_xlsa17


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def test_any_ending_of_a_path_of_another_machine(tmp_path: Path) -> None:
    touch(tmp_path / "CUB_200_2011/images/001.A/a.jpg")
    touch(tmp_path / "CUB_200_2011/images/002.B/b.jpg")
    touch(tmp_path / "CUB/003.C/c.jpg")
    touch(tmp_path / "a.jpg")
    files = [
        "/BS/work/CUB_200_2011/images/001.A/a.jpg",
        "/BS/work//CUB_200_2011/./images/002.B/b.jpg",
        "D:\\work\\CUB_200_2011\\images\\003.C\\c.jpg",
    ]
    assert resolve(tmp_path, "CUB", files) == [
        "CUB_200_2011/images/001.A/a.jpg",
        "CUB_200_2011/images/002.B/b.jpg",
        "CUB/003.C/c.jpg",
    ]
    with pytest.raises(MissingInput, match=r"image 2 of 2, /BS/z/z\.jpg, is not there: no ending of this path"):
        resolve(tmp_path, "CUB", [files[0], "/BS/z/z.jpg"])


def test_images_in_the_order_of_the_labels(tmp_path: Path) -> None:
    written = write_xlsa17(tmp_path, "AWA1", images=3)
    folders = find_folders(tmp_path, "AWA1")
    task = load_task(folders, "AWA1")
    with pytest.raises(MissingInput, match="image 1 of 150"):
        published_images(folders, task)
    for row, file in enumerate(MatFile(folders.res101).texts("image_files")):
        path = tmp_path / "AWA1" / Path(*Path(file).parts[-3:])
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (1, 1), (row, int(written.labels[row]), 0)).save(path, format="PNG")
    images = published_images(folders, task)
    for row in (0, 77, 149):
        (image,) = images.decode([row])
        assert isinstance(image, Image.Image)
        assert image.getpixel((0, 0)) == (row, task.labels[row], 0)


def picture(path: Path) -> None:
    """Write an image whose pixel at column x and line y is (x, y, 0)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    grid = np.stack([*np.meshgrid(np.arange(20), np.arange(10)), np.zeros((10, 20))], axis=2)
    Image.fromarray(grid.astype(np.uint8)).save(path, format="PNG")


def test_boxes_are_cut_out(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    files = folder_images(tmp_path, ["a.png", "b.png"])
    parts = (
        (0, Box(3, 2, 6, 4)),
        (0, Box(1, 1, 20, 10)),
        (0, Box(15, 9, 99, 99)),
        (0, Box(25, 1, 30, 5)),
        (1, Box(1, 1, 2, 2)),
    )
    images = BoxedImages(files, (*parts, parts[0]))
    assert len(images) == 6
    assert images.ids[0] == "a.png#3,2,6,4"
    assert images.ids[5] == "a.png#3,2,6,4#2"
    small, whole, clipped, outside, damaged, again = images.decode(range(6))
    assert isinstance(small, Image.Image)
    assert isinstance(whole, Image.Image)
    assert isinstance(clipped, Image.Image)
    assert isinstance(again, Image.Image)
    assert (small.size, whole.size, clipped.size) == ((4, 3), (20, 10), (6, 2))
    # Corner (3, 2) counted from 1 is column 2, line 1.
    assert (small.getpixel((0, 0)), small.getpixel((3, 2))) == ((2, 1, 0), (5, 3, 0))
    assert clipped.getpixel((0, 0)) == (14, 8, 0)
    assert again.tobytes() == small.tobytes()
    assert isinstance(outside, Unreadable)
    assert "not in the image, 20 x 10" in outside.reason
    assert isinstance(damaged, Unreadable)
    assert images.subset([2, 0]).ids == (images.ids[2], images.ids[0])
    assert len({images.digest, images.subset([0]).digest, BoxedImages(files, parts).digest}) == 3


def annotate(folder: Path, lines: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ANNOTATIONS:
        (folder / name).write_text("")
    (folder / ANNOTATIONS[1]).write_text("".join(f"{line} {' '.join(['0'] * 64)}\n" for line in lines))


def test_annotation_files(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"apascal_train\.txt: no such file"):
        read_annotations(tmp_path)
    annotate(tmp_path, ["2008_000008.jpg horse 53 87 471 420", "bag_1.jpg bag 1.0 2 3 4"])
    assert read_annotations(tmp_path) == [
        Annotation("2008_000008.jpg", "horse", Box(53, 87, 471, 420)),
        Annotation("bag_1.jpg", "bag", Box(1, 2, 3, 4)),
    ]
    (tmp_path / ANNOTATIONS[2]).write_text("bag_2.jpg bag 1 2 3\n")
    with pytest.raises(CorruptInput, match=r"ayahoo_test\.txt:1: 5 cells, expected 70"):
        read_annotations(tmp_path)
    (tmp_path / ANNOTATIONS[2]).unlink()
    with pytest.raises(MissingInput, match=r"ayahoo_test\.txt"):
        read_annotations(tmp_path)
    annotate(tmp_path, ["a.jpg dog 1 x 3 4"])
    with pytest.raises(CorruptInput, match=r"apascal_test\.txt:1: corners 1 x 3 4 are no numbers"):
        read_annotations(tmp_path)


def test_objects_of_one_file_keep_their_order() -> None:
    annotations = [
        Annotation("a.jpg", "dog", Box(1, 1, 2, 2)),
        Annotation("a.jpg", "cat", Box(5, 5, 6, 6)),
        Annotation("a.jpg", "dog", Box(3, 3, 4, 4)),
    ]
    files = ["/BS/VOC/a.jpg"] * 3
    found = boxes_of(files, ["dog", "dog", "cat"], annotations)
    assert [box.left for box in found] == [1, 3, 5]
    with pytest.raises(CorruptInput, match=r"image 3, /BS/VOC/a\.jpg: no box of a dog, or fewer than images"):
        boxes_of(files, ["dog", "dog", "dog"], annotations)


def test_apy_is_cut_out_by_its_boxes(tmp_path: Path) -> None:
    written = write_xlsa17(tmp_path, "APY", images=3)
    folders = find_folders(tmp_path, "APY")
    task = load_task(folders, "APY")
    files = MatFile(folders.res101).texts("image_files")
    for file in files:
        picture(tmp_path / Path(file).relative_to("/BS/home/data"))
    lines = [
        f"{Path(file).name} {task.names[label]} {row % 7 + 1} 1 20 10"
        for row, (file, label) in enumerate(zip(files, task.labels, strict=True))
    ]
    annotate(tmp_path / "APY" / "attribute_data", lines[::-1])
    images = published_images(folders, task)
    assert len(images) == written.labels.size
    (image,) = images.decode([12])
    assert isinstance(image, Image.Image)
    assert image.getpixel((0, 0)) == (12 % 7, 0, 0)
