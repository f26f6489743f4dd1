"""Every packing of the same files is the same image set."""

from collections.abc import Callable
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness import data
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.images import EncodedImages
from harness.images import Unreadable
from harness.images import list_images
from harness.images import open_images

Pack = Callable[[Path, Mapping[str, bytes]], Path]


def pixels(images: EncodedImages, indices: list[int]) -> list[bytes]:
    decoded = images.decode(indices)
    assert all(isinstance(image, Image.Image) and image.mode == "RGB" for image in decoded)
    return [image.tobytes() for image in decoded if isinstance(image, Image.Image)]


def test_lists_the_images_sorted_and_nothing_else(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    shuffled = dict(sorted(files.items(), key=lambda item: item[1]))
    place = pack(tmp_path / "root", {**shuffled, "n00000001/notes.txt": b"none"})
    assert list_images(place) == sorted(files)
    assert list_images(place, ["n00000002", "n00000000"]) == [name for name in sorted(files) if "n00000001" not in name]


def test_has_the_pixels_of_the_files_in_the_order_asked_for(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    ids = sorted(files, key=lambda name: files[name])
    sets = [open_images(write(tmp_path / name, files), ids) for name, write in packings.items()]
    folder = [Image.open(tmp_path / "folder" / identity).convert("RGB").tobytes() for identity in ids]
    for images in sets:
        assert images.ids == tuple(ids)
        assert len(images) == 9
        assert pixels(images, list(range(9))) == folder
        assert pixels(images, [5, 2]) == [folder[5], folder[2]]


def test_subset_keeps_order_and_content(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    images = open_images(pack(tmp_path / "root", files), sorted(files))
    some = images.subset([7, 0])
    assert some.ids == (images.ids[7], images.ids[0])
    assert pixels(some, [0, 1]) == pixels(images, [7, 0])
    assert some.digest == open_images(next(iter(tmp_path.iterdir())), some.ids).digest


def test_digest_sees_order_selection_and_content(
    tmp_path: Path, files: dict[str, bytes], pack: Pack, encode: Callable[..., bytes]
) -> None:
    ids = sorted(files)
    place = pack(tmp_path / "a", files)
    digest = open_images(place, ids).digest
    assert open_images(place, ids).digest == digest
    assert open_images(pack(tmp_path / "b", files), ids).digest == digest
    assert open_images(place, ids[::-1]).digest != digest
    assert open_images(place, ids[:-1]).digest != digest
    other = encode(99, "WEBP", (20, 15))
    assert open_images(pack(tmp_path / "c", {**files, ids[4]: other}), ids).digest != digest


def test_missing_image_is_named_before_anything_is_decoded(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    place = pack(tmp_path / "root", files)
    with pytest.raises(MissingInput, match=r"1 of 10 listed images are missing: .*n00000001/gone.png"):
        open_images(place, [*sorted(files), "n00000001/gone.png"])


def test_missing_class_is_named(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    place = pack(tmp_path / "root", files)
    with pytest.raises(MissingInput, match="n00000009"):
        list_images(place, ["n00000000", "n00000009"])
    with pytest.raises(MissingInput, match="n00000009"):
        open_images(place, ["n00000009/1.png"])


def test_tars_of_other_things_beside_class_folders_do_not_count(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    place = packings["folder"](tmp_path / "root", files)
    expected = open_images(place, sorted(files)).digest
    (place / "backup.tar").write_bytes(b"no tar at all")
    (place / "n00000000.tar").write_bytes(b"the class has its folder")
    classes = ["n00000000", "n00000001", "n00000002"]
    assert list_images(place, classes) == sorted(files)
    assert open_images(place, sorted(files)).digest == expected
    with pytest.raises(MissingInput, match=r"root: neither a folder nor a tar of n00000009"):
        list_images(place, [*classes, "n00000009"])


def test_some_classes_may_be_tars_and_others_folders(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    whole = packings["folder"](tmp_path / "whole", files)
    packed = {name: content for name, content in files.items() if "n00000001" in name}
    place = packings["tar"](tmp_path / "mixed", packed)
    packings["folder"](place, {name: content for name, content in files.items() if name not in packed})
    ids = sorted(files, key=lambda name: files[name])
    assert list_images(place) == list_images(place, {name.partition("/")[0] for name in ids}) == sorted(files)
    images = open_images(place, ids)
    assert images.ids == tuple(ids)
    assert pixels(images, list(range(9))) == pixels(open_images(whole, ids), list(range(9)))
    assert images.subset([4, 1]).digest == open_images(place, [ids[4], ids[1]]).digest
    for gone in ("n00000001/gone.png", "n00000002/gone.png"):
        with pytest.raises(MissingInput, match=rf"listed images are missing: .*{gone}"):
            open_images(place, [*ids, gone])
    with pytest.raises(ConfigError, match="unique"):
        open_images(place, [*ids, ids[0]])


@pytest.mark.parametrize("name", ["nowhere", "nowhere.zip"])
def test_missing_place_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingInput, match=name):
        list_images(tmp_path / name)
    with pytest.raises(MissingInput, match=name):
        open_images(tmp_path / name, ["a/b.png"])


@pytest.mark.parametrize("ids", [["a/1.png", "a/1.png"], ["a/1\n.png"]])
def test_ids_are_unique_lines(tmp_path: Path, ids: list[str], packings: dict[str, Pack]) -> None:
    place = packings["folder"](tmp_path / "root", dict.fromkeys(ids, b"content"))
    with pytest.raises(ConfigError, match="unique"):
        open_images(place, ids)


def test_unreadable_image_takes_its_place(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    ids = sorted(files)
    images = open_images(pack(tmp_path / "root", {**files, ids[3]: b"no image at all"}), ids)
    decoded = images.decode([2, 3, 4])
    assert isinstance(decoded[0], Image.Image)
    assert decoded[1] == Unreadable(ids[3], "UnidentifiedImageError: cannot identify image file")
    assert isinstance(decoded[2], Image.Image)


def test_may_be_read_from_many_threads(tmp_path: Path, files: dict[str, bytes], pack: Pack) -> None:
    images = open_images(pack(tmp_path / "root", files), sorted(files))
    expected = pixels(images, list(range(9)))
    orders = [np.random.default_rng(seed).permutation(9).tolist() for seed in range(60)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda order: pixels(images, order), orders))
    assert found == [[expected[index] for index in order] for order in orders]


def test_embedded_universe_has_6194_readable_drawings() -> None:
    place = data.path("mini/minicog.zip")
    ids = list_images(place)
    assert len(ids) == 6194
    assert len({identity.split("/")[0] for identity in ids}) == 507
    sample = open_images(place, ids).decode(range(0, 6194, 50))
    assert all(isinstance(image, Image.Image) and image.size == (80, 80) for image in sample)
