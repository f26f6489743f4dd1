"""Reading checkpoints of every format."""

import argparse
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch import nn

from harness.errors import CorruptInput
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.containers import READERS
from harness.zoo.contents import recognise
from harness.zoo.inert import plain
from tests.zoo.checkpoints import storage_of

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
