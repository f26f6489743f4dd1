"""A data set as methods and protocols see it. Test images are handed out by `Dataset.final` alone.

Fitting and selection are given `TrainSet` and `Validation`, which hold copies of training rows and no way back to the
data set, so that they cannot reach a test image.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.digest import Plain
from harness.errors import ConfigError
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import TrainSet
from harness.zsl.problem import Validation
from harness.zsl.rows import FeatureRows
from harness.zsl.task import ClassSplit
from harness.zsl.task import Task
from harness.zsl.task import array_digest
from harness.zsl.task import check_task


class LabelledImages(NamedTuple):
    """Images to test on: features [m, d] and labels int64 [m]."""

    features: Floats
    labels: Labels


@dataclass(frozen=True, eq=False)
class FinalTest:
    """What a data set is tested with, once.

    Attributes:
        unseen: Images of unseen classes.
        seen: Held-out images of seen classes; None in the standard split.
        unseen_classes: int64, ascending; zero-shot learning chooses among these.
        classes: int64 [C], all classes; generalized zero-shot learning chooses among these.
        unseen_rows: int64, which images of the data set ``unseen`` are.
        seen_rows: int64, which ``seen`` are.
    """

    unseen: LabelledImages
    seen: LabelledImages | None
    unseen_classes: Labels
    classes: Labels
    unseen_rows: Labels
    seen_rows: Labels


class Dataset:
    """A task and features of its images.

    Args:
        task: Checked here.
        rows: Features of all its images.

    Raises:
        CorruptInput: the task is inconsistent, or there is not a row for each image.
    """

    def __init__(self, task: Task, rows: FeatureRows) -> None:
        check_task(task)
        rows.require(task.labels.size)
        self._task = task
        self._rows = rows
        self.finals = 0
        """How often the test images were asked for."""

    @property
    def name(self) -> str:
        """The name of the data set: ``AWA1``."""
        return self._task.name

    @property
    def split(self) -> str:
        """PS or SS."""
        return self._task.split

    @property
    def embeddings(self) -> ClassEmbeddings:
        """The side information of all classes."""
        return self._task.embeddings

    @property
    def validations(self) -> int:
        """How many class splits there are."""
        return len(self._task.class_splits)

    def validation(self, number: int) -> Validation:
        """Return class split ``number``, from 1, cut out of the images to train and select on.

        Raises:
            ConfigError: there is no such split.
            CorruptInput: features of these images are not finite.
        """
        if not 1 <= number <= self.validations:
            raise ConfigError(f"{self.name}: class split {number} of {self.validations}, counted from 1")
        split = self._task.class_splits[number - 1]
        held_out = self._of(split.val)
        return Validation(
            self._train(self._of(split.train)), self._rows.take(held_out), self._task.labels[held_out], split.val
        )

    def trainval(self) -> TrainSet:
        """Return all images to train on once hyper-parameters are chosen.

        Raises:
            CorruptInput: features of these images are not finite.
        """
        return self._train(self._task.trainval)

    def final(self) -> FinalTest:
        """Return the test images. Asked for once per case, after all fitting and selection; counted in ``finals``.

        Raises:
            CorruptInput: features of these images are not finite.
        """
        self.finals += 1
        task = self._task
        seen = self._test(task.test_seen) if task.test_seen.size else None
        every = np.arange(len(task.names), dtype=np.int64)
        return FinalTest(self._test(task.test_unseen), seen, task.unseen, every, task.test_unseen, task.test_seen)

    def describe(self) -> dict[str, Plain]:
        """Return what a record says of the data; all that can move a result is in it."""
        task, embeddings = self._task, self._task.embeddings
        return {
            "dataset": task.name,
            "split": task.split,
            "features": self._rows.name,
            "feature_dim": int(self._rows.values.shape[1]),
            "features_digest": self._rows.digest,
            "embedding": embeddings.name,
            "embedding_dim": int(embeddings.values.shape[1]),
            "embedding_digest": embeddings.digest,
            "embedding_rows": "unit L2 norm",
            "classes": {"all": len(task.names), "seen": task.seen.size, "unseen": task.unseen.size},
            "images": {name.removesuffix("_loc"): loc.size for name, loc in task.locs().items()},
            "images_unused": task.labels.size - sum(loc.size for loc in task.locs().values()),
            "loc_sha256": {name: array_digest(np.sort(loc)) for name, loc in task.locs().items()},
            "labels_sha256": array_digest(task.labels),
            "unseen_classes": [task.names[row] for row in task.unseen],
            "class_splits": [self._described(split) for split in task.class_splits],
            **task.about,
        }

    def _described(self, split: ClassSplit) -> dict[str, Plain]:
        names = [self._task.names[row] for row in split.val]
        return {"origin": split.origin, "train": split.train.size, "val": split.val.size, "val_classes": names}

    def _of(self, classes: Labels) -> Labels:
        """Return the training images of these classes: of the classes in the file, inside trainval_loc."""
        trainval = self._task.trainval
        return trainval[np.isin(self._task.labels[trainval], classes)]

    def _train(self, rows: Labels) -> TrainSet:
        labels = self._task.labels[rows]
        return TrainSet(self._rows.take(rows), labels, np.unique(labels), self._task.embeddings)

    def _test(self, rows: Labels) -> LabelledImages:
        return LabelledImages(self._rows.take(rows), self._task.labels[rows])
