"""The published folders of SUN, CUB, AWA1, AWA2 and aPY (xlsa17, Xian et al.): splits, labels, attributes, class lists.

Both releases are read alike. The first one's train_loc and val_loc hold test images of seen classes, and circulating
copies have home-made ones, so neither is ever used: training and validation images are those of the class lists inside
trainval_loc.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.digest import Plain
from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.errors import nearest
from harness.store import Store
from harness.zsl.embeddings import published_attributes
from harness.zsl.matfile import MatFile
from harness.zsl.names import plain_name
from harness.zsl.names import some
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Labels
from harness.zsl.rows import FeatureRows
from harness.zsl.rows import file_rows
from harness.zsl.task import ClassSplit
from harness.zsl.task import SplitName
from harness.zsl.task import Task
from harness.zsl.task import check_task
from harness.zsl.task import draw_class_splits

NAMES = ("SUN", "CUB", "AWA1", "AWA2", "APY")
"""The names of the folders."""

_NUMBERS = (1, 2, 3)
_SEED = 2017
_LEAKY = ("train_loc", "val_loc")
_KNOWN = {"trainval_loc", "test_seen_loc", "test_unseen_loc"}


@dataclass(frozen=True)
class Folders:
    """Where the files of one data set lie.

    Attributes:
        data_root: Where they were found.
        proposed: Holds att_splits.mat and the class lists of the proposed split, and what all splits share: res101.mat
            with features and labels, and allclasses.txt.
        standard: Holds att_splits.mat of the standard split and, in some copies, its class lists; need not exist.
    """

    data_root: Path
    proposed: Path
    standard: Path

    @property
    def res101(self) -> Path:
        """The published features and labels."""
        return self.proposed / "res101.mat"


def find_folders(data_root: Path | None, name: str) -> Folders:
    """Find a data set under the data root, as the archives unpack: ``xlsa17/data/AWA1`` and ``standard_split/AWA1``.

    Raises:
        ConfigError: there is no data set of this name.
        MissingInput: its folder is not there.
    """
    if name not in NAMES:
        raise ConfigError(f"{name}: expected one of {', '.join(NAMES)}.{nearest(name, NAMES)}")
    if data_root is None:
        raise MissingInput(f"{name}: say with --data-root which folder holds xlsa17/data/{name}")
    places = [data_root / part / name for part in ("xlsa17/data", "xlsa17", "data", ".")]
    found = next((place for place in places if (place / "res101.mat").is_file()), None)
    if found is None:
        raise MissingInput(f"{places[0] / 'res101.mat'}: no such file; put the published folders there")
    standard = [
        data_root / part / name for part in ("standard_split", "xlsa17/standard_split", "xlsa17/data/standard_split")
    ]
    return Folders(data_root, found, next((place for place in standard if place.is_dir()), standard[0]))


def load_task(folders: Folders, name: str, split: SplitName = "PS") -> Task:
    """Read a data set's labels, attributes and one of its splits.

    Raises:
        MissingInput: a file is not there.
        CorruptInput: files are damaged or contradict each other; the message names file, variable and row.
    """
    own = folders.proposed if split == "PS" else folders.standard
    att = MatFile(own / "att_splits.mat")
    embeddings = _attributes(att if split == "PS" else MatFile(folders.proposed / "att_splits.mat"), folders.proposed)
    labels = MatFile(folders.res101).positions("labels", len(embeddings.names))
    locs = {key: att.positions(key, labels.size) for key in ("trainval_loc", "test_unseen_loc")}
    locs["test_seen_loc"] = att.positions("test_seen_loc", labels.size) if split == "PS" else np.empty(0, np.int64)
    seen = np.unique(labels[locs["trainval_loc"]])
    splits = _listed_splits(own, embeddings.names)
    if not splits and split == "PS":
        raise MissingInput(f"{own / 'trainclasses1.txt'}: no such file; the class lists belong to the split")
    task = Task(
        name=name,
        split=split,
        embeddings=embeddings,
        labels=labels,
        trainval=np.sort(locs["trainval_loc"]),
        test_seen=np.sort(locs["test_seen_loc"]),
        test_unseen=np.sort(locs["test_unseen_loc"]),
        class_splits=splits or _drawn_splits(folders.proposed, seen),
        origin=str(att.path),
        about=_about(att),
    )
    check_task(task)
    _check_lists(task, own)
    return task


def res101(store: Store, folders: Folders) -> FeatureRows:
    """Return the published ResNet-101 features.

    Raises:
        MissingInput: the file is not there.
        CorruptInput: it cannot be read.
    """
    return file_rows(store, folders.res101, "res101")


def _attributes(att: MatFile, folder: Path) -> ClassEmbeddings:
    names = _class_list(folder / "allclasses.txt")
    if len(set(names)) < len(names):
        raise CorruptInput(f"{folder / 'allclasses.txt'}: a class is listed twice")
    if "allclasses_names" in att.keys:
        _check_order(names, att.texts("allclasses_names"), att.path)
    return published_attributes(att.array("att"), att.array("original_att"), names, str(att.path))


def _check_order(names: tuple[str, ...], stored: tuple[str, ...], path: Path) -> None:
    """Check that a row of the attributes is the class of that line of allclasses.txt, however the name is spelt."""
    if len(stored) != len(names):
        raise CorruptInput(f"{path}: allclasses_names has {len(stored)} rows, allclasses.txt {len(names)} lines")
    here, there = (tuple(map(plain_name, table)) for table in (names, stored))
    for row in range(len(names)):
        if here[row] != there[row] and there[row] in here:
            raise CorruptInput(
                f"{path}: allclasses_names row {row + 1} is {stored[row]}, but line {row + 1} of allclasses.txt is "
                f"{names[row]}: the attributes are in another order of classes than the labels"
            )


def _listed_splits(folder: Path, names: tuple[str, ...]) -> tuple[ClassSplit, ...]:
    splits = []
    for number in _NUMBERS:
        files = [folder / f"{part}classes{number}.txt" for part in ("train", "val")]
        if not any(file.is_file() for file in files):
            continue
        train, val = (_rows_of(file, names) for file in files)
        splits.append(ClassSplit(train, val, f"{files[0].name} and {files[1].name}"))
    return tuple(splits)


def _drawn_splits(proposed: Path, seen: Labels) -> tuple[ClassSplit, ...]:
    """Draw class splits of the sizes that the proposed split has."""
    sizes = [len(_class_list(proposed / f"valclasses{number}.txt")) for number in _NUMBERS]
    return draw_class_splits(seen, sizes, _SEED)


def _check_lists(task: Task, folder: Path) -> None:
    """Check that the lists of seen and of unseen classes, where they are there, agree with the labels of the images."""
    for file, classes in (("trainvalclasses.txt", task.seen), ("testclasses.txt", task.unseen)):
        path = folder / file
        if not path.is_file():
            continue
        listed = _rows_of(path, task.names)
        if absent := np.setdiff1d(listed, classes).tolist():
            raise CorruptInput(f"{path}: no images of {some([task.names[row] for row in absent])} in the split")
        if extra := np.setdiff1d(classes, listed).tolist():
            raise CorruptInput(
                f"{path}: {some([task.names[row] for row in extra])} are missing; the split has images of them"
            )


def _about(att: MatFile) -> Mapping[str, Plain]:
    ignored = [key for key in att.keys if key.endswith("_loc") and key not in _KNOWN]
    release = "first (train_loc and val_loc, not used)" if set(_LEAKY) <= set(ignored) else "later"
    return {"release": release, "ignored": ignored, "att_splits_sha256": file_digest(att.path)}


def _rows_of(path: Path, names: tuple[str, ...]) -> Labels:
    place = {name: row for row, name in enumerate(names)}
    rows = []
    for number, name in enumerate(_class_list(path), start=1):
        if name not in place:
            raise CorruptInput(f"{path}:{number}: {name} is no class of allclasses.txt.{nearest(name, names)}")
        rows.append(place[name])
    if len(set(rows)) < len(rows):
        raise CorruptInput(f"{path}: a class is listed twice")
    return np.array(sorted(rows), dtype=np.int64)


def _class_list(path: Path) -> tuple[str, ...]:
    try:
        return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except FileNotFoundError:
        raise MissingInput(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise CorruptInput(f"{path}: not a text file: {error}") from error
