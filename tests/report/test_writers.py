"""What the writers make of a table: rounding, marks, reasons, escapes."""

import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.table import Cell
from harness.report.table import Column
from harness.report.table import Row
from harness.report.table import Table
from harness.report.table import fixed
from harness.report.table import fold
from harness.report.table import footnotes
from harness.report.writers import escape_latex
from harness.report.writers import escape_markdown
from harness.report.writers import to_csv
from harness.report.writers import to_latex
from harness.report.writers import to_markdown
from harness.report.writers import to_terminal

LONG = "the weights of this model are nowhere on this machine"
TABLE = Table(
    "Title",
    "Caption",
    ("Model", "Group"),
    (Column("L1", "percent"), Column("error", "fraction", digits=3, higher_is_better=False)),
    (
        Row(("a_1", "g"), (Cell(70.04, 0.25), Cell(0.3))),
        Row(("b|2", "g"), (Cell(70.01, 0.0, marks=("seed 22 collapsed",)), Cell(reason=LONG))),
        Row(("c", "h"), (Cell(reason="not run"), Cell(0.2))),
        Row(("d", "h"), (Cell(69.0), Cell(0.4))),
        Row(("e", "h"), (Cell(reason="no weights"), Cell(reason="no weights"))),
        Row(("f", "h"), (Cell(reason="no weights"), Cell(reason="no weights"))),
    ),
    {"suite": "mini"},
    ("A note.",),
)


def grid(markdown: str) -> list[list[str]]:
    """Return the cells of a pipe table, without its rule."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("|:")]
    return [[cell.strip() for cell in line.strip("|").replace(r"\|", "¦").split("|")] for line in lines]


def test_markdown() -> None:
    text = to_markdown(TABLE)
    assert grid(text) == [
        ["Model", "Group", "L1", "error"],
        [r"a\_1", "g", "**70.0** ± 0.2", "<ins>0.300</ins>"],
        ["b¦2", "g", "<ins>70.0</ins> ± 0.0 <sup>a</sup>", "n/a (see b)"],
        ["c", "h", "n/a (not run)", "**0.200**"],
        ["d", "h", "69.0", "0.400"],
    ]
    assert text.startswith("**Title**\n\nCaption\n\n|")
    assert text.endswith(
        f"\n\n<sup>a</sup> seed 22 collapsed\n\n<sup>b</sup> {LONG}\n\nA note.\n\nn/a (no weights): e, f\n"
    )


def test_terminal() -> None:
    lines = to_terminal(TABLE).splitlines()
    assert lines[0] == "Title"
    assert [line.split() for line in lines[3:7]] == [
        ["a_1", "70.0", "0.300"],
        ["b|2", "70.0", "[a]", "n/a", "(see", "b)"],
        ["c", "n/a", "(not", "run)", "0.200"],
        ["d", "69.0", "0.400"],
    ]
    assert lines[7:] == ["[a] seed 22 collapsed", f"[b] {LONG}", "A note.", "n/a (no weights): e, f"]


def test_csv_holds_every_cell_unrounded_with_its_rank() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([TABLE]))))
    assert len(rows) == len(TABLE.rows) * len(TABLE.columns)
    assert rows[0] == {
        "suite": "mini",
        "model": "a_1",
        "group": "g",
        "column": "L1",
        "value": "70.04",
        "std": "0.25",
        "unit": "percent",
        "rank": "1.0",
        "note": "",
    }
    assert [row["rank"] for row in rows if row["column"] == "error"] == ["2.0", "", "1.0", "3.0", "", ""]
    assert [row["note"] for row in rows[2:5]] == ["seed 22 collapsed", LONG, "not run"]


def test_csv_of_different_tables_has_one_header() -> None:
    other = replace(TABLE, labels=("Model", "Method"), identity={"dataset": "CUB"})
    rows = list(csv.DictReader(io.StringIO(to_csv([TABLE, other]))))
    assert list(rows[0])[:5] == ["suite", "model", "group", "dataset", "method"]
    assert (rows[0]["dataset"], rows[-1]["dataset"], rows[-1]["suite"]) == ("", "CUB", "")
    assert to_csv([]) == "column,value,std,unit,rank,note\n"


def test_latex() -> None:
    lines = to_latex(TABLE).splitlines()
    start = lines.index(r"\toprule")
    assert lines[start - 1] == r"\begin{tabular}{llrr}"
    assert lines[start + 1 : start + 8] == [
        r"Model & Group & L1 & error \\",
        r"\midrule",
        r"a\_1 & g & \textbf{70.0} {\scriptsize$\pm$0.2} & \underline{0.300} \\",
        r"b\textbar{}2 & g & \underline{70.0} {\scriptsize$\pm$0.0}\textsuperscript{a} & n/a (see b) \\",
        r"c & h & n/a (not run) & \textbf{0.200} \\",
        r"d & h & 69.0 & 0.400 \\",
        r"\bottomrule",
    ]


def test_a_table_without_values_is_only_its_notes() -> None:
    empty = replace(TABLE, rows=TABLE.rows[4:])
    assert to_terminal(empty) == "Title\nA note.\nn/a (no weights): e, f\n"
    assert to_markdown(empty) == "**Title**\n\nCaption\n\nA note.\n\nn/a (no weights): e, f\n"
    assert r"\midrule" + "\n" + r"\bottomrule" in to_latex(empty)


def test_fold_joins_models_of_one_reason_and_reasons_of_one_model() -> None:
    both = Row(("g", "h"), (Cell(reason="no weights"), Cell(reason="no images")))
    notes = fold(replace(TABLE, rows=(*TABLE.rows, both), notes=())).notes
    assert notes == ("n/a (no weights): e, f", "n/a (no weights; no images): g")


def test_best_is_found_before_rounding() -> None:
    rows = tuple(Row((name,), (Cell(value),)) for name, value in [("a", 70.041), ("b", 70.042), ("c", 70.04)])
    shown = grid(to_markdown(replace(TABLE, labels=("Model",), columns=TABLE.columns[:1], rows=rows)))
    assert [row[1] for row in shown[1:]] == ["<ins>70.0</ins>", "**70.0**", "70.0"]


@pytest.mark.parametrize(
    ("value", "digits", "text"), [(69.95, 1, "70.0"), (69.94999, 1, "69.9"), (-0.04, 1, "0.0"), (2.345, 2, "2.35")]
)
def test_fixed(value: float, digits: int, text: str) -> None:
    assert fixed(value, digits) == text


def test_footnotes_are_lettered_in_the_order_of_the_cells_and_shared() -> None:
    cells = (Cell(1.0, marks=("x", "y")), Cell(2.0, marks=("y", "z")))
    assert footnotes(replace(TABLE, rows=(Row(("a", "g"), cells),))) == [("a", "x"), ("b", "y"), ("c", "z")]


def test_more_than_26_footnotes() -> None:
    cells = (Cell(1.0, marks=tuple(map(str, range(28)))), Cell(2.0))
    assert [letter for letter, _ in footnotes(replace(TABLE, rows=(Row(("a", "g"), cells),)))][25:] == ["z", "aa", "ab"]


def test_latex_escapes() -> None:
    assert escape_latex(r"50% of $x_1 & #2 ~ {a}^b \c") == (
        r"50\% of \$x\_1 \& \#2 \textasciitilde{} \{a\}\textasciicircum{}b \textbackslash{}c"
    )
    assert escape_latex("[a]\n ± <b>") == r"{[}a] $\pm$ \textless{}b\textgreater{}"


@given(st.text("\\{}&%$#_^~<>|[]±ab \n"))
def test_latex_has_balanced_braces_and_no_bare_special_character(text: str) -> None:
    plain = escape_latex(text).replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    for special in "&%#_":
        assert plain.replace(f"\\{special}", "").count(special) == 0
    assert "\n" not in plain


@given(st.text("\\|*_`[]<ab \n"))
def test_markdown_cells_stay_one_cell(text: str) -> None:
    escaped = escape_markdown(text)
    assert "\n" not in escaped
    assert "<" not in escaped
    bare = escaped.replace("\\\\", "").replace(r"\|", "").replace(r"\*", "")
    assert "|" not in bare
    assert "*" not in bare
