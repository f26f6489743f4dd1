"""Cutting, renaming and strict loading, with the words that users see."""

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch import nn

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.spec import Surgery
from harness.zoo.surgery import cut
from harness.zoo.surgery import load_checkpoint
from harness.zoo.surgery import load_strictly


def tensors(*keys: str) -> dict[str, Tensor]:
    return {key: torch.tensor(float(number)) for number, key in enumerate(keys)}


def cut_keys(content: object, **rules: Any) -> list[str]:
    return list(cut(content, Surgery(**rules), "w.pth").tensors)


def test_rules_apply_in_the_order_of_the_fields() -> None:
    content = {
        "state": {"net": tensors("module.module.q.fc.w", "module.q.conv.w", "q.bn.w", "module.k.conv.w", "queue")}
    }
    found = cut(
        content,
        Surgery(
            sub_key="state/net",
            strip=("module.",),
            keep="q.",
            drop=(r"^fc\.",),
            rename=(("^conv", "a"), (r"^a\.(.)", r"b.\1\1")),
        ),
        "w.pth",
    )
    assert {key: value.item() for key, value in found.tensors.items()} == {"b.ww": 1.0, "bn.w": 2.0}
    assert (found.outside, found.dropped) == (2, ("fc.w",))


def test_other_values_between_the_tensors_are_no_keys() -> None:
    assert cut_keys({"w": torch.zeros(1), "epoch": 3, "optimizer": {"lr": 0.1}}) == ["w"]


def test_an_optional_sub_key() -> None:
    assert cut_keys({"state_dict": tensors("a")}, sub_key="state_dict", sub_key_optional=True) == ["a"]
    assert cut_keys(tensors("a"), sub_key="state_dict", sub_key_optional=True) == ["a"]


@pytest.mark.parametrize(
    ("content", "rules", "message"),
    [
        (
            {"state_dict": tensors("a"), "epoch": 3},
            {"sub_key": "state_dct"},
            "w.pth: no entry 'state_dct'; it holds state_dict, epoch. Did you mean 'state_dict'?",
        ),
        ([1], {"sub_key": "model"}, "w.pth: no entry 'model'; it is a list."),
        (
            {"model": tensors("a", "b"), "ema": tensors("a"), "epoch": 3},
            {},
            "w.pth: no tensors at the root. Set surgery.sub_key to one of 'model' (2 tensors), 'ema' (1 tensors)",
        ),
        (
            tensors("module.backbone.w", "module.backbone.b", "module.head.w"),
            {"strip": ["module."], "keep": "encoder_q."},
            "w.pth: no key begins with 'encoder_q.'; keys begin with backbone. (2), head. (1)",
        ),
        (
            tensors("module.w", "w"),
            {"strip": ["module."]},
            "w.pth: keys 'module.w' and 'w' both become 'w'",
        ),
    ],
)
def test_what_cannot_be_cut_is_told(content: object, rules: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptInput) as caught:
        cut_keys(content, **rules)
    assert str(caught.value) == message


def test_a_replacement_without_its_group() -> None:
    with pytest.raises(ConfigError, match=r"surgery\.rename: '\^a' with .*: invalid group reference 1"):
        cut_keys(tensors("a"), rename=[["^a", r"\1"]])


class Net(nn.Module):
    """A network with every sort of key."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 2)


def good() -> dict[str, Tensor]:
    return {key: torch.full_like(value, 0.25) for key, value in Net().state_dict().items()}


def load(found: dict[str, Tensor], **rules: Any) -> tuple[Net, tuple[tuple[str, ...], tuple[str, ...]]]:
    net = Net()
    return net, load_strictly(net, found, Surgery(**rules), "w.pth")


def test_every_tensor_lands_under_its_key() -> None:
    found = {key: value + number for number, (key, value) in enumerate(good().items())}
    net, (missing, unexpected) = load(found)
    assert (missing, unexpected) == ((), ())
    assert all(torch.equal(value, found[key].to(value.dtype)) for key, value in net.state_dict().items())


def test_half_precision_is_converted() -> None:
    net, _ = load({key: value.half() if value.is_floating_point() else value for key, value in good().items()})
    assert net.conv.weight.dtype is torch.float32
    assert net.conv.weight.eq(0.25).all()


def test_num_batches_tracked_may_be_absent() -> None:
    _, (missing, _) = load({key: value for key, value in good().items() if "num_batches" not in key})
    assert missing == ()


def test_listed_keys_may_be_missing_or_unexpected() -> None:
    found = {key: value for key, value in good().items() if not key.startswith("fc.")} | tensors("queue", "head.w")
    _, report = load(found, missing=[r"fc\..*"], unexpected=["queue", r"head\.w"])
    assert report == (("fc.weight", "fc.bias"), ("queue", "head.w"))


@pytest.mark.parametrize(
    ("change", "rules", "message"),
    [
        (
            {"conv.weight": None, "conv.weigth": torch.zeros(4, 3, 1, 1)},
            {},
            (
                "1 missing: conv.weight. Did you mean 'conv.weigth'?; "
                "1 unexpected: conv.weigth. Did you mean 'conv.weight'?"
            ),
        ),
        ({"fc.weight": None, "fc.bias": None}, {"missing": ["fc.bias"]}, "1 missing: fc.weight."),
        ({"extra": torch.zeros(1)}, {"unexpected": ["extr"]}, "1 unexpected: extra."),
        ({"fc.weight": torch.zeros(3, 4)}, {}, "1 of another shape: fc.weight (3, 4) for (2, 4)"),
    ],
)
def test_keys_that_do_not_fit_are_told(change: dict[str, Tensor | None], rules: dict[str, Any], message: str) -> None:
    found = {key: value for key, value in (good() | change).items() if value is not None}
    with pytest.raises(CorruptInput) as caught:
        load(found, **rules)
    assert str(caught.value) == f"w.pth does not fit the network: {message}"


def test_long_lists_are_cut_short() -> None:
    with pytest.raises(CorruptInput, match=r"12 unexpected: x0, x1, x2, x3, x4, x5, x6, x7 and 4 more\."):
        load(good() | tensors(*(f"x{number}" for number in range(12))))


def test_nothing_is_loaded_when_something_does_not_fit() -> None:
    net = Net()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    with pytest.raises(CorruptInput):
        load_strictly(net, good() | {"fc.weight": torch.zeros(3, 4)}, Surgery(), "w.pth")
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_the_report_names_what_became_of_every_key(tmp_path: Path) -> None:
    content = {"model": {f"module.{key}": value for key, value in good().items()} | tensors("queue"), "epoch": 3}
    torch.save(content, tmp_path / "w.pth")
    surgery = Surgery(sub_key="model", strip=("module.",), drop=("^queue",))
    report = load_checkpoint(Net(), read_checkpoint(tmp_path / "w.pth"), surgery)
    assert (report.file, report.format, report.reader) == ("w.pth", "torch zip", "torch weights_only")
    assert (report.dropped, report.missing, report.unexpected, report.outside) == (("queue",), (), (), 0)
    assert report.loaded == len(Net().state_dict())


def test_the_summary_of_a_report_counts_all_and_names_twenty(tmp_path: Path) -> None:
    extra = tensors(*(f"head.{number}" for number in range(21)))
    torch.save({"model": {**Net().state_dict(), **extra}, "args": argparse.Namespace(lr=1)}, tmp_path / "w.pth")
    surgery = Surgery(sub_key="model", drop=("^head",), inert=("argparse.Namespace",))
    report = load_checkpoint(Net(), read_checkpoint(tmp_path / "w.pth", surgery.inert), surgery)
    nothing = {"count": 0, "first": []}
    assert report.describe() == {
        "file": "w.pth",
        "format": "torch zip",
        "reader": "inert unpickler",
        "objects_dropped": {"count": 1, "first": ["args (argparse.Namespace)"]},
        "outside": 0,
        "dropped": {"count": 21, "first": [f"head.{number}" for number in range(20)]},
        "missing": nothing,
        "unexpected": nothing,
        "loaded": len(Net().state_dict()),
    }
