"""The emoji drawings as a zero-shot task agree with the universe they come from."""

from pathlib import Path

import numpy as np
import pytest

from harness import data
from harness.cog.splits import load_split
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.images import EncodedImages
from harness.wordnet.cache import load_taxonomy
from harness.zsl.contamination import imagenet1k
from harness.zsl.contamination import overlaps
from harness.zsl.mini import load_mini
from harness.zsl.task import Task
from harness.zsl.task import check_task


@pytest.fixture(scope="module")
def mini(wordnet_cache: Path) -> tuple[Task, EncodedImages, Path]:
    return *load_mini(wordnet_cache), wordnet_cache


def test_seen_and_unseen_are_those_of_the_universe(mini: tuple[Task, EncodedImages, Path]) -> None:
    task, _, _ = mini
    check_task(task)
    universe = load_universe("mini")
    assert universe.levels.published is not None
    levels = [wnid for wnid, cells in read_table(universe.levels.published).items() if cells["level"]]
    assert {task.names[row] for row in task.seen} == set(universe.seen_concepts("mini"))
    assert {task.names[row] for row in task.unseen} == set(levels)
    assert (task.seen.size, task.unseen.size) == (228, 275)


def test_drawings_of_whole_families_are_held_out(mini: tuple[Task, EncodedImages, Path]) -> None:
    task, images, _ = mini
    universe = load_universe("mini")
    split = load_split("seen", universe.seen_concepts("mini"), universe.images, data.path("mini"), {})
    assert {images.ids[row] for row in task.trainval} == set(split.train.ids)
    assert {images.ids[row] for row in task.test_seen} == set(split.test.ids)
    assert (task.trainval.size, task.test_seen.size, task.test_unseen.size) == (2095, 754, 3311)
    assert all(images.ids[row].startswith(task.names[label]) for row, label in enumerate(task.labels.tolist()))


def test_three_listed_class_splits(mini: tuple[Task, EncodedImages, Path]) -> None:
    task, _, _ = mini
    assert [split.val.size for split in task.class_splits] == [57, 57, 57]
    assert [split.origin for split in task.class_splits] == [f"cv{number} of splits.csv" for number in (1, 2, 3)]


def test_classes_are_described_by_the_hierarchy(mini: tuple[Task, EncodedImages, Path]) -> None:
    task, _, cache = mini
    taxonomy = load_taxonomy(cache)
    embeddings = task.embeddings
    assert (embeddings.name, embeddings.values.shape) == ("wordnet", (503, 503))
    assert embeddings.original is not None
    # By hand from the taxonomy, for a pair: shared ancestors over the root of the numbers of ancestors.
    first, second = 3, 400
    closures = [set(taxonomy.closure(taxonomy.nodes([task.names[row]])).tolist()) for row in (first, second)]
    expected = len(closures[0] & closures[1]) / np.sqrt(len(closures[0]) * len(closures[1]))
    assert embeddings.values[first] @ embeddings.values[second] == pytest.approx(expected, abs=1e-12)


def test_no_unseen_class_is_in_imagenet_1k(mini: tuple[Task, EncodedImages, Path]) -> None:
    task, _, cache = mini
    assert overlaps(load_taxonomy(cache), [task.names[row] for row in task.unseen], imagenet1k()) == []
