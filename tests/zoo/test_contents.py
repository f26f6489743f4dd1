"""What a file that is meant to hold weights really is."""

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from harness.errors import CorruptInput
from harness.zoo.contents import Kind
from harness.zoo.contents import recognise

if TYPE_CHECKING:
    from tests.zoo.conftest import WriteTar


def zip_of(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, b"content")
    return buffer.getvalue()


def tar_of(*names: str, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]  # a mode chosen at run time
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def saved(*, zipped: bool, protocol: int = 2) -> bytes:
    buffer = io.BytesIO()
    torch.save({"w": torch.zeros(3)}, buffer, _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
def test_every_format_of_torch_is_recognised(tmp_path: Path, write_tar: "WriteTar") -> None:
    path = tmp_path / "w"
    path.write_bytes(saved(zipped=True))
    assert recognise(path) is Kind.ZIP
    for protocol in (2, 4):
        path.write_bytes(saved(zipped=False, protocol=protocol))
        assert recognise(path) is Kind.STREAM
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    assert recognise(path) is Kind.SCRIPT
    assert recognise(write_tar(path, {"w": torch.zeros(3)})) is Kind.TAR
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    assert recognise(path) is Kind.SAFETENSORS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n <!DOCTYPE html>\n<html><title>Sign  in</title>", "an HTML page titled 'Sign in', such as a login, quota"),
        (b"\xef\xbb\xbf<HTML><body>quota</body>", "an HTML page, such as a login, quota or download page"),
        (b"<?xml version='1.0'?><Error>AccessDenied</Error>", "an HTML page, such as"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n", "a Git LFS pointer: the repository"),
        (b"", "holds no weights: it is empty"),
        (zip_of("folder/net.pth"), "is a zip archive of other files, not a checkpoint; it holds 'folder/net.pth'"),
        (saved(zipped=True)[:-30], "is a damaged or truncated zip file"),
        (tar_of("a.pth", "b", "c", "d"), "is a tar archive of other files.*; it holds 'a.pth', 'b', 'c' and 1 more"),
        (tar_of("a.pth", mode="w:gz"), "it is a gzip archive, not a checkpoint"),
        (gzip.compress(b"weights"), "it is a gzip archive, not a checkpoint"),
        (bytes(10240), "is a tar archive of other files, not a checkpoint; it holds nothing"),
        (pickle.dumps({"w": [1.0]}), "a pickle that torch.save did not write; nothing in it was run"),
        (b"Not Found", "it is of no known format \\(it begins with b'Not Found'\\)"),
        (struct.pack("<Q", 10**6) + b'{"w": 1}', "it is of no known format"),
    ],
)
def test_what_is_no_checkpoint_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "w.pth"
    path.write_bytes(content)
    with pytest.raises(CorruptInput, match=words) as caught:
        recognise(path)
    assert str(caught.value).startswith(f"{path} ")


def test_a_pickle_with_code_is_not_run(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {tmp_path}/run",)

    (tmp_path / "w.pth").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(CorruptInput, match=r"a pickle that torch\.save did not write"):
        recognise(tmp_path / "w.pth")
    assert not (tmp_path / "run").exists()
