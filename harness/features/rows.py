"""Rows of a matrix on their way to disk, with a journal from which a killed extraction goes on.

Batches are appended to ``features.npy``, then noted in ``journal.jsonl`` with a checksum of their rows. What a crash
leaves of either file is taken up to the last batch that is whole in both, so that nothing needs to be flushed to the
disk while a run goes on: even after a loss of power the worst is work done twice.
"""

import io
import json
import zlib
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from typing import Self

import numpy as np
import numpy.typing as npt

from harness.digest import Plain
from harness.digest import canonical_json
from harness.features.matrix import FEATURES
from harness.images import Unreadable

_JOURNAL = "journal.jsonl"


class RowWriter:
    """Appends batches of rows to the matrix of a folder, after those that an earlier writer left there.

    Args:
        folder: Where the matrix grows.
        images: Number of images in the set, the greatest number of rows.
        dim: Length of a row.
        work: What the rows are computed from. What is left of other work is thrown away.

    Attributes:
        done: Images of the set that need no more work.
        rows: Rows written.
        unreadable: Images among those done that have no row.
    """

    def __init__(self, folder: Path, images: int, dim: int, work: Mapping[str, Plain]) -> None:
        self.done = 0
        self.rows = 0
        self.unreadable: list[Unreadable] = []
        self._dim = dim
        self._paths = (folder / FEATURES, folder / _JOURNAL)
        self._header = len(_header(images, dim))
        self._files = ExitStack()
        head = canonical_json({"images": images, "dim": dim, "work": work})
        with _named_errors(self._paths[0]):
            valid = self._resume(head)
            if not valid:
                for path in self._paths:
                    path.write_bytes(b"")
            self._matrix, self._journal = (self._files.enter_context(path.open("r+b")) for path in self._paths)
            if not valid:
                self._matrix.write(_header(images, dim))
                valid = self._note(head)
            _cut(self._matrix, self._header + self.rows * dim * 4)
            _cut(self._journal, valid)

    def append(self, stop: int, rows: npt.NDArray[np.float32], unreadable: Sequence[Unreadable]) -> None:
        """Add the rows of the images up to position ``stop`` of the set.

        Args:
            stop: Position after the last image of the batch.
            rows: float32 [number of readable images in the batch, dim].
            unreadable: The other images of the batch.

        Raises:
            OSError: the disk is full or fails; the message says where. What is written can be taken up again.
        """
        content = np.ascontiguousarray(rows, dtype="<f4").tobytes()
        entry = [stop, len(rows), zlib.crc32(content), [[image.id, image.reason] for image in unreadable]]
        with _named_errors(self._paths[0]):
            self._matrix.write(content)
            self._matrix.flush()
            self._note(json.dumps(entry))
        self._count(stop, len(rows), unreadable)

    def finish(self) -> None:
        """State the final number of rows. The journal stays: it is needed until the entry is published."""
        with _named_errors(self._paths[0]):
            self._matrix.seek(0)
            self._matrix.write(_header(self.rows, self._dim))
            self._matrix.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with _named_errors(self._paths[0]):
            self._files.close()

    def _count(self, stop: int, rows: int, unreadable: Sequence[Unreadable]) -> None:
        self.done = stop
        self.rows += rows
        self.unreadable.extend(unreadable)

    def _note(self, line: str) -> int:
        written = self._journal.write(f"{line}\n".encode())
        self._journal.flush()
        return written

    def _resume(self, head: str) -> int:
        """Take up the batches that are whole. Returns the length of the journal up to the last of them in bytes."""
        try:
            lines = self._paths[1].read_bytes().splitlines(keepends=True)
            matrix = self._paths[0].open("rb")
        except FileNotFoundError:
            return 0
        if not lines or lines[0] != f"{head}\n".encode():
            return 0
        valid = len(lines[0])
        with matrix:
            matrix.seek(self._header)
            for line in lines[1:]:
                if not self._take_up(line, matrix):
                    break
                valid += len(line)
        return valid

    def _take_up(self, line: bytes, matrix: BinaryIO) -> bool:
        try:
            stop, rows, checksum, unreadable = json.loads(line)
        except ValueError:
            return False
        if not line.endswith(b"\n"):
            return False
        content = matrix.read(rows * self._dim * 4)
        if len(content) != rows * self._dim * 4 or zlib.crc32(content) != checksum:
            return False
        self._count(stop, rows, [Unreadable(*pair) for pair in unreadable])
        return True


def _header(rows: int, dim: int) -> bytes:
    """Return the head of an npy file. NumPy pads it so that its length is the same for any number of rows."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (rows, dim)})
    return stream.getvalue()


def _cut(file: BinaryIO, length: int) -> None:
    file.truncate(length)
    file.seek(length)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Name the file in the error of a failed write, which by itself says only that a disk is full."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"writing features: {error.strerror}", str(path)) from error
