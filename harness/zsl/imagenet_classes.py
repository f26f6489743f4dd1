"""The classes of ImageNet as the zero-shot files have them: word vectors, and nine test sets of the other 20,842.

The class table has the classes with a word vector and no others. What a set is, is read and never rebuilt from WordNet.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import data
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.errors import nearest
from harness.zsl.matfile import MatFile
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Labels

SETS = {
    "2H": "hops2",
    "3H": "hops3",
    "M500": "mp500",
    "M1K": "mp1000",
    "M5K": "mp5000",
    "L500": "lp500",
    "L1K": "lp1000",
    "L5K": "lp5000",
    "All20K": "all",
}
"""The nine test sets and their variables in ImageNet_splits.mat; some copies write ``lp-500`` for ``lp500``."""


@dataclass(frozen=True, eq=False)
class ImageNetClasses:
    """The classes of ImageNet that have a word vector.

    Attributes:
        embeddings: Of these classes, named by WNID.
        row: int64 [rows of w2v], the class of each; -1 where it has no vector.
        train: int64, ascending: the classes to train on while selecting.
        val: int64, ascending: the classes to select on; with ``train``, the 1K classes.
        sets: Test classes by the name of the set, int64, ascending.
        listed: How many classes a set has in the file.
    """

    embeddings: ClassEmbeddings
    row: Labels
    train: Labels
    val: Labels
    sets: Mapping[str, Labels]
    listed: Mapping[str, int]


def find_imagenet(data_root: Path | None) -> Path:
    """Return the folder of ImageNet_w2v.mat under the data root.

    Raises:
        MissingInput: it is not there.
    """
    places = [data_root / part for part in ("xlsa17/data/ImageNet", "xlsa17/ImageNet", "ImageNet")] if data_root else []
    for place in places:
        if (place / "ImageNet_w2v.mat").is_file():
            return place
    wanted = places[0] if places else Path("--data-root") / "xlsa17/data/ImageNet"
    raise MissingInput(f"{wanted / 'ImageNet_w2v.mat'}: no such file; put the published files there")


def load_classes(folder: Path, seen: Sequence[str] | None = None) -> ImageNetClasses:
    """Read word vectors and splits, and check the order of classes and which of them have a vector.

    Args:
        folder: Holds ImageNet_w2v.mat and ImageNet_splits.mat.
        seen: The WNIDs that the table of vectors begins with; by default the 1K classes.

    Raises:
        MissingInput: a file is not there.
        CorruptInput: the table begins with other classes, or a test set has classes that are trained on.
    """
    if seen is None:
        seen = data.path("cog/imagenet1k_wnids.txt").read_text(encoding="utf-8").split()
    mat = MatFile(folder / "ImageNet_w2v.mat")
    wnids = mat.texts("wnids")
    _check_order(wnids, seen, mat.path)
    vectors = mat.array("w2v")
    if len(vectors) != len(wnids):
        shape = " x ".join(map(str, vectors.shape))
        raise CorruptInput(f"{mat.path}: w2v is {shape}, expected a row for each of {len(wnids)} wnids")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    has = np.isfinite(lengths) & (lengths > 0)
    has[_missing_vectors(mat, len(wnids))] = False
    row = np.where(has, np.cumsum(has) - 1, -1)
    names = tuple(wnid for wnid, kept in zip(wnids, has.tolist(), strict=True) if kept)
    embeddings = ClassEmbeddings(names, vectors[has] / lengths[has, None], None, "w2v")
    return _with_splits(folder / "ImageNet_splits.mat", embeddings, row, len(seen))


def _check_order(wnids: Sequence[str], seen: Sequence[str], path: Path) -> None:
    for number, wnid in enumerate(seen):
        found = wnids[number] if number < len(wnids) else "nothing"
        if found != wnid:
            raise CorruptInput(
                f"{path}: row {number + 1} of wnids is {found}, expected {wnid}: the labels of features are rows of "
                f"this table, which begins with the {len(seen)} training classes in their order"
            )
    if len(set(wnids)) < len(wnids):
        raise CorruptInput(f"{path}: a class stands twice in wnids")


def _missing_vectors(mat: MatFile, count: int) -> Labels:
    if "no_w2v_loc" not in mat.keys or not mat.array("no_w2v_loc").size:
        return np.empty(0, dtype=np.int64)
    return mat.positions("no_w2v_loc", count)


def _with_splits(path: Path, embeddings: ClassEmbeddings, row: Labels, seen: int) -> ImageNetClasses:
    mat = MatFile(path)
    keys = {_plain(key): key for key in mat.keys}
    found: dict[str, Labels] = {}
    for key in ("train_classes", "val_classes", *SETS.values()):
        if _plain(key) not in keys:
            raise CorruptInput(f"{path}: has no {key}; it holds {', '.join(mat.keys)}.{nearest(key, mat.keys)}")
        found[key] = mat.positions(keys[_plain(key)], row.size)
    trained = np.union1d(found["train_classes"], found["val_classes"])
    if np.intersect1d(found["train_classes"], found["val_classes"]).size or trained[-1] >= seen:
        raise CorruptInput(f"{path}: train_classes and val_classes overlap, or are not among the first {seen} classes")
    for name, key in SETS.items():
        if overlap := np.intersect1d(found[key], np.arange(seen)).tolist():
            raise CorruptInput(f"{path}: {key} ({name}) lists class {overlap[0] + 1}, which is trained on")

    def with_vector(rows: Labels) -> Labels:
        kept = np.unique(row[rows])
        return kept[kept >= 0]

    return ImageNetClasses(
        embeddings,
        row,
        with_vector(found["train_classes"]),
        with_vector(found["val_classes"]),
        {name: with_vector(found[key]) for name, key in SETS.items()},
        {name: np.unique(found[key]).size for name, key in SETS.items()},
    )


def _plain(key: str) -> str:
    return key.replace("-", "").replace("_", "").casefold()
