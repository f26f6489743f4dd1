"""Writers of the published layout: exact names, shapes, types and class numbers; few images of small dimension."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Literal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Format: TypeAlias = Literal["5", "7.3"]


@dataclass(frozen=True)
class Numbers:
    """Of a data set: attributes, and classes to train, to validate and to test on."""

    attributes: int
    train: int
    val: int
    unseen: int

    @property
    def classes(self) -> int:
        """All classes."""
        return self.train + self.val + self.unseen


NUMBERS = {
    "SUN": Numbers(102, 580, 65, 72),
    "CUB": Numbers(312, 100, 50, 50),
    "AWA1": Numbers(85, 27, 13, 10),
    "AWA2": Numbers(85, 27, 13, 10),
    "APY": Numbers(64, 15, 5, 12),
}
"""The true ones."""


_HIDDEN = 5


@dataclass(frozen=True)
class Written:
    """What a data set was written as: rows count from 0, classes are rows of allclasses.txt."""

    folder: Path
    standard: Path
    names: tuple[str, ...]
    labels: Array
    features: Array
    original: Array
    locs: Mapping[str, Array]
    ss_unseen: Array


def write_xlsa17(
    root: Path,
    name: str,
    *,
    first_release: bool = False,
    mat: Format = "5",
    images: int = 5,
    dim: int = 16,
    seed: int = 0,
    noise: float = 0.1,
) -> Written:
    """Write ``root/xlsa17/data/NAME`` and ``root/standard_split/NAME``: features = attributes x matrix + noise.

    Every class has ``images`` images, shuffled; one of each seen class is held out.
    """
    stream = np.random.default_rng(seed)
    numbers = NUMBERS[name]
    names = tuple(f"{name.lower()}+class{row:03d}" for row in stream.permutation(numbers.classes))
    original = _attributes(numbers, stream) * (100 if name in {"AWA1", "AWA2", "CUB"} else 1)
    att = original / np.linalg.norm(original, axis=0)
    labels = stream.permutation(np.repeat(np.arange(numbers.classes), images))
    features = _features(att, labels, dim, noise, stream)
    folder, standard = root / "xlsa17" / "data" / name, root / "standard_split" / name
    for place in (folder, standard):
        place.mkdir(parents=True)
    order = stream.permutation(numbers.classes)
    unseen = np.sort(order[: numbers.unseen])
    # Both splits share some unseen classes, as in the published files.
    ss_unseen = np.sort(order[numbers.unseen // 2 : numbers.unseen // 2 + numbers.unseen])
    splits = _class_lists(folder, names, unseen, numbers, stream)
    locs = _locs(labels, unseen, stream)
    if first_release:
        locs |= _leaky(labels, splits[0])
    write_mat(
        folder / "res101.mat",
        {"features": features.T, "labels": labels[:, None] + 1.0, "image_files": _paths(name, names, labels)},
        mat,
    )
    write_mat(folder / "att_splits.mat", _att_splits(att, original, names, locs), mat)
    ss = _standard_locs(labels, ss_unseen, stream)
    write_mat(standard / "att_splits.mat", _att_splits(att, original, names, ss), mat)
    return Written(folder, standard, names, labels, features, original, locs, ss_unseen)


def _attributes(numbers: Numbers, stream: np.random.Generator) -> Array:
    """Return [a, C] from 0 to 1, made of few hidden ones, so that some classes show how all of them look."""
    hidden = stream.normal(size=(_HIDDEN, numbers.classes))
    mixed: Array = 1 / (1 + np.exp(-stream.normal(size=(numbers.attributes, _HIDDEN)) @ hidden))
    return mixed


def _features(att: Array, labels: Array, dim: int, noise: float, stream: np.random.Generator) -> Array:
    centred = att.T - att.T.mean(0)
    clean = centred[labels] @ stream.normal(size=(len(att), dim))
    noisy: Array = clean + noise * np.abs(centred).mean() * stream.normal(size=clean.shape)
    return noisy


def _class_lists(
    folder: Path, names: Sequence[str], unseen: Array, numbers: Numbers, stream: np.random.Generator
) -> list[tuple[Array, Array]]:
    seen = np.setdiff1d(np.arange(numbers.classes), unseen)
    lists = {"allclasses": np.arange(numbers.classes), "trainvalclasses": seen, "testclasses": unseen}
    splits = []
    for number in (1, 2, 3):
        val = stream.choice(seen, numbers.val, replace=False)
        train = np.setdiff1d(seen, val)
        splits.append((train, val))
        lists |= {f"trainclasses{number}": train, f"valclasses{number}": val}
    for file, rows in lists.items():
        (folder / f"{file}.txt").write_text("".join(f"{names[row]}\n" for row in rows))
    return splits


def _locs(labels: Array, unseen: Array, stream: np.random.Generator) -> dict[str, Array]:
    held_out = np.array([np.flatnonzero(labels == row)[0] for row in np.setdiff1d(labels, unseen)])
    test_unseen = np.flatnonzero(np.isin(labels, unseen))
    trainval = np.setdiff1d(np.arange(labels.size), np.concatenate([held_out, test_unseen]))
    return {
        "trainval_loc": stream.permutation(trainval),
        "test_seen_loc": stream.permutation(held_out),
        "test_unseen_loc": test_unseen,
    }


def _standard_locs(labels: Array, unseen: Array, stream: np.random.Generator) -> dict[str, Array]:
    is_unseen = np.isin(labels, unseen)
    return {
        "trainval_loc": stream.permutation(np.flatnonzero(~is_unseen)),
        "test_unseen_loc": np.flatnonzero(is_unseen),
    }


def _leaky(labels: Array, split: tuple[Array, Array]) -> dict[str, Array]:
    """Return the fields of the first release: all images of the classes of split 1, held-out ones among them."""
    return {
        key: np.flatnonzero(np.isin(labels, rows)) for key, rows in zip(("train_loc", "val_loc"), split, strict=True)
    }


def _att_splits(att: Array, original: Array, names: Sequence[str], locs: Mapping[str, Array]) -> dict[str, Any]:
    numbered = {key: (loc[:, None] + 1).astype(np.uint16) for key, loc in locs.items()}
    return {"att": att, "original_att": original, "allclasses_names": list(names), **numbered}


def _paths(name: str, names: Sequence[str], labels: Array) -> list[str]:
    return [f"/BS/home/data/{name}/images/{names[label]}/{row:05d}.jpg" for row, label in enumerate(labels)]


def write_mat(path: Path, variables: Mapping[str, Any], mat: Format) -> None:
    """Write matrices as MATLAB shows them; lists of text become n x 1 cell arrays."""
    if mat == "7.3":
        _write_hdf5(path, variables)
        return
    from scipy.io import savemat

    cells = {key: _cell(value) if isinstance(value, list) else value for key, value in variables.items()}
    savemat(path, cells, do_compression=True)


def _cell(texts: Sequence[str]) -> Array:
    cell = np.empty((len(texts), 1), dtype=object)
    cell[:, 0] = texts
    return cell


def _write_hdf5(path: Path, variables: Mapping[str, Any]) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for key, value in variables.items():
            if isinstance(value, list):
                references = [
                    file.create_dataset(f"#refs#/{key}{row}", data=_characters(text)) for row, text in enumerate(value)
                ]
                cells = np.array([reference.ref for reference in references], dtype=h5py.ref_dtype)
                file.create_dataset(key, data=cells[None, :], dtype=h5py.ref_dtype)
                file[key].attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                file.create_dataset(key, data=np.asarray(value).T)
                file[key].attrs["MATLAB_class"] = np.bytes_(_class_of(np.asarray(value)))
    with path.open("r+b") as block:
        block.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def _characters(text: str) -> Array:
    return np.array([[ord(letter)] for letter in text], dtype=np.uint16).reshape(-1, 1)


def _class_of(values: Array) -> str:
    return {"float64": "double", "float32": "single"}.get(values.dtype.name, values.dtype.name)
