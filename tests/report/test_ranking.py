"""Ranks by hand, against scipy, and what must hold for any scores."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from harness.report.ranking import mean_ranks
from harness.report.ranking import ranks
from harness.report.ranking import standings

SCORES = st.lists(st.sampled_from([50.0, 50.1, 60.0, 70.0, 70.0000001]) | st.floats(0, 100), max_size=12)


def test_ranks_by_hand() -> None:
    assert ranks([70.0, 80.0, 70.0, None, 60.0]) == [2.5, 1, 2.5, None, 4]
    assert ranks([70.0, 80.0, 70.0, None, 60.0], higher_is_better=False) == [2.5, 4, 2.5, None, 1]


@given(SCORES, st.booleans())
def test_ranks_are_those_of_scipy(values: list[float], higher_is_better: bool) -> None:
    signed = [-value for value in values] if higher_is_better else values
    assert ranks(values, higher_is_better=higher_is_better) == list(rankdata(signed, method="average"))


def test_standings_by_hand() -> None:
    assert standings([70.0, 80.0, 70.0, None, 60.0]) == [2, 1, 2, 0, 0]
    assert standings([70.0, 80.0, 60.0], higher_is_better=False) == [2, 0, 1]


def test_no_best_of_one_and_no_second_of_two() -> None:
    assert standings([None, 70.0]) == [0, 0]
    assert standings([60.0, 70.0]) == [0, 1]


def test_equal_best_values_are_all_best() -> None:
    assert standings([70.0, 70.0, 60.0]) == [1, 1, 2]


def test_mean_ranks_by_hand() -> None:
    found = mean_ranks(
        {
            "a": {"L1": 70.0, "L2": 60.0},
            "b": {"L1": 70.0, "L2": 50.0},
            "c": {"L1": 60.0, "L2": 55.0},
        }
    )
    assert found.cases == ("L1", "L2")
    assert found.means == {"a": pytest.approx(1.25), "b": pytest.approx(2.25), "c": pytest.approx(2.5)}
    assert found.missing == {}


def test_a_model_that_lacks_a_case_is_out_of_all_ranks() -> None:
    complete = {"a": {"L1": 70.0, "L2": 60.0}, "b": {"L1": 60.0, "L2": 70.0}}
    found = mean_ranks({**complete, "best on L1 alone": {"L1": 99.0, "L2": None}})
    assert found.means == mean_ranks(complete).means == {"a": 1.5, "b": 1.5}
    assert found.missing == {"best on L1 alone": ("L2",)}


def test_a_case_nobody_has_does_not_count() -> None:
    found = mean_ranks({"a": {"L1": 70.0, "L2": None}, "b": {"L1": 60.0}})
    assert found.cases == ("L1",)
    assert found.means == {"a": 1, "b": 2}


def test_nothing_measured_gives_no_ranks() -> None:
    assert mean_ranks({"a": {"L1": None}}).means == {}
    assert mean_ranks({}).means == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.dictionaries(st.sampled_from(["L1", "L2", "L3"]), st.none() | st.floats(0, 100))
    ),
    st.randoms(use_true_random=False),
)
def test_mean_ranks_do_not_depend_on_the_order_of_models(
    scores: dict[str, dict[str, float | None]], chance: random.Random
) -> None:
    shuffled = list(scores)
    chance.shuffle(shuffled)
    found, again = mean_ranks(scores), mean_ranks({model: scores[model] for model in shuffled})
    assert found.means == pytest.approx(again.means)
    assert {model: set(cases) for model, cases in found.missing.items()} == {
        model: set(cases) for model, cases in again.missing.items()
    }
    assert sum(found.means.values()) == pytest.approx(len(found.means) * (len(found.means) + 1) / 2)
