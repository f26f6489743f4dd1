"""Checkpoints made from the published lists of keys and shapes, not from our own networks."""

import argparse
import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import pytest
import torch
from torch import Tensor
from torch import nn
from torchvision.models import resnet50

from harness import data
from harness.errors import CorruptInput
from harness.zoo.backbone import load_backbone
from harness.zoo.checkpoint import read_checkpoint
from harness.zoo.models import load_models
from harness.zoo.spec import ModelSpec
from harness.zoo.spec import Surgery
from harness.zoo.surgery import CheckpointReport
from harness.zoo.surgery import cut
from harness.zoo.surgery import load_checkpoint

if TYPE_CHECKING:
    from tests.zoo.conftest import Published
    from tests.zoo.conftest import WriteTar

MODELS = load_models(Path(__file__).parents[2] / "models.yaml")
RULES = json.loads(data.path("models/rename_rules.json").read_text())["maps"]
OLD_TARS = {"ResNet50", "a-ResNet152"}
SHIPPED = ["ResNet50", "s-MoCo-v2", "s-SwAV", "s-DINO", "s-BarlowTwins"]

# How each of the 31 published files is cut; what their networks are is for the entries to say.
MOCO: dict[str, Any] = {"sub_key": "state_dict", "strip": ["module."], "keep": "encoder_q.", "drop": [r"^fc\."]}
MIXED: dict[str, Any] = {"sub_key": "state_dict", "strip": ["module."]}
CUTS: dict[str, dict[str, Any]] = {
    "ResNet50": {},
    "a-T2T-ViT-t-14": {"sub_key": "state_dict_ema"},
    "a-DeiT-S": {"sub_key": "model"},
    "a-DeiT-S-distilled": {"sub_key": "model"},
    "a-DeiT-B-distilled": {"sub_key": "model"},
    "a-Inception-v3": {},
    "a-NAT-M4": {},
    "a-EfficientNet-B1": {"sub_key": "model_state"},
    "a-EfficientNet-B4": {"sub_key": "model_state"},
    "a-VGG19": {},
    "a-ResNet152": {},
    "s-SimCLR-v2": {"sub_key": "resnet", "rename": RULES["s-SimCLR-v2"][0]["rules"]},
    "s-MoCo-v2": MOCO,
    "s-MoCHi": MOCO,
    "s-InfoMin": {"sub_key": "model", "strip": ["module."], "keep": "encoder."},
    "s-BYOL": {},
    "s-SwAV": {"strip": ["module."], "drop": [r"^projection_head\.", r"^prototypes\."]},
    "s-DINO": {},
    "s-OBoW": {"sub_key": "network", "drop": [r"^fc\."]},
    "s-BarlowTwins": {},
    "s-CompReSS": {"sub_key": "model", "strip": ["module."], "drop": [r"^fc\."], "inert": ["argparse.Namespace"]},
    "r-MixUp": MIXED,
    "r-Manifold-MixUp": MIXED,
    "r-CutMix": MIXED,
    "r-ReLabel": {**MIXED, "sub_key_optional": True},
    "r-Adv-Robust": {"sub_key": "model", "strip": ["module."], "keep": "model."},
    "r-MEAL-v2": {"strip": ["module."]},
    "d-MoPro": {**MOCO, "drop": [r"^fc[12]\."], "rename": [[r"^classifier\.", "fc."]]},
    "d-Semi-Sup": {},
    "d-Semi-Weakly-Sup": {},
    "d-CLIP": {"keep": "visual."},
}


def write(path: Path, content: object, *, zipped: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


def wrapped(tensors: "OrderedDict[str, Tensor]", sub_key: str) -> object:
    """Put the model part where the published file has it, with what trainers leave beside it."""
    if not sub_key:
        return tensors
    momentum = {0: {"momentum_buffer": torch.full((), 0.5).expand(3, 2)}}
    optimizer = {"state": momentum, "param_groups": [{"lr": 0.1, "nesterov": False, "params": [0]}]}
    return {"epoch": 90, "arch": "resnet50", "best_err1": 21.4, sub_key: tensors, "optimizer": optimizer, "amp": None}


def script_of(tensors: "OrderedDict[str, Tensor]") -> torch.jit.ScriptModule:
    """Return a TorchScript module whose state dict is ``tensors``."""
    root = nn.Module()
    for key, tensor in tensors.items():
        *parents, name = key.split(".")
        module = root
        for parent in parents:
            if parent not in dict(module.named_children()):
                module.add_module(parent, nn.Module())
            module = module.get_submodule(parent)
        module.register_buffer(name, tensor)
    script: torch.jit.ScriptModule = torch.jit.script(root)
    return script


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
@pytest.mark.parametrize("model", CUTS)
def test_every_published_layout_is_read_and_cut(
    model: str, published: "Published", write_tar: "WriteTar", tmp_path: Path
) -> None:
    tensors, rules = published(model), CUTS[model]
    path = tmp_path / "w.pth"
    if model in OLD_TARS:
        write_tar(path, tensors)
    elif model == "d-CLIP":
        torch.jit.save(script_of(tensors), path)
    else:
        write(path, wrapped(tensors, rules.get("sub_key", "")))
    surgery = Surgery(**rules)
    found = cut(read_checkpoint(path, surgery.inert).content, surgery, "w.pth")
    prefix = {"d-MoPro": "module.encoder_q.", "d-CLIP": "visual."}.get(model) or "".join(
        [*(rules.get("strip", []) if next(iter(tensors)).startswith("module.") else []), rules.get("keep", "")]
    )
    wanted = [key for key in tensors if key.startswith(prefix)]
    assert len(found.tensors) + len(found.dropped) == len(wanted)
    assert found.outside == len(tensors) - len(wanted)
    rule = RULES[model][0]
    if rule["target"] == "torchvision.models.resnet50":
        keys = {key for key in RESNET50 if not key.endswith("num_batches_tracked")}
        assert {key for key in found.tensors if not key.endswith("num_batches_tracked")} == keys - set(
            rule["absent_in_file"]
        )
        assert all(found.tensors[key].shape == RESNET50[key] for key in found.tensors)


with torch.device("meta"):
    RESNET50 = {key: value.shape for key, value in resnet50().state_dict().items()}


def test_the_list_of_published_models_is_whole() -> None:
    names = {path.stem for path in data.path("models").glob("*.json")} - {
        "rename_rules",
        "nat-m4-config",
        "extra-efficientnet-lite0",
    }
    assert set(CUTS) == names
    assert len(names) == 31


def unpinned(spec: ModelSpec) -> ModelSpec:
    """Return an entry that admits a file with other numbers in it."""
    return spec.model_copy(update={"weights": spec.weights.model_copy(update={"sha256": None})})


@pytest.mark.parametrize("model", SHIPPED)
def test_shipped_entries_load_their_published_layout(
    model: str, published: "Published", write_tar: "WriteTar", tmp_path: Path
) -> None:
    spec, tensors = unpinned(MODELS[model]), published(model)
    path = tmp_path / getattr(spec.weights, "target", "")
    if model in OLD_TARS:
        write_tar(path, tensors)
    else:
        write(path, wrapped(tensors, spec.surgery.sub_key))
    backbone = load_backbone(spec, tmp_path)
    assert backbone.dim == 2048
    assert backbone.report is not None
    assert set(backbone.report.missing) == ({"fc.weight", "fc.bias"} if model != "ResNet50" else set())
    assert backbone.report.unexpected == ()


@pytest.fixture(scope="module")
def network() -> nn.Module:
    """One ResNet-50 to load into again and again."""
    network: nn.Module = resnet50()
    return network


def load(network: nn.Module, path: Path, model: str) -> CheckpointReport:
    surgery = MODELS[model].surgery
    return load_checkpoint(network, read_checkpoint(path, surgery.inert), surgery)


@pytest.mark.parametrize("model", SHIPPED)
def test_every_tensor_lands_where_it_should(
    model: str, published: "Published", network: nn.Module, tmp_path: Path
) -> None:
    tensors = published(model)
    load(network, write(tmp_path / "w.pth", wrapped(tensors, MODELS[model].surgery.sub_key)), model)
    loaded = network.state_dict()
    prefix = {"s-MoCo-v2": "module.encoder_q.", "s-SwAV": "module."}.get(model, "")
    keys = {key for key in loaded if f"{prefix}{key}" in tensors and not key.startswith("fc.")}
    assert len(keys) >= 265
    assert all(torch.equal(loaded[key], tensors[f"{prefix}{key}"]) for key in keys)
    values = {loaded[key].flatten()[0].item() for key in keys if not key.endswith("num_batches_tracked")}
    assert len(values) == len([key for key in keys if not key.endswith("num_batches_tracked")])


Tensors = OrderedDict[str, Tensor]


def doubled(tensors: Tensors) -> Tensors:
    return OrderedDict((f"module.{key}", value) for key, value in tensors.items())


def bare(tensors: Tensors) -> Tensors:
    return OrderedDict((key.removeprefix("module."), value) for key, value in tensors.items())


def without_counters(tensors: Tensors) -> Tensors:
    return OrderedDict((key, value) for key, value in tensors.items() if not key.endswith("num_batches_tracked"))


@pytest.mark.parametrize("model", ["s-MoCo-v2", "s-SwAV"])
@pytest.mark.parametrize("variant", [doubled, bare, without_counters])
@pytest.mark.parametrize("zipped", [True, False])
def test_harmless_variants_load(
    model: str,
    variant: Callable[[Tensors], Tensors],
    zipped: bool,
    published: "Published",
    network: nn.Module,
    tmp_path: Path,
) -> None:
    content = wrapped(variant(published(model)), MODELS[model].surgery.sub_key)
    report = load(network, write(tmp_path / "w.pth", content, zipped=zipped), model)
    assert report.missing == ("fc.weight", "fc.bias")


def test_the_training_state_of_moco_loads_the_query_encoder(
    published: "Published", network: nn.Module, tmp_path: Path
) -> None:
    tensors = published("s-MoCo-v2")
    keys = {key.replace("encoder_q", "encoder_k"): value for key, value in tensors.items()}
    queue = {"module.queue": torch.full((), 0.5).expand(128, 65536), "module.queue_ptr": torch.tensor([0])}
    content = wrapped(OrderedDict(queue | keys | tensors), "state_dict")
    report = load(network, write(tmp_path / "w.pth", content), "s-MoCo-v2")
    assert report.outside == len(queue) + len(keys)


def test_classes_that_no_entry_lists_are_refused(published: "Published", network: nn.Module, tmp_path: Path) -> None:
    content = {"state_dict": published("s-MoCo-v2"), "args": argparse.Namespace(lr=0.03)}
    path = write(tmp_path / "w.pth", content)
    with pytest.raises(
        CorruptInput, match=r"holds more than tensors: argparse\.Namespace at args \(argparse\.Namespace"
    ):
        load(network, path, "s-MoCo-v2")
    surgery = MODELS["s-MoCo-v2"].surgery.model_copy(update={"inert": ("argparse.Namespace",)})
    report = load_checkpoint(network, read_checkpoint(path, surgery.inert), surgery)
    assert report.objects_dropped == ("args (argparse.Namespace)",)


def test_one_key_missing_and_one_shape_wrong(published: "Published", network: nn.Module, tmp_path: Path) -> None:
    tensors = published("s-DINO")
    del tensors["layer4.2.conv3.weight"]
    with pytest.raises(CorruptInput, match=r"w\.pth does not fit the network: 1 missing: layer4\.2\.conv3\.weight"):
        load(network, write(tmp_path / "w.pth", tensors), "s-DINO")
    tensors = published("s-DINO")
    tensors["conv1.weight"] = torch.zeros(64, 3, 3, 3)
    with pytest.raises(CorruptInput, match=r"1 of another shape: conv1\.weight \(64, 3, 3, 3\) for \(64, 3, 7, 7\)"):
        load(network, write(tmp_path / "w.pth", tensors), "s-DINO")


def test_a_missing_prefix_is_told(published: "Published", network: nn.Module, tmp_path: Path) -> None:
    content = {"state_dict": published("s-DINO")}
    with pytest.raises(CorruptInput) as caught:
        load(network, write(tmp_path / "w.pth", content), "s-MoCo-v2")
    assert str(caught.value) == (
        f"{tmp_path}/w.pth: no key begins with 'encoder_q.'; keys begin with layer3. (114), layer2. (78), "
        "layer1. (60), layer4. (60), bn1. (5), conv1. (1)"
    )
