"""Splits, shots, first weights and shuffles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError
from harness.probe.sampling import Rows
from harness.probe.sampling import draw_shots
from harness.probe.sampling import first_weights
from harness.probe.sampling import rows_by_class
from harness.probe.sampling import shuffles
from harness.probe.sampling import split
from harness.probe.sampling import stream

sizes = st.lists(st.integers(5, 23), min_size=1, max_size=6)


def labels_of(counts: list[int], seed: int = 0) -> Rows:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


@given(sizes, st.integers(0, 100))
def test_split_takes_a_fifth_of_each_class(counts: list[int], seed: int) -> None:
    labels = labels_of(counts)
    train, val = split(labels, 0.2, stream(seed, "split"))
    assert np.bincount(labels[val], minlength=len(counts)).tolist() == [int(0.2 * n) for n in counts]
    assert np.array_equal(np.sort(np.concatenate([train, val])), np.arange(len(labels)))
    assert (np.diff(train) > 0).all()


def test_split_sizes_of_the_published_sets() -> None:
    # 732 and 1,300 training images are the extremes of ImageNet-CoG: 146 and 260 of them validate.
    _, val = split(np.repeat([0, 1], [732, 1300]), 0.2, stream(22, "split"))
    assert np.bincount(np.repeat([0, 1], [732, 1300])[val]).tolist() == [146, 260]


def test_split_of_a_small_class_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"class 1 has 4 training images.*at least 5"):
        split(np.repeat([0, 1, 2], [5, 4, 9]), 0.2, stream(1, "split"))


@given(sizes, st.integers(1, 5), st.integers(0, 100))
def test_shots_are_exact_and_of_the_given_rows(counts: list[int], shots: int, seed: int) -> None:
    labels = labels_of(counts)
    rows = np.sort(np.concatenate([rows[:5] for rows in rows_by_class(labels)]))
    drawn = draw_shots(rows, labels, shots, stream(seed, "shots"))
    assert np.bincount(labels[drawn]).tolist() == [shots] * len(counts)
    assert len(set(drawn.tolist())) == shots * len(counts)
    assert set(drawn.tolist()) <= set(rows.tolist())


@pytest.mark.parametrize(("shots", "message"), [(3, "class 1 has 2 images.*3 shots"), (0, "at least 1")])
def test_impossible_shots_are_refused(shots: int, message: str) -> None:
    labels = np.array([0, 0, 0, 1, 1])
    with pytest.raises(ConfigError, match=message):
        draw_shots(np.arange(5), labels, shots, stream(1, "shots"))


def test_a_class_without_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="class 1 has 0 images"):
        draw_shots(np.array([0, 1]), np.array([0, 0, 1]), 1, stream(1, "shots"))


def test_every_row_is_drawn_equally_often() -> None:
    labels = np.repeat([0, 1], [5, 8])
    rng = np.random.default_rng(0)
    counts = np.bincount(np.concatenate([draw_shots(np.arange(13), labels, 2, rng) for _ in range(4000)]))
    expected = 4000 * 2 / np.repeat([5, 8], [5, 8])
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_streams_differ_by_seed_and_purpose_and_repeat() -> None:
    names = [(22, "split"), (22, "trials"), (37, "split"), (37, "trials")]
    draws = [tuple(stream(*name).integers(0, 2**60, 4)) for name in names]
    assert len(set(draws)) == 4
    assert draws == [tuple(stream(*name).integers(0, 2**60, 4)) for name in names]


@given(st.integers(1, 40), st.integers(1, 50))
def test_shuffles_are_new_permutations_sorted_within_batches(n: int, batch_size: int) -> None:
    orders = shuffles(stream(1, "order"), n, batch_size)
    for _ in range(3):
        order = next(orders)
        assert sorted(order.tolist()) == list(range(n))
        for start in range(0, n, batch_size):
            assert (np.diff(order[start : start + batch_size]) > 0).all()


def test_epochs_have_different_batches() -> None:
    orders = shuffles(stream(1, "order"), 100, 50)
    assert set(next(orders)[:50].tolist()) != set(next(orders)[:50].tolist())


def test_first_weights_are_those_of_a_linear_layer() -> None:
    weights = first_weights(stream(1, "start"), 300, 64)
    assert weights.shape == (300, 65)
    assert weights.dtype == np.float32
    assert np.abs(weights).max() <= 1 / 8
    # Uniform within +-b has standard deviation b / sqrt(3).
    assert weights.std() == pytest.approx(1 / 8 / np.sqrt(3), rel=0.02)
