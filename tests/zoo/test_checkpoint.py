"""Reading checkpoints of every format; nothing in a file is ever run."""

import argparse
import contextlib
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
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor
from torch import nn

from harness.errors import CorruptInput
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.containers import READERS
from harness.zoo.contents import recognise
from harness.zoo.inert import InertUnpickler
from harness.zoo.inert import plain

if TYPE_CHECKING:
    from tests.zoo.conftest import WriteTar

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


def state_dict() -> "OrderedDict[str, Tensor]":
    """Return tensors that share storages, are views, transposed, empty, 0-dimensional and of all types."""
    base = torch.arange(24.0)
    tensors: OrderedDict[str, Tensor] = OrderedDict()
    tensors["whole"] = base.view(4, 6)
    tensors["view"] = base[6:18].view(3, 4)
    tensors["transposed"] = base.view(4, 6).t()
    tensors["expanded"] = torch.full((), 2.5).expand(3, 2)
    tensors["empty"] = torch.zeros(0, 5)
    tensors["scalar"] = torch.tensor(7)
    for dtype in DTYPES:
        tensors[f"of {dtype}"] = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    return tensors


def storage_of(tensor: Tensor) -> torch.TypedStorage:
    typed: Callable[..., torch.TypedStorage] = torch.TypedStorage
    return typed(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


def same(found: object, expected: dict[str, Tensor]) -> bool:
    assert isinstance(found, dict)
    assert list(found) == list(expected)
    return all(torch.equal(found[key], expected[key]) and found[key].dtype == expected[key].dtype for key in expected)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_the_inert_reader_finds_what_torch_finds(tmp_path: Path, zipped: bool, protocol: int) -> None:
    path = tmp_path / "w.pth"
    content = {"state_dict": state_dict(), "epoch": 3, "arch": "r", "best": 0.5, "none": None, "shape": torch.Size([2])}
    content["parameter"] = nn.Parameter(torch.ones(2))
    content["optimizer"] = {"state": {0: {"momentum": torch.ones(3)}}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}
    torch.save(content, path, _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
    found = READERS[recognise(path)](path)
    assert found.foreign == frozenset()
    dropped: list[str] = []
    tree: Any = plain(found.content, dropped)
    assert dropped == []
    assert same(tree["state_dict"], state_dict())
    assert torch.equal(tree["parameter"], torch.ones(2))
    assert torch.equal(tree["optimizer"]["state"][0]["momentum"], torch.ones(3))
    assert tree["optimizer"]["param_groups"] == [{"lr": 0.1, "params": [0, 1]}]
    rest = {key: tree[key] for key in ("epoch", "arch", "best", "none", "shape")}
    assert rest == {"epoch": 3, "arch": "r", "best": 0.5, "none": None, "shape": (2,)}


def test_shared_storages_stay_shared(tmp_path: Path) -> None:
    torch.save({**state_dict(), "args": argparse.Namespace()}, tmp_path / "w.pth")
    content: Any = read_checkpoint(tmp_path / "w.pth", inert=["argparse.Namespace"]).content
    content["whole"][1, 0] = -1.0
    assert content["view"][0, 0] == -1.0


def test_plain_checkpoints_go_through_torch(tmp_path: Path) -> None:
    torch.save(state_dict(), tmp_path / "w.pth")
    found = read_checkpoint(tmp_path / "w.pth")
    assert same(found.content, state_dict())
    assert (found.kind, found.reader, found.dropped) == ("torch zip", "torch weights_only", ())


def test_safetensors(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2])}
    save_file(tensors, tmp_path / "w.safetensors")
    found = read_checkpoint(tmp_path / "w.safetensors")
    assert isinstance(found.content, dict)
    assert same(dict(sorted(found.content.items())), tensors)
    assert found.reader == "safetensors"


def test_legacy_tar(tmp_path: Path, write_tar: "WriteTar") -> None:
    tensors = {key: value for key, value in state_dict().items() if value.dtype in {torch.float32, torch.int64}}
    tensors["bn.running_mean"] = torch.arange(3.0)
    path = write_tar(tmp_path / "resnet50-19c8e357.pth", tensors)
    by_torch = torch.load(path, weights_only=False)  # the writer of these tests against the format's own reader
    assert all(torch.equal(by_torch[key], tensors[key]) for key in tensors)
    found = read_checkpoint(path)
    assert same(found.content, tensors)
    assert (found.kind, found.reader) == ("torch legacy tar", "inert unpickler")


def test_tensors_of_torch_0_1(tmp_path: Path) -> None:
    """Inception-v3's style: ``torch.FloatTensor`` objects whose state is (storage, offset, size, stride)."""

    class Old:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

        def __reduce__(self) -> tuple[object, ...]:
            tensor = self.tensor
            state = (storage_of(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
            return torch.FloatTensor, (), state

    tensor = torch.arange(6.0).view(2, 3).t()
    content = OrderedDict(w=Old(tensor), args=argparse.Namespace())
    torch.save(content, tmp_path / "w.pth", _use_new_zipfile_serialization=False)
    found = read_checkpoint(tmp_path / "w.pth", inert=["argparse.Namespace"])
    assert same(found.content, {"w": tensor})


class Tower(nn.Module):
    """A scripted module with nested parts, buffers and attributes of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = [1, 2]
        self.conv = nn.Conv2d(3, 4, 2).half()
        self.register_buffer("input_resolution", torch.tensor(224))
        self.block = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.block(x)
        return result


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
def test_torchscript_archives_give_their_state_dict(tmp_path: Path) -> None:
    tower = Tower()
    torch.jit.save(torch.jit.script(tower), tmp_path / "RN50.pt")
    found = read_checkpoint(tmp_path / "RN50.pt")
    assert isinstance(found.content, dict)
    assert found.content.keys() == tower.state_dict().keys()
    assert all(torch.equal(found.content[key], value) for key, value in tower.state_dict().items())
    assert found.content["conv.weight"].dtype is torch.float16


@pytest.mark.parametrize("zipped", [True, False])
def test_listed_classes_are_left_out_and_noted(tmp_path: Path, zipped: bool) -> None:
    args = argparse.Namespace(lr=0.1, inner=argparse.Namespace(deep=[1]))
    content = {"model": {"w": torch.ones(2)}, "opt": args, "list": [1, args, 2]}
    torch.save(content, tmp_path / "w.pth", _use_new_zipfile_serialization=zipped)
    found = read_checkpoint(tmp_path / "w.pth", inert=["argparse.Namespace"])
    assert found.reader == "inert unpickler"
    assert found.dropped == ("opt (argparse.Namespace)", "list/1 (argparse.Namespace)")
    assert isinstance(found.content, dict)
    assert found.content["list"] == [1, 2]


def test_numpy_scalars_are_left_out_when_listed(tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.ones(2)}, "best": np.float64(0.7)}, tmp_path / "w.pth")
    with pytest.raises(
        CorruptInput, match=r"holds more than tensors: .*scalar, .*numpy\.dtype.* at best \(numpy\."
    ) as fault:
        read_checkpoint(tmp_path / "w.pth")
    named = str(fault.value).split("tensors: ")[1].split(" at ")[0].split(", ")
    found = read_checkpoint(tmp_path / "w.pth", inert=named)
    assert isinstance(found.content, dict)
    assert list(found.content) == ["model"]


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


def test_a_pickled_network_is_refused_by_name(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "w.pth")
    with pytest.raises(CorruptInput, match=r"holds more than tensors: torch\.nn\.modules\.linear\.Linear at the root"):
        read_checkpoint(tmp_path / "w.pth")
