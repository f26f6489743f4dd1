"""The one table model of all reports: labelled rows of measured cells, and what each cell looks like once rounded."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from itertools import count
from itertools import product
from string import ascii_lowercase

from harness.report.ranking import standings

_LONGEST_INLINE_REASON = 32


@dataclass(frozen=True)
class Cell:
    """One measured value, or the reason why there is none."""

    value: float | None = None
    """In the unit of the column, unrounded."""
    std: float | None = None
    reason: str = ""
    """Why ``value`` is None."""
    marks: tuple[str, ...] = ()
    """Remarks on this cell; each becomes a footnote of the table."""


@dataclass(frozen=True)
class Column:
    """A column of cells."""

    title: str
    unit: str = ""
    digits: int = 1
    """Decimals shown."""
    higher_is_better: bool = True


@dataclass(frozen=True)
class Row:
    """One row: its labels, then one cell per column."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of labels and cells under titled columns."""

    title: str
    caption: str
    """What the numbers are."""
    labels: tuple[str, ...]
    """Titles of the label columns: ``("Model", "Group")``."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    identity: Mapping[str, str] = field(default_factory=dict)
    """What tells this table from the others of a report: columns of the CSV file."""
    notes: tuple[str, ...] = ()
    """Lines that stand under the table."""

    def values(self, column: int) -> list[float | None]:
        """Return the unrounded values of one column, from top to bottom."""
        return [row.cells[column].value for row in self.rows]


@dataclass(frozen=True)
class Shown:
    """A cell as text, before a writer decorates it."""

    text: str
    """The rounded value, or ``n/a (reason)``."""
    spread: str
    """The rounded std, or nothing."""
    standing: int
    """1: best of its column; 2: second; 0: neither."""
    letters: tuple[str, ...]
    """Its footnotes."""


def shown(table: Table) -> list[list[Shown]]:
    """Return every cell as text, row by row. Best and second are found before rounding."""
    letters = {text: letter for letter, text in footnotes(table)}
    places = [
        standings(table.values(index), higher_is_better=column.higher_is_better)
        for index, column in enumerate(table.columns)
    ]
    return [
        [
            _show(cell, column, place[number], letters)
            for cell, column, place in zip(row.cells, table.columns, places, strict=True)
        ]
        for number, row in enumerate(table.rows)
    ]


def _show(cell: Cell, column: Column, standing: int, letters: Mapping[str, str]) -> Shown:
    marks = tuple(letters[mark] for mark in cell.marks)
    if cell.value is None:
        long = len(cell.reason) > _LONGEST_INLINE_REASON
        return Shown(f"n/a (see {letters[cell.reason]})" if long else f"n/a ({cell.reason})", "", 0, marks)
    spread = "" if cell.std is None else fixed(cell.std, column.digits)
    return Shown(fixed(cell.value, column.digits), spread, standing, marks)


def fixed(value: float, digits: int) -> str:
    """Round to ``digits`` decimals, without the sign of a negative zero."""
    return f"{value:z.{digits}f}"


def footnotes(table: Table) -> list[tuple[str, str]]:
    """Return (letter, text) of every footnote in the order in which the cells refer to them.

    Footnotes are the marks of the cells, and the reasons too long to stand in a cell.
    """
    texts: dict[str, None] = {}
    for row in table.rows:
        for cell in row.cells:
            texts.update(dict.fromkeys(cell.marks))
            if cell.value is None and len(cell.reason) > _LONGEST_INLINE_REASON:
                texts[cell.reason] = None
    return list(zip(_letters(), texts, strict=False))


def _letters() -> Iterator[str]:
    for length in count(1):
        yield from map("".join, product(ascii_lowercase, repeat=length))


def fold(table: Table) -> Table:
    """Move the rows without any value into notes, one per reason: ``n/a (no weights): s-DINO, s-SwAV``."""
    kept = tuple(row for row in table.rows if any(cell.value is not None for cell in row.cells))
    names: dict[str, list[str]] = {}
    for row in table.rows:
        if row not in kept:
            reasons = "; ".join(dict.fromkeys(cell.reason for cell in row.cells if cell.reason))
            names.setdefault(reasons, []).append(row.labels[0])
    notes = tuple(f"n/a ({reason}): {', '.join(models)}" for reason, models in sorted(names.items()))
    return replace(table, rows=kept, notes=(*table.notes, *notes))
