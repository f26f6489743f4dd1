"""Writers of the ImageNet files at small scale: word vectors in MATLAB 7.3, splits, features of both kinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.zsl.xlsa17_files import write_mat

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class WrittenImageNet:
    """What was written: rows of the table of vectors count from 0."""

    folder: Path
    seen: tuple[str, ...]
    vectors: Array
    without_vector: Array
    splits: Mapping[str, Array]
    labels: Array
    features: Array


def write_imagenet(
    root: Path, *, dashed: bool = False, seen: int = 20, unseen: int = 60, dim: int = 8, seed: int = 0
) -> WrittenImageNet:
    """Write ``root/ImageNet``: ``seen`` classes to train on, of which a fifth validates, and ``unseen`` others.

    Three classes have no vector and the last one no image. ``dashed`` writes ``lp-500`` for ``lp500``.
    """
    stream = np.random.default_rng(seed)
    folder = root / "ImageNet"
    (folder / "features").mkdir(parents=True)
    # The training classes are sorted, the others are not, and may come before them.
    first = sorted(f"n{number:08d}" for number in stream.choice(10**6, seen, replace=False))
    others = [f"n{number:08d}" for number in 2 * 10**6 + stream.choice(10**6, unseen, replace=False)]
    vectors = stream.normal(size=(seen + unseen, dim))
    without = seen + np.array([1, 7, 30])
    vectors[without] = 0
    write_mat(
        folder / "ImageNet_w2v.mat",
        {
            "w2v": vectors,
            "wnids": first + others,
            "words": [f"word {row}" for row in range(len(vectors))],
            "no_w2v_loc": without[:, None] + 1.0,
        },
        "7.3",
    )
    splits = _splits(seen, unseen)
    keys = {key: key[:2] + "-" + key[2:] if dashed and key[:2] in {"mp", "lp"} else key for key in splits}
    write_mat(
        folder / "ImageNet_splits.mat",
        {keys[key]: (rows[None, :] + 1).astype(np.uint16) for key, rows in splits.items()},
        "5",
    )
    labels = np.repeat(np.arange(seen + unseen), 4)[:-4]
    features = (vectors[labels] + 0.1 * stream.normal(size=(labels.size, dim))).astype(np.float32)
    _write_train(
        folder / "ILSVRC2012_res101_feature.mat", features, labels, stream.permutation(np.flatnonzero(labels < seen))
    )
    _write_tests(folder / "features", features, labels, seen)
    return WrittenImageNet(folder, tuple(first), vectors, without, splits, labels, features)


def _splits(seen: int, unseen: int) -> dict[str, Array]:
    others = seen + np.arange(unseen)
    return {
        "train_classes": np.arange(seen)[seen // 5 :],
        "val_classes": np.arange(seen)[: seen // 5],
        "hops2": others[:10],
        "hops3": others[:30],
        "mp500": others[5:15],
        "mp1000": others[5:25],
        "mp5000": others[5:45],
        "lp500": others[-6:],
        "lp1000": others[-12:],
        "lp5000": others[-24:],
        "all": others,
    }


def _write_train(path: Path, features: Array, labels: Array, rows: Array) -> None:
    """Write features with images as rows in MATLAB and features_val with images as columns, as they are published."""
    variables = {
        "features": features[rows],
        "labels": labels[rows][None, :] + 1.0,
        "features_val": features[rows[:5]].T,
        "labels_val": labels[rows[:5]][:, None] + 1.0,
    }
    write_mat(path, variables, "7.3")


def _write_tests(folder: Path, features: Array, labels: Array, seen: int) -> None:
    """Write the images of other classes in three files, one of each kind."""
    first, second, third = np.array_split(np.flatnonzero(labels >= seen), 3)
    for name, rows, mat in (("a", first, "7.3"), ("b", second, "5")):
        write_mat(
            folder / f"{name}.mat",
            {"features": features[rows].T, "labels": labels[rows][:, None] + 1.0},
            "7.3" if mat == "7.3" else "5",
        )
    np.save(folder / "c.npy", features[third])
    np.save(folder / "c.labels.npy", labels[third] + 1)
