"""Features to and from other programs: npy files with ids, and the X_Y.pth of naver/cog (extract_features.py)."""

import pickle
import zipfile
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.digest import Plain
from harness.digest import digest_of
from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features.cached import KIND
from harness.features.matrix import FEATURES
from harness.features.matrix import IDS
from harness.features.matrix import LABELS
from harness.features.matrix import FeatureMatrix
from harness.features.matrix import describe
from harness.features.matrix import read_ids
from harness.features.matrix import write_ids
from harness.files import replacing
from harness.store import Store

Array: TypeAlias = npt.NDArray[np.generic]


def export(matrix: FeatureMatrix, target: Path, labels: Sequence[int] | npt.NDArray[np.integer] | None = None) -> None:
    """Write features for other programs.

    Args:
        matrix: What to write; rows are as stored, not normalised.
        target: A file ``*.pth`` takes the form of naver/cog: a dictionary of ``X`` float32 [n, d], ``Y`` int64 [n]
            and ``name``. Anything else is a folder that gets ``features.npy``, ``ids.txt`` and, given labels,
            ``labels.npy``.
        labels: Class index of each row; by default those that the features were imported with.

    Raises:
        ConfigError: labels do not fit the rows, or a ``*.pth`` is wanted without any.
    """
    given = matrix.labels if labels is None else np.asarray(labels, dtype=np.int64)
    if given is not None and given.shape != (len(matrix.ids),):
        raise ConfigError(f"{len(matrix.ids)} rows of features, but labels of shape {list(given.shape)}")
    if target.suffix == ".pth":
        if given is None:
            raise ConfigError(f"{target}: X_Y.pth holds a label for each row, and none are given")
        _write_xy(matrix, target, given)
        return
    target.mkdir(parents=True, exist_ok=True)
    write_ids(target, matrix.ids)
    _write_array(target / FEATURES, matrix.features)
    if given is not None:
        _write_array(target / LABELS, given)


def import_(store: Store, source: Path) -> FeatureMatrix:
    """Take features of another program into the store, under a key that says so and names the source's digest.

    Args:
        store: Where they go.
        source: What `export` writes: an ``X_Y.pth`` or a folder. Of a ``.pth`` nothing but tensors and plain values
            is read; its rows get their numbers as ids.

    Raises:
        MissingInput: the source does not exist.
        CorruptInput: the file holds more than tensors, or its parts are missing, do not fit together or are not finite.
    """
    key: dict[str, Plain] = {"imported": _digest(source)}

    def build(folder: Path) -> None:
        features, ids, labels = _read_xy(source) if source.suffix == ".pth" else _read_folder(source)
        _check(source, features, ids, labels)
        np.save(folder / FEATURES, features.astype(np.float32, copy=False))
        if labels is not None:
            np.save(folder / LABELS, labels.astype(np.int64, copy=False))
        describe(folder, ids, {"imported_from": source.name, **key})

    return FeatureMatrix.load(store.get(KIND, key, build))


def _digest(source: Path) -> str:
    if source.suffix == ".pth":
        if not source.is_file():
            raise MissingInput(f"{source}: no such file of features")
        return file_digest(source)
    names = [name for name in (FEATURES, IDS, LABELS) if (source / name).is_file()]
    if FEATURES not in names or IDS not in names:
        raise MissingInput(f"{source}: expected a folder with {FEATURES} and {IDS}, or an X_Y.pth")
    return digest_of({name: file_digest(source / name) for name in names})


def _write_array(path: Path, array: Array) -> None:
    with replacing(path) as temporary:
        np.save(temporary, array)


def _write_xy(matrix: FeatureMatrix, path: Path, labels: npt.NDArray[np.int64]) -> None:
    import torch

    content = {
        "X": torch.from_numpy(np.array(matrix.features)),
        "Y": torch.from_numpy(np.array(labels)),
        "name": str(matrix.about.get("backbone", path.stem)),
    }
    with replacing(path) as temporary:
        torch.save(content, temporary)


def _read_folder(folder: Path) -> tuple[Array, tuple[str, ...], Array | None]:
    labels = folder / LABELS
    try:
        features = np.load(folder / FEATURES, mmap_mode="r", allow_pickle=False)
        return features, read_ids(folder), np.load(labels, allow_pickle=False) if labels.exists() else None
    except (ValueError, EOFError) as error:
        raise CorruptInput(f"{folder}: {error}") from error


def _read_xy(path: Path) -> tuple[Array, tuple[str, ...], Array | None]:
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise CorruptInput(f"{path}: holds more than tensors and plain values, or is damaged; not loaded") from error
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise CorruptInput(f"{path}: not a file of torch.save ({type(error).__name__}: {error})") from error
    if not isinstance(content, Mapping) or not all(torch.is_tensor(content.get(name)) for name in "XY"):
        raise CorruptInput(f"{path}: expected a dictionary of tensors X [n, d] and Y [n]")
    features, labels = content["X"].detach(), content["Y"].detach()
    ids = tuple(f"{row:08d}" for row in range(len(features)))
    return (features.float() if features.is_floating_point() else features).numpy(), ids, labels.numpy()


def _check(source: Path, features: Array, ids: Sequence[str], labels: Array | None) -> None:
    """Refuse parts that do not fit together."""
    if features.ndim != 2 or not np.issubdtype(features.dtype, np.floating):
        raise CorruptInput(f"{source}: features are {features.dtype} {list(features.shape)}, expected floats [n, d]")
    if len(ids) != len(features) or len(set(ids)) != len(ids):
        raise CorruptInput(f"{source}: {len(features)} rows of features and {len(set(ids))} different ids")
    if labels is not None and (labels.shape != (len(ids),) or not np.issubdtype(labels.dtype, np.integer)):
        raise CorruptInput(
            f"{source}: labels are {labels.dtype} {list(labels.shape)}, expected integers [{len(features)}]"
        )
    if not all(np.isfinite(features[start : start + 4096]).all() for start in range(0, len(features), 4096)):
        raise CorruptInput(f"{source}: features are infinite or not a number")
