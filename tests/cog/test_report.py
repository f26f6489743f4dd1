"""The report of ImageNet-CoG from a small set of records, against golden files and by what must always hold.

``HARNESS_REGENERATE=1 python -m pytest tests/cog/test_report.py`` writes the golden files anew: look at the difference.
"""

import csv
import io
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from statistics import pstdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from harness.case import Case
from harness.cog.rankings import Ranking
from harness.cog.report import shipped_suites
from harness.cog.report import summary_lines
from harness.cog.report import write_report
from harness.cog.report_figures import drawings
from harness.cog.report_sections import Place
from harness.cog.report_sections import Section
from harness.cog.report_sections import sections
from harness.cog.report_tables import tables
from harness.records.record import Attempt
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Provenance
from harness.records.record import Record

GOLDEN = Path(__file__).parent / "golden_report"
SPLITS = ("seen", "L1", "L2")
DRAWN = ("levels", "relative", "fewshot", "similarity")
NOTE = "Emoji drawings, not photographs."
SIMILARITIES: Ranking = [(1, 0.9, 1), (2, 0.8, 1), (3, 0.7, None), (4, 0.6, 2)]


def identity(model: str, split: str, shots: int | None = None, suite: str = "mini", **options: str) -> CaseIdentity:
    tokens = {"split": split} if shots is None else {"split": split, "shots": f"N{shots:03d}"}
    return CaseIdentity.of(Case("cog", "linear" if shots is None else "fewshot", model, suite, tokens, options))


def measured(case: CaseIdentity, per_seed: Sequence[float], group: str, **fields: object) -> Record:
    metric = Metric(value=fmean(per_seed), std=pstdev(per_seed), per_seed=list(per_seed))
    details = {"group": group, "mean_similarity": {"L1": 0.8, "L2": 0.5}.get(case.tokens["split"])}
    return Record.model_validate(
        {"case": case, "status": "passed", "metrics": {"top1": metric}, "details": details, **fields}
    )


def skipped(case: CaseIdentity, reason: str) -> Record:
    return Record(case=case, status="skipped", reason=reason)


def small_set() -> list[Record]:
    """Return a baseline, a better model with remarks, one with a failed case, two skipped; and another reading."""
    base, odd = "sup-mini", "s-a_b&c"
    records = [
        measured(identity(base, split), [70.0 - n, 70.3 - n, 70.06 - n], "architecture")
        for n, split in enumerate(SPLITS)
    ]
    records += [
        measured(identity(base, split, shots), [30.0 + shots, 31.0 + shots, 33.0], "architecture")
        for split in SPLITS
        for shots in (1, 4)
    ]
    records += [
        measured(identity(odd, "seen"), [70.1, 70.2, 70.07], "self-supervised"),
        measured(
            identity(odd, "L1"),
            [72.0, 71.0, 20.0],
            "self-supervised",
            warnings=["seed 45 collapsed: final 20.0, validation 71.2"],
            last_attempt=Attempt(status="failed", reason="CUDA out of memory", time="2026-01-01T00:00:00+00:00"),
        ),
        Record(case=identity(odd, "L2"), status="failed", reason="ValueError: loss is not finite\n  in trial 3"),
        measured(identity("random-resnet18", "seen"), [12.0, 13.0, 14.0], "other"),
        measured(identity("random-resnet18", "L1"), [11.0, 13.0, 12.0], "other"),
        measured(identity("random-resnet18", "L2"), [10.0, 10.0, 10.0], "other"),
        measured(identity(base, "seen", schedule="exact"), [71.0, 71.0, 71.0], "architecture"),
    ]
    records += [skipped(identity(model, split), "no weights") for model in ("s-DINO", "s-SwAV") for split in SPLITS]
    return records


def similarities(section: Section) -> Ranking | None:
    return None if section.options else SIMILARITIES


def test_golden(tmp_path: Path) -> None:
    write_report(small_set(), tmp_path, similarities=similarities)
    for name in ("cog.md", "cog.csv", "cog.tex"):
        text = (tmp_path / name).read_text()
        if os.environ.get("HARNESS_REGENERATE"):
            GOLDEN.mkdir(exist_ok=True)
            (GOLDEN / name).write_text(text)
        assert text == (GOLDEN / name).read_text()


def test_equal_records_in_any_order_give_equal_bytes(tmp_path: Path) -> None:
    contents = []
    for seed in range(2):
        records = small_set()
        random.Random(seed).shuffle(records)  # noqa: S311 - an order, no secret
        written = write_report(records, tmp_path / str(seed), similarities=similarities)
        contents.append({path.relative_to(tmp_path / str(seed)): path.read_bytes() for path in written})
    assert contents[0] == contents[1]
    assert {path.name for path in contents[0]} == {
        "cog.csv",
        "cog.md",
        "cog.tex",
        *(f"cog-mini-{name}.{kind}" for name in DRAWN for kind in ("svg", "png")),
        *(f"cog-mini-schedule=exact-{name}.{kind}" for name in ("levels", "relative") for kind in ("svg", "png")),
    }


def test_figures_of_an_earlier_report_go(tmp_path: Path) -> None:
    write_report(small_set(), tmp_path, similarities=similarities)
    (tmp_path / "figures" / "zsl-mini.svg").write_text("of another benchmark")
    written = write_report([record for record in small_set() if not record.case.options], tmp_path)
    left = {path.name for path in (tmp_path / "figures").iterdir()}
    assert left == {path.name for path in written if path.parent.name == "figures"} | {"zsl-mini.svg"}
    assert "cog-mini-levels.svg" in left
    assert "cog-mini-similarity.svg" not in left


def test_two_readings_never_share_a_table() -> None:
    found = sections(small_set(), shipped_suites())
    assert [dict(section.options) for section in found] == [{}, {"schedule": "exact"}]
    assert [len(section.records) for section in found] == [len(small_set()) - 1, 1]


def test_suite_and_options_and_note_stand_in_every_table_and_figure(tmp_path: Path) -> None:
    write_report(small_set(), tmp_path)
    text = (tmp_path / "cog.md").read_text()
    titles = [line for line in text.splitlines() if line.startswith(("**ImageNet-CoG", "![", "## "))]
    assert len(titles) == 2 + 3 + 5
    assert all("mini suite" in title.lower() and "protocol options: " in title for title in titles)
    assert sum("protocol options: schedule=exact" in title for title in titles) == 4
    assert text.count(f"\n{NOTE}") == 3
    for section in sections(small_set(), shipped_suites()):
        for drawing in drawings(section, SIMILARITIES):
            words = " ".join(" ".join(text.get_text() for text in drawing.figure.texts).split())
            assert NOTE in words
            assert section.title in words


def test_relative_figure_needs_the_baseline(tmp_path: Path) -> None:
    others = [record for record in small_set() if record.case.model != "sup-mini"]
    written = write_report(others, tmp_path)
    assert not [path for path in written if "relative" in path.name]
    assert (
        "No figure relative to the baseline: sup-mini has no measured linear probe."
        in (tmp_path / "cog.md").read_text()
    )


def test_relative_curve_is_the_difference_within_seeds() -> None:
    records = [
        measured(identity("sup-mini", "seen"), [70.0, 72.0], "architecture"),
        measured(identity("x", "seen"), [71.0, 75.0], "architecture"),
    ]
    (section,) = sections(records, shipped_suites())
    relative = {drawing.name: drawing for drawing in drawings(section, None)}["relative"]
    axes = relative.figure.axes[0]
    heights = {round(float(np.asarray(line.get_ydata(), dtype=float)[0]), 9) for line in axes.lines}
    assert heights >= {0.0, 2.0}
    bands = [band.get_paths()[0].get_extents() for band in axes.collections]
    assert sorted((round(band.y0, 9), round(band.y1, 9)) for band in bands) == [(0.0, 0.0), (1.0, 3.0)]


def test_many_models_are_drawn_by_group_each_with_the_baseline() -> None:
    groups = {
        "ResNet50": "baseline",
        **{f"a-{n}": "architecture" for n in range(5)},
        **{f"s-{n}": "web-data" for n in "pqrs"},
    }
    records = [measured(identity(m, "L1", None, "paper"), [60.0], group) for m, group in groups.items()]
    records += [measured(identity(m, "L1", n, "paper"), [50.0], group) for m, group in groups.items() for n in (1, 2)]
    (section,) = sections(records, shipped_suites())
    found = {drawing.name: drawing.figure for drawing in drawings(section, None)}
    assert list(found) == ["levels", "relative", "fewshot-L1"]
    for figure in found.values():
        names = [{text.get_text() for text in axes.texts} for axes in figure.axes]
        assert names == [
            {"ResNet50", *(f"a-{n}" for n in range(5))},
            {"ResNet50", "s-p", "s-q", "s-r", "s-s"},
        ]


def test_few_shot_curves_end_in_all_images() -> None:
    (section, _) = sections(small_set(), shipped_suites())
    figure = {drawing.name: drawing for drawing in drawings(section, None)}["fewshot"].figure
    assert [axes.get_title("left") for axes in figure.axes] == list(SPLITS)
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "4", "all"]
        assert list(axes.get_xticks()) == [0.0, 2.0, 3.5]


def test_few_shot_tables_hold_whole_splits_that_fit_a_page(tmp_path: Path) -> None:
    records = [
        measured(identity("ResNet50", split, shots, "paper"), [50.0], "baseline")
        for split in ("IN1K", "L1", "L10", "L2")
        for shots in (1, 2, 4, 8, 16)
    ]
    write_report(records, tmp_path)
    rows = list(csv.reader(io.StringIO((tmp_path / "cog.csv").read_text())))[1:]
    columns = [row[5] for row in rows]
    assert columns == [
        *(f"{split} N={n}" for split in ("IN1K", "L1") for n in (1, 2, 4, 8, 16)),
        "mean rank",
        *(f"{split} N={n}" for split in ("L2", "L10") for n in (1, 2, 4, 8, 16)),
        "mean rank",
    ]


def test_only_skips_still_make_a_report(tmp_path: Path) -> None:
    records = [
        skipped(identity("s-DINO", split, None, "paper"), "no weights:\n put x there") for split in ("IN1K", "L1")
    ]
    written = write_report(records, tmp_path)
    assert [path.name for path in written] == ["cog.csv", "cog.tex", "cog.md"]
    text = (tmp_path / "cog.md").read_text()
    assert "- s-DINO: n/a (no weights: put x there)" in text


def test_no_records(tmp_path: Path) -> None:
    write_report([], tmp_path)
    assert "Made from 0 records" in (tmp_path / "cog.md").read_text()
    assert summary_lines([]) == []


def test_an_unknown_suite_is_named_and_its_only_baseline_found() -> None:
    records = [
        measured(identity("x", "L1", None, "mine"), [50.0], "architecture"),
        measured(identity("b", "L1", None, "mine"), [50.0], "baseline"),
    ]
    (section,) = sections(records, shipped_suites())
    assert section.title == "suite mine, protocol options: none"
    assert section.effort == "1 seed"
    assert section.baseline == "b"


def test_options_that_a_suite_no_longer_has_still_report(tmp_path: Path) -> None:
    write_report([measured(identity("x", "L1", gone="1"), [1.0], "architecture")], tmp_path, similarities=similarities)
    text = (tmp_path / "cog.md").read_text()
    assert "protocol options: gone=1**" in text
    assert "population std over 1 seed. Mean rank" in text


def test_two_records_of_one_case_are_refused() -> None:
    with pytest.raises(ValueError, match="two records of cog/linear/x-L1"):
        sections([measured(identity("x", "L1"), [1.0], "architecture")] * 2, {})


def test_slugs_of_options_that_no_file_name_can_hold_differ() -> None:
    records = [measured(identity("x", "L1", universe=name), [1.0], "a") for name in ("a/b.yaml", "a:b.yaml", "ab.yaml")]
    slugs = [section.slug for section in sections(records, shipped_suites())]
    assert len(set(slugs)) == 3
    assert slugs[2] == "mini-universe=ab.yaml"
    assert not any(set(slug) & set("/:") for slug in slugs)


def test_summary_is_the_linear_table_of_each_section() -> None:
    lines = summary_lines(small_set())
    assert lines[0].startswith("ImageNet-CoG linear probe, mini suite")
    assert lines[3].split() == ["sup-mini", "70.1", "69.1", "68.1", "1.00"]
    assert not any("s-SwAV" in line for line in lines), "the run has said why it was skipped"
    assert sum(line.startswith("ImageNet-CoG") for line in lines) == 2


@given(st.permutations(small_set()))
@settings(max_examples=15, deadline=None)
def test_tables_do_not_depend_on_the_order_of_records(records: list[Record]) -> None:
    assert summary_lines(records) == summary_lines(small_set())


def test_the_report_needs_no_torch_and_its_import_no_matplotlib() -> None:
    code = (
        "import sys, harness.cog.report\n"
        "heavy = {'torch', 'timm', 'nltk', 'optuna', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def keyed(model: str, split: str, day: int, **changes: Any) -> Record:
    """Return a record with the part of its key that has to be equal among those it stands beside."""
    part = {"backbone": {"size": 224}, "weights": "w", "images": split}
    settings = {"trials": changes.get("trials", 10), "fewshot_val": "full"}
    train = {**part, "weights": changes.get("weights", "w")}
    key = {"train": train, "test": part, "labels": changes.get("labels", split), "seeds": [22], "settings": settings}
    provenance = Provenance(measured=f"2026-01-{day:02d}T00:00:00+00:00")
    return measured(identity(model, split), [50.0], "architecture", key=key, provenance=provenance)


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ({"weights": "v"}, "network or weights"),
        ({"trials": 2}, "seeds or settings"),
        ({"labels": "x"}, "images or concepts"),
    ],
)
def test_what_cannot_be_compared_is_marked_and_not_ranked(changes: dict[str, Any], other: str) -> None:
    records = [keyed("a", "L1", 1, **changes), keyed("a", "L2", 2), keyed("b", "L1", 3), keyed("b", "L2", 4)]
    (section,) = sections(records, shipped_suites())
    assert section.stale == {("a", Place("L1")): [other]}
    (table,) = tables(section)
    by_model = {row.labels[0]: row.cells for row in table.rows}
    assert by_model["a"][0].marks == (f"not ranked: measured with other {other} than the latest; run it again",)
    assert by_model["a"][-1].reason == "missing L1"
    assert by_model["b"][-1].value == 1.0
    same_second = [keyed(model, split, 1) for model in "ab" for split in ("L1", "L2")]
    few = keyed("a", "L1", 1)
    same_second.append(few.model_copy(update={"case": identity("a", "L1", 4)}))
    (same,) = sections(same_second, shipped_suites())
    assert same.stale == {}


def test_a_universe_of_ones_own_has_neither_title_nor_note_of_the_suite() -> None:
    case = identity("a", "L1", universe="birds@01234567")
    (section,) = sections([measured(case, [50.0], "architecture")], shipped_suites())
    assert section.title.startswith("mini protocol on a universe of one's own, protocol options: universe=birds@")
    assert section.note == ""
