"""Shards: every case in exactly one, extractions whole, balanced, whatever the order. No torch needed."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case
from harness.case import unit_of
from harness.errors import ConfigError
from harness.shards import SLACK
from harness.shards import Plan
from harness.shards import Shard
from harness.shards import deal
from harness.shards import parse_shard


def case(model: str, split: str, shots: str = "") -> Case:
    tokens = {"split": split} | ({"shots": shots} if shots else {})
    return Case("cog", "fewshot" if shots else "linear", model, "mini", tokens)


CASES = st.lists(
    st.builds(case, st.sampled_from("abcd"), st.sampled_from(["seen", "L1", "L2"]), st.sampled_from(["", "N1", "N4"])),
    unique_by=lambda case: case.id,
    max_size=36,
)
SECONDS = st.dictionaries(st.sampled_from("abcd"), st.floats(0, 100), min_size=4, max_size=4)


def dealt(cases: Sequence[Case], count: int, seconds: dict[str, float]) -> Plan:
    return deal(cases, count, lambda case: 3 * seconds[case.model], lambda case: seconds[case.model])


def longest_first(cases: Sequence[Case], count: int, seconds: dict[str, float]) -> float:
    """The longest of the shards of longest extractions first, by the plainest program."""
    units = {unit_of(case) for case in cases}
    loads = [
        3 * seconds[unit[1]] + seconds[unit[1]] * sum(unit_of(case) == unit for case in cases) for unit in sorted(units)
    ]
    totals = [0.0] * count
    for load in sorted(loads, reverse=True):
        totals.sort()
        totals[0] += load
    return max(totals)


@given(CASES, st.integers(1, 20), SECONDS, st.randoms(use_true_random=False))
def test_every_case_is_in_one_shard_and_extractions_are_whole(cases, count, seconds, random) -> None:  # type: ignore[no-untyped-def]  # of hypothesis
    plan = dealt(cases, count, seconds)
    assert sorted(identity for shard in plan.shards for identity in shard) == sorted(case.id for case in cases)
    homes = {(unit_of(case), place) for place, shard in enumerate(plan.shards) for case in cases if case.id in shard}
    assert len(homes) == len({unit_of(case) for case in cases})
    assert max(plan.seconds) <= SLACK * longest_first(cases, count, seconds) + 1e-6
    random.shuffle(cases)
    assert dealt(cases, count, seconds) == plan


def test_whole_models_stay_together_where_balance_allows() -> None:
    cases = [case(model, split) for model in "abcd" for split in ("seen", "L1", "L2")]
    plan = dealt(cases, 2, dict.fromkeys("abcd", 1.0))
    models = [{identity.split("/")[2][0] for identity in shard} for shard in plan.shards]
    assert [len(each) for each in models] == [2, 2]
    assert plan.seconds == [24.0, 24.0]


def test_a_model_larger_than_a_share_is_parted_between_extractions() -> None:
    cases = [case(model, split) for model in "ab" for split in ("seen", "L1", "L2")]
    plan = dealt(cases, 2, {"a": 10.0, "b": 1.0, "c": 0, "d": 0})
    assert plan.seconds == [80.0, 52.0]


def test_longest_first_by_hand() -> None:
    """Extractions of 8, 7, 6, 5 and 4 on two shards: 8 + 5 + 4 and 7 + 6."""
    work = dict(zip("abcde", (8.0, 7.0, 6.0, 5.0, 4.0), strict=True))
    plan = deal([case(model, "L1") for model in work], 2, lambda _: 0.0, lambda case: work[case.model])
    assert plan.seconds == [17.0, 13.0]
    assert sorted(plan.shards[1]) == ["cog/linear/b-L1", "cog/linear/c-L1"]


def test_more_shards_than_extractions_leaves_some_empty() -> None:
    plan = dealt([case("a", "L1"), case("a", "L1", "N1")], 3, dict.fromkeys("abcd", 1.0))
    assert [len(shard) for shard in plan.shards] == [2, 0, 0]
    assert [len(shard) for shard in dealt([], 2, {}).shards] == [0, 0]


def test_the_name_tells_plans_apart() -> None:
    cases = [case(model, "L1") for model in "abcd"]
    even = dict.fromkeys("abcd", 1.0)
    uneven = {**even, "d": 9.0}
    names = [dealt(*each).name for each in ((cases, 2, even), (cases, 3, even), (cases[1:], 2, even))]
    names.append(dealt(cases, 2, uneven).name)
    assert len(set(names)) == 4
    assert len(names[0]) == 6


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "1/0", "-1/4", "1/4/2", "a/b", "1.5/4", "1/100000"])
def test_wrong_shards_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected I/N"):
        parse_shard(text)


def test_a_shard_is_read() -> None:
    assert parse_shard(" 2/4") == Shard(2, 4)
