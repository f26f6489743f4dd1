"""Zero-shot learning on ImageNet: train on the 1K classes, test on nine sets of the others, read in chunks.

A test set is what ImageNet_splits.mat lists, less classes without a vector or without an image, as in the paper, whose
counts are smaller than those of the lists.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.digest import Plain
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.zsl.imagenet_classes import SETS
from harness.zsl.imagenet_classes import ImageNetClasses
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Labels
from harness.zsl.problem import TrainSet
from harness.zsl.problem import Validation
from harness.zsl.streams import CHUNK
from harness.zsl.streams import Chunk
from harness.zsl.streams import Stream
from harness.zsl.streams import chunks
from harness.zsl.streams import gather
from harness.zsl.streams import open_stream
from harness.zsl.task import array_digest

TRAIN_FILE = "ILSVRC2012_res101_feature.mat"
_OTHERS = "features"


@dataclass(frozen=True, eq=False)
class StreamedTest:
    """One of the nine test sets.

    Attributes:
        classes: int64, ascending: the classes to choose among, those with a vector and an image.
        listed: How many the file lists.
        without_vector: How many of them have no vector.
        without_images: How many of the rest have no image in the files.
        images: How many images there are.
        streams: The files, with labels of the class table, -1 for classes without a vector.
    """

    classes: Labels
    listed: int
    without_vector: int
    without_images: int
    images: int
    streams: tuple[Stream, ...]

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        """Yield the images of the set, at most ``size`` at a time; as often as one likes.

        Raises:
            CorruptInput: features are not finite.
        """
        for stream in self.streams:
            yield from chunks(stream, self.classes, size)

    def describe(self) -> dict[str, Plain]:
        """Return what a record says of the set."""
        return {
            "classes": self.classes.size,
            "classes_sha256": array_digest(self.classes),
            "classes_listed": self.listed,
            "classes_without_vector": self.without_vector,
            "classes_without_images": self.without_images,
            "images": self.images,
        }


class ImageNet:
    """Training images of the 1K classes in memory, test images of the others in chunks.

    Args:
        classes: The class table.
        train: Images of the 1K classes; labels are rows of w2v.
        tests: Images of the other classes, in as many files as there are.
        cap: The most training images of a class, the first of each; None: all, which take 10 GB in float32.
    """

    name = "ImageNet"

    def __init__(
        self, classes: ImageNetClasses, train: Stream, tests: Sequence[Stream], cap: int | None = None
    ) -> None:
        self.classes = classes
        self._train = _of_table(train, classes.row)
        self._tests = tuple(_of_table(stream, classes.row) for stream in tests)
        self._cap = cap
        self.finals = 0
        """How often test images were asked for."""

    @property
    def embeddings(self) -> ClassEmbeddings:
        """Word vectors of the classes that have one."""
        return self.classes.embeddings

    def validation(self) -> Validation:
        """Return the one class split that is published.

        Raises:
            CorruptInput: features are not finite.
        """
        held_out = self._gather(self.classes.val)
        return Validation(self._gather(self.classes.train), held_out.features, held_out.labels, self.classes.val)

    def trainval(self) -> TrainSet:
        """Return the images of all 1K classes, features in float32.

        Raises:
            CorruptInput: features are not finite.
        """
        return self._gather(np.union1d(self.classes.train, self.classes.val))

    def final(self, name: str) -> StreamedTest:
        """Return a test set by its name. Asked for once per case, after all fitting and selection.

        Raises:
            ConfigError: there is no such set.
            MissingInput: there is no image of any of its classes.
        """
        if name not in SETS:
            raise ConfigError(f"{name}: expected one of {', '.join(SETS)}.{nearest(name, SETS)}")
        self.finals += 1
        wanted, listed = self.classes.sets[name], self.classes.listed[name]
        counts = np.zeros(len(self.embeddings.names), dtype=np.int64)
        for stream in self._tests:
            counts += np.bincount(stream.labels[stream.labels >= 0], minlength=counts.size)
        present = wanted[counts[wanted] > 0]
        if not present.size:
            raise MissingInput(f"ImageNet {name}: there are no features of images of its {wanted.size} classes")
        images = int(counts[present].sum())
        return StreamedTest(present, listed, listed - wanted.size, wanted.size - present.size, images, self._tests)

    def describe(self) -> dict[str, Plain]:
        """Return what a record says of training images and class table.

        Feature files are told apart by their labels: to hash 100 GB takes longer than to test on them.
        """
        return {
            "dataset": self.name,
            "embedding": self.embeddings.name,
            "embedding_dim": int(self.embeddings.values.shape[1]),
            "embedding_digest": self.embeddings.digest,
            "classes": {
                "all": len(self.embeddings.names),
                "train": self.classes.train.size,
                "val": self.classes.val.size,
            },
            "classes_without_vector": int((self.classes.row < 0).sum()),
            "train_cap": self._cap,
            "train_classes_sha256": array_digest(self.classes.train),
            "val_classes_sha256": array_digest(self.classes.val),
            "labels_sha256": [array_digest(stream.labels) for stream in (self._train, *self._tests)],
        }

    def _gather(self, classes: Labels) -> TrainSet:
        features, labels = gather(self._train, classes, self._cap)
        # Float32: methods that compute in float64 convert what they need, a block at a time.
        return TrainSet(features, labels, np.unique(labels), self.embeddings)  # type: ignore[arg-type]


def _of_table(stream: Stream, row: Labels) -> Stream:
    """Return a stream whose labels are rows of w2v with labels of the class table instead, -1 for other classes."""
    return replace(stream, labels=row[stream.labels])


def open_imagenet(folder: Path, classes: ImageNetClasses, cap: int | None = None) -> ImageNet:
    """Open the published features: of the 1K classes, and below ``features/`` any number of files of the others.

    Args:
        folder: Holds ILSVRC2012_res101_feature.mat and ``features/*.mat`` or ``*.npy``, see `open_stream`.
        classes: The class table.
        cap: See `ImageNet`.

    Raises:
        MissingInput: a file is not there.
        CorruptInput: features and labels do not fit together.
    """
    files = [path for path in sorted((folder / _OTHERS).glob("*")) if path.suffix in {".mat", ".npy"}]
    tests = [path for path in files if not path.name.endswith(".labels.npy")]
    if not tests:
        raise MissingInput(f"{folder / _OTHERS}: no .mat or .npy files of features of the classes outside the 1K")
    count = classes.row.size
    return ImageNet(classes, open_stream(folder / TRAIN_FILE, count), [open_stream(path, count) for path in tests], cap)
