"""Networks from every source, the same in every process, and global generators left alone."""

import random
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import TYPE_CHECKING
from typing import Any

import pytest
import torch
from torch import nn

from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.zoo.architectures import build_network
from harness.zoo.spec import ModelSpec

if TYPE_CHECKING:
    from tests.zoo.conftest import MakeSpec

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def build(make_spec: "MakeSpec", seed: int = 0, *, offline: bool = True, **architecture: Any) -> nn.Module:
    spec: ModelSpec = make_spec(architecture=architecture)
    return build_network(spec.architecture, seed, offline=offline)


def first_weights(network: nn.Module) -> list[float]:
    return next(network.parameters()).flatten()[:5].tolist()


def test_torchvision_and_timm(make_spec: "MakeSpec") -> None:
    torchvision = build(make_spec, source="torchvision", name="resnet18", kwargs={"num_classes": 7})
    assert torchvision.get_submodule("fc").out_features == 7
    timm = build(make_spec, source="timm", name="tf_efficientnet_lite0", kwargs={"num_classes": 7})
    assert timm.get_submodule("classifier").out_features == 7


def test_the_seed_decides_and_global_generators_are_left_alone(make_spec: "MakeSpec") -> None:
    torch.manual_seed(5)
    random.seed(5)
    expected = (torch.rand(3).tolist(), random.random())  # noqa: S311 - no secret
    torch.manual_seed(5)
    random.seed(5)
    first = build(make_spec, 1, source="torchvision", name="resnet18")
    assert (torch.rand(3).tolist(), random.random()) == expected  # noqa: S311 - no secret
    again, other = (build(make_spec, seed, source="torchvision", name="resnet18") for seed in (1, 2))
    assert first_weights(first) == first_weights(again)
    assert first_weights(first) != first_weights(other)


def test_another_process_makes_the_same_network(make_spec: "MakeSpec") -> None:
    script = """
        from harness.zoo.architectures import build_network
        from harness.zoo.sources import TorchvisionArchitecture
        network = build_network(TorchvisionArchitecture(source="torchvision", name="resnet18"), 3)
        total = sum(parameter.double().sum().item() for parameter in network.parameters())
        print(next(network.parameters()).flatten()[:5].tolist(), total)
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], cwd=ROOT, capture_output=True, text=True, check=True)
    network = build(make_spec, 3, source="torchvision", name="resnet18")
    total = sum(parameter.double().sum().item() for parameter in network.parameters())
    assert done.stdout.strip() == f"{first_weights(network)} {total}"


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (
            {"source": "torchvision", "name": "resnet5O"},
            "torchvision has no model 'resnet5O'. Did you mean 'resnet50'?",
        ),
        ({"source": "timm", "name": "resnet5O"}, "timm has no model 'resnet5O'. Did you mean 'resnet50'?"),
        (
            {"source": "torchvision", "name": "resnet18", "kwargs": {"num_clases": 7}},
            r"architecture 'resnet18' of torchvision cannot be built with these kwargs: .*num_clases",
        ),
        (
            {"source": "import", "factory": "no_such_module:net"},
            "No module named 'no_such_module'. Is its folder on PYTH",
        ),
        ({"source": "import", "factory": "torch.nn:Liner"}, "torch.nn has no function 'Liner'. Did you mean 'Linear'?"),
        (
            {"source": "import", "factory": "builtins:dict"},
            "architecture 'builtins:dict' of import gives a dict, not a torch.nn.Module",
        ),
    ],
)
def test_what_cannot_be_built_is_told(make_spec: "MakeSpec", architecture: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        build(make_spec, **architecture)


def test_a_function_of_the_users_own(make_spec: "MakeSpec") -> None:
    kwargs = {"in_features": 3, "out_features": 2}
    network = build(make_spec, source="import", factory="torch.nn:Linear", kwargs=kwargs)
    assert isinstance(network, nn.Linear)


def test_hub_code_is_taken_from_its_folder(
    make_spec: "MakeSpec", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    hub: dict[str, Any] = {"source": "torch-hub", "repo": "owner/repo", "commit": COMMIT, "name": "net"}
    folder = tmp_path / f"owner_repo_{COMMIT}"
    with pytest.raises(MissingInput, match=f"no code of owner/repo at {folder}. Unpack https://github.com/owner/repo/"):
        build(make_spec, **hub)
    folder.mkdir()
    (folder / "hubconf.py").write_text("import torch\ndef net(width):\n    return torch.nn.Linear(width, 1)\n")
    network = build(make_spec, **hub, kwargs={"width": 4})
    assert isinstance(network, nn.Linear)
    assert network.in_features == 4


def test_hugging_face_is_an_extra(make_spec: "MakeSpec", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingInput, match=r"needs transformers\. Run: pip install transformers"):
        build(make_spec, source="hugging-face", repo="owner/repo", commit=COMMIT)


def test_hugging_face_networks_are_built_from_their_configuration(
    make_spec: "MakeSpec", monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def configuration(repo: str, *, revision: str, local_files_only: bool) -> int:
        asked.append((repo, revision, local_files_only))
        if local_files_only:
            raise OSError("not cached")
        return 4

    def from_config(width: int, bias: bool) -> nn.Module:
        return nn.Linear(width, 1, bias=bias)

    stand_in = SimpleNamespace(
        AutoConfig=SimpleNamespace(from_pretrained=configuration), AutoModel=SimpleNamespace(from_config=from_config)
    )
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    hub: dict[str, Any] = {"source": "hugging-face", "repo": "owner/repo", "commit": COMMIT, "kwargs": {"bias": False}}
    network = build(make_spec, offline=False, **hub)
    assert isinstance(network, nn.Linear)
    assert network.in_features == 4
    assert "bias" not in network.state_dict()
    with pytest.raises(MissingInput, match=rf"no configuration of owner/repo at {COMMIT}: not cached"):
        build(make_spec, **hub)
    assert asked == [("owner/repo", COMMIT, False), ("owner/repo", COMMIT, True)]
    with pytest.raises(ConfigError, match=r"transformers has no class 'AutoModle'\. Did you mean 'AutoModel'\?"):
        build(make_spec, offline=False, **hub, name="AutoModle")
