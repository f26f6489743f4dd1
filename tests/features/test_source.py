"""Features of the models file's own backbones."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from harness import data
from harness.errors import ConfigError
from harness.features import Options
from harness.features.options import Precision
from harness.features.source import FeatureSource
from harness.features.source import require_device
from harness.features.source import torch_device
from harness.images import EncodedImages
from harness.store import Store
from harness.zoo.backbone import load_backbone
from harness.zoo.models import load_models

MODELS = load_models(Path(__file__).parents[2] / "models.yaml")


@pytest.fixture
def source(store: Store, tmp_path: Path) -> FeatureSource:
    return FeatureSource(MODELS, store, tmp_path, Options(batch_size=4))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equals_the_backbone_called_by_hand(
    source: FeatureSource, images: EncodedImages, tmp_path: Path, precision: Precision
) -> None:
    some = images.subset(range(6))
    found = source("Random-ResNet18", some, precision=precision)
    key = source.key("random-resnet18", some, precision=precision)
    assert source.store.find("features", key) == found.folder
    backbone = load_backbone(MODELS["random-resnet18"], tmp_path)
    inputs = [backbone.preprocess(image) for image in some.decode(range(6)) if isinstance(image, Image.Image)]
    expected = torch.cat([backbone(image[None]) for image in inputs]).numpy()
    distance = np.linalg.norm(found.features - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert found.about["precision"] == precision
    assert distance.max() < (1e-4 if precision == "float32" else 1e-2)


def test_the_key_tells_models_sizes_and_images_apart(source: FeatureSource, images: EncodedImages) -> None:
    keys = [
        source.key("random-resnet18", images),
        source.key("random-resnet18", images, resize=256),
        source.key("random-resnet18", images, precision="bfloat16"),
        source.key("random-resnet18", images.subset([1, 0])),
        source.key("efficientnet-lite0", images),
    ]
    assert all(keys.count(key) == 1 for key in keys)


def test_what_became_of_the_checkpoint_is_told(source: FeatureSource, images: EncodedImages) -> None:
    some = images.subset(range(2))
    assert source("random-resnet18", some).about["checkpoint"] == {}
    nothing = {"count": 0, "first": []}
    assert source("efficientnet-lite0", some).about["checkpoint"] == {
        "file": "efficientnet-lite0-57934424.pth",
        "format": "torch legacy stream",
        "reader": "torch weights_only",
        "objects_dropped": nothing,
        "outside": 0,
        "dropped": nothing,
        "missing": nothing,
        "unexpected": nothing,
        "loaded": 296,
    }


def test_a_wrong_length_is_refused_where_features_come_from_the_store_too(
    source: FeatureSource, images: EncodedImages, tmp_path: Path
) -> None:
    some = images.subset(range(3))
    source("random-resnet18", some)
    path = tmp_path / "models.yaml"
    path.write_text(data.path("init/models.yaml.template").read_text().replace("dim: 512", "dim: 2048"))
    wrong = FeatureSource(load_models(path), source.store, tmp_path, Options(batch_size=4))
    with pytest.raises(ConfigError, match=r"random-resnet18: features have 512 dimensions, but feature\.dim is 2048"):
        wrong("random-resnet18", some)


def test_a_gpu_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.features.source.sys.platform", "linux")
    monkeypatch.setattr("harness.features.source._GPU_FILES", ())
    with pytest.raises(ConfigError, match="--device cuda:1: this machine has no GPU, expected auto or cpu"):
        require_device("cuda:1")
    assert torch_device("auto") == torch_device("cpu") == "cpu"


def test_an_unknown_model_is_refused(source: FeatureSource, images: EncodedImages) -> None:
    with pytest.raises(ConfigError, match="random-resnet18"):
        source("random-resnet81", images)
