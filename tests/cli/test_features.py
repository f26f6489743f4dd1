"""``harness features``: exports that fit their labels, imports that can be mapped."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from harness import data
from harness.cli import main
from harness.images import list_images
from harness.images import open_images
from harness.store import Store

Run = Callable[..., int]


@pytest.fixture
def universe(tmp_path: Path) -> Path:
    """Write a universe like the mini one, of which one test image of level 1 is damaged."""
    archive = data.path("mini/minicog.zip")
    rows = (line.split(",") for line in data.path("universes/mini_levels.csv").read_text().splitlines()[1:])
    ids = list_images(archive, [row[1] for row in rows if row[0] == "1"])
    read = open_images(archive, ids).read
    for identity in ids:
        path = tmp_path / "drawings" / identity
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no image" if identity == "n01579028/openmoji.webp" else read(identity))
    text = data.path("universes/mini.yaml").read_text()
    text = text.replace("name: mini\n", "name: damaged\n").replace("embedded:mini/minicog.zip", f"{tmp_path}/drawings")
    (tmp_path / "damaged.yaml").write_text(text)
    return tmp_path / "damaged.yaml"


@pytest.fixture
def export(universe: Path, tmp_path: Path) -> Run:
    def run(*options: str) -> int:
        common = ["--universe", str(universe), "--cache-dir", str(tmp_path / "cache"), "--device", "cpu"]
        return main(["features", "export", "random-resnet18", "L1", "test", str(tmp_path / "out"), *common, *options])

    return run


def test_unreadable_images_are_left_out_of_rows_and_labels_alike(
    export: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export() == 1
    assert "leave them out with unreadable=drop" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert export("--protocol", "unreadable=drop") == 0
    said = f"180 x 512 features written to {tmp_path / 'out'}; 1 of 181 images cannot be read\n"
    assert capsys.readouterr().out == said
    ids = (tmp_path / "out" / "ids.txt").read_text().splitlines()
    concepts = sorted(path.name for path in (tmp_path / "drawings").iterdir())
    assert "n01579028/openmoji.webp" not in ids
    assert np.load(tmp_path / "out" / "features.npy").shape == (180, 512)
    assert np.load(tmp_path / "out" / "labels.npy").tolist() == [
        concepts.index(identity.partition("/")[0]) for identity in ids
    ]


def test_the_precision_of_features_is_that_of_the_protocol(export: Run, tmp_path: Path) -> None:
    assert export("--protocol", "unreadable=drop", "--protocol", "feature_precision=bfloat16") == 0
    ((_, key),) = Store(tmp_path / "cache" / "store").keys("features")
    assert key["precision"] == "bfloat16"


@pytest.mark.parametrize("form", ["folder", "X_Y.pth"])
def test_imported_features_can_be_mapped_from_where_it_says(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, features = tmp_path / form, np.arange(6, dtype=np.float64).reshape(3, 2)
    if form == "folder":
        source.mkdir()
        np.save(source / "features.npy", features)
        (source / "ids.txt").write_text("a\nb\nc\n")
    else:
        torch.save({"X": torch.from_numpy(features), "Y": torch.tensor([0, 1, 1])}, source)
    assert main(["features", "import", str(source), "--cache-dir", str(tmp_path / "cache")]) == 0
    said, path = capsys.readouterr().out.rstrip("\n").split(" as ")
    assert said == "3 x 2 features stored"
    mapped = np.load(path, mmap_mode="r")
    assert mapped.dtype == np.float32
    assert mapped.tolist() == features.tolist()
