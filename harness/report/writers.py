"""The writers of a table: Markdown, terminal, CSV and LaTeX. Equal tables give equal bytes."""

import csv
import io
import re
from collections.abc import Iterator
from collections.abc import Sequence

from tabulate import tabulate

from harness.report.ranking import ranks
from harness.report.table import Shown
from harness.report.table import Table
from harness.report.table import fold
from harness.report.table import footnotes
from harness.report.table import shown

LATEX_PREAMBLE = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}.\n"

_CELL_FIELDS = ("column", "value", "std", "unit", "rank", "note")

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "[": "{[}",
        **{character: f"\\{character}" for character in "{}&%$#_"},
    }
)


def to_markdown(table: Table) -> str:
    """Return title, caption, a pipe table with best in bold and second underlined, footnotes and notes."""
    table = fold(table)
    body = [
        [*map(escape_markdown, row.labels), *map(_markdown_cell, cells)]
        for row, cells in zip(table.rows, shown(table), strict=True)
    ]
    grid = _grid(table, [*map(escape_markdown, _titles(table))], body, "pipe")
    notes = [f"<sup>{letter}</sup> {escape_markdown(text)}" for letter, text in footnotes(table)]
    notes += map(escape_markdown, table.notes)
    return "\n\n".join([f"**{escape_markdown(table.title)}**", escape_markdown(table.caption), *grid, *notes]) + "\n"


def _markdown_cell(cell: Shown) -> str:
    text = escape_markdown(cell.text)
    text = {1: f"**{text}**", 2: f"<ins>{text}</ins>"}.get(cell.standing, text)
    return (
        text
        + (f" ± {cell.spread}" if cell.spread else "")
        + (f" <sup>{' '.join(cell.letters)}</sup>" if cell.letters else "")
    )


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as markup, and put the text on one line."""
    return re.sub(r"([\\|*_`\[\]])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def to_terminal(table: Table) -> str:
    """Return a compact plain table of first labels and values, with footnotes and notes, ending in a newline."""
    table = fold(table)
    body = [
        [row.labels[0], *(" ".join([cell.text, *(f"[{letter}]" for letter in cell.letters)]) for cell in cells)]
        for row, cells in zip(table.rows, shown(table), strict=True)
    ]
    grid = _grid(table, [table.labels[0], *_titles(table)[len(table.labels) :]], body, "simple")
    notes = [f"[{letter}] {text}" for letter, text in footnotes(table)]
    return "\n".join([table.title, *grid, *notes, *table.notes]) + "\n"


def to_csv(tables: Sequence[Table]) -> str:
    """Return all cells of ``tables`` in long form, one a line, unrounded, under one header.

    Columns: the identity of the table, the labels of the row, then column, value, std, unit, rank and note (the
    marks of the cell, and the reason why it has no value).
    """
    lines = [line for table in tables for line in _long_lines(table)]
    leading = dict.fromkeys(key for table in tables for key in [*table.identity, *map(str.lower, table.labels)])
    text = io.StringIO()
    writer = csv.DictWriter(text, [*leading, *_CELL_FIELDS], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _long_lines(table: Table) -> Iterator[dict[str, str | float | None]]:
    places = [
        ranks(table.values(index), higher_is_better=column.higher_is_better)
        for index, column in enumerate(table.columns)
    ]
    for number, row in enumerate(table.rows):
        labels = dict(zip(map(str.lower, table.labels), row.labels, strict=True))
        for cell, column, place in zip(row.cells, table.columns, places, strict=True):
            note = "; ".join(filter(None, [cell.reason, *cell.marks]))
            entries = (column.title, cell.value, cell.std, column.unit, place[number], note)
            yield {**table.identity, **labels, **dict(zip(_CELL_FIELDS, entries, strict=True))}


def to_latex(table: Table) -> str:
    """Return a booktabs table, shrunk to the line width where it is wider, everything escaped."""
    table = fold(table)
    lines = [
        " & ".join([*map(escape_latex, row.labels), *map(_latex_cell, cells)])
        for row, cells in zip(table.rows, shown(table), strict=True)
    ]
    notes = [rf"\textsuperscript{{{letter}}}~{escape_latex(text)}" for letter, text in footnotes(table)]
    notes += map(escape_latex, table.notes)
    parts = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{\textbf{{{escape_latex(table.title)}.}} {escape_latex(table.caption)}}}",
        r"\vspace{4pt}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{'l' * len(table.labels)}{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(map(escape_latex, _titles(table))) + r" \\",
        r"\midrule",
        *(rf"{line} \\" for line in lines),
        r"\bottomrule",
        r"\end{tabular}}",
        *(rf"\par{{\footnotesize {note}\par}}" for note in notes),
        r"\end{table*}",
    ]
    return "\n".join(parts) + "\n"


def _latex_cell(cell: Shown) -> str:
    text = escape_latex(cell.text)
    text = {1: rf"\textbf{{{text}}}", 2: rf"\underline{{{text}}}"}.get(cell.standing, text)
    spread = rf" {{\scriptsize$\pm${cell.spread}}}" if cell.spread else ""
    return text + spread + (rf"\textsuperscript{{{','.join(cell.letters)}}}" if cell.letters else "")


def escape_latex(text: str) -> str:
    """Escape what LaTeX would read as markup, and put the text on one line."""
    return " ".join(text.split()).translate(_LATEX)


def _titles(table: Table) -> list[str]:
    return [*table.labels, *(column.title for column in table.columns)]


def _grid(table: Table, titles: list[str], body: list[list[str]], form: str) -> list[str]:
    """Return the drawn grid, or nothing where all rows were folded away."""
    if not body:
        return []
    values = len(table.columns)
    aligned = ["left"] * (len(titles) - values) + ["right"] * values
    return [tabulate(body, headers=titles, tablefmt=form, disable_numparse=True, colalign=aligned)]
