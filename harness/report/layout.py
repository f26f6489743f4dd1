"""Where the panels of a figure lie, in inches, so that text has the same size in every figure."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from harness.report.style import COLUMN_WIDTH
from harness.report.style import FONT_SIZE
from harness.report.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = FONT_SIZE * 1.3 / 72
"""Inches from one line of text to the next."""
_LETTER = FONT_SIZE * 0.6 / 72
_LEFT, _BOTTOM = 0.5, 0.52


@dataclass(frozen=True)
class Words:
    """The words around the panels of a figure."""

    title: str
    x: str
    y: str
    note: str = ""
    """Small print under the panels."""


@dataclass(frozen=True)
class Layout:
    """Sizes of a figure of ``panels`` panels, two in a row."""

    panels: int
    words: Words
    curves: int = 0
    """Curves in the fullest panel, each with a label at its end."""
    longest_label: int = 0
    """Letters of the longest of these labels."""
    titled: bool = False
    """Whether panels have titles."""

    @property
    def columns(self) -> int:
        """Panels in a row."""
        return min(self.panels, 2)

    @property
    def plot_height(self) -> float:
        """Inches from the bottom to the top of the axes: as many as the labels need."""
        return max(1.75, (self.curves + 1) * _LINE)

    @property
    def plot_width(self) -> float:
        """Inches from the left to the right of the axes."""
        return self._cell_width - _LEFT - self._label_width

    @property
    def label_gap(self) -> float:
        """The least distance of two labels, as a fraction of the height of the axes."""
        return _LINE / self.plot_height

    @property
    def _label_width(self) -> float:
        return 0.18 + (0.22 + self.longest_label * _LETTER if self.curves else 0.0)

    @property
    def _cell_width(self) -> float:
        return max(COLUMN_WIDTH, _LEFT + self._label_width + 1.5)

    @property
    def _cell_height(self) -> float:
        return self.plot_height + _BOTTOM + (0.26 if self.titled else 0.08)

    @property
    def _width(self) -> float:
        return self.columns * self._cell_width

    @cached_property
    def _title(self) -> list[str]:
        return textwrap.wrap(self.words.title, int((self._width - 0.1) / (_LETTER * 1.15)))

    @cached_property
    def _note(self) -> list[str]:
        return textwrap.wrap(self.words.note, int((self._width - 0.1) / (_LETTER * 0.95)))

    @property
    def _height(self) -> float:
        rows = math.ceil(self.panels / self.columns)
        return rows * self._cell_height + (len(self._title) * 1.15 + len(self._note) + 0.6) * _LINE

    def figure(self) -> "Figure":
        """Make the figure with its title and note, without axes."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self._width, self._height))
        left = 0.05 / self._width
        figure.text(
            left, 1 - 0.05 / self._height, "\n".join(self._title), va="top", fontsize=FONT_SIZE + 1, weight="bold"
        )
        figure.text(left, 0.04 / self._height, "\n".join(self._note), va="bottom", color=GREY)
        return figure

    def axes(self, figure: "Figure", number: int) -> "Axes":
        """Add the axes of panel ``number``, counted from 0 in reading order, with the names of the axes."""
        row, column = divmod(number, self.columns)
        rows = math.ceil(self.panels / self.columns)
        bottom = (rows - 1 - row) * self._cell_height + _BOTTOM + (len(self._note) + 0.3) * _LINE
        left = column * self._cell_width + _LEFT
        size = (self.plot_width / self._width, self.plot_height / self._height)
        axes = figure.add_axes((left / self._width, bottom / self._height, *size))
        axes.set_xlabel(self.words.x)
        axes.set_ylabel(self.words.y)
        return axes


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move ascending values as little as possible so that neighbours are at least ``gap`` apart within low..high.

    The least squares solution: an isotonic regression after taking ``gap`` off each step.
    """
    from scipy.optimize import isotonic_regression

    if not values:
        return []
    steps = gap * np.arange(len(values))
    moved = isotonic_regression(np.array(values) - steps).x
    inside = np.clip(moved, low + gap / 2, max(low + gap / 2, high - gap / 2 - steps[-1]))
    return [float(place) for place in inside + steps]
