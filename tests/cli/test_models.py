"""``harness validate``: what is wrong with the entries of a models file, and what is not here."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from harness.cli import main

COMMIT = "0123456789abcdef0123456789abcdef01234567"
RESNET18 = {"source": "torchvision", "name": "resnet18"}
HUB = {"repo": "owner/repo", "commit": COMMIT, "name": "net"}

FACTORIES = """
import torch
def ranks():  # as drop-path rates are often computed: needs the numbers in a tensor
    return torch.nn.Sequential(*(torch.nn.Dropout(rate.item()) for rate in torch.linspace(0, 0.5, 3)))
def broken():
    return {}["width"]
"""


def entry(
    architecture: dict[str, Any], weights: dict[str, Any] | None = None, feature: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "group": "baseline",
        "architecture": architecture,
        "weights": weights or {"source": "random", "seed": 0},
        "feature": feature or {"take": "identity", "module": "fc"},
        "training_data": "none",
        "licence": "none",
    }


@pytest.fixture
def validate(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Validate one entry called ``net``: returns the exit status and what is said about it."""
    (tmp_path / "my_factories.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path / "hub"))

    def run(*args: Any, **kwargs: Any) -> tuple[int, str]:
        models = tmp_path / "models.yaml"
        models.write_text(yaml.safe_dump({"models": {"net": entry(*args, **kwargs)}}))
        status = main(["validate", "--models", str(models), "--cache-dir", str(tmp_path)])
        (line,) = capsys.readouterr().out.splitlines()
        name, _, state = line.partition(": ")
        assert name == "net"
        return status, state

    return run


@pytest.mark.parametrize(
    ("architecture", "feature", "message"),
    [
        (
            {"source": "torchvision", "name": "resnet1888"},
            None,
            "WRONG: torchvision has no model 'resnet1888'. Did you mean 'resnet18'?",
        ),
        (
            {"source": "timm", "name": "tf_efficientnet_lite00"},
            {"take": "pre_logits"},
            "WRONG: timm has no model 'tf_efficientnet_lite00'. Did you mean 'tf_efficientnet_lite0'?",
        ),
        (
            RESNET18,
            {"take": "identity", "module": "fcc"},
            "WRONG: feature.module: ResNet has no module 'fcc'. Did you mean 'fc'?",
        ),
        ({"source": "import", "factory": "my_factories:brokn"}, None, "Did you mean 'broken'?"),
        (
            {"source": "import", "factory": "my_factories:broken"},
            None,
            "WRONG: the architecture cannot be built: KeyError: 'width'",
        ),
    ],
)
def test_a_network_that_cannot_be_is_wrong(
    validate: Any, architecture: dict[str, Any], feature: dict[str, Any] | None, message: str
) -> None:
    status, state = validate(architecture, feature=feature)
    assert status == 1
    assert message in state


@pytest.mark.parametrize(
    ("source", "message"),
    [("torch-hub", "no code of owner/repo at "), ("hugging-face", "needs transformers. Run: pip install transformers")],
)
def test_code_of_a_hub_that_is_not_here_is_not_wrong(
    validate: Any, source: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    status, state = validate({"source": source, **HUB})
    assert status == 0
    assert state.startswith("not here: ")
    assert message in state


def test_an_unknown_network_is_wrong_though_its_weights_are_not_here(validate: Any) -> None:
    absent = {"source": "file", "path": "w.pth"}
    assert validate(RESNET18, absent)[0] == 0
    status, state = validate({"source": "torchvision", "name": "resnet1888"}, absent)
    assert status == 1
    assert state.startswith("WRONG: torchvision has no model")


def test_other_weights_than_the_entry_says_are_wrong(validate: Any, tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    path.write_bytes(b"weights")
    status, state = validate(RESNET18, {"source": "file", "path": str(path), "sha256": "01234567"})
    assert status == 1
    assert state.startswith(f"WRONG: {path} has sha256 ")


def test_networks_take_no_memory(validate: Any) -> None:
    # Two terabytes, were they real.
    assert validate({**RESNET18, "kwargs": {"num_classes": 10**9}}) == (0, "ok (random weights)")


def test_a_network_that_needs_numbers_to_be_built_is_built_for_real(validate: Any) -> None:
    architecture = {"source": "import", "factory": "my_factories:ranks"}
    assert validate(architecture, feature={"take": "module", "module": "2"}) == (0, "ok (random weights)")
