"""Backbones: real weights against the package they were made for, batches of any size, nothing trainable."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from torch import Tensor
from torch import nn
from torchvision import transforms

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.zoo.backbone import Backbone
from harness.zoo.backbone import load_backbone
from harness.zoo.models import load_models
from harness.zoo.spec import Input
from harness.zoo.weights import locate

if TYPE_CHECKING:
    from tests.zoo.conftest import MakeSpec

MODELS = load_models(Path(__file__).parents[2] / "models.yaml")
NOWHERE = Path("no-such-folder")


def pixels(count: int, size: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    coarse = torch.randint(0, 256, (count, 3, 8, 8), dtype=torch.uint8, generator=generator).float()
    return nn.functional.interpolate(coarse, size=(size, size), mode="bicubic").clamp(0, 255).to(torch.uint8)


@pytest.fixture(scope="module")
def lite0() -> Backbone:
    return load_backbone(MODELS["efficientnet-lite0"], NOWHERE)


@pytest.fixture(scope="module")
def random_resnet18() -> Backbone:
    return load_backbone(MODELS["random-resnet18"], NOWHERE)


@pytest.mark.parametrize("model", ["lite0", "random_resnet18"])
def test_features_do_not_depend_on_the_batch_size(model: str, request: pytest.FixtureRequest) -> None:
    backbone: Backbone = request.getfixturevalue(model)
    batch = pixels(64, backbone.spec.input.size)
    together = backbone(batch)
    assert together.shape == (64, backbone.dim)
    assert together.dtype is torch.float32
    for size in (1, 7):
        apart = torch.cat([backbone(batch[start : start + size]) for start in range(0, 14, size)])
        assert (apart - together[:14]).abs().max() <= 1e-5 * together.abs().max()
    assert together.std(0).max() > 1e-3


def test_real_weights_equal_the_package_they_were_made_for() -> None:
    spec = MODELS["efficientnet-lite0"]
    spec = spec.model_copy(update={"input": Input(**{**dict(spec.input), "size": 224})})
    backbone = load_backbone(spec, NOWHERE)
    weights = locate(spec, NOWHERE)
    assert weights is not None
    original = EfficientNet.from_name("efficientnet-lite0")
    original.load_state_dict(torch.load(weights, weights_only=True))
    batch = pixels(4, 224)
    normalized = (batch.float() - 127) / 128
    with torch.inference_mode():
        expected = original.eval().extract_features(normalized).mean((2, 3))
        network = backbone._readout(normalized)
    assert expected.abs().max() > 1
    assert (network - expected).abs().max() <= 1e-5
    assert (backbone(batch) - expected).abs().max() <= 1e-5 * expected.abs().max()
    assert backbone.report is not None
    assert (backbone.report.loaded, backbone.report.missing, backbone.report.unexpected) == (296, (), ())


def test_normalisation_is_that_of_the_reference(lite0: Backbone, random_resnet18: Backbone) -> None:
    batch = pixels(2, 64)
    assert torch.allclose(lite0.normalize(batch), (batch.float() - 127) / 128, atol=1e-6)
    reference = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    found = random_resnet18.normalize(batch)
    assert torch.equal(found, reference(batch / 255))
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_bgr_reverses_the_normalised_channels(make_spec: "MakeSpec") -> None:
    rgb = load_backbone(make_spec(input={"size": 32}), NOWHERE)
    bgr = load_backbone(make_spec(input={"size": 32, "channels": "BGR"}), NOWHERE)
    batch = pixels(2, 32)
    assert torch.equal(bgr.normalize(batch), rgb.normalize(batch)[:, [2, 1, 0]])


def test_images_go_through_the_entrys_preprocessing(random_resnet18: Backbone) -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))
    reference = transforms.Compose(
        [
            transforms.Resize(64, transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(64),
            transforms.PILToTensor(),
        ]
    )
    assert torch.equal(random_resnet18.preprocess(image), reference(image))


def test_another_resize(make_spec: "MakeSpec") -> None:
    backbone = load_backbone(make_spec(), NOWHERE, resize=40)
    assert backbone.spec.input.resize == 40
    assert backbone.preprocess(Image.new("RGB", (80, 50))).shape == (3, 32, 32)


def test_nothing_is_trainable_and_training_mode_is_refused(make_spec: "MakeSpec") -> None:
    backbone = load_backbone(make_spec(), NOWHERE)
    network = backbone._network
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert not backbone(pixels(1, 32)).requires_grad
    network.get_submodule("bn1").train()
    with pytest.raises(RuntimeError, match="tiny was put into training mode: a backbone is frozen"):
        backbone(pixels(1, 32))


def test_calls_leave_the_network_as_it_was(random_resnet18: Backbone) -> None:
    before = {key: value.clone() for key, value in random_resnet18._network.state_dict().items()}
    first = random_resnet18(pixels(3, 64))
    assert torch.equal(random_resnet18(pixels(3, 64)), first)
    assert all(torch.equal(value, before[key]) for key, value in random_resnet18._network.state_dict().items())


def test_autocast_gives_float32_near_the_full_result(lite0: Backbone) -> None:
    batch = pixels(4, 128)
    full, reduced = lite0(batch), lite0(batch, autocast=torch.bfloat16)
    assert reduced.dtype is torch.float32
    difference = (full - reduced).norm() / full.norm()
    assert 0 < difference < 0.1


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"feature": {"take": "identity", "module": "fc", "dim": 2048}},
            ConfigError,
            "features have 512 dimensions, but",
        ),
        ({"feature": {"take": "identity", "module": "cf"}}, ConfigError, "feature.module: ResNet has no module 'cf'"),
        ({"architecture": {"source": "timm", "name": "resnet1O"}}, ConfigError, "timm has no model 'resnet1O'"),
        ({"weights": {"source": "file", "path": "gone.pth"}}, MissingInput, "no weights at no-such-folder/gone.pth"),
    ],
)
def test_faults_name_the_model(
    make_spec: "MakeSpec", fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match="^" + re.escape(f"tiny: {message}")):
        load_backbone(make_spec(**fields), NOWHERE)


def save_resnet18(path: Path, **changes: Tensor) -> Path:
    state = load_backbone_state() | {key.replace("__", "."): value for key, value in changes.items()}
    torch.save(state, path)
    return path


def load_backbone_state() -> dict[str, Tensor]:
    from torchvision.models import resnet18

    state: dict[str, Tensor] = resnet18().state_dict()
    return state


def test_weights_that_give_no_numbers_are_refused(make_spec: "MakeSpec", tmp_path: Path) -> None:
    save_resnet18(tmp_path / "w.pth", bn1__running_mean=torch.full((64,), float("nan")))
    with pytest.raises(CorruptInput, match="tiny: the features of a black image are not finite"):
        load_backbone(make_spec(weights={"source": "file", "path": "w.pth"}), tmp_path)


def test_a_checkpoint_that_does_not_fit_names_model_file_and_key(make_spec: "MakeSpec", tmp_path: Path) -> None:
    path = save_resnet18(tmp_path / "w.pth", fc__wieght=torch.zeros(1))
    with pytest.raises(CorruptInput) as caught:
        load_backbone(make_spec(weights={"source": "file", "path": "w.pth"}), tmp_path)
    assert str(caught.value) == f"tiny: {path} does not fit the network: 1 unexpected: fc.wieght."


def test_a_changed_file_is_refused_before_it_is_read(make_spec: "MakeSpec", tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(b"anything")
    spec = make_spec(weights={"source": "file", "path": "w.pth", "sha256": "0" * 64})
    with pytest.raises(CorruptInput, match=f"tiny: .*w.pth has sha256 [0-9a-f]{{64}}, but the entry says {'0' * 64}"):
        load_backbone(spec, tmp_path)
