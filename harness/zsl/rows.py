"""The image features of a data set, whoever computed them: a row per image, handed out in float64 and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.digest import Plain
from harness.digest import digest_of
from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features import FeatureMatrix
from harness.store import Store
from harness.zsl.matfile import MatFile
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels

_VERSION = 1
_FILE = "features.npy"
_KEY = "features"


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features of all images of a data set.

    Attributes:
        values: [N, d] floats, possibly mapped from a file; rows nobody asks for are never read.
        name: Who computed them: ``res101``, or a model of the models file.
        origin: File and variable, for messages.
        digest: SHA-256 of what they were read from.
    """

    values: npt.NDArray[Any]
    name: str
    origin: str
    digest: str

    def take(self, rows: Labels) -> Floats:
        """Return the features of these images, float64 [rows, d].

        Raises:
            CorruptInput: one is not finite; the message names its row.
        """
        taken = np.asarray(self.values[rows], dtype=np.float64)
        sound = np.isfinite(taken).all(axis=1)
        if not sound.all():
            faulty = rows[~sound]
            raise CorruptInput(
                f"{self.origin}: {faulty.size} images have features that are NaN or infinite; the first is image "
                f"{faulty[0] + 1} of {len(self.values)}, counted from 1"
            )
        return taken

    def require(self, count: int) -> None:
        """Check that there is a row for each of ``count`` images.

        Raises:
            CorruptInput: there is not.
        """
        if self.values.ndim != 2 or len(self.values) != count:
            shape = " x ".join(map(str, self.values.shape))
            turned = self.values.ndim == 2 and self.values.shape[1] == count
            hint = " It is turned by 90 degrees: images are columns in MATLAB files and rows in .npy." if turned else ""
            raise CorruptInput(f"{self.origin}: {shape} (images x dimensions), but there are {count} images.{hint}")


def file_rows(store: Store, path: Path, name: str | None = None) -> FeatureRows:
    """Open a file of features: ``.npy`` with images as rows, or ``.mat`` with ``features``, images as columns.

    What a MATLAB file holds is unpacked into the store once, so that the workers of a run share one copy in memory; in
    float32 where that loses nothing.

    Args:
        store: Where MATLAB files are unpacked.
        path: The file.
        name: Of the features; the file's own by default.

    Raises:
        MissingInput: there is no such file.
        CorruptInput: it cannot be read, or holds no numbers.
        ConfigError: its name ends otherwise.
    """
    if not path.is_file():
        raise MissingInput(f"{path}: no such file of features")
    if path.suffix == ".npy":
        return FeatureRows(mapped(path), name or path.stem, str(path), file_digest(path))
    if path.suffix != ".mat":
        raise ConfigError(f"{path}: expected a .mat or .npy file of features")
    digest = file_digest(path)
    key: dict[str, Plain] = {"unpacked": digest, "variable": _KEY, "version": _VERSION}

    def build(folder: Path) -> None:
        np.save(folder / _FILE, _smallest(MatFile(path).array(_KEY).T))

    values = mapped(store.get("zsl-features", key, build) / _FILE)
    return FeatureRows(values, name or path.stem, f"{path}: {_KEY}", digest)


def matrix_rows(matrix: FeatureMatrix, name: str, key: Mapping[str, Plain]) -> FeatureRows:
    """Return extracted features of an image set; a row is an image of the set, so all must be readable.

    Args:
        matrix: The features.
        name: Of the model.
        key: Under which they are kept in the store.

    Raises:
        CorruptInput: some images have no row.
    """
    whole = matrix.under("fail")
    return FeatureRows(whole.features, name, str(whole.folder / _FILE), digest_of(key))


def mapped(path: Path) -> npt.NDArray[Any]:
    """Return the numbers of a .npy file, mapped into memory.

    Raises:
        CorruptInput: it cannot be read, or holds no numbers.
    """
    try:
        values: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise CorruptInput(f"{path}: cannot be read: {error}") from error
    if values.dtype.kind not in "iuf":
        raise CorruptInput(f"{path}: holds {values.dtype}, expected numbers")
    return values


def _smallest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values in float32 if that is exact (the network that computed them was), else in float64."""
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(values, dtype=np.float32)
    return small if np.array_equal(small, values, equal_nan=True) else np.ascontiguousarray(values, dtype=np.float64)
