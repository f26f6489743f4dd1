"""Normalisation of features: the official formula, fitted on training images alone."""

import numpy as np
import pytest

from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.methods.scaling import unit_rows


def test_official_normalisation_by_hand() -> None:
    train = np.array([[1.0, 10.0], [3.0, 10.0], [1.0, 10.0], [3.0, 40.0]])
    scaling = fit_scaling("official", train)
    # z: columns -1 1 -1 1 and -1/sqrt 3 (three times), sqrt 3; the one largest is sqrt 3
    z = np.array([[-1, -1 / np.sqrt(3)], [1, -1 / np.sqrt(3)], [-1, -1 / np.sqrt(3)], [1, np.sqrt(3)]])
    np.testing.assert_allclose(scaling.apply(train), z / np.sqrt(3))
    other = [[2 / np.sqrt(3), -17.5 / np.sqrt(168.75) / np.sqrt(3)]]
    np.testing.assert_allclose(scaling.apply(np.array([[4.0, 0.0]])), other)


def test_largest_is_signed_and_over_the_whole_matrix() -> None:
    train = np.array([[0.0], [1.0], [1.0], [1.0]])
    scaled = fit_scaling("official", train).apply(train)
    assert scaled.max() == pytest.approx(1)
    assert scaled.min() == pytest.approx(-3)


def test_a_constant_column_is_0_and_does_not_explode_at_test() -> None:
    rng = np.random.default_rng(0)
    train = np.column_stack([np.full(3000, 0.1), rng.random(3000)])
    scaling = fit_scaling("official", train)
    assert np.abs(scaling.apply(train)[:, 0]).max() < 1e-12
    assert abs(scaling.apply(np.array([[0.2, 0.5]]))[0, 0]) < 1
    np.testing.assert_array_equal(fit_scaling("official", np.ones((3, 2))).apply(np.ones((1, 2))), [[0, 0]])


def test_statistics_of_blocks_are_those_of_the_whole() -> None:
    train = np.random.default_rng(0).normal(5, 2, (2500, 3))
    z = (train - train.mean(0)) / train.std(0)
    np.testing.assert_allclose(fit_scaling("official", train).apply(train), z / z.max())


def test_unit_length_and_raw() -> None:
    rows, unit = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 0.0]])
    np.testing.assert_allclose(unit_rows(rows), unit)
    np.testing.assert_allclose(fit_scaling("l2", rows).apply(2 * rows), unit)
    assert fit_scaling("raw", rows).apply(rows) is rows
