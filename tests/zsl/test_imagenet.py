"""ImageNet at small scale: order of classes, missing vectors, nine test sets, features of every kind of file."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features import FeatureMatrix
from harness.zsl.imagenet import ImageNet
from harness.zsl.imagenet import open_imagenet
from harness.zsl.imagenet_classes import SETS
from harness.zsl.imagenet_classes import find_imagenet
from harness.zsl.imagenet_classes import load_classes
from harness.zsl.matfile import MatFile
from harness.zsl.streams import ArrayStream
from harness.zsl.streams import chunks
from harness.zsl.streams import matrix_stream
from harness.zsl.streams import open_stream
from tests.zsl.imagenet_files import WrittenImageNet
from tests.zsl.imagenet_files import write_imagenet
from tests.zsl.xlsa17_files import write_mat


def load(written: WrittenImageNet, cap: int | None = None) -> ImageNet:
    return open_imagenet(written.folder, load_classes(written.folder, written.seen), cap)


@pytest.mark.parametrize("dashed", [False, True])
@pytest.mark.parametrize("size", [3, 7, 1000])
def test_all_nine_sets_in_chunks(tmp_path: Path, dashed: bool, size: int) -> None:
    written = write_imagenet(tmp_path, dashed=dashed)
    data = load(written)
    wnids = MatFile(written.folder / "ImageNet_w2v.mat").texts("wnids")
    last = len(wnids) - 1
    for name, key in SETS.items():
        rows = written.splits[key]
        expected = np.setdiff1d(rows, [*written.without_vector, last])
        test = data.final(name)
        assert [data.embeddings.names[row] for row in test.classes] == [wnids[row] for row in expected]
        about = test.describe()
        assert about["classes_listed"] == rows.size
        assert about["classes_without_vector"] == np.intersect1d(rows, written.without_vector).size
        assert about["classes_without_images"] == int(last in rows)
        parts = list(test.chunks(size))
        assert max(part.labels.size for part in parts) <= size
        wanted = np.isin(written.labels, expected)
        np.testing.assert_array_equal(np.concatenate([part.features for part in parts]), written.features[wanted])
        found = [data.embeddings.names[label] for part in parts for label in part.labels]
        assert found == [wnids[label] for label in written.labels[wanted]]
        assert about["images"] == wanted.sum()
    assert data.finals == 9
    hashes = [data.final(name).describe()["classes_sha256"] for name in SETS]
    assert len(set(hashes)) == 9


def test_training_images_and_the_one_class_split(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    data = load(written)
    train, features, labels, classes = data.validation()
    assert (train.classes.tolist(), classes.tolist()) == (list(range(4, 20)), [0, 1, 2, 3])
    assert set(labels.tolist()) == {0, 1, 2, 3}
    whole = data.trainval()
    assert whole.classes.tolist() == list(range(20))
    assert whole.features.dtype == np.float32
    # The first images of the file are the first rows, whatever axis of the matrix they are.
    mat = MatFile(written.folder / "ILSVRC2012_res101_feature.mat")
    np.testing.assert_array_equal(whole.features, mat.array("features"))
    np.testing.assert_array_equal(whole.labels, mat.positions("labels", 20))
    np.testing.assert_array_equal(features, mat.array("features")[np.isin(mat.positions("labels", 20), classes)])
    assert data.finals == 0
    about = data.describe()
    assert (about["embedding"], about["embedding_dim"], about["classes_without_vector"]) == ("w2v", 8, 3)
    assert about["classes"] == {"all": 77, "train": 16, "val": 4}


def test_a_cap_keeps_the_first_images_of_each_class(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    capped, whole = load(written, cap=2).trainval(), load(written).trainval()
    assert np.bincount(capped.labels).tolist() == [2] * 20
    for row in range(20):
        np.testing.assert_array_equal(capped.features[capped.labels == row], whole.features[whole.labels == row][:2])


def test_both_matrices_of_the_published_file_are_read_whichever_way_they_lie(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    path = written.folder / "ILSVRC2012_res101_feature.mat"
    train, val = open_stream(path, 80), open_stream(path, 80, "features_val", "labels_val")
    np.testing.assert_array_equal(train.read(0, 5), val.read(0, 5))
    np.testing.assert_array_equal(train.read(2, 4), val.read(2, 4))


def test_vectors_are_of_unit_length_and_named_by_wnid(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    classes = load_classes(written.folder, written.seen)
    assert len(classes.embeddings.names) == 80 - 3
    kept = np.setdiff1d(np.arange(80), written.without_vector)
    np.testing.assert_allclose(
        classes.embeddings.values * np.linalg.norm(written.vectors[kept], axis=1, keepdims=True), written.vectors[kept]
    )
    assert (classes.row[written.without_vector] == -1).all()


def test_another_order_of_classes_is_told_before_anything_runs(tmp_path: Path) -> None:
    """Pitfall 15: the labels of the features are rows of the table of vectors."""
    written = write_imagenet(tmp_path)
    expected = list(written.seen)
    expected[3], expected[4] = expected[4], expected[3]
    with pytest.raises(CorruptInput, match=rf"ImageNet_w2v\.mat: row 4 of wnids is {written.seen[3]}, expected"):
        load_classes(written.folder, expected)
    with pytest.raises(CorruptInput, match=rf"row 1 of wnids is {written.seen[0]}, expected n01440764"):
        load_classes(written.folder)


def change_splits(written: WrittenImageNet, changes: Mapping[str, list[int]]) -> None:
    splits = {**written.splits, **{key: np.array(rows) for key, rows in changes.items()}}
    write_mat(written.folder / "ImageNet_splits.mat", {key: rows[None, :] + 1 for key, rows in splits.items()}, "5")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hops2": [3, 25]}, r"hops2 \(2H\) lists class 4, which is trained on"),
        ({"val_classes": [3, 4]}, "train_classes and val_classes overlap, or are not among the first 20"),
        ({"val_classes": [3, 40]}, "train_classes and val_classes overlap, or are not among the first 20"),
        ({"all": [80]}, "all: entry 1 is 81, expected whole numbers from 1 to 80"),
        ({"all": [-1]}, r"all: entry 1 is 0, .* count from 0"),
    ],
)
def test_splits_that_contradict_the_classes(tmp_path: Path, changes: Mapping[str, list[int]], message: str) -> None:
    written = write_imagenet(tmp_path)
    change_splits(written, changes)
    with pytest.raises(CorruptInput, match=rf"ImageNet_splits\.mat: {message}"):
        load_classes(written.folder, written.seen)


def test_splits_without_a_set(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    write_mat(
        written.folder / "ImageNet_splits.mat", {"train_classes": np.array([[1]]), "lp_500": np.array([[1]])}, "5"
    )
    with pytest.raises(CorruptInput, match="has no val_classes; it holds train_classes, lp_500"):
        load_classes(written.folder, written.seen)


def test_sets_without_images_and_unknown_sets(tmp_path: Path) -> None:
    written = write_imagenet(tmp_path)
    change_splits(written, {"lp500": [79]})
    data = load(written)
    with pytest.raises(MissingInput, match="ImageNet L500: there are no features of images of its 1 classes"):
        data.final("L500")
    with pytest.raises(ConfigError, match=r"M50: expected one of 2H, 3H, .* Did you mean 'M500'"):
        data.final("M50")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"xlsa17/data/ImageNet/ImageNet_w2v\.mat: no such file"):
        find_imagenet(tmp_path)
    with pytest.raises(MissingInput, match="--data-root"):
        find_imagenet(None)
    written = write_imagenet(tmp_path)
    assert find_imagenet(tmp_path) == written.folder
    for path in (written.folder / "features").iterdir():
        path.unlink()
    with pytest.raises(MissingInput, match="features of the classes outside the 1K"):
        load(written)


def test_features_that_do_not_fit_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    write_mat(path, {"features": np.ones((3, 5)), "labels": np.ones((4, 1))}, "7.3")
    with pytest.raises(CorruptInput, match=r"x\.mat: features is 5 x 3, but there are 4 labels"):
        open_stream(path, 2)
    write_mat(path, {"features": np.ones((4, 4)), "labels": np.ones((4, 1))}, "5")
    with pytest.raises(CorruptInput, match="is square"):
        open_stream(path, 2)
    np.save(tmp_path / "y.npy", np.ones((3, 2)))
    with pytest.raises(MissingInput, match=r"y\.labels\.npy: no such file"):
        open_stream(tmp_path / "y.npy", 2)
    np.save(tmp_path / "y.labels.npy", np.array([0, 1, 2]))
    with pytest.raises(CorruptInput, match=r"y\.labels\.npy: labels from 0 to 2, expected 1 to 2"):
        open_stream(tmp_path / "y.npy", 2)


def test_nan_is_found_in_chunks_that_are_read() -> None:
    values = np.ones((10, 2), np.float32)
    values[7, 1] = np.nan
    stream = ArrayStream("x", np.arange(10), values)
    assert sum(part.labels.size for part in chunks(stream, np.arange(7), 4)) == 7
    with pytest.raises(CorruptInput, match="x: image 8, counted from 1, has features that are NaN"):
        list(chunks(stream, np.arange(10), 4))


def test_chunks_without_wanted_images_are_not_read() -> None:
    class Untouchable(ArrayStream):
        def read(self, begin: int, end: int) -> np.ndarray:
            assert begin == 4
            return super().read(begin, end)

    stream = Untouchable("x", np.arange(12), np.ones((12, 2)))
    assert [part.labels.tolist() for part in chunks(stream, np.array([5]), 4)] == [[5]]


def test_extracted_features_are_a_stream_too(tmp_path: Path) -> None:
    features = np.arange(6, dtype=np.float32).reshape(3, 2)
    matrix = FeatureMatrix(tmp_path, features, ("n1/a.JPEG", "n2/b.JPEG", "n1/c.JPEG"), (), {})
    stream = matrix_stream(matrix, {"n1": 5, "n2": 0})
    assert stream.labels.tolist() == [5, 0, 5]
    assert stream.read(1, 3).tolist() == features[1:].tolist()
    with pytest.raises(ConfigError, match="not in the class table: n2"):
        matrix_stream(matrix, {"n1": 5})
