"""Feature files too large for memory, read a chunk of images at a time."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features import FeatureMatrix
from harness.zsl.matfile import MatFile
from harness.zsl.matfile import open_hdf5
from harness.zsl.names import some
from harness.zsl.problem import Labels
from harness.zsl.rows import mapped

CHUNK = 8192


class Chunk(NamedTuple):
    """Some images: features float32 [m, d] and labels int64 [m]."""

    features: npt.NDArray[np.float32]
    labels: Labels


@dataclass(frozen=True, eq=False)
class ArrayStream:
    """A matrix in memory or mapped from a file, images as rows.

    Attributes:
        origin: What it is read from, for messages.
        labels: int64 [n]; negative where the image's class is of no interest.
        values: [n, d].
    """

    origin: str
    labels: Labels
    values: npt.NDArray[Any]

    def read(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Return the features of images ``begin`` to before ``end``."""
        return self.values[begin:end]


@dataclass(frozen=True, eq=False)
class Hdf5Stream:
    """A matrix in a MATLAB 7.3 file.

    Attributes:
        origin: What it is read from, for messages.
        labels: int64 [n]; negative where the image's class is of no interest.
        path: The file.
        key: The variable.
        images_first: Whether images are the first axis as HDF5 shows it.
    """

    origin: str
    labels: Labels
    path: Path
    key: str
    images_first: bool

    def read(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Return the features of images ``begin`` to before ``end``."""
        with open_hdf5(self.path) as file:
            values = file[self.key]
            read: npt.NDArray[Any] = values[begin:end] if self.images_first else values[:, begin:end].T
        return read


Stream: TypeAlias = ArrayStream | Hdf5Stream
"""Images that are read in chunks, as often as one likes."""


def open_stream(path: Path, classes: int, key: str = "features", labels_key: str = "labels") -> Stream:
    """Open a file of features and labels.

    The published files differ in which axis of a matrix is the images (``features`` of ILSVRC2012_res101_feature has
    another than its ``features_val``), so it is told by the number of labels.

    Args:
        path: ``.mat`` of either version, or ``.npy`` with images as rows beside ``NAME.labels.npy``. Labels are rows of
            the class table, counted from 1.
        classes: How many rows the class table has.
        key: The variable of features.
        labels_key: The variable of labels.

    Raises:
        MissingInput: a file is not there.
        CorruptInput: a variable is missing, or features and labels do not fit together.
    """
    if path.suffix == ".npy":
        return _npy_stream(path, classes)
    mat = MatFile(path)
    labels, origin = mat.positions(labels_key, classes), f"{path}: {key}"
    if mat.version == "5":
        values = mat.array(key)
        return ArrayStream(origin, labels, values if _images_first(origin, values.shape, labels.size) else values.T)
    with open_hdf5(path) as file:
        if key not in file:
            raise CorruptInput(f"{path}: has no {key}; it holds {', '.join(mat.keys)}")
        shape = file[key].shape
    return Hdf5Stream(origin, labels, path, key, _images_first(origin, shape, labels.size))


def matrix_stream(matrix: FeatureMatrix, rows: Mapping[str, int]) -> Stream:
    """Return extracted features of images ``<wnid>/<file>``.

    Args:
        matrix: The features.
        rows: The row of the class table of each WNID.

    Raises:
        ConfigError: an image is of another class.
    """
    wnids = [identity.partition("/")[0] for identity in matrix.ids]
    if strange := sorted(set(wnids) - rows.keys()):
        raise ConfigError(f"{matrix.folder}: images of classes that are not in the class table: {some(strange)}")
    labels = np.array([rows[wnid] for wnid in wnids], dtype=np.int64)
    return ArrayStream(str(matrix.folder), labels, matrix.features)


def chunks(stream: Stream, wanted: Labels, size: int = CHUNK) -> Iterator[Chunk]:
    """Yield the images of the classes ``wanted`` in the order of the file; parts of it without any are not read.

    Args:
        stream: Where they are read from.
        wanted: int64, labels.
        size: The most images of a chunk.

    Raises:
        CorruptInput: features are not finite; the message names the image.
    """
    for begin in range(0, stream.labels.size, size):
        labels = stream.labels[begin : begin + size]
        kept = np.isin(labels, wanted)
        if not kept.any():
            continue
        features = np.asarray(stream.read(begin, begin + labels.size), dtype=np.float32)[kept]
        sound = np.isfinite(features).all(axis=1)
        if not sound.all():
            image = begin + int(np.flatnonzero(kept)[~sound][0]) + 1
            raise CorruptInput(f"{stream.origin}: image {image}, counted from 1, has features that are NaN or infinite")
        yield Chunk(features, labels[kept])


def gather(stream: Stream, wanted: Labels, cap: int | None = None) -> Chunk:
    """Return the images of the classes ``wanted`` as one matrix, of each class at most the first ``cap``.

    Raises:
        MissingInput: there is none.
        CorruptInput: features are not finite.
    """
    rows = np.flatnonzero(np.isin(stream.labels, wanted))
    if not rows.size:
        raise MissingInput(f"{stream.origin}: no image of the {wanted.size} classes asked for")
    if cap is not None:
        rows = _first_of_each(stream.labels, rows, cap)
        labels = np.full(stream.labels.size, -1, dtype=np.int64)
        labels[rows] = stream.labels[rows]
        stream = replace(stream, labels=labels)
    features = np.empty((rows.size, stream.read(0, 1).shape[1]), dtype=np.float32)
    done = 0
    for chunk in chunks(stream, wanted):
        features[done : done + chunk.labels.size] = chunk.features
        done += chunk.labels.size
    return Chunk(features, stream.labels[rows])


def _first_of_each(labels: Labels, rows: Labels, cap: int) -> Labels:
    by_class = rows[np.argsort(labels[rows], kind="stable")]
    _, begins, counts = np.unique(labels[by_class], return_index=True, return_counts=True)
    place = np.arange(by_class.size) - np.repeat(begins, counts)
    return np.sort(by_class[place < cap])


def _npy_stream(path: Path, classes: int) -> Stream:
    labels_path = path.with_suffix(".labels.npy")
    for file in (path, labels_path):
        if not file.is_file():
            raise MissingInput(f"{file}: no such file")
    values, labels = (mapped(file) for file in (path, labels_path))
    if values.ndim != 2 or labels.shape != (len(values),):
        raise CorruptInput(f"{path}: features {list(values.shape)} and labels {list(labels.shape)} do not fit together")
    if labels.size and not (labels.min() >= 1 and labels.max() <= classes):
        raise CorruptInput(f"{labels_path}: labels from {labels.min()} to {labels.max()}, expected 1 to {classes}")
    return ArrayStream(str(path), labels.astype(np.int64) - 1, values)


def _images_first(origin: str, shape: tuple[int, ...], count: int) -> bool:
    if len(shape) != 2 or count not in shape:
        raise CorruptInput(f"{origin} is {' x '.join(map(str, shape))}, but there are {count} labels")
    if shape[0] == shape[1]:
        raise CorruptInput(f"{origin} is square: which axis is the images cannot be told")
    return shape[0] == count
