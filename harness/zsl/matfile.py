"""MATLAB files, version 5 (scipy) and 7.3 (HDF5), read so that both give the same arrays in MATLAB's orientation."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import Protocol
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.errors import nearest

Array: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.int64]


class Contents(Protocol):
    """The variables of one file."""

    def keys(self) -> list[str]:
        """Return the names of the variables."""

    def read(self, key: str) -> Array:
        """Return a variable as MATLAB shows it; the entries of a cell array are text."""


class MatFile:
    """A MATLAB file whose variables are read when they are asked for.

    Args:
        path: Of the file.

    Raises:
        MissingInput: there is no such file.
        CorruptInput: it is no MATLAB file.
    """

    def __init__(self, path: Path) -> None:
        import h5py

        if not path.is_file():
            raise MissingInput(f"{path}: no such file")
        self.path = path
        self.version = "7.3" if h5py.is_hdf5(path) else "5"
        self._contents: Contents = _Version73(path) if self.version == "7.3" else _Version5(path)
        self.keys = tuple(self._contents.keys())

    def array(self, key: str) -> Array:
        """Return a matrix of numbers as MATLAB shows it.

        Raises:
            CorruptInput: there is no such variable, or it holds no numbers.
        """
        values = self._read(key)
        if values.dtype.kind not in "biuf":
            raise CorruptInput(f"{self.path}: {key} holds {values.dtype}, expected numbers")
        return values

    def vector(self, key: str) -> Array:
        """Return the numbers of an n x 1 or 1 x n matrix [n].

        Raises:
            CorruptInput: there is no such variable, or it is another one.
        """
        values = self.array(key)
        if values.ndim != 2 or 1 not in values.shape:
            raise CorruptInput(f"{self.path}: {key} is {_shape(values)}, expected n x 1")
        return values.reshape(-1)

    def positions(self, key: str, count: int) -> Indices:
        """Return a vector of row numbers, which MATLAB counts from 1, counted from 0: int64 [n].

        They may be stored as uint16: the subtraction is done after the cast, since uint16 wraps around.

        Raises:
            CorruptInput: a number is not whole or not in 1..count; the message names the entry.
        """
        values = self.vector(key)
        wrong = np.flatnonzero(~((values >= 1) & (values <= count) & (values == np.floor(values))))
        if wrong.size:
            entry = f"{self.path}: {key}: entry {wrong[0] + 1} is {values[wrong[0]]}"
            hint = " Was the file written with numbers that count from 0?" if values[wrong[0]] == 0 else ""
            raise CorruptInput(f"{entry}, expected whole numbers from 1 to {count}.{hint}")
        return values.astype(np.int64) - 1

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the entries of a cell array of text.

        Raises:
            CorruptInput: there is no such variable, or it is another one.
        """
        values = self._read(key)
        if values.dtype.kind != "O":
            raise CorruptInput(f"{self.path}: {key} holds {values.dtype}, expected a cell array of text")
        return tuple(values.reshape(-1).tolist())

    def _read(self, key: str) -> Array:
        if key not in self.keys:
            raise CorruptInput(f"{self.path}: has no {key}; it holds {', '.join(self.keys)}.{nearest(key, self.keys)}")
        return self._contents.read(key)


class _Version5:
    def __init__(self, path: Path) -> None:
        self._path = path

    def keys(self) -> list[str]:
        from scipy.io import whosmat

        try:
            return [name for name, _, _ in whosmat(self._path)]
        except Exception as error:
            raise CorruptInput(f"{self._path}: cannot be read as a MATLAB file: {error}") from error

    def read(self, key: str) -> Array:
        from scipy.io import loadmat

        try:
            values: Array = loadmat(self._path, variable_names=[key])[key]
        except Exception as error:
            raise CorruptInput(f"{self._path}: {key} cannot be read: {error}") from error
        return _of_texts([_text(cell) for cell in values.ravel()]) if values.dtype.kind == "O" else values


class _Version73:
    def __init__(self, path: Path) -> None:
        self._path = path

    def keys(self) -> list[str]:
        with open_hdf5(self._path) as file:
            return [key for key in file if not key.startswith("#")]

    def read(self, key: str) -> Array:
        with open_hdf5(self._path) as file:
            try:
                values = file[key][()]
                if values.dtype.kind == "O":
                    return _of_texts(["".join(map(chr, file[cell][()].ravel())) for cell in values.ravel()])
            except (OSError, KeyError, TypeError, ValueError) as error:
                raise CorruptInput(f"{self._path}: {key} cannot be read: {error}") from error
        transposed: Array = values.T
        return transposed


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file of version 7.3 as a mapping of HDF5 data sets, whose axes are those of MATLAB in reverse.

    Raises:
        CorruptInput: it cannot be opened.
    """
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise CorruptInput(f"{path}: cannot be read as a MATLAB 7.3 file: {error}") from error
    with file:
        yield file


def _text(cell: Any) -> str:
    """Return the text of a cell, which scipy gives as an array of one string, at times one more array deep."""
    return "".join(_text(part) if isinstance(part, np.ndarray) else str(part) for part in np.ravel(cell))


def _of_texts(texts: Sequence[str]) -> Array:
    values = np.empty(len(texts), dtype=object)
    values[:] = texts
    return values


def _shape(values: Array) -> str:
    return " x ".join(map(str, values.shape))
