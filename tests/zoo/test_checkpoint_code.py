"""Nothing in a checkpoint is ever run."""

import argparse
import io
import os
import pickle
import subprocess
import tarfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from harness.errors import CorruptInput
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.inert import InertUnpickler
from tests.zoo.checkpoints import storage_of

if TYPE_CHECKING:
    from tests.zoo.conftest import WriteTar


class Payload:
    """Runs a command when it is unpickled by a reader that calls what a file names."""

    def __init__(self, make_call: Callable[[], tuple[object, ...]]) -> None:
        self.make_call = make_call

    def __reduce__(self) -> tuple[object, ...]:
        return self.make_call()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("call", ["os.system", "eval", "subprocess.call", "getattr"])
def test_code_in_a_checkpoint_is_refused_and_never_run(tmp_path: Path, zipped: bool, call: str) -> None:
    mark = tmp_path / "it ran"
    calls: dict[str, Callable[[], tuple[object, ...]]] = {
        "os.system": lambda: (os.system, (f"touch '{mark}'",)),
        "eval": lambda: (eval, (f"open({str(mark)!r}, 'w')",)),
        "subprocess.call": lambda: (subprocess.call, (["touch", str(mark)],)),
        "getattr": lambda: (getattr, (Payload(lambda: (os.system, (f"touch '{mark}'",))), "real")),
    }
    content = {"model": {"w": torch.ones(2)}, "extra": Payload(calls[call])}
    path = tmp_path / "w.pth"
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    name = {"os.system": "posix.system", "eval": "builtins.eval", "getattr": "builtins.getattr"}.get(call, call)
    with pytest.raises(CorruptInput) as caught:
        read_checkpoint(path)
    message = str(caught.value)
    assert name in message.split(" at ", maxsplit=1)[0]
    assert f" at extra ({name}). None of it was run. If that is known of this file, list these names under" in message
    assert not mark.exists()
    listed = read_checkpoint(path, inert=[name, "posix.system", "nt.system"])
    assert listed.dropped == (f"extra ({name})",)
    assert not mark.exists()


def test_code_in_the_old_tar_and_in_torchscript_is_never_run(tmp_path: Path, write_tar: "WriteTar") -> None:
    mark = tmp_path / "it ran"
    evil = pickle.dumps({"w": Payload(lambda: (os.system, (f"touch '{mark}'",)))}, protocol=2)
    path = write_tar(tmp_path / "w.tar", {"w": torch.ones(2)})
    source = path.read_bytes()
    with tarfile.open(path, "w") as archive, tarfile.open(fileobj=io.BytesIO(source)) as original:
        for member in original:
            content = evil if member.name == "pickle" else original.extractfile(member).read()  # type: ignore[union-attr]  # all are files
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(CorruptInput, match=r"holds more than tensors: posix\.system at w \(posix\.system\)"):
        read_checkpoint(path)
    with zipfile.ZipFile(tmp_path / "w.pt", "w") as writer:
        writer.writestr("w/data.pkl", evil)
        writer.writestr("w/constants.pkl", evil)
    with pytest.raises(CorruptInput, match=r"holds more than tensors: posix\.system"):
        read_checkpoint(tmp_path / "w.pt")
    assert not mark.exists()


@pytest.mark.parametrize(
    "code",
    [
        b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb.",  # BUILD on a real class
        b"ctorch._utils\n_rebuild_tensor_v2\n(N}X\x08\x00\x00\x00__code__K\x01stb.",  # BUILD on a table entry
        b"cos\nsystem\n}X\x0c\x00\x00\x00__setstate__K\x01sb.",  # BUILD on a stand-in class
        b"cos\nsystem\n(N}X\x04\x00\x00\x00evilK\x01stb.",
    ],
)
def test_a_pickle_cannot_change_what_the_unpickler_hands_out(code: bytes) -> None:
    before = set(vars(OrderedDict))
    with pytest.raises((pickle.UnpicklingError, TypeError, AttributeError)):
        InertUnpickler(io.BytesIO(b"\x80\x02" + code)).load()
    assert set(vars(OrderedDict)) == before
    assert InertUnpickler(io.BytesIO(b"\x80\x02cos\nsystem\n)R.")).load().origin == "os.system"


def test_a_tensor_cannot_reach_beyond_its_storage(tmp_path: Path) -> None:
    tensor = torch.arange(4.0)

    class Reaching:
        def __reduce__(self) -> tuple[object, ...]:
            rebuild = torch._utils._rebuild_tensor_v2
            return rebuild, (storage_of(tensor), 0, (1000,), (1,), False, OrderedDict())

    torch.save({"args": argparse.Namespace(), "w": Reaching()}, tmp_path / "w.pth")
    with pytest.raises(CorruptInput, match=r"is damaged or truncated: RuntimeError: .*out of bounds"):
        read_checkpoint(tmp_path / "w.pth", inert=["argparse.Namespace"])


def test_a_pickled_network_is_refused_by_name(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "w.pth")
    with pytest.raises(CorruptInput, match=r"holds more than tensors: torch\.nn\.modules\.linear\.Linear at the root"):
        read_checkpoint(tmp_path / "w.pth")
