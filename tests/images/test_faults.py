"""Damaged images and archives."""

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image
from PIL import ImageFile

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.images import Unreadable
from harness.images import folder_images
from harness.images import list_tars
from harness.images import tar_images
from harness.images import zip_images

Pack = Callable[[Path, Mapping[str, bytes]], Path]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
def test_truncated_image_loads_as_the_reference_loads_it(
    tmp_path: Path, kind: str, encode: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = encode(1, kind, (64, 64))
    content = content[: len(content) * 2 // 3]
    (tmp_path / "image").write_bytes(content)
    found = folder_images(tmp_path, ["image"]).decode([0])[0]
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
    with pytest.raises(OSError, match="truncated"):
        Image.open(io.BytesIO(content)).load()
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert isinstance(found, Image.Image)
    assert found.tobytes() == Image.open(io.BytesIO(content)).convert("RGB").tobytes()


@pytest.mark.parametrize(
    ("mode", "kind"), [("L", "JPEG"), ("RGBA", "PNG"), ("P", "GIF"), ("CMYK", "JPEG"), ("1", "PNG")]
)
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str, kind: str) -> None:
    Image.new("RGB", (6, 4), (200, 30, 60)).convert(mode).save(tmp_path / "image", kind)
    found = folder_images(tmp_path, ["image"]).decode([0])[0]
    assert isinstance(found, Image.Image)
    assert (found.mode, found.size) == ("RGB", (6, 4))


def test_file_that_goes_while_reading_is_missing(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    first = min(files)
    images = folder_images(packings["folder"](tmp_path / "a", files), sorted(files))
    (tmp_path / "a" / first).unlink()
    with pytest.raises(MissingInput, match=first):
        images.decode([0])
    images = tar_images(packings["tar"](tmp_path / "b", files), sorted(files))
    (tmp_path / "b" / "n00000000.tar").unlink()
    with pytest.raises(MissingInput, match=r"n00000000\.tar"):
        images.decode([0])


def test_zip_member_with_a_flipped_byte_is_unreadable(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    place = packings["zip"](tmp_path / "root", files)
    ids = sorted(files)
    content = bytearray(place.read_bytes())
    content[content.index(files[ids[1]]) + 40] ^= 1
    place.write_bytes(content)
    first, second = zip_images(place, ids).decode([0, 1])
    assert isinstance(first, Image.Image)
    assert isinstance(second, Unreadable)
    assert "Bad CRC-32" in second.reason


@pytest.mark.parametrize("content", [b"", b"<html>", bytes(100)])
def test_no_archive_at_all_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    (tmp_path / "b.tar").write_bytes(content)
    with pytest.raises(CorruptInput, match=r"a\.zip"):
        zip_images(tmp_path / "a.zip", ["b/1.png"])
    with pytest.raises(CorruptInput, match=r"b\.tar"):
        tar_images(tmp_path, ["b/1.png"])


def test_truncated_and_compressed_tars_are_corrupt(
    tmp_path: Path, files: dict[str, bytes], packings: dict[str, Pack]
) -> None:
    root = packings["tar"](tmp_path / "root", files)
    tar = root / "n00000000.tar"
    whole = tar.read_bytes()
    tar.write_bytes(whole[: whole.index(files["n00000000/2.webp"]) + 10])
    with pytest.raises(CorruptInput, match=r"n00000000\.tar: .*truncated|n00000000\.tar: not an uncompressed tar"):
        list_tars(root)
    with tarfile.open(tar, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("1.png"), io.BytesIO(b""))
    with pytest.raises(CorruptInput, match="not an uncompressed tar"):
        list_tars(root)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_every_format_list_the_names_of_a_class_folder(
    tmp_path: Path, form: int, files: dict[str, bytes]
) -> None:
    name = "n" * 90
    members = ["1.png", "./2.png", f"{name}/3.png", f"./{name}/4.png", "d" * 60 + "/" + "é" * 30 + ".png", "notes.txt"]
    with tarfile.open(tmp_path / f"{name}.tar", "w", format=form) as archive:
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "1.png"
        archive.addfile(link)
        for content, member in zip(files.values(), members, strict=False):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    found = list_tars(tmp_path)
    expected = ["1.png", "2.png", "3.png", "4.png", members[4]]
    assert found == [f"{name}/{member}" for member in expected]
    decoded = tar_images(tmp_path, found).decode(range(5))
    for image, content in zip(decoded, files.values(), strict=False):
        assert isinstance(image, Image.Image)
        assert image.tobytes() == Image.open(io.BytesIO(content)).convert("RGB").tobytes()


def test_out_of_memory_is_no_property_of_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: object) -> None:
        raise MemoryError

    (tmp_path / "image").write_bytes(b"content")
    monkeypatch.setattr(Image, "open", exhausted)
    with pytest.raises(MemoryError):
        folder_images(tmp_path, ["image"]).decode([0])


def test_deflated_stream_that_breaks_is_unreadable(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.png", bytes(range(256)) * 20)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[60:90] = b"\xff" * 30
    (tmp_path / "a.zip").write_bytes(content)
    assert isinstance(zip_images(tmp_path / "a.zip", ["a/1.png"]).decode([0])[0], Unreadable)


def test_images_need_no_torch() -> None:
    code = "import sys, harness.images; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
