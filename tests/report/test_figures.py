"""Figures: determinism, labels that do not overlap, styles that can be told apart."""

import itertools
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from harness.report.figures import Curve
from harness.report.figures import Panel
from harness.report.figures import Ranked
from harness.report.figures import draw_panels
from harness.report.figures import draw_ranked
from harness.report.figures import save_figure
from harness.report.layout import Layout
from harness.report.layout import Words
from harness.report.layout import spread
from harness.report.style import GROUP_COLOURS
from harness.report.style import styles

WORDS = Words("A title that is long enough to need two lines in one column", "x", "y", "A note.")
GROUPS = {"ResNet50": "baseline", **{f"a-{n}": "architecture" for n in range(10)}, "s-DINO": "self-supervised"}


def panel(models: list[str], *, detached: int = 0) -> Panel:
    values = {model: 50.0 + 0.1 * number for number, model in enumerate(models)}
    curves = tuple(Curve(model, (value + 9, None, value), (0.3, None, None)) for model, value in values.items())
    return Panel("panel", (0.0, 1.0, 2.5), ("1", "2", "all"), curves, detached)


def test_equal_figures_are_equal_bytes_and_leave_no_other_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        figure = draw_panels([panel(list(GROUPS), detached=1)] * 3, styles(GROUPS), WORDS)
        save_figure(figure, tmp_path / name / "figure.v1", WORDS.title)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["figure.v1.png", "figure.v1.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_svg_has_the_title_as_text_and_no_date(tmp_path: Path) -> None:
    svg, _ = save_figure(draw_panels([panel(["s-DINO"])], styles(GROUPS), WORDS), tmp_path / "f", "Über <x> & y")
    root = ET.parse(svg).getroot()  # noqa: S314 - written one line above
    purl = "{http://purl.org/dc/elements/1.1/}"
    assert [element.text for element in root.iter(f"{purl}title")] == ["Über <x> & y"]
    assert not list(root.iter(f"{purl}date"))


def test_png_is_one_column_wide_in_print(tmp_path: Path) -> None:
    _, png = save_figure(draw_panels([panel(["s-DINO"])], styles(GROUPS), WORDS), tmp_path / "f", "t")
    with Image.open(png) as image:
        assert image.width / image.info["dpi"][0] == pytest.approx(3.45, abs=0.02)


def test_nothing_is_drawn_outside_the_figure() -> None:
    names = [*(f"a-long-name-of-a-model-{n}" for n in range(11)), "ResNet50"]
    figure = draw_panels([panel(names)] * 2, styles(dict.fromkeys(names, "architecture")), WORDS)
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width
    assert box.y1 <= height


def test_labels_at_the_ends_of_curves_do_not_overlap() -> None:
    figure = draw_panels([panel(list(GROUPS))], styles(GROUPS), WORDS)
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == len(GROUPS)
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))


def test_a_curve_without_values_has_no_label() -> None:
    empty = Curve("s-DINO", (None, None), (None, None))
    full = Curve("ResNet50", (1.0, None), (None, None))
    figure = draw_panels([Panel("", (0.0, 1.0), ("a", "b"), (empty, full))], styles(GROUPS), WORDS)
    assert [text.get_text() for text in figure.axes[0].texts] == ["ResNet50"]


def test_ranked_levels_are_named_and_gaps_are_not() -> None:
    items = [Ranked(rank, 1 / rank, level) for rank, level in [(1, "L1"), (2, "L1"), (3, None), (4, "L2")]]
    figure = draw_ranked(items, WORDS)
    assert [text.get_text() for text in figure.axes[0].texts] == ["L1", "L2"]


@given(st.lists(st.floats(0, 1), max_size=10))
def test_spread_keeps_order_and_distance_within_bounds(values: list[float]) -> None:
    gap = 0.1
    moved = spread(sorted(values), gap, 0.0, 1.0)
    assert all(upper - lower >= gap - 1e-9 for lower, upper in itertools.pairwise(moved))
    assert all(0 < place < 1 for place in moved)


def test_spread_by_hand() -> None:
    assert spread([0.1, 0.5, 0.5, 0.9], 0.2, 0.0, 1.0) == pytest.approx([0.1, 0.4, 0.6, 0.9])


def test_axes_have_the_same_size_in_every_figure() -> None:
    one, four = Layout(1, WORDS), Layout(4, WORDS)
    for layout in (one, four):
        figure = layout.figure()
        width, height = figure.get_size_inches()
        box = layout.axes(figure, 0).get_position()
        assert box.width * width == pytest.approx(one.plot_width)
        assert box.height * height == pytest.approx(one.plot_height)


def test_styles_tell_models_apart() -> None:
    looks = styles(GROUPS)
    assert looks["ResNet50"].colour == GROUP_COLOURS["baseline"]
    assert len({look.marker for model, look in looks.items() if model != "s-DINO"}) == len(GROUPS) - 1
    assert len({(look.colour, look.marker, str(look.dashes)) for look in looks.values()}) == len(GROUPS)
    assert styles(dict(reversed(GROUPS.items()))) == looks
