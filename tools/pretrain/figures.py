"""Draw the curves of the pre-training: ``python -m tools.pretrain.figures`` writes ``docs/figures/pretraining.svg``."""

import csv
from pathlib import Path

from harness import data
from harness.report.figures import Curve
from harness.report.figures import Panel
from harness.report.figures import draw_panels
from harness.report.layout import Words
from harness.report.style import house_style
from harness.report.style import styles

_PATH = Path(__file__).parents[2] / "docs/figures/pretraining.svg"
_COLUMNS = {"loss": "loss", "teacher_entropy": "teacher's entropy"}
_GROUPS = {"loss": "baseline", "teacher's entropy": "self-supervised"}
_EVERY = 10
_NOTE = "Means over an epoch. Knowing nothing, the losses are ln 228 = 5.43 and ln 512 = 6.24."


def panel(name: str) -> Panel:
    """Return the curves of one model, every tenth epoch."""
    with data.path(f"backbones/curves/{name}.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    rows = [rows[0], *rows[_EVERY - 1 :: _EVERY]]
    curves = [
        Curve(label, tuple(float(row[column]) for row in rows), (None,) * len(rows))
        for column, label in _COLUMNS.items()
        if column in rows[0]
    ]
    epochs = [int(row["epoch"]) for row in rows]
    ticks = tuple(str(epoch) if epoch % 30 == 0 or epoch == 1 else "" for epoch in epochs)
    return Panel(name, tuple(epochs), ticks, tuple(curves))


def main() -> None:
    words = Words("pre-training of the mini backbones", "epoch", "nats", _NOTE)
    figure = draw_panels([panel("sup-mini"), panel("s-DINO-mini")], styles(_GROUPS), words)
    _PATH.parent.mkdir(exist_ok=True)
    with house_style():
        figure.savefig(_PATH, metadata={"Date": None, "Creator": None, "Title": words.title})


if __name__ == "__main__":
    main()
