"""The words that data and methods of zero-shot learning share; free of torch and scikit-learn.

Rows are images and rows are classes. A label is the row of its class in the table of all classes, so one image has the
same label in every split, in training and in test.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple
from typing import Protocol
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int64]
Value: TypeAlias = "float | int | str"
Point: TypeAlias = "Mapping[str, Value]"
"""One point of a grid: a value of each hyper-parameter."""
Grid: TypeAlias = "Mapping[str, Sequence[Value]]"
"""The values of each hyper-parameter in the order in which they are tried."""


@dataclass(frozen=True, eq=False)
class ClassEmbeddings:
    """The side information: what is known of every class, seen or not, without an image of it.

    Attributes:
        names: the classes' names, in the order of the class table, C of them.
        values: float64 [C, a], rows of unit length.
        original: float64 [C, a], the raw attributes where the data set has them.
        name: what it is: "att", "wordnet", "w2v" ...
    """

    names: tuple[str, ...]
    values: Floats
    original: Floats | None
    name: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 (64 hex digits) of names and numbers."""
        sha = sha256("\n".join((self.name, *self.names)).encode())
        for array in (self.values, self.original):
            sha.update(b"-" if array is None else np.ascontiguousarray(array, np.float64).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class TrainSet:
    """The images one fit may see, with the side information of all classes.

    Attributes:
        features: [n, d] floats.
        labels: int64 [n], rows of the class table.
        classes: int64 [k], ascending: the classes that occur, "seen" for this fit.
        embeddings: of all classes; the images of the others are not here.
    """

    features: Floats
    labels: Labels
    classes: Labels
    embeddings: ClassEmbeddings

    @cached_property
    def targets(self) -> Labels:
        """Each image's label as a row of ``classes``, int64 [n]."""
        return positions(self.labels, self.classes)

    @property
    def seen(self) -> Floats:
        """Embeddings of the seen classes, [k, a]."""
        return self.embeddings.values[self.classes]


class Validation(NamedTuple):
    """One class-wise split: what to fit on, and images of other classes to select on."""

    train: TrainSet
    features: Floats
    labels: Labels
    classes: Labels


class Model(Protocol):
    """A fitted method: one score function for seen and unseen classes, in training, validation and test."""

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return float64 [m, c]: how well each image [m, d] fits each class (rows of the class table); more is better.

        The order of ``classes`` is the caller's. Whether the task is zero-shot or generalized follows from which
        classes are asked for.
        """
        ...


class Method(Protocol):
    """A way to learn from seen classes what unseen classes look like."""

    @property
    def name(self) -> str:
        """The token that names it in cases and tables."""
        ...

    @property
    def options(self) -> Mapping[str, Value]:
        """Which reading of the method this is: every switch with its value."""
        ...

    @property
    def needs(self) -> str:
        """The library that does the numerical work: "numpy", "scikit-learn" or "torch"; only torch uses a GPU."""
        ...

    @property
    def generalized(self) -> tuple[str, ...]:
        """Hyper-parameters that change generalized scores only: they are chosen by H, after all others."""
        ...

    @property
    def widens(self) -> tuple[str, ...]:
        """Hyper-parameters whose values go on by decades where the first or last is best."""
        ...

    def grid(self, dataset: str, /) -> Grid:
        """Return the published values of each hyper-parameter, in order; a default of ours where none is published."""
        ...

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], seed: int, /) -> list[list[Model]]:
        """Return the model of each set [outer] at each point [inner]; what they can share is computed once.

        A model does not depend on which other sets and points are fitted beside it, up to rounding.
        """
        ...

    def scores(self, models: Sequence[Model], features: Floats, classes: Labels, /) -> Iterator[Floats]:
        """Yield the scores of each of the models of one set, on the same images, sharing what they can."""
        ...


def positions(labels: Labels, classes: Labels) -> Labels:
    """Return each label as a position in ``classes`` (any order, no repeats), int64 [n].

    Raises:
        ValueError: a label is none of the classes.
    """
    order = np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=order)
    found = order[np.minimum(place, len(classes) - 1)]
    wrong = classes[found] != labels
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"label {labels[row]} of row {row} is none of the {len(classes)} classes asked for")
    return found.astype(np.int64)
