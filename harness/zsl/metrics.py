"""Accuracy as the benchmark counts it: a mean over classes, not over images (facts 1.3; authors' evaluate.m)."""

from dataclasses import dataclass

import numpy as np

from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import Model


@dataclass(frozen=True, eq=False)
class ClassAccuracy:
    """Top-1 accuracy of each class that occurs among the labels.

    Attributes:
        classes: int64 [k], ascending.
        correct: int64 [k], images of the class that were given its label.
        images: int64 [k], images of the class, at least 1.
    """

    classes: Labels
    correct: Labels
    images: Labels

    @property
    def percent(self) -> Floats:
        """Accuracy of each class, float64 [k]."""
        return 100 * self.correct / self.images

    @property
    def mean(self) -> float:
        """The benchmark's figure: the mean over classes, in percent."""
        return float(self.percent.mean())


@dataclass(frozen=True)
class Generalized:
    """Accuracy among all classes, in percent: of images of unseen (ts) and of seen (tr) classes, and their mean H."""

    ts: float
    tr: float

    @property
    def h(self) -> float:
        """Harmonic mean of ts and tr; 0 where both are 0."""
        return 2 * self.ts * self.tr / (self.ts + self.tr) if self.ts + self.tr else 0.0


def predict(model: Model, features: Floats, classes: Labels) -> Labels:
    """Return the best of ``classes`` for each image, int64 [m], as in `best_classes`."""
    return best_classes(model.scores(features, classes), classes)


def best_classes(scores: Floats, classes: Labels) -> Labels:
    """Return the class with the highest of its scores [m, c] for each image; the first of those that are equal.

    Raises:
        ValueError: a score is not a number, so that no class is best.
    """
    if np.isnan(scores).any():
        raise ValueError(f"the score of image {int(np.isnan(scores).any(1).argmax())} is not a number")
    best: Labels = classes[scores.argmax(1)]
    return best


def class_accuracy(predicted: Labels, labels: Labels) -> ClassAccuracy:
    """Count what was predicted right, class by class.

    Raises:
        ValueError: there are no images.
    """
    if not len(labels):
        raise ValueError("accuracy of no images")
    classes, rows, images = np.unique(labels, return_inverse=True, return_counts=True)
    correct = np.bincount(rows, predicted == labels, len(classes))
    return ClassAccuracy(classes, correct.astype(np.int64), images)
