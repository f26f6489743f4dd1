"""A data set of the user's own as plain files."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.zsl.dataset import Dataset
from harness.zsl.rows import FeatureRows
from harness.zsl.sources import open_source
from harness.zsl.tables import load_tables
from harness.zsl.tables import table_images

SPLITS = "class,part,cv1,cv2\nox,seen,train,val\nfox,unseen,,\nape,seen,val,train\nemu,seen,train,train\n"
IMAGES = "image,class,part\n" + "".join(
    f"img/{name}{number}.png,{name},{part}\n"
    for name in ("emu", "fox", "ox", "ape")
    for number, part in enumerate(["", "", ""] if name == "fox" else ["train", "test", "train"])
)
EMBEDDINGS = "class,legs,wool\nemu,2,1\nfox,4,3\nox,4,1\nape,2,3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "zoo"
    root.mkdir()
    for name, text in (("splits", SPLITS), ("images", IMAGES), ("embeddings", EMBEDDINGS)):
        (root / f"{name}.csv").write_text(text)
    return root


def test_files_become_a_task(folder: Path) -> None:
    tables = load_tables(folder, "zoo")
    task = tables.task
    assert task.names == ("ox", "fox", "ape", "emu")
    assert tables.images[:4] == ("img/emu0.png", "img/emu1.png", "img/emu2.png", "img/fox0.png")
    assert task.labels.tolist() == [3, 3, 3, 1, 1, 1, 0, 0, 0, 2, 2, 2]
    assert task.trainval.tolist() == [0, 2, 6, 8, 9, 11]
    assert task.test_seen.tolist() == [1, 7, 10]
    assert task.test_unseen.tolist() == [3, 4, 5]
    assert [(split.train.tolist(), split.val.tolist()) for split in task.class_splits] == [([0, 3], [2]), ([2, 3], [0])]
    np.testing.assert_allclose(task.embeddings.values[3], np.array([2, 1]) / np.sqrt(5))
    dataset = Dataset(task, FeatureRows(np.arange(12.0)[:, None], "own", "own", "0"))
    assert dataset.validation(1).features.ravel().tolist() == [9, 11]
    about = dataset.describe()
    assert about["held_out"] == "listed in images.csv"
    assert about["class_splits"][1]["origin"] == "cv2 of splits.csv"  # type: ignore[index, call-overload]


def test_what_is_left_open_is_drawn_and_said(folder: Path) -> None:
    classes = [f"c{number}" for number in range(12)]
    (folder / "splits.csv").write_text(
        "class,part\n" + "".join(f"{name},{'unseen' if name == 'c3' else 'seen'}\n" for name in classes)
    )
    (folder / "images.csv").write_text(
        "image,class\n" + "".join(f"{name}/{number}.png,{name}\n" for name in classes for number in range(10))
    )
    (folder / "embeddings.csv").unlink()
    np.save(folder / "embeddings.npy", np.eye(12))
    first, second = (load_tables(folder, "zoo").task for _ in range(2))
    assert first.test_seen.size == 22
    assert first.test_seen.tolist() == second.test_seen.tolist()
    assert [split.val.size for split in first.class_splits] == [3, 3, 3]
    assert first.about["held_out"] == "20% of the images of seen classes, drawn with seed 2017"
    assert first.class_splits[0].origin == "class split 1 drawn with seed 2017"
    assert load_tables(folder, "zoo", seed=1).task.test_seen.tolist() != first.test_seen.tolist()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("splits", "part,cv1", "role,cv1", r"splits\.csv: column 'part' is missing\."),
        (
            "splits",
            "ox,seen",
            "ox,sen",
            r"splits\.csv:2: part is 'sen', expected one of 'seen', 'unseen'\. Did you mean 'seen'",
        ),
        ("splits", "val,train", "valid,train", r"splits\.csv:4: cv1 is 'valid', expected one of 'train', 'val'"),
        ("splits", "emu,seen", "ox,seen", r"splits\.csv:5: class 'ox' is empty or stands twice"),
        ("splits", "fox,unseen,,", "fox,unseen,", r"splits\.csv:3: 3 cells, expected 4"),
        ("splits", "emu,seen,train,train\n", "emu,seen,train,train\nyak,seen,train,val\n", "no image of class 'yak'"),
        (
            "images",
            "fox1.png,fox,",
            "fox1.png,fx,",
            r"images\.csv:6: class 'fx' is not in splits\.csv\. Did you mean 'fox'",
        ),
        ("images", "fox1.png,fox,", "fox1.png,fox,test", r"images\.csv:6: images of seen classes have a part"),
        ("images", "ox1.png,ox,test", "ox1.png,ox,", r"images\.csv:9: images of seen classes have a part"),
        ("images", "emu1.png", "emu0.png", r"images\.csv:3: image 'img/emu0\.png' is empty or stands twice"),
        ("embeddings", "fox", "wolf", r"embeddings\.csv: no row of class fox"),
    ],
)
def test_faults_name_file_and_line(folder: Path, file: str, old: str, new: str, message: str) -> None:
    path = folder / f"{file}.csv"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        load_tables(folder, "zoo")


@pytest.mark.parametrize("file", ["splits", "images", "embeddings"])
def test_missing_and_empty_files(folder: Path, file: str) -> None:
    (folder / f"{file}.csv").write_text("")
    with pytest.raises(ConfigError, match=rf"{file}\.csv"):
        load_tables(folder, "zoo")
    (folder / f"{file}.csv").unlink()
    with pytest.raises(MissingInput, match=rf"{file}\.csv: no such file"):
        load_tables(folder, "zoo")


def test_compressed_files(folder: Path) -> None:
    (folder / "images.csv.xz").write_bytes(lzma.compress(IMAGES.encode()))
    (folder / "images.csv").unlink()
    assert len(load_tables(folder, "zoo").images) == 12
    (folder / "images.csv.xz").write_bytes(b"not compressed")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_tables(folder, "zoo")


def test_images_lie_in_the_folder(folder: Path, tmp_path: Path) -> None:
    tables = load_tables(folder, "zoo")
    with pytest.raises(MissingInput, match="missing"):
        table_images(folder, tables)
    (folder / "img").mkdir()
    for row, image in enumerate(tables.images):
        Image.new("RGB", (2, 2), (row, 0, 0)).save(folder / image)
    source = open_source("zoo", "PS", tmp_path, tmp_path)
    images = source.images()
    assert source.published is None
    assert tuple(images.ids) == tables.images
    decoded = images.decode([5])[0]
    assert isinstance(decoded, Image.Image)
    assert decoded.getpixel((0, 0)) == (5, 0, 0)


@pytest.mark.usefixtures("folder")
def test_sources_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="zoo: only SUN, CUB, AWA1, AWA2, APY have a standard split"):
        open_source("zoo", "SS", tmp_path, tmp_path)
    with pytest.raises(ConfigError, match=r"cub: neither one of SUN, CUB, .*, mini nor a folder.*Did you mean 'CUB'"):
        open_source("cub", "PS", tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="embedding wordnett: neither one of wordnet, wordnet-ic nor a file"):
        open_source("zoo", "PS", tmp_path, tmp_path, "wordnett")
    np.save(tmp_path / "random.npy", np.eye(4, 7))
    embeddings = open_source("zoo", "PS", tmp_path, tmp_path, str(tmp_path / "random.npy")).task.embeddings
    assert (embeddings.name, embeddings.values.shape) == ("random", (4, 7))
    words = tmp_path / "words.txt"
    words.write_text("ox 1 0\nfox 0 1\nape 1 1\nemu 1 2\n")
    assert open_source("zoo", "PS", tmp_path, tmp_path, str(words)).task.embeddings.name == "words"
