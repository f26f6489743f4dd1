"""Figures of ImageNet-CoG: accuracy per level, few-shot curves and the ranking of concepts by similarity."""

import math
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import groupby
from statistics import pstdev
from typing import TYPE_CHECKING

from harness.cog.report_sections import Place
from harness.cog.report_sections import Section
from harness.records.record import Metric
from harness.report.figures import Curve
from harness.report.figures import Panel
from harness.report.figures import Ranked
from harness.report.figures import draw_panels
from harness.report.figures import draw_ranked
from harness.report.layout import Words
from harness.report.style import styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_IN_ONE_PANEL = 8
"""Models; more are drawn in one panel per group, each with the baseline."""


@dataclass(frozen=True)
class Drawing:
    """A figure with the names it goes by."""

    name: str
    """Part of its file name."""
    title: str
    figure: "Figure"


def drawings(section: Section, similarities: Sequence[tuple[int, float, int | None]] | None) -> Iterator[Drawing]:
    """Draw all figures that the records of a section allow.

    Args:
        section: Records of one suite and one reading of the protocol.
        similarities: (rank, similarity to the nearest seen concept, level or None in a gap) of every unseen concept.
    """
    yield from _level_drawings(section)
    yield from _fewshot_drawings(section)
    if similarities:
        yield _similarity_drawing(section, similarities)


def measured_baseline(section: Section) -> str | None:
    """Return the baseline where it has a measured linear probe."""
    model = section.baseline
    return model if model in _measured(section, section.linear_places) else None


def _measured(section: Section, places: Sequence[Place]) -> list[str]:
    return [model for model in section.models if any(section.value(model, place) is not None for place in places)]


def _level_drawings(section: Section) -> Iterator[Drawing]:
    places, baseline = section.linear_places, measured_baseline(section)
    models = _measured(section, places)
    if not models:
        return
    axis = tuple(map(float, range(len(places)))), _level_ticks(section, places)
    bands = f"Bands: population std over {section.effort}"
    below = "Below each split: its mean similarity to the seen concepts." if "\n" in axis[1][-1] else ""
    curves = [_curve(section, model, places) for model in models]
    panels = [Panel(group, *axis, part) for group, part in _by_group(section, curves)]
    yield _draw(section, "levels", panels, Words("linear probe", "split", "top-1 accuracy (%)", f"{bands}. {below}"))
    if baseline:
        curves = [_relative_curve(section, model, baseline, places) for model in models]
        panels = [Panel(group, *axis, part) for group, part in _by_group(section, curves)]
        note = f"{bands}, of the difference within each seed. {below}"
        words = Words(f"linear probe relative to {baseline}", "split", "difference (points)", note)
        yield _draw(section, "relative", panels, words)


def _level_ticks(section: Section, places: Sequence[Place]) -> tuple[str, ...]:
    """Name each split, and its mean similarity where any split has one."""
    similarities = [section.similarity(place) for place in places]
    if similarities.count(None) == len(places):
        return tuple(place.split for place in places)
    return tuple(
        f"{place.split}\n" + ("-" if similarity is None else f"{similarity:.2f}")
        for place, similarity in zip(places, similarities, strict=True)
    )


def _curve(section: Section, model: str, places: Sequence[Place]) -> Curve:
    metrics = [section.metric(model, place) for place in places]
    return Curve(
        model,
        tuple(metric.value if metric else None for metric in metrics),
        tuple(metric.std if metric else None for metric in metrics),
    )


def _relative_curve(section: Section, model: str, baseline: str, places: Sequence[Place]) -> Curve:
    pairs = [_difference(section.metric(model, place), section.metric(baseline, place)) for place in places]
    return Curve(model, tuple(value for value, _ in pairs), tuple(std for _, std in pairs))


def _difference(metric: Metric | None, base: Metric | None) -> tuple[float | None, float | None]:
    """Return the difference of two means, and its std where both were measured with the same number of seeds."""
    if metric is None or base is None or metric.value is None or base.value is None:
        return None, None
    seeds = [a - b for a, b in zip(metric.per_seed, base.per_seed, strict=False) if a is not None and b is not None]
    paired = len(seeds) == len(metric.per_seed) == len(base.per_seed)
    return metric.value - base.value, pstdev(seeds) if seeds and paired else None


def _by_group(section: Section, curves: Sequence[Curve]) -> list[tuple[str, tuple[Curve, ...]]]:
    """Part curves so that a reader can tell them apart: all in one, or one part per group, each with the baseline."""
    if len(curves) <= _MOST_IN_ONE_PANEL:
        return [("", tuple(curves))]
    base = [curve for curve in curves if curve.model == section.baseline]
    others = [curve for curve in curves if curve.model != section.baseline]
    parts = groupby(others, key=lambda curve: section.groups[curve.model])
    return [(group, (*base, *part)) for group, part in parts]


def _fewshot_drawings(section: Section) -> Iterator[Drawing]:
    models = _measured(section, section.fewshot_places)
    splits = list(dict.fromkeys(place.split for place in section.fewshot_places))
    words = Words(
        "few-shot probe", "training images per class", "top-1 accuracy (%)", f"Bands: std over {section.effort}."
    )
    if len(models) <= _MOST_IN_ONE_PANEL and models:
        panels = [panel for split in splits for panel in _fewshot_panels(section, split, models)]
        yield _draw(section, "fewshot", panels, words)
        return
    for split in splits if models else ():
        title = f"few-shot probe on {split}"
        yield _draw(section, f"fewshot-{split}", _fewshot_panels(section, split, models), replace(words, title=title))


def _fewshot_panels(section: Section, split: str, models: Sequence[str]) -> list[Panel]:
    """Return the panels of one split: logarithmic in the shots, then all images, off the scale."""
    few = [place for place in section.places if place.split == split and place.shots]
    all_images = [place for place in section.linear_places if place.split == split]
    scale = [math.log2(place.shots or 1) for place in few]
    positions = (*scale, *(scale[-1] + 1.5 for _ in all_images))
    ticks = tuple(str(place.shots or "all") for place in (*few, *all_images))
    curves = [_curve(section, model, (*few, *all_images)) for model in models]
    return [
        Panel(" ".join(filter(None, [split, group])), positions, ticks, part, detached=len(all_images))
        for group, part in _by_group(section, curves)
    ]


def _similarity_drawing(section: Section, similarities: Sequence[tuple[int, float, int | None]]) -> Drawing:
    items = [Ranked(rank, value, None if level is None else f"L{level}") for rank, value, level in similarities]
    gaps = sum(level is None for _, _, level in similarities)
    note = f"{len(items)} concepts, {gaps} of them in the gaps between levels (grey)."
    words = _complete(section, Words("concepts by similarity", "rank", "similarity to nearest seen concept", note))
    return Drawing("similarity", words.title, draw_ranked(items, words))


def _draw(section: Section, name: str, panels: Sequence[Panel], words: Words) -> Drawing:
    groups = {model: "other" if group == "baseline" else group for model, group in section.groups.items()}
    looks = styles({model: "baseline" if model == section.baseline else group for model, group in groups.items()})
    words = _complete(section, words)
    return Drawing(name, words.title, draw_panels(panels, looks, words))


def _complete(section: Section, words: Words) -> Words:
    note = f"{words.note} {section.note}".strip()
    return replace(words, title=f"ImageNet-CoG {words.title}, {section.title}", note=note)
