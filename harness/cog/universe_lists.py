"""Lists of concepts in text, CSV or TSV files, plain or compressed by xz."""

import csv
import lzma
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from harness.errors import ConfigError
from harness.errors import nearest

Table: TypeAlias = Mapping[str, Mapping[str, str]]
"""The cells of each concept by column, by WNID, in the order of the file."""

_WNID = re.compile(r"n\d{8}")


def read_table(path: Path, needed: tuple[str, ...] = ()) -> Table:
    """Read a file of concepts, one a line; within a process only once, for as long as the file stays the same.

    The first line names the columns, one of them ``wnid``; a file without such a line is a plain list of WNIDs. Empty
    lines and those that begin with ``#`` are passed over.

    Args:
        path: ``.csv`` (commas), ``.tsv`` or ``.txt`` (tabs), each also with ``.xz``.
        needed: further columns that it must have.

    Raises:
        ConfigError: the file cannot be read, lacks a column or a cell, or a WNID is malformed or stands twice.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    table = _read(path, status.st_size, status.st_mtime_ns)
    columns = list(next(iter(table.values())))
    for name in needed:
        if name not in columns:
            raise ConfigError(f"{path}: column {name!r} is missing.{nearest(name, columns)}")
    return table


@lru_cache(maxsize=64)
def _read(path: Path, size: int, mtime_ns: int) -> Table:  # noqa: ARG001 - size and time are part of the memo key
    lines = _lines(path)
    comma = path.name.removesuffix(".xz").endswith(".csv")
    rows = list(csv.reader((line for _, line in lines), delimiter="," if comma else "\t"))
    if len(rows) != len(lines):
        raise ConfigError(f"{path}: a quoted cell does not end in its own line")
    header = 0 if _WNID.fullmatch(rows[0][0].strip()) else 1
    columns = [name.strip() for name in rows[0]] if header else ["wnid"]
    if "wnid" not in columns:
        raise ConfigError(f"{path}: column 'wnid' is missing.{nearest('wnid', columns)}")
    table: dict[str, Mapping[str, str]] = {}
    for (number, _), row in zip(lines[header:], rows[header:], strict=True):
        if len(row) != len(columns):
            raise ConfigError(f"{path}:{number}: {len(row)} cells, expected {len(columns)} ({', '.join(columns)})")
        cells = {name: cell.strip() for name, cell in zip(columns, row, strict=True)}
        wnid = cells["wnid"]
        if not _WNID.fullmatch(wnid):
            raise ConfigError(f"{path}:{number}: {wnid!r} is no WNID: expected n and eight digits")
        if wnid in table:
            raise ConfigError(f"{path}:{number}: {wnid} stands twice")
        table[wnid] = cells
    if not table:
        raise ConfigError(f"{path}: no concept in it")
    return table


def whole_number(path: Path, cells: Mapping[str, str], column: str) -> int:
    """Return the number in a cell.

    Raises:
        ConfigError: there is none.
    """
    if not cells[column].isdecimal():
        raise ConfigError(f"{path}: {cells['wnid']}: {column} is {cells[column]!r}, expected a whole number")
    return int(cells[column])


def real_number(path: Path, cells: Mapping[str, str], column: str) -> float:
    """Return the number in a cell.

    Raises:
        ConfigError: there is none.
    """
    try:
        return float(cells[column])
    except ValueError as error:
        raise ConfigError(f"{path}: {cells['wnid']}: {column} is {cells[column]!r}, expected a number") from error


def _lines(path: Path) -> list[tuple[int, str]]:
    if not re.search(r"\.(csv|tsv|txt)(\.xz)?$", path.name):
        raise ConfigError(f"{path}: expected a file of concepts: .csv, .tsv or .txt, or one of these and .xz")
    try:
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        lines = content.decode().splitlines()
    except (OSError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    kept = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and not line.startswith("#")]
    if not kept:
        raise ConfigError(f"{path}: no concept in it")
    return kept
