"""Small image sets in every packing."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Encode = Callable[..., bytes]
Pack = Callable[[Path, Mapping[str, bytes]], Path]


@pytest.fixture
def encode() -> Encode:
    """Return ``encode(seed, kind) -> bytes``: random pixels as a file of this kind."""

    def encode(seed: int, kind: str, size: tuple[int, int] = (20, 14)) -> bytes:
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, kind)
        return stream.getvalue()

    return encode


@pytest.fixture
def files(encode: Encode) -> dict[str, bytes]:
    """Nine images of three classes, in the order of their ids."""
    kinds = ("JPEG", "PNG", "WEBP")
    return {f"n0000000{n // 3}/{n}.{kinds[n % 3].lower()}": encode(n, kinds[n % 3]) for n in range(9)}


def _folder(root: Path, files: Mapping[str, bytes]) -> Path:
    for identity, content in files.items():
        (root / identity).parent.mkdir(parents=True, exist_ok=True)
        (root / identity).write_bytes(content)
    return root


def _tars(root: Path, files: Mapping[str, bytes]) -> Path:
    root.mkdir(parents=True)
    for name in {identity.split("/")[0] for identity in files}:
        with tarfile.open(root / f"{name}.tar", "w") as archive:
            for identity, content in files.items():
                if identity.startswith(f"{name}/"):
                    member = tarfile.TarInfo(identity.split("/")[1])
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return root


def _zip(root: Path, files: Mapping[str, bytes]) -> Path:
    return _archive(root, files, zipfile.ZIP_STORED)


def _deflated(root: Path, files: Mapping[str, bytes]) -> Path:
    return _archive(root, files, zipfile.ZIP_DEFLATED)


def _archive(root: Path, files: Mapping[str, bytes], compression: int) -> Path:
    path = root.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("README.md", "not an image")
        for identity, content in files.items():
            archive.writestr(identity, content)
    return path


PACKINGS: dict[str, Pack] = {"folder": _folder, "tar": _tars, "zip": _zip, "deflated": _deflated}


@pytest.fixture(params=list(PACKINGS))
def pack(request: pytest.FixtureRequest) -> Pack:
    """Write files below a root, in each packing in turn, and return the place to open."""
    return PACKINGS[request.param]


@pytest.fixture
def packings() -> dict[str, Pack]:
    """Return every packing, by name."""
    return PACKINGS
