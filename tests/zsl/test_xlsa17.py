"""The published folders: what is read from them, whichever release and MATLAB version they are."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.store import Store
from harness.zsl.dataset import Dataset
from harness.zsl.task import SplitName
from harness.zsl.xlsa17 import NAMES
from harness.zsl.xlsa17 import find_folders
from harness.zsl.xlsa17 import load_task
from harness.zsl.xlsa17 import res101
from tests.zsl.xlsa17_files import NUMBERS
from tests.zsl.xlsa17_files import Format
from tests.zsl.xlsa17_files import Written
from tests.zsl.xlsa17_files import write_mat
from tests.zsl.xlsa17_files import write_xlsa17


def open_dataset(root: Path, name: str, split: SplitName = "PS") -> Dataset:
    folders = find_folders(root, name)
    return Dataset(load_task(folders, name, split), res101(Store(root / "store"), folders))


@pytest.mark.parametrize("name", NAMES)
def test_class_and_attribute_numbers_of_all_data_sets(tmp_path: Path, name: str) -> None:
    written = write_xlsa17(tmp_path, name, images=2, mat="7.3" if name in {"AWA2", "APY"} else "5")
    dataset = open_dataset(tmp_path, name)
    numbers = NUMBERS[name]
    about = dataset.describe()
    seen = numbers.train + numbers.val
    assert about["classes"] == {"all": numbers.classes, "seen": seen, "unseen": numbers.unseen}
    assert (about["embedding"], about["embedding_dim"]) == ("att", numbers.attributes)
    assert about["images"] == {"trainval": seen, "test_seen": seen, "test_unseen": 2 * numbers.unseen}
    assert dataset.validations == 3
    for number in (1, 2, 3):
        validation = dataset.validation(number)
        assert (validation.train.classes.size, validation.classes.size) == (numbers.train, numbers.val)
    assert dataset.embeddings.names == written.names
    np.testing.assert_allclose(np.linalg.norm(dataset.embeddings.values, axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(dataset.embeddings.original, written.original.T)


def check_rows(dataset: Dataset, written: Written) -> None:
    """Check every image's features and label against what was written."""
    trainval = np.sort(written.locs["trainval_loc"])
    train = dataset.trainval()
    np.testing.assert_array_equal(train.features, written.features[trainval])
    np.testing.assert_array_equal(train.labels, written.labels[trainval])
    assert train.features.dtype == np.float64
    assert train.labels.dtype == np.int64
    final = dataset.final()
    assert final.seen is not None
    for images, key in ((final.unseen, "test_unseen_loc"), (final.seen, "test_seen_loc")):
        rows = np.sort(written.locs[key])
        np.testing.assert_array_equal(images.features, written.features[rows])
        np.testing.assert_array_equal(images.labels, written.labels[rows])


@pytest.mark.parametrize("mat", ["5", "7.3"])
@pytest.mark.parametrize("first_release", [True, False])
def test_rows_are_those_of_the_files(tmp_path: Path, mat: Format, first_release: bool) -> None:
    written = write_xlsa17(tmp_path, "AWA1", mat=mat, first_release=first_release)
    check_rows(open_dataset(tmp_path, "AWA1"), written)


def test_both_releases_and_both_formats_are_one_data_set(tmp_path: Path) -> None:
    described = []
    for number, (mat, first) in enumerate([("5", True), ("7.3", False)]):
        root = tmp_path / str(number)
        write_xlsa17(root, "AWA1", mat="7.3" if mat == "7.3" else "5", first_release=first)
        described.append(open_dataset(root, "AWA1").describe())
    for key in ("loc_sha256", "labels_sha256", "class_splits", "embedding_digest"):
        assert described[0][key] == described[1][key]
    assert [about["release"] for about in described] == ["first (train_loc and val_loc, not used)", "later"]
    assert described[0]["ignored"] == ["train_loc", "val_loc"]


def test_the_leaky_fields_of_the_first_release_are_not_used(tmp_path: Path) -> None:
    """Pitfall 2: train_loc and val_loc hold all images of their classes, test images of seen classes among them."""
    written = write_xlsa17(tmp_path, "AWA1", first_release=True)
    leaked = np.intersect1d(written.locs["train_loc"], written.locs["test_seen_loc"])
    assert leaked.size == 27
    dataset = open_dataset(tmp_path, "AWA1")
    held_out = {tuple(row) for row in written.features[written.locs["test_seen_loc"]]}
    for number in (1, 2, 3):
        validation = dataset.validation(number)
        for features in (validation.train.features, validation.features):
            assert not held_out & {tuple(row) for row in features}
        assert validation.labels.size + validation.train.labels.size == written.locs["trainval_loc"].size
        assert not set(validation.train.labels) & set(validation.classes)


def test_another_release_has_another_hash(tmp_path: Path) -> None:
    """Pitfall 3: which images are held out is in every record; their order in the file does not count."""
    written = write_xlsa17(tmp_path, "CUB", images=3)
    before = open_dataset(tmp_path, "CUB").describe()["loc_sha256"]
    _rewrite_locs(written, {key: loc[::-1] for key, loc in written.locs.items()})
    assert open_dataset(tmp_path, "CUB").describe()["loc_sha256"] == before
    trainval, test_seen = written.locs["trainval_loc"].copy(), written.locs["test_seen_loc"].copy()
    same_class = np.flatnonzero(written.labels[trainval] == written.labels[test_seen[0]])[0]
    trainval[same_class], test_seen[0] = test_seen[0], trainval[same_class]
    _rewrite_locs(written, {**written.locs, "trainval_loc": trainval, "test_seen_loc": test_seen})
    after = open_dataset(tmp_path, "CUB").describe()["loc_sha256"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {"trainval_loc", "test_seen_loc"}


def _rewrite_locs(written: Written, locs: "dict[str, np.ndarray]") -> None:
    att = written.original / np.linalg.norm(written.original, axis=0)
    numbered = {key: (loc[:, None] + 1).astype(np.uint16) for key, loc in locs.items()}
    path = written.folder / "att_splits.mat"
    write_mat(
        path, {"att": att, "original_att": written.original, "allclasses_names": list(written.names), **numbered}, "5"
    )


def test_the_standard_split_draws_class_splits_of_the_published_sizes(tmp_path: Path) -> None:
    written = write_xlsa17(tmp_path, "AWA1")
    dataset = open_dataset(tmp_path, "AWA1", "SS")
    final = dataset.final()
    assert final.seen is None
    np.testing.assert_array_equal(final.unseen_classes, written.ss_unseen)
    np.testing.assert_array_equal(dataset.trainval().classes, np.setdiff1d(np.arange(50), written.ss_unseen))
    splits = [dataset.validation(number) for number in (1, 2, 3)]
    assert [split.classes.size for split in splits] == [13, 13, 13]
    assert len({tuple(split.classes) for split in splits}) == 3
    assert [split.classes.tolist() for split in splits] == [
        open_dataset(tmp_path, "AWA1", "SS").validation(number).classes.tolist() for number in (1, 2, 3)
    ]
    origins = [split["origin"] for split in dataset.describe()["class_splits"]]  # type: ignore[index, union-attr, call-overload]
    assert origins == [f"class split {number} drawn with seed 2017" for number in (1, 2, 3)]


def test_the_standard_split_takes_the_class_lists_of_its_folder(tmp_path: Path) -> None:
    written = write_xlsa17(tmp_path, "APY")
    seen = np.setdiff1d(np.arange(32), written.ss_unseen)
    for file, rows in (("trainclasses1", seen[3:]), ("valclasses1", seen[:3])):
        (written.standard / f"{file}.txt").write_text("".join(f"{written.names[row]}\n" for row in rows))
    dataset = open_dataset(tmp_path, "APY", "SS")
    assert dataset.validations == 1
    assert dataset.validation(1).classes.tolist() == seen[:3].tolist()


def test_where_folders_are_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="--data-root"):
        find_folders(None, "CUB")
    with pytest.raises(MissingInput, match=r"xlsa17/data/CUB/res101\.mat: no such file"):
        find_folders(tmp_path, "CUB")
    with pytest.raises(ConfigError, match="Did you mean 'AWA2'"):
        find_folders(tmp_path, "AWA")
    written = write_xlsa17(tmp_path, "APY")
    shutil.move(written.folder, tmp_path / "APY")
    assert find_folders(tmp_path, "APY").proposed == tmp_path / "APY"
    shutil.rmtree(written.standard)
    with pytest.raises(MissingInput, match=r"standard_split/APY/att_splits\.mat"):
        open_dataset(tmp_path, "APY", "SS")
