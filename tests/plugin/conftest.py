"""A small project of a user: their own universe of pictures, suite and models, run by pytest in a subprocess."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image
from PIL import ImageDraw

from harness.records.book import RecordBook
from harness.records.record import Record
from harness.wordnet.cache import load_taxonomy

ROOT = Path(__file__).resolve().parents[2]

SEEN = ("n02123045", "n02123159", "n02099601")
UNSEEN = ("n02084071", "n02121808", "n02958343", "n03001627", "n07739125", "n12992868")

UNIVERSE = """
name: shapes
title: coloured shapes
concepts: concepts.csv
seen: {mine: seen.txt}
filters: {ancestors_of_seen: true, inner_nodes: true}
levels: {number: 2, size: 3}
seen_split: {name: seen}
images: {root: pictures, test: {rule: random, count: 4}}
"""

SUITE = """
name: shapes
title: shapes suite
cog: {universe: universe.yaml, seeds: [1, 2], trials: 3, shots: [2], epochs: 10}
"""

MODELS = """
models:
  tiny-random:
    group: baseline
    architecture: {source: torchvision, name: resnet18}
    weights: {source: random, seed: 0}
    feature: {take: identity, module: fc, dim: 512}
    input: {size: 32}
    training_data: none
    licence: BSD-3-Clause
  tiny-absent:
    group: architecture
    architecture: {source: torchvision, name: resnet18}
    weights: {source: file, path: absent.pth}
    feature: {take: identity, module: fc}
    training_data: none
    licence: none
"""


@dataclass
class Project:
    """The user's folder and how they run pytest in it."""

    pytester: pytest.Pytester
    wordnet: Path
    """A cache that has the arrays of WordNet, which take ten seconds to read."""

    @property
    def path(self) -> Path:
        """The folder."""
        return self.pytester.path

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own, as a user does."""
        # A plugin of this repository's tests that takes a second to import.
        return self.pytester.runpytest_subprocess("-p", "no:hypothesispytest", *arguments, timeout=180)

    def fresh_cache(self, name: str = "other") -> tuple[str, str]:
        """Return the option for a cache that holds nothing but WordNet."""
        shutil.copytree(self.wordnet / "wordnet", self.path / name / "wordnet")
        return "--cache-dir", name

    def records(self) -> dict[str, Record]:
        """Return the records by case id."""
        return {record.case.id: record for record in RecordBook(self.path / "reports").records()}

    def numbers(self) -> dict[str, list[float | None]]:
        """Return what was measured, to the last digit."""
        return {name: r.metrics["top1"].per_seed for name, r in self.records().items() if r.measured}


def draw(path: Path, kind: int, stream: random.Random) -> None:
    """Draw a picture that a random network can tell from those of another kind."""
    image = Image.new("RGB", (48, 48), (255, 255, 255))
    x, y = stream.randrange(4, 16), stream.randrange(4, 16)
    colour = ((kind * 67) % 256, (kind * 151) % 256, (kind * 29) % 256)
    shape = ImageDraw.Draw(image)
    (shape.ellipse if kind % 2 else shape.rectangle)((x, y, x + 20, y + 20), fill=colour)
    image.save(path)


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """A folder with everything a run needs, and a cache of its own."""
    wordnet = tmp_path_factory.getbasetemp().parent / "wordnet-for-projects"  # shared by workers, who lock it
    load_taxonomy(wordnet)
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = pytester.path
    (path / "benchmarks").mkdir()
    shutil.copy(ROOT / "benchmarks" / "test_cog.py", path / "benchmarks")
    files = {
        "conftest.py": 'pytest_plugins = ["harness.plugin"]\n',
        "universe.yaml": UNIVERSE,
        "suite.yaml": SUITE,
        "models.yaml": MODELS,
        "seen.txt": "\n".join(SEEN),
        "concepts.csv": "wnid\n" + "\n".join([*SEEN, *UNSEEN]),
        "pytest.ini": "[pytest]\nharness_suite = suite.yaml\nharness_data_root = .\n",
    }
    for name, content in files.items():
        (path / name).write_text(content)
    stream = random.Random(0)  # noqa: S311 - pictures, not secrets
    for kind, wnid in enumerate([*SEEN, *UNSEEN]):
        folder = path / "pictures" / wnid
        folder.mkdir(parents=True)
        for number in range(12):
            draw(folder / f"{number}.png", kind, stream)
    found = Project(pytester, wordnet)
    found.fresh_cache("cache")
    return found
