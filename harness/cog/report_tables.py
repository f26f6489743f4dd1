"""Tables of ImageNet-CoG: top-1 accuracy of the linear probe and of few-shot probes, with mean ranks."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from harness.cog.report_sections import Place
from harness.cog.report_sections import Section
from harness.report.ranking import MeanRanks
from harness.report.ranking import mean_ranks
from harness.report.table import Cell
from harness.report.table import Column
from harness.report.table import Row
from harness.report.table import Table

LINEAR = "linear probe"
FEWSHOT = "few-shot probe"

_WIDEST = 12
"""Columns that fit beside each other on a page."""


def measured_tables(section: Section) -> list[Table]:
    """Return the tables without the models that have no measured case in the whole section, if any are left."""
    absent = {model for models in section.unmeasured.values() for model in models}
    found = tables(section) if section.measured else []
    return [replace(table, rows=tuple(row for row in table.rows if row.labels[0] not in absent)) for table in found]


def tables(section: Section) -> list[Table]:
    """Return the linear table, then the few-shot tables of as many splits each as fit on a page."""
    found = [_table(section, LINEAR, section.linear_places)] if section.linear_places else []
    return found + [_table(section, FEWSHOT, places) for places in _pages(section.fewshot_places)]


def _pages(places: tuple[Place, ...]) -> list[tuple[Place, ...]]:
    pages: list[tuple[Place, ...]] = []
    for _, group in groupby(places, key=lambda place: place.split):
        split = tuple(group)
        if pages and len(pages[-1]) + len(split) <= _WIDEST:
            pages[-1] += split
        else:
            pages.append(split)
    return pages


def _table(section: Section, protocol: str, places: tuple[Place, ...]) -> Table:
    columns = tuple(Column(_title(place), "percent") for place in places)
    rows = tuple(
        Row((model, section.groups[model]), tuple(section.cell(model, place) for place in places))
        for model in section.models
    )
    caption = (
        f"Top-1 accuracy in percent, mean ± population std over {section.effort}. "
        "Mean rank over all columns, among the models that have every one; 1 is best."
    )
    identity = {
        "suite": section.suite_name,
        "options": " ".join(f"{key}={value}" for key, value in sorted(section.options.items())),
        "protocol": protocol,
    }
    notes = (section.note,) if section.note else ()
    title = f"ImageNet-CoG {protocol}, {section.title}"
    scores = {model: {_title(place): section.ranked(model, place) for place in places} for model in section.models}
    return _with_mean_rank(Table(title, caption, ("Model", "Group"), columns, rows, identity, notes), scores)


def _title(place: Place) -> str:
    return place.split if place.shots is None else f"{place.split} N={place.shots}"


def _with_mean_rank(table: Table, scores: Mapping[str, Mapping[str, float | None]]) -> Table:
    ranked = mean_ranks(scores)
    rows = tuple(replace(row, cells=(*row.cells, _mean_rank(row, ranked))) for row in table.rows)
    column = Column("mean rank", "rank", digits=2, higher_is_better=False)
    return replace(table, columns=(*table.columns, column), rows=rows)


def _mean_rank(row: Row, ranked: MeanRanks) -> Cell:
    """Return the mean rank of a model; a model without any value gets no reason here, since its cells have it."""
    model = row.labels[0]
    if model in ranked.means:
        return Cell(ranked.means[model])
    missing = ranked.missing[model]
    return Cell(reason="" if len(missing) == len(ranked.cases) else f"missing {', '.join(missing)}")
