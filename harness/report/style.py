"""The look of all figures: sizes for a printed column, colours safe for colour-blind readers, one style per model."""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

COLUMN_WIDTH = 3.45
"""Inches: one column of a two-column paper. Figures with panels side by side span both."""
FONT_SIZE = 7.0
"""Points, in print: figures are drawn at the size at which they are printed."""
GREY = "#707070"

GROUP_COLOURS: Mapping[str, str] = {
    "baseline": "#000000",
    "architecture": "#0072B2",
    "self-supervised": "#D55E00",
    "regularization": "#009E73",
    "web-data": "#AA4499",
}
"""Colours after Okabe and Ito and after Tol: apart from each other under the common forms of colour blindness."""
_OTHER_COLOUR = "#8B6914"
_SHADES = (0.0, -0.45, 0.2, -0.25)
_MARKERS = "sD^vPX<>*hd"
_DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.2)), (0, (1, 1)), (0, (5, 1, 1, 1)))


@dataclass(frozen=True)
class Style:
    """How one model is drawn, the same in every figure of a report."""

    colour: str
    marker: str
    dashes: Any
    width: float = 1.0


def styles(groups: Mapping[str, str]) -> dict[str, Style]:
    """Give every model (key) of a group (value) a style.

    The baseline is black with a marker of its own. Models of a group share its hue; up to eleven models that follow
    each other by group and name differ in their marker, for those who cannot rely on colour.
    """
    found = {}
    within: Counter[str] = Counter()
    for number, (group, model) in enumerate(sorted((group, model) for model, group in groups.items())):
        index = within[group]
        within[group] += 1
        colour = _shade(GROUP_COLOURS.get(group, _OTHER_COLOUR), _SHADES[index % len(_SHADES)])
        found[model] = Style(colour, _MARKERS[number % len(_MARKERS)], _DASHES[index // 2 % len(_DASHES)])
        if group == "baseline":
            found[model] = Style(GROUP_COLOURS[group], "o", "solid", 1.4)
    return found


def _shade(colour: str, amount: float) -> str:
    """Mix with white (amount above 0) or black (below 0)."""
    target = 255 if amount > 0 else 0
    channels = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (target - channel) * abs(amount)):02X}" for channel in channels)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save with the settings of this module alone, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "font.size": FONT_SIZE,
                "text.parse_math": False,
                "axes.titlesize": FONT_SIZE + 1,
                "axes.labelsize": FONT_SIZE,
                "xtick.labelsize": FONT_SIZE,
                "ytick.labelsize": FONT_SIZE,
                "axes.linewidth": 0.6,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": True,
                "grid.color": "#E3E3E3",
                "grid.linewidth": 0.5,
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
                "lines.markersize": 3.2,
                "savefig.dpi": 300,
                "svg.hashsalt": "generalization-harness",
            }
        )
        yield
