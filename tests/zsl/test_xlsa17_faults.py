"""Published folders that were damaged or mixed up: what is said names file, variable and row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import TypeAlias

import numpy as np
import pytest

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.store import Store
from harness.zsl.dataset import Dataset
from harness.zsl.matfile import MatFile
from harness.zsl.xlsa17 import find_folders
from harness.zsl.xlsa17 import load_task
from harness.zsl.xlsa17 import res101
from tests.zsl.xlsa17_files import Format
from tests.zsl.xlsa17_files import Written
from tests.zsl.xlsa17_files import write_mat
from tests.zsl.xlsa17_files import write_xlsa17

Variables: TypeAlias = dict[str, Any]
Damage: TypeAlias = Callable[[Variables], None]


def spoil(path: Path, damage: Damage, mat: Format = "5") -> None:
    """Read all variables of a file, change them and write them back."""
    file = MatFile(path)
    texts = {"allclasses_names", "image_files"}
    variables = {key: list(file.texts(key)) if key in texts else file.array(key) for key in file.keys}
    damage(variables)
    write_mat(path, variables, mat)


def load(root: Path) -> Dataset:
    folders = find_folders(root, "APY")
    return Dataset(load_task(folders, "APY"), res101(Store(root / "store"), folders))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return write_xlsa17(tmp_path, "APY")


def turned(key: str) -> Damage:
    def damage(variables: Variables) -> None:
        variables[key] = variables[key].T

    return damage


def overlapping(first: str, second: str) -> Damage:
    def damage(variables: Variables) -> None:
        variables[first][3] = variables[second][0]

    return damage


def _from_zero(variables: Variables) -> None:
    for key in ("trainval_loc", "test_seen_loc", "test_unseen_loc"):
        variables[key] = variables[key] - 1


def _too_large(variables: Variables) -> None:
    variables["test_unseen_loc"][4] = 161


def _twice(variables: Variables) -> None:
    variables["trainval_loc"][1] = variables["trainval_loc"][0]


def _fewer_columns(variables: Variables) -> None:
    for key in ("att", "original_att"):
        variables[key] = variables[key][:, :-1]


def _no_vector(variables: Variables) -> None:
    variables["original_att"][:, 6] = 0


def _nan_vector(variables: Variables) -> None:
    variables["original_att"][0, 6] = np.nan


def _other_order_of_att(variables: Variables) -> None:
    variables["att"] = np.roll(variables["att"], 1, axis=1)


def _other_order_of_names(variables: Variables) -> None:
    names = variables["allclasses_names"]
    names[2], names[7] = names[7], names[2]


def _not_unit(variables: Variables) -> None:
    variables["att"][:, 4] *= 2


SPLIT_FAULTS = {
    "0-based loc": (_from_zero, r"_loc: entry \d+ is 0, expected whole numbers from 1 to 160\. .*count from 0"),
    "loc too large": (_too_large, "test_unseen_loc: entry 5 is 161, expected whole numbers from 1 to 160"),
    "overlap seen": (
        overlapping("trainval_loc", "test_seen_loc"),
        "trainval_loc and test_seen_loc overlap in 1 images",
    ),
    "overlap unseen": (
        overlapping("trainval_loc", "test_unseen_loc"),
        "trainval_loc and test_unseen_loc overlap in 1 images; the first is image",
    ),
    "overlap tests": (overlapping("test_seen_loc", "test_unseen_loc"), "test_seen_loc and test_unseen_loc overlap"),
    "loc twice": (_twice, r"trainval_loc lists image \d+ more than once"),
    "turned att": (turned("att"), "att is 32 x 64, expected attributes x 32 classes.*turned by 90 degrees"),
    "a class without embedding": (_fewer_columns, "att is 64 x 31, expected attributes x 32 classes"),
    "an embedding of zeros": (_no_vector, r"original_att: class 7 has no embedding.*apy\+class"),
    "an embedding of NaN": (_nan_vector, r"original_att: class 7 has no embedding"),
    "att in another order": (_other_order_of_att, r"column 1 of att \(apy\+class\d+\) is not that of original_att"),
    "names in another order": (_other_order_of_names, "allclasses_names row 3 is .* but line 3 of allclasses.txt is"),
    "att not of unit length": (_not_unit, r"column 5 of att .* is not of unit length \(length 2\)"),
}


@pytest.mark.parametrize("fault", SPLIT_FAULTS)
def test_faults_of_att_splits(tmp_path: Path, written: Written, fault: str) -> None:
    damage, message = SPLIT_FAULTS[fault]
    spoil(written.folder / "att_splits.mat", damage)
    with pytest.raises(CorruptInput, match=rf"APY/att_splits\.mat: .*{message}"):
        load(tmp_path)


@pytest.mark.parametrize("mat", ["5", "7.3"])
def test_turned_features(tmp_path: Path, written: Written, mat: Format) -> None:
    spoil(written.folder / "res101.mat", turned("features"), mat)
    with pytest.raises(
        CorruptInput, match=r"res101\.mat: features: 16 x 160 .* but there are 160 images\. .*turned by 90"
    ):
        load(tmp_path)


def test_features_of_other_images(tmp_path: Path, written: Written) -> None:
    spoil(written.folder / "res101.mat", lambda found: found.update(features=found["features"][:, :-1]))
    with pytest.raises(CorruptInput, match=r"features: 159 x 16 \(images x dimensions\), but there are 160 images\.$"):
        load(tmp_path)


def test_labels_that_count_from_zero(tmp_path: Path, written: Written) -> None:
    spoil(written.folder / "res101.mat", lambda found: found.update(labels=found["labels"] - 1))
    with pytest.raises(CorruptInput, match=r"res101\.mat: labels: entry \d+ is 0.* from 1 to 32.*count from 0"):
        load(tmp_path)


def test_nan_features_are_found_where_they_are_read(tmp_path: Path, written: Written) -> None:
    row = int(np.sort(written.locs["trainval_loc"])[5])
    spoil(written.folder / "res101.mat", lambda found: found["features"].__setitem__((3, row), np.nan))
    dataset = load(tmp_path)
    with pytest.raises(
        CorruptInput, match=rf"res101\.mat: features: 1 images have .* NaN .*first is image {row + 1} of 160"
    ):
        dataset.trainval()
    dataset.final()


def replace_line(path: Path, old: str, new: str) -> None:
    path.write_text("".join(f"{new if line == old else line}\n" for line in path.read_text().splitlines()))


def test_an_unknown_validation_class(tmp_path: Path, written: Written) -> None:
    path = written.folder / "valclasses2.txt"
    first = path.read_text().splitlines()[0]
    replace_line(path, first, first.replace("class", "klass"))
    with pytest.raises(
        CorruptInput, match=r"valclasses2\.txt:1: .* no class of allclasses\.txt\. Did you mean 'apy\+class"
    ):
        load(tmp_path)


def test_a_missing_validation_class(tmp_path: Path, written: Written) -> None:
    path = written.folder / "valclasses2.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[1:]))
    name = lines[0].replace("+", r"\+")
    with pytest.raises(CorruptInput, match=rf"valclasses2\.txt: neither in training nor in validation: {name}$"):
        load(tmp_path)


def test_a_validation_class_that_is_unseen(tmp_path: Path, written: Written) -> None:
    unseen = (written.folder / "testclasses.txt").read_text().splitlines()[0]
    path = written.folder / "valclasses3.txt"
    path.write_text(path.read_text() + unseen + "\n")
    with pytest.raises(CorruptInput, match=r"valclasses3\.txt: no image in trainval_loc is of apy"):
        load(tmp_path)


def test_a_class_to_train_and_to_validate_on(tmp_path: Path, written: Written) -> None:
    path = written.folder / "valclasses1.txt"
    path.write_text(path.read_text() + (written.folder / "trainclasses1.txt").read_text().splitlines()[0])
    with pytest.raises(
        CorruptInput, match=r"trainclasses1\.txt and valclasses1\.txt: in training and in validation: apy"
    ):
        load(tmp_path)


def test_class_lists_of_another_split(tmp_path: Path, written: Written) -> None:
    path = written.folder / "testclasses.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[1:]))
    with pytest.raises(CorruptInput, match=r"testclasses\.txt: .* missing; the split has images of them"):
        load(tmp_path)
    path.write_text("\n".join([*lines, (written.folder / "valclasses1.txt").read_text().splitlines()[0]]))
    with pytest.raises(CorruptInput, match=r"testclasses\.txt: no images of apy"):
        load(tmp_path)


def test_missing_class_lists(tmp_path: Path, written: Written) -> None:
    (written.folder / "valclasses1.txt").unlink()
    with pytest.raises(MissingInput, match=r"valclasses1\.txt: no such file"):
        load(tmp_path)
    for path in written.folder.glob("*classes?.txt"):
        path.unlink()
    with pytest.raises(MissingInput, match=r"trainclasses1\.txt: no such file"):
        load(tmp_path)
