"""The key of features, and what the store does with it."""

import subprocess
import sys
from typing import Any

import pytest

from harness.digest import Plain
from harness.digest import digest_of
from harness.errors import MissingInput
from harness.features import Options
from harness.features import feature_key
from harness.features import features
from harness.features import options as options_module
from harness.images import EncodedImages
from harness.store import Overwrite
from harness.store import Store

NETWORK: dict[str, Plain] = {"architecture": {"source": "torchvision", "name": "resnet50"}, "size": 224}


def test_the_key_names_everything_that_can_move_a_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(**changes: Any) -> str:
        given: dict[str, Any] = {"backbone": NETWORK, "weights": "w", "images": "i", "options": Options()}
        return digest_of(feature_key(**given | changes))

    keys = [
        key(),
        key(backbone={**NETWORK, "size": 256}),
        key(weights="v"),
        key(images="j"),
        key(options=Options(device="cuda")),
        key(options=Options(precision="bfloat16")),
        key(options=Options(threads=2)),
    ]
    monkeypatch.setattr(options_module, "COMPUTATION", 2)
    keys.append(key())
    monkeypatch.setattr(options_module, "_version", lambda name: f"{name} 0.1")
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_the_key_is_blind_to_what_cannot_move_a_feature() -> None:
    def key(**changes: Any) -> dict[str, Any]:
        return feature_key(NETWORK, "w", "i", Options(**changes))

    assert key(batch_size=3, workers=5, unreadable="drop", overwrite=Overwrite.ALWAYS) == key()
    assert key(device="cuda:1", threads=4) == key(device="cuda", threads=1)


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("torchvision", {"torchvision"}),
        ("timm", {"timm"}),
        ("hugging-face", {"transformers", "timm"}),
        ("torch-hub", {"torchvision", "timm", "transformers"}),
        ("import", {"torchvision", "timm", "transformers"}),
    ],
)
def test_the_key_names_the_libraries_that_the_network_may_be_made_of(source: str, own: set[str]) -> None:
    libraries = feature_key({"architecture": {"source": source}}, "w", "i", Options())["libraries"]
    assert isinstance(libraries, dict)
    assert set(libraries) == {"pillow", "torch"} | own


def test_libraries_that_are_absent_have_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_module, "LIBRARIES", ("torch", "no-such-library"))
    libraries = feature_key(NETWORK, "w", "i", Options())["libraries"]
    assert isinstance(libraries, dict)
    assert libraries["no-such-library"] is None
    assert libraries["torch"]


def test_the_backbone_is_loaded_only_where_features_are_missing(
    store: Store, images: EncodedImages, backbone: Any
) -> None:
    loads: list[int] = []

    def load() -> Any:
        loads.append(1)
        return backbone

    with pytest.raises(MissingInput, match="only-cache"):
        features(store, images, {}, load, Options(overwrite=Overwrite.ONLY_CACHE))
    assert loads == []
    first = features(store, images, {}, load, Options())
    second = features(store, images, {}, load, Options(overwrite=Overwrite.ONLY_CACHE))
    assert len(loads) == 1
    assert second.features.tobytes() == first.features.tobytes()
    features(store, images, {}, load, Options(overwrite=Overwrite.ALWAYS))
    assert len(loads) == 2


def test_keys_and_cached_features_need_no_torch(store: Store, images: EncodedImages, backbone: Any) -> None:
    features(store, images, {}, lambda: backbone, Options())
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from harness.features import FeatureMatrix, Options, feature_key\n"
        "from harness.store import Store\n"
        "feature_key({'architecture': {'source': 'timm'}}, 'w', 'i', Options())\n"
        "matrix = FeatureMatrix.load(Store(Path(sys.argv[1])).find('features', {}))\n"
        "sys.exit(2 * ('torch' in sys.modules) + (matrix.features.shape != (50, 12)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, store.root], check=False).returncode == 0
