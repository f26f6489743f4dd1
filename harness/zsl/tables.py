"""A zero-shot data set of the user's own, as plain files in one folder.

``splits.csv``: a line per class, whose order is the class table. Columns ``class``; ``part`` (seen or unseen); optional
``cv1``, ``cv2`` ... (train or val for seen classes, empty for unseen ones); optional ``concept``, what the class is in
WordNet. ``images.csv``: a line per image. Columns ``image`` (path), ``class`` and optional ``part`` (train or test; of
images of seen classes, and empty for unseen ones). Either may be compressed: ``.csv.xz``. ``embeddings.csv`` or
``embeddings.npy``: see `harness.zsl.embeddings.file_embeddings`.
"""

import csv
import lzma
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.images import EncodedImages
from harness.images import open_images
from harness.zsl.embeddings import file_embeddings
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Labels
from harness.zsl.task import ClassSplit
from harness.zsl.task import Task
from harness.zsl.task import draw_class_splits

Mask: TypeAlias = npt.NDArray[np.bool_]
Embed: TypeAlias = Callable[[Sequence[str], Sequence[str]], ClassEmbeddings]
"""Makes class embeddings of names and concepts; the concepts are the names where no column says otherwise."""

_SEED = 2017
_HELD_OUT = 0.2
_VALIDATION = 0.25
_SPLITS = 3


@dataclass(frozen=True, eq=False)
class Tables:
    """What the files of a folder say.

    Attributes:
        task: Classes, embeddings and splits; its labels are those of ``images``.
        images: The path of each image.
    """

    task: Task
    images: tuple[str, ...]


@dataclass(frozen=True)
class _Line:
    number: int
    cells: Mapping[str, str]


def load_tables(folder: Path, name: str, embed: Embed | None = None, seed: int = _SEED) -> Tables:
    """Read a data set from ``folder``.

    What is left open is drawn with ``seed`` as in the proposed split of the paper, and said in the record: without
    column ``part`` of images 20 % of those of seen classes are held out, drawn over images; without ``cv`` columns
    three class splits are drawn, in each of which a quarter of the seen classes validates.

    Args:
        folder: Holds the files.
        name: Of the data set.
        embed: Makes the class embeddings; by default they are read from the folder.
        seed: Of what is drawn.

    Raises:
        MissingInput: a file is not there.
        ConfigError: a file cannot be read, or says something else than it should; the message names file and line.
    """
    path, image_path = _find(folder, "splits"), _find(folder, "images")
    lines, image_lines = _read(path, ("class", "part")), _read(image_path, ("image", "class"))
    names = tuple(line.cells["class"] for line in lines)
    parts = _column(path, lines, "part", ("seen", "unseen"))
    seen = np.array([row for row, part in enumerate(parts) if part == "seen"], dtype=np.int64)
    labels = _labels(image_path, image_lines, path, names)
    of_seen = np.isin(labels, seen)
    held_out, how = _held_out(image_path, image_lines, of_seen, seed)
    concepts = [line.cells.get("concept") or line.cells["class"] for line in lines]
    task = Task(
        name=name,
        split="PS",
        embeddings=embed(names, concepts) if embed else _own_embeddings(folder, names),
        labels=labels,
        trainval=np.flatnonzero(of_seen & ~held_out),
        test_seen=np.flatnonzero(of_seen & held_out),
        test_unseen=np.flatnonzero(~of_seen),
        class_splits=_class_splits(path, lines, seen, seed),
        origin=str(folder),
        about={"held_out": how, "images_sha256": file_digest(image_path), "splits_sha256": file_digest(path)},
    )
    return Tables(task, tuple(line.cells["image"] for line in image_lines))


def table_images(folder: Path, tables: Tables) -> EncodedImages:
    """Return the images, whose paths are relative to the folder, or lie in ``images.zip`` there.

    Raises:
        MissingInput: an image is not there.
    """
    archive = folder / "images.zip"
    return open_images(archive if archive.is_file() else folder, tables.images)


def _find(folder: Path, name: str) -> Path:
    for suffix in (".csv", ".csv.xz"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise MissingInput(f"{folder / name}.csv: no such file")


def _read(path: Path, needed: Iterable[str]) -> list[_Line]:
    try:
        text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
        rows = csv.reader(text.splitlines())
        columns = [column.strip() for column in next(rows, [])]
        lines = [(rows.line_num, [cell.strip() for cell in row]) for row in rows if row]
    except (OSError, UnicodeDecodeError, lzma.LZMAError, csv.Error) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    for column in needed:
        if column not in columns:
            raise ConfigError(f"{path}: column {column!r} is missing.{nearest(column, columns)}")
    for number, cells in lines:
        if len(cells) != len(columns):
            raise ConfigError(f"{path}:{number}: {len(cells)} cells, expected {len(columns)} ({', '.join(columns)})")
    key = next(iter(needed))
    seen: set[str] = set()
    for number, cells in lines:
        cell = cells[columns.index(key)]
        if cell in seen or not cell:
            raise ConfigError(f"{path}:{number}: {key} {cell!r} is empty or stands twice")
        seen.add(cell)
    if not lines:
        raise ConfigError(f"{path}: has no line below the names of the columns")
    return [_Line(number, dict(zip(columns, cells, strict=True))) for number, cells in lines]


def _column(path: Path, lines: Sequence[_Line], column: str, allowed: Sequence[str]) -> list[str]:
    for line in lines:
        cell = line.cells[column]
        if cell not in allowed:
            raise ConfigError(
                f"{path}:{line.number}: {column} is {cell!r}, expected one of "
                f"{', '.join(repr(word) for word in allowed)}.{nearest(cell, allowed)}"
            )
    return [line.cells[column] for line in lines]


def _labels(path: Path, lines: Sequence[_Line], splits: Path, names: Sequence[str]) -> Labels:
    place = {name: row for row, name in enumerate(names)}
    for line in lines:
        if line.cells["class"] not in place:
            wrong = line.cells["class"]
            raise ConfigError(f"{path}:{line.number}: class {wrong!r} is not in {splits.name}.{nearest(wrong, names)}")
    labels = np.array([place[line.cells["class"]] for line in lines], dtype=np.int64)
    if absent := sorted(set(range(len(names))) - set(labels.tolist())):
        raise ConfigError(f"{path}: has no image of class {names[absent[0]]!r}, which {splits.name} lists")
    return labels


def _held_out(path: Path, lines: Sequence[_Line], of_seen: Mask, seed: int) -> tuple[Mask, str]:
    """Return which images of seen classes are held out, and how that was decided."""
    if "part" in lines[0].cells:
        parts = _column(path, lines, "part", ("train", "test", ""))
        for line, seen in zip(lines, of_seen.tolist(), strict=True):
            if bool(line.cells["part"]) != seen:
                raise ConfigError(
                    f"{path}:{line.number}: images of seen classes have a part, those of others have none"
                )
        return np.array([part == "test" for part in parts]), f"listed in {path.name}"
    rows = np.flatnonzero(of_seen).tolist()
    drawn = Random(seed).sample(rows, round(_HELD_OUT * len(rows)))  # noqa: S311 - a draw, not a secret
    held_out = np.zeros(len(lines), dtype=bool)
    held_out[drawn] = True
    return held_out, f"{_HELD_OUT:.0%} of the images of seen classes, drawn with seed {seed}"


def _class_splits(path: Path, lines: Sequence[_Line], seen: Labels, seed: int) -> tuple[ClassSplit, ...]:
    columns = [column for column in lines[0].cells if column.startswith("cv")]
    if not columns:
        return draw_class_splits(seen, [max(1, round(_VALIDATION * seen.size))] * _SPLITS, seed)
    of_seen = [lines[row] for row in seen.tolist()]
    splits = []
    for column in columns:
        is_val = np.array([part == "val" for part in _column(path, of_seen, column, ("train", "val"))])
        splits.append(ClassSplit(seen[~is_val], seen[is_val], f"{column} of {path.name}"))
    return tuple(splits)


def _own_embeddings(folder: Path, names: Sequence[str]) -> ClassEmbeddings:
    for name in ("embeddings.csv", "embeddings.npy"):
        if (folder / name).is_file():
            return file_embeddings(folder / name, names)
    raise MissingInput(f"{folder / 'embeddings.csv'}: no such file, nor embeddings.npy")
