"""Figures: curves of many models in panels, and a ranked curve cut into levels. Equal input gives equal bytes."""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.files import replacing
from harness.report.layout import Layout
from harness.report.layout import Words
from harness.report.layout import spread
from harness.report.style import GREY
from harness.report.style import Style
from harness.report.style import house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVEL_COLOURS = ("#00204C", "#414D6B", "#7C7B78", "#BCAF6F", "#D9BD3A")
"""Steps of cividis, from near to far."""


@dataclass(frozen=True)
class Curve:
    """The values of one model, one per tick of its panel, each with its std."""

    model: str
    values: tuple[float | None, ...]
    stds: tuple[float | None, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    positions: tuple[float, ...]
    """Place of each tick on the horizontal axis."""
    ticks: tuple[str, ...]
    curves: tuple[Curve, ...]
    detached: int = 0
    """How many of the last ticks are off the scale of the others: a dotted line leads to them."""


@dataclass(frozen=True)
class Ranked:
    """One item of a ranking that is cut into levels."""

    rank: int
    value: float
    level: str | None
    """Name of its level; None in the gaps between levels."""


def draw_panels(panels: Sequence[Panel], looks: Mapping[str, Style], words: Words) -> "Figure":
    """Draw panels, two in a row, every curve with its std as a band and its model's name at its end.

    All panels have the same vertical scale, so that they can be compared.
    """
    longest = max(len(curve.model) for panel in panels for curve in panel.curves)
    layout = Layout(
        len(panels),
        words,
        curves=max(len(panel.curves) for panel in panels),
        longest_label=longest,
        titled=any(panel.title for panel in panels),
    )
    with house_style():
        figure = layout.figure()
        for number, panel in enumerate(panels):
            axes = layout.axes(figure, number)
            axes.set_ylim(*_limits(panels))
            _draw_panel(axes, panel, looks, layout)
        return figure


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    ends = [
        value + sign * (std or 0.0)
        for panel in panels
        for curve in panel.curves
        for value, std in zip(curve.values, curve.stds, strict=True)
        if value is not None
        for sign in (-1, 1)
    ]
    low, high = min(ends), max(ends)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_panel(axes: "Axes", panel: Panel, looks: Mapping[str, Style], layout: Layout) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set_xticks(panel.positions, panel.ticks)
    margin = 0.04 * (panel.positions[-1] - panel.positions[0]) or 0.5
    axes.set_xlim(panel.positions[0] - margin, panel.positions[-1] + margin)
    for curve in panel.curves:
        _draw_curve(axes, panel, curve, looks[curve.model])
    _label_ends(axes, panel, looks, layout)


def _draw_curve(axes: "Axes", panel: Panel, curve: Curve, look: Style) -> None:
    places, values = np.array(panel.positions), _numbers(curve.values)
    stds = _numbers(curve.stds)
    scale = len(places) - panel.detached
    on_scale, tail = slice(0, scale), slice(scale - 1, None)
    axes.fill_between(
        places[on_scale], (values - stds)[on_scale], (values + stds)[on_scale], color=look.colour, alpha=0.15, lw=0
    )
    axes.plot(places[on_scale], values[on_scale], color=look.colour, linestyle=look.dashes, lw=look.width)
    if panel.detached:
        axes.plot(places[tail], values[tail], color=look.colour, linestyle=":", lw=0.7)
        axes.errorbar(places[scale:], values[scale:], stds[scale:], fmt="none", ecolor=look.colour, elinewidth=0.8)
    axes.plot(places, values, linestyle="none", marker=look.marker, color=look.colour, markeredgewidth=0)


def _numbers(values: Sequence[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([math.nan if value is None else value for value in values])


def _label_ends(axes: "Axes", panel: Panel, looks: Mapping[str, Style], layout: Layout) -> None:
    ends = []
    for curve in panel.curves:
        measured = [
            (value, curve.model, place)
            for place, value in zip(panel.positions, curve.values, strict=True)
            if value is not None
        ]
        ends.extend(measured[-1:])
    ends.sort()
    low, high = axes.get_ylim()
    heights = spread([value for value, _, _ in ends], layout.label_gap * (high - low), low, high)
    edge = axes.get_xlim()[1]
    reach = 0.14 / layout.plot_width * (edge - axes.get_xlim()[0])
    for (value, model, place), height in zip(ends, heights, strict=True):
        look = looks[model]
        axes.plot([place, edge + reach], [value, height], color=look.colour, lw=0.4, clip_on=False)
        axes.plot(edge + 1.2 * reach, height, look.marker, color=look.colour, markeredgewidth=0, clip_on=False)
        axes.text(edge + 1.6 * reach, height, model, color=look.colour, va="center", ha="left")


def draw_ranked(items: Sequence[Ranked], words: Words) -> "Figure":
    """Draw the values of a ranking from first to last, each level in its own colour, the gaps between in grey."""
    layout = Layout(1, words)
    with house_style():
        figure = layout.figure()
        axes = layout.axes(figure, 0)
        ordered = sorted(items, key=lambda item: item.rank)
        colours = dict(zip(dict.fromkeys(item.level for item in ordered if item.level), cycle(_LEVEL_COLOURS)))
        for level, group in groupby(ordered, key=lambda item: item.level):
            _draw_stretch(axes, list(group), level, colours.get(level, GREY))
        axes.set_xlim(ordered[0].rank, ordered[-1].rank)
        return figure


def _draw_stretch(axes: "Axes", items: list[Ranked], level: str | None, colour: str) -> None:
    first, last = items[0].rank - 0.5, items[-1].rank + 0.5
    axes.axvspan(first, last, color=colour, alpha=0.1 if level else 0.35, lw=0)
    axes.axvline(first, color="white", lw=0.4)
    axes.plot([item.rank for item in items], [item.value for item in items], color=colour, lw=1.6)
    if level:
        axes.text((first + last) / 2, 0.97, level, transform=axes.get_xaxis_transform(), ha="center", va="top")


def save_figure(figure: "Figure", stem: Path, title: str) -> list[Path]:
    """Write ``stem`` as SVG and PNG, each whole or not at all, without dates; return both paths.

    ``title`` becomes the text alternative inside the SVG.
    """
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".svg", ".png")]
    metadata = ({"Date": None, "Creator": None, "Title": title}, {"Software": None})
    for path, entries in zip(paths, metadata, strict=True):
        with house_style(), replacing(path) as temporary:
            figure.savefig(temporary, metadata=entries)
    return paths
