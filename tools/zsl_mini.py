"""Write harness/data/zsl/mini, the mini universe as a zero-shot task. Run from the root of the repository.

Seen classes are the seen concepts of the universe, unseen ones those of its levels; drawings of seen concepts by the
families of artists that the universe tests with are held out. Class splits are drawn as for any plain files.
"""

import csv
import io
import lzma
import tempfile
from pathlib import Path

import numpy as np

from harness import data
from harness.cog.splits import load_split
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.wordnet.cache import load_taxonomy
from harness.zsl.task import draw_class_splits

TARGET = Path("harness/data/zsl/mini")
SEED = 2017
VALIDATION = 57


def main() -> None:
    """Write splits.csv and images.csv.xz."""
    universe = load_universe("mini")
    assert universe.levels.published is not None  # noqa: S101 - for the type checker
    levels = {wnid: cells["level"] for wnid, cells in read_table(universe.levels.published).items() if cells["level"]}
    seen = sorted(universe.seen_concepts("mini"))
    unseen = sorted(levels, key=lambda wnid: (levels[wnid], wnid))
    with tempfile.TemporaryDirectory() as cache:
        taxonomy = load_taxonomy(Path(cache))
    names = {
        wnid: taxonomy.names[node] for wnid, node in zip(seen + unseen, taxonomy.nodes(seen + unseen), strict=True)
    }
    drawn = draw_class_splits(np.arange(len(seen)), [VALIDATION] * 3, SEED)
    lines = [["class", "concept", "part", "level", "cv1", "cv2", "cv3"]]
    for row, wnid in enumerate(seen):
        lines.append([wnid, names[wnid], "seen", "", *("val" if row in split.val else "train" for split in drawn)])
    lines += [[wnid, names[wnid], "unseen", f"L{levels[wnid]}", "", "", ""] for wnid in unseen]
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / "splits.csv").write_text(_csv(lines))
    images = [["image", "class", "part"]]
    for name, concepts in (("seen", seen), ("unseen", unseen)):
        split = load_split(name, concepts, universe.images, data.path("mini"), universe.image_counts())
        parts = dict.fromkeys(split.train.ids, "train") | dict.fromkeys(split.test.ids, "test")
        images += [[i, i.partition("/")[0], part if name == "seen" else ""] for i, part in sorted(parts.items())]
    (TARGET / "images.csv.xz").write_bytes(lzma.compress(_csv(images).encode(), preset=9 | lzma.PRESET_EXTREME))


def _csv(lines: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


if __name__ == "__main__":
    main()
