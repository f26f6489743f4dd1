"""A zero-shot task: classes, what is known of them, and which images are for training and which for testing."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Literal
from typing import TypeAlias

import numpy as np

from harness.digest import Plain
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.zsl.names import some
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Labels

SplitName: TypeAlias = Literal["PS", "SS"]
"""The proposed split of the paper, or the standard split of earlier work, which has no test images of seen classes."""


@dataclass(frozen=True, eq=False)
class ClassSplit:
    """One parting of the seen classes, to select hyper-parameters on.

    Attributes:
        train: int64, ascending, rows of the class table.
        val: int64, ascending; with ``train``, all seen classes.
        origin: The file that lists them, or how they were drawn.
    """

    train: Labels
    val: Labels
    origin: str


@dataclass(frozen=True, eq=False)
class Task:
    """A data set without its features.

    Attributes:
        name: Of the data set: ``AWA1``.
        split: Which split of it.
        embeddings: Of all classes; their order is the class table.
        labels: int64 [N], the row of each image's class.
        trainval: int64, ascending: images to train and to select on. Ascending, since the published files are
            shuffled and what is computed shall depend on which images they name alone.
        test_seen: int64, ascending: held-out images of seen classes; none in the standard split.
        test_unseen: int64, ascending: images of unseen classes.
        class_splits: At least one.
        origin: What it was read from, for messages.
        about: Further facts for the record: release, images left out ...
    """

    name: str
    split: SplitName
    embeddings: ClassEmbeddings
    labels: Labels
    trainval: Labels
    test_seen: Labels
    test_unseen: Labels
    class_splits: tuple[ClassSplit, ...]
    origin: str
    about: Mapping[str, Plain] = field(default_factory=dict)

    @cached_property
    def seen(self) -> Labels:
        """The classes with images to train on, int64, ascending."""
        return np.unique(self.labels[self.trainval])

    @cached_property
    def unseen(self) -> Labels:
        """The classes of ``test_unseen``, int64, ascending."""
        return np.unique(self.labels[self.test_unseen])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all classes."""
        return self.embeddings.names

    def locs(self) -> dict[str, Labels]:
        """Return the three sets of images under the names of the published files."""
        return {"trainval_loc": self.trainval, "test_seen_loc": self.test_seen, "test_unseen_loc": self.test_unseen}


def with_embeddings(task: Task, embeddings: ClassEmbeddings) -> Task:
    """Return the same task with other side information.

    Raises:
        ConfigError: it is of other classes, or of the same in another order.
    """
    if embeddings.names != task.names:
        raise ConfigError(f"{task.name}: embeddings {embeddings.name} are not of its classes in their order")
    return replace(task, embeddings=embeddings)


def check_task(task: Task) -> None:
    """Check that training and testing are apart, image by image and class by class.

    Raises:
        CorruptInput: they are not, a set is empty, or a class split is not one of the seen classes.
    """
    locs = task.locs()
    for first, second in (
        ("trainval_loc", "test_seen_loc"),
        ("trainval_loc", "test_unseen_loc"),
        ("test_seen_loc", "test_unseen_loc"),
    ):
        shared = np.intersect1d(locs[first], locs[second])
        if shared.size:
            raise CorruptInput(
                f"{task.origin}: {first} and {second} overlap in {shared.size} images; the first is image "
                f"{shared[0] + 1}, counted from 1"
            )
    for name, loc in locs.items():
        unique, counts = np.unique(loc, return_counts=True)
        if unique.size < loc.size:
            raise CorruptInput(f"{task.origin}: {name} lists image {unique[counts > 1][0] + 1} more than once")
    if not task.trainval.size or not task.test_unseen.size:
        raise CorruptInput(f"{task.origin}: there are no images to train on, or none of unseen classes to test on")
    _check_classes(task)
    lengths = np.linalg.norm(task.embeddings.values, axis=1)
    if wrong := np.flatnonzero(~(np.abs(lengths - 1) <= 1e-6)).tolist():
        raise CorruptInput(
            f"{task.origin}: embeddings {task.embeddings.name}: class {wrong[0] + 1} ({task.names[wrong[0]]}) is not "
            f"of unit length ({lengths[wrong[0]]:.6g})"
        )
    for split in task.class_splits:
        _check_class_split(task, split)


def _check_classes(task: Task) -> None:
    both = np.intersect1d(task.seen, task.unseen)
    if both.size:
        raise CorruptInput(f"{task.origin}: trained on and tested as unseen: {_named(task, both)}")
    strange = np.setdiff1d(task.labels[task.test_seen], task.seen)
    if strange.size:
        raise CorruptInput(f"{task.origin}: test_seen_loc has classes without training images: {_named(task, strange)}")


def _check_class_split(task: Task, split: ClassSplit) -> None:
    where = f"{task.origin}: {split.origin}"
    both = np.intersect1d(split.train, split.val)
    if both.size:
        raise CorruptInput(f"{where}: in training and in validation: {_named(task, both)}")
    listed = np.union1d(split.train, split.val)
    if strange := np.setdiff1d(listed, task.seen).tolist():
        raise CorruptInput(
            f"{where}: no image in trainval_loc is of {_named(task, strange)}; the classes to train and to validate on "
            "are the seen ones"
        )
    if absent := np.setdiff1d(task.seen, listed).tolist():
        raise CorruptInput(f"{where}: neither in training nor in validation: {_named(task, absent)}")
    if not split.val.size or not split.train.size:
        raise CorruptInput(f"{where}: there are no classes to train on, or none to validate on")


def draw_class_splits(seen: Labels, sizes: Sequence[int], seed: int) -> tuple[ClassSplit, ...]:
    """Draw one class split per size, independently of each other; the same for the same seed on every machine.

    Args:
        seen: int64, ascending: the seen classes.
        sizes: How many of them validate, for each split.
        seed: Of the draw.

    Raises:
        ConfigError: a size leaves no class to train on or to validate on.
    """
    from random import Random

    stream = Random(seed)  # noqa: S311 - a draw, not a secret
    splits = []
    for number, size in enumerate(sizes, start=1):
        if not 0 < size < seen.size:
            raise ConfigError(f"class split {number}: {size} of {seen.size} seen classes cannot validate")
        val = np.array(sorted(stream.sample(seen.tolist(), size)), dtype=np.int64)
        splits.append(ClassSplit(np.setdiff1d(seen, val), val, f"class split {number} drawn with seed {seed}"))
    return tuple(splits)


def array_digest(numbers: Labels) -> str:
    """Return the SHA-256 (64 hex digits) of whole numbers in their order, as little-endian int64.

    Of a set of images its ascending row numbers from 0 are taken: copies of one release differ in their order.
    """
    return sha256(numbers.astype("<i8").tobytes()).hexdigest()


def _named(task: Task, classes: Labels | Sequence[int]) -> str:
    return some([task.names[row] for row in classes])
