"""The report of ImageNet-CoG, from records alone: tables in three formats, figures in two, and a terminal summary."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from harness.cog.rankings import Ranking
from harness.cog.report_figures import Drawing
from harness.cog.report_figures import drawings
from harness.cog.report_figures import measured_baseline
from harness.cog.report_sections import Section
from harness.cog.report_sections import sections
from harness.cog.report_tables import measured_tables
from harness.cog.report_tables import tables
from harness.files import write_atomic
from harness.records.record import Record
from harness.report.figures import save_figure
from harness.report.writers import LATEX_PREAMBLE
from harness.report.writers import escape_markdown
from harness.report.writers import to_csv
from harness.report.writers import to_latex
from harness.report.writers import to_markdown
from harness.report.writers import to_terminal
from harness.suite import Suite
from harness.suite import load_suite
from harness.suite import suite_names

_HEAD = """# ImageNet-CoG

How well do frozen features tell concepts apart that are ever further from those seen in training? Best in bold, second
underlined; unrounded values are in `cog.csv`, tables for a paper in `cog.tex`. Made from {count} records.
"""


def write_report(
    records: Iterable[Record],
    reports_dir: Path,
    *,
    suites: Mapping[str, Suite] | None = None,
    similarities: Callable[[Section], Ranking | None] = lambda _: None,
) -> list[Path]:
    """Write ``cog.md``, ``cog.csv``, ``cog.tex`` and ``figures/cog-*`` (SVG and PNG) under ``reports_dir``.

    Equal records give equal bytes, whatever their order. Figures of an earlier report that this one does not have
    are removed.

    Args:
        records: One per case; those of other benchmarks are passed over.
        reports_dir: Made if absent.
        suites: Suites by name; default: the shipped ones.
        similarities: Gives the ranked concepts behind the levels of a section, or None for no such figure.

    Returns:
        The files written.

    Raises:
        ValueError: two records are of the same case.
    """
    found = sections(records, shipped_suites() if suites is None else suites)
    shown = [measured_tables(section) for section in found]
    written = [reports_dir / f"cog.{suffix}" for suffix in ("csv", "tex", "md")]
    text = _HEAD.format(count=sum(len(section.records) for section in found))
    for section, some in zip(found, shown, strict=True):
        drawn = drawings(section, similarities(section) if section.measured else None)
        links, paths = _save(section, drawn, reports_dir / "figures")
        written += paths
        text += "\n".join(["", _heading(section), *map(to_markdown, some), *links, *_remarks(section)])
    write_atomic(written[0], to_csv([table for section in found for table in tables(section)]))
    write_atomic(written[1], "\n".join([LATEX_PREAMBLE, *(to_latex(table) for some in shown for table in some)]))
    write_atomic(written[2], text)
    for stale in set((reports_dir / "figures").glob("cog-*.*")) - set(written):
        stale.unlink()
    return written


def shipped_suites() -> dict[str, Suite]:
    """Return the suites inside the package, by name."""
    return {name: load_suite(name) for name in suite_names()}


def summary_lines(records: Iterable[Record], suites: Mapping[str, Suite] | None = None) -> list[str]:
    """Return the first table of each section, the linear probe where it was run, as lines for the end of a run.

    Models without any value are left out: the run has said why they were skipped.
    """
    lines = []
    for section in sections(records, shipped_suites() if suites is None else suites):
        if not section.measured:
            continue
        first, *others = measured_tables(section)
        lines += to_terminal(first).splitlines()
        lines += ["The few-shot tables are in cog.md of the reports folder." if others else "", ""]
    return lines


def _heading(section: Section) -> str:
    note = f"\n**{escape_markdown(section.note)}**\n" if section.note else ""
    return f"## {escape_markdown(section.title[0].upper() + section.title[1:])}\n{note}"


def _remarks(section: Section) -> list[str]:
    """Say what is not there: figures relative to a baseline without a value, and models without any."""
    remarks = []
    if section.measured and section.linear_places and not measured_baseline(section):
        missing = f"{section.baseline} has no measured linear probe" if section.baseline else "no model is the baseline"
        remarks.append(f"No figure relative to the baseline: {escape_markdown(missing)}.\n")
    if section.unmeasured:
        lines = [f"- {', '.join(models)}: n/a ({reason})" for reason, models in section.unmeasured.items()]
        remarks.append("\n".join(["Not measured:\n", *map(escape_markdown, lines), ""]))
    return remarks


def _save(section: Section, drawn: Iterable[Drawing], folder: Path) -> tuple[list[str], list[Path]]:
    links, written = [], []
    for drawing in drawn:
        paths = save_figure(drawing.figure, folder / f"cog-{section.slug}-{drawing.name}", drawing.title)
        links.append(f"![{escape_markdown(drawing.title)}](figures/{quote(paths[0].name)})\n")
        written += paths
    return links, written
