"""Features to and from files of other programs."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features import FeatureMatrix
from harness.features import Options
from harness.features import export
from harness.features import features
from harness.features import import_
from harness.images import EncodedImages
from harness.store import Store

LABELS = np.arange(50) % 7


@pytest.fixture
def matrix(store: Store, images: EncodedImages, backbone: Any) -> FeatureMatrix:
    return features(store, images, {}, lambda: backbone, Options())


@pytest.mark.parametrize("labels", [None, LABELS])
def test_a_folder_comes_back_as_it_went(store: Store, matrix: FeatureMatrix, tmp_path: Path, labels: Any) -> None:
    export(matrix, tmp_path / "out", labels)
    assert np.array_equal(np.load(tmp_path / "out" / "features.npy"), matrix.features)
    assert (tmp_path / "out" / "ids.txt").read_text().splitlines() == list(matrix.ids)
    found = import_(store, tmp_path / "out")
    assert np.array_equal(found.features, matrix.features)
    assert found.ids == matrix.ids
    assert (found.labels is None) == (labels is None)
    assert found.labels is None or found.labels.tolist() == LABELS.tolist()


def test_xy_has_the_form_of_the_reference_and_comes_back(store: Store, matrix: FeatureMatrix, tmp_path: Path) -> None:
    export(matrix, tmp_path / "features_train" / "X_Y.pth", LABELS.tolist())
    content = torch.load(tmp_path / "features_train" / "X_Y.pth", weights_only=True)
    assert sorted(content) == ["X", "Y", "name"]
    assert (content["X"].dtype, content["X"].shape) == (torch.float32, (50, 12))
    assert (content["Y"].dtype, content["Y"].tolist()) == (torch.int64, LABELS.tolist())
    assert content["name"] == "fake"
    found = import_(store, tmp_path / "features_train" / "X_Y.pth")
    assert np.array_equal(found.features, matrix.features)
    assert found.labels is not None
    assert found.labels.tolist() == LABELS.tolist()
    assert found.ids[:2] == ("00000000", "00000001")
    export(found, tmp_path / "again.pth")
    assert torch.load(tmp_path / "again.pth", weights_only=True)["Y"].tolist() == LABELS.tolist()


def test_the_old_format_of_torch_save_is_read(store: Store, tmp_path: Path) -> None:
    content = {"X": torch.ones(2, 3, dtype=torch.float64), "Y": torch.tensor([1, 0], dtype=torch.int32), "name": "old"}
    torch.save(content, tmp_path / "X_Y.pth", _use_new_zipfile_serialization=False)
    found = import_(store, tmp_path / "X_Y.pth")
    assert found.features.dtype == np.float32
    assert found.labels is not None
    assert found.features.tolist() == [[1, 1, 1]] * 2
    assert found.labels.dtype == np.int64


def test_an_import_is_kept_under_a_key_of_its_own(store: Store, tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        torch.save({"X": torch.full((2, 3), value), "Y": torch.tensor([0, 1]), "name": ""}, tmp_path / "X_Y.pth")
        assert import_(store, tmp_path / "X_Y.pth").features[0, 0] == value
    keys = [key for _, key in store.keys("features")]
    assert all(list(key) == ["imported"] for key in keys)
    assert len(keys) == 2


class Malicious:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("plain_pickle", [True, False])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_code_in_a_file_is_refused_and_never_run(
    store: Store, tmp_path: Path, plain_pickle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = {"X": torch.ones(2, 3), "Y": torch.tensor([0, 1]), "name": Malicious()}
    if plain_pickle:
        Path("X_Y.pth").write_bytes(pickle.dumps({"name": Malicious()}))
    else:
        torch.save(content, "X_Y.pth")
    with pytest.raises(CorruptInput, match=r"X_Y\.pth: holds more than tensors"):
        import_(store, Path("X_Y.pth"))
    assert not Path("owned").exists()
    assert list(store.keys("features")) == []


@pytest.mark.parametrize("content", [b"", b"<html>no such file</html>", b"PK\x03\x04 a broken archive"])
def test_no_file_of_torch_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "X_Y.pth").write_bytes(content)
    with pytest.raises(CorruptInput, match=r"X_Y\.pth"):
        import_(store, tmp_path / "X_Y.pth")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "expected a dictionary of tensors X"),
        ({"X": torch.ones(2, 3)}, "expected a dictionary of tensors X"),
        ({"X": torch.ones(2, 3), "Y": torch.tensor([0])}, r"labels are int64 \[1\], expected integers \[2\]"),
        ({"X": torch.ones(2, 3), "Y": torch.ones(2)}, r"labels are float32 \[2\], expected integers \[2\]"),
        ({"X": torch.ones(2), "Y": torch.tensor([0, 1])}, r"features are float32 \[2\], expected floats \[n, d\]"),
        ({"X": torch.ones(1, 2).int(), "Y": torch.tensor([0])}, r"features are int32 \[1, 2\]"),
        ({"X": torch.tensor([[torch.inf]]), "Y": torch.tensor([0])}, "infinite"),
    ],
)
def test_parts_that_do_not_fit_are_refused(store: Store, tmp_path: Path, content: object, message: str) -> None:
    torch.save(content, tmp_path / "X_Y.pth")
    with pytest.raises(CorruptInput, match=message):
        import_(store, tmp_path / "X_Y.pth")


def test_ids_that_do_not_fit_are_refused(store: Store, matrix: FeatureMatrix, tmp_path: Path) -> None:
    export(matrix, tmp_path)
    (tmp_path / "ids.txt").write_text("one\n" * 50)
    with pytest.raises(CorruptInput, match="50 rows of features and 1 different ids"):
        import_(store, tmp_path)
    (tmp_path / "features.npy").write_bytes(b"no array")
    with pytest.raises(CorruptInput):
        import_(store, tmp_path)


def test_a_missing_source_is_named(store: Store, tmp_path: Path) -> None:
    for name in ("X_Y.pth", "folder"):
        with pytest.raises(MissingInput, match=name):
            import_(store, tmp_path / name)


def test_labels_must_fit_the_rows(matrix: FeatureMatrix, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"50 rows of features, but labels of shape \[2\]"):
        export(matrix, tmp_path, [0, 1])
    with pytest.raises(ConfigError, match="label for each row"):
        export(matrix, tmp_path / "X_Y.pth")
