"""Accuracy per class, the harmonic mean, and the oracle that must score 100 in every protocol."""

import numpy as np
import pytest

from harness.zsl.metrics import Generalized
from harness.zsl.metrics import class_accuracy
from harness.zsl.metrics import predict
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import positions


class Oracle:
    """Scores images whose only feature is their label."""

    def scores(self, features: Floats, classes: Labels) -> Floats:
        return np.where(features == classes, 1.0, 0.0)


class Fixed:
    """Scores every image alike."""

    def __init__(self, *scores: float) -> None:
        self.row = scores

    def scores(self, features: Floats, classes: Labels) -> Floats:
        return np.tile(np.array(self.row)[: len(classes)], (len(features), 1))


def test_accuracy_is_a_mean_over_classes_not_over_images() -> None:
    labels = np.array([7] * 8 + [3] * 2)
    predicted = np.array([7] * 10)
    found = class_accuracy(predicted, labels)
    assert (predicted == labels).mean() == 0.8
    assert found.mean == 50.0
    assert found.classes.tolist() == [3, 7]
    assert found.percent.tolist() == [0.0, 100.0]
    assert found.images.tolist() == [2, 8]


def test_classes_without_images_do_not_count() -> None:
    assert class_accuracy(np.array([1, 9]), np.array([1, 1])).mean == 50.0


@pytest.mark.parametrize(("ts", "tr", "h"), [(0, 0, 0), (0, 90, 0), (50, 50, 50), (21.8, 33.1, 26.287)])
def test_harmonic_mean(ts: float, tr: float, h: float) -> None:
    assert Generalized(ts, tr).h == pytest.approx(h, abs=1e-3)


def test_oracle_scores_are_100_in_both_protocols_whatever_the_order_of_classes() -> None:
    seen, unseen = np.array([8, 0, 5, 2]), np.array([9, 1, 4])
    rng = np.random.default_rng(0)
    test_unseen, test_seen = rng.choice(unseen, 50), rng.choice(seen, 50)
    everything = rng.permutation(np.concatenate([seen, unseen]))
    assert class_accuracy(predict(Oracle(), test_unseen[:, None], unseen), test_unseen).mean == 100
    ts, tr = (
        class_accuracy(predict(Oracle(), labels[:, None], everything), labels).mean
        for labels in (test_unseen, test_seen)
    )
    result = Generalized(ts, tr)
    assert (result.ts, result.tr, result.h) == (100, 100, 100)


def test_protocols_ask_for_different_classes() -> None:
    images = np.zeros((3, 1))
    assert predict(Fixed(1, 2), images, np.array([4, 6])).tolist() == [6, 6, 6]
    assert predict(Fixed(1, 2, 3), images, np.array([4, 6, 0])).tolist() == [0, 0, 0]


def test_ties_take_the_first_class_asked_for() -> None:
    assert predict(Fixed(1, 1), np.zeros((1, 1)), np.array([6, 4])).tolist() == [6]


def test_a_score_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="image 0 is not a number"):
        predict(Fixed(np.nan, 1), np.zeros((1, 1)), np.array([0, 1]))
    with pytest.raises(ValueError, match="no images"):
        class_accuracy(np.array([], int), np.array([], int))


def test_positions_of_labels_in_an_unsorted_list_of_classes() -> None:
    classes = np.array([5, 2, 9, 0])
    labels = np.array([0, 9, 9, 5, 2])
    assert positions(labels, classes).tolist() == [3, 2, 2, 0, 1]
    assert classes[positions(labels, classes)].tolist() == labels.tolist()


@pytest.mark.parametrize("label", [1, 10, -1])
def test_a_label_outside_the_classes_is_refused(label: int) -> None:
    with pytest.raises(ValueError, match=rf"label {label} of row 1 is none of the 4 classes"):
        positions(np.array([5, label]), np.array([5, 2, 9, 0]))
