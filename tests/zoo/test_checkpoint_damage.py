"""Damaged checkpoints end in one clear error."""

import argparse
import contextlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from harness.errors import CorruptInput
from harness.zoo.checkpoint import read_checkpoint

if TYPE_CHECKING:
    from tests.zoo.conftest import WriteTar


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_truncated_streams_are_damaged(tmp_path: Path, foreign: bool, kept: float) -> None:
    path = tmp_path / "w.pth"
    content = {"w": torch.randn(1000), "args": argparse.Namespace() if foreign else None}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(CorruptInput, match=r"w\.pth \(torch legacy stream\) is damaged or truncated"):
        read_checkpoint(path, inert=["argparse.Namespace"])


def test_flipped_bytes_in_a_zip_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save({"w": torch.zeros(1000), "args": argparse.Namespace()}, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(CorruptInput, match="is damaged or truncated"):
        read_checkpoint(path, inert=["argparse.Namespace"])


def test_big_endian_data_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(10), "args": argparse.Namespace()}, tmp_path / "little.pth")
    with zipfile.ZipFile(tmp_path / "little.pth") as little, zipfile.ZipFile(tmp_path / "big.pth", "w") as big:
        for name in little.namelist():
            big.writestr(name, b"big" if name.endswith("byteorder") else little.read(name))
    with pytest.raises(CorruptInput, match="tensor data is big-endian"):
        read_checkpoint(tmp_path / "big.pth", inert=["argparse.Namespace"])


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory, write_tar: "WriteTar") -> Path:
    folder = tmp_path_factory.mktemp("small")
    content = {"w": torch.arange(6.0).view(2, 3), "args": argparse.Namespace(a=[1])}
    torch.save(content, folder / "zip", _use_new_zipfile_serialization=True)
    torch.save(content, folder / "stream", _use_new_zipfile_serialization=False)
    write_tar(folder / "tar", {"w": torch.arange(6.0).view(2, 3)})
    return folder


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["zip", "stream", "tar"]),
    changes=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
    kept=st.sampled_from([1.0, 1.0, 1.0, 0.9, 0.5]),
)
def test_any_damage_ends_in_a_checkpoint_or_one_clear_error(
    kind: str, changes: list[tuple[float, int]], kept: float, small_files: Path, tmp_path: Path
) -> None:
    content = bytearray((small_files / kind).read_bytes())
    for place, byte in changes:
        content[int(place * len(content))] = byte
    path = tmp_path / "w.pth"
    path.write_bytes(content[: int(kept * len(content))])
    with contextlib.suppress(CorruptInput):
        assert read_checkpoint(path, inert=["argparse.Namespace"]).path == path
