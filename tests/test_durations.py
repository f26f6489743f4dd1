"""Expected durations: recorded ones exactly, others from what is most alike."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case
from harness.case import unit_of
from harness.durations import UNKNOWN
from harness.durations import Durations
from harness.durations import Timing
from harness.errors import CorruptInput
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Provenance
from harness.records.record import Record


def linear(model: str, split: str = "L1", suite: str = "mini", **options: str) -> Case:
    return Case("cog", "linear", model, suite, {"split": split}, options)


def fewshot(model: str, shots: str = "N001", split: str = "L1") -> Case:
    return Case("cog", "fewshot", model, "mini", {"split": split, "shots": shots})


def record(case: Case, features: float, work: float) -> Record:
    seconds = {"features": features, "probe": work}
    provenance = Provenance(measured="2026-11-01T00:00:00+00:00", seconds=seconds)
    metrics = {"top1": Metric(value=1.0)}
    return Record(case=CaseIdentity.of(case), status="passed", metrics=metrics, provenance=provenance)


def test_the_very_case_goes_before_all_others() -> None:
    found = Durations([record(linear("a"), 2, 10), record(linear("b"), 4, 30), record(linear("c"), 6, 80)])
    assert found.work(linear("b")) == 30
    assert found.features(linear("b")) == 4
    assert found.known(linear("b"))
    assert not found.known(linear("b", "L2"))


def test_the_same_split_of_other_models_then_the_same_protocol_then_nothing() -> None:
    probes = [("a", "L1", 10), ("b", "L1", 30), ("c", "L1", 80), ("a", "L2", 500)]
    records = [record(linear(model, split), 1, work) for model, split, work in probes]
    found = Durations([*records, record(fewshot("a", "N001"), 0, 2), record(fewshot("a", "N004"), 0, 4)])
    assert found.work(linear("new")) == 30  # the median of 10, 30 and 80
    assert found.work(linear("new", "L9")) == 55  # of 10, 30, 80 and 500: few-shot stands apart
    assert found.work(fewshot("new", "N004")) == 4
    assert found.work(fewshot("new", "N128")) == 3
    assert found.work(Case("zsl", "eszsl", "new", "mini")) == UNKNOWN
    assert found.work(linear("new", suite="paper")) == UNKNOWN


def test_other_options_tell_less_than_the_same_ones() -> None:
    found = Durations([record(linear("a", trials="99"), 1, 100), record(linear("b"), 1, 7)])
    assert found.work(linear("new", trials="99")) == 100
    assert found.work(linear("new", trials="3")) == 53.5


def test_extraction_is_what_the_first_case_of_its_unit_took() -> None:
    records = [record(linear("a"), 0.01, 5), record(fewshot("a"), 40, 1), record(linear("a", "L2"), 60, 5)]
    found = Durations([*records, record(linear("b"), 200, 5)])
    assert found.features(linear("a")) == 40
    assert found.features(fewshot("a", "N004")) == 40
    assert found.features(linear("a", "L3")) == 50  # a model's other splits say more than the split of another model
    assert found.features(linear("c")) == 120
    assert found.features(linear("c", "L3")) == 60


def test_what_was_not_measured_tells_nothing() -> None:
    skipped = Record(case=CaseIdentity.of(linear("a")), status="skipped", reason="no weights")
    without_times = record(linear("b"), 0, 0).model_copy(update={"provenance": None})
    found = Durations([skipped, without_times])
    assert not found.known(linear("a"))
    assert found.work(linear("a")) == found.features(linear("b")) == UNKNOWN


def test_a_file_holds_a_line_for_each_case_in_an_order_that_records_do_not_change() -> None:
    records = [record(linear("b"), 0.0123456, 10), record(linear("a", trials="3"), 2, 30), record(fewshot("a"), 0, 1)]
    text = Durations(records).to_json()
    assert text == Durations(reversed(records)).to_json()
    assert text.count("\n") == len(records) + 2
    read = Durations.from_json(text)
    assert read.to_json() == text
    assert read.features(linear("b")) == 0.0123  # three digits: the rest is noise in a diff
    assert read.known(linear("a", trials="3"))
    assert json.loads(Durations(()).to_json()) == {"version": 1, "cases": []}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "cases": []}', '{"version": 1, "cases": [["mini"]]}', '{"version": 1}']
)
def test_what_is_no_file_of_durations_is_said(text: str) -> None:
    with pytest.raises(CorruptInput, match="durations"):
        Durations.from_json(text)


def test_a_record_goes_before_the_time_of_a_file() -> None:
    found = Durations([record(linear("a"), 1, 10)], [Timing(linear("a"), 1, 99), Timing(linear("b"), 1, 99)])
    assert found.work(linear("a")) == 10
    assert found.work(linear("b")) == 99


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["L1", "L2"]), st.floats(0, 1e4))))
def test_expectations_lie_among_what_was_measured(rows: list[tuple[str, str, float]]) -> None:
    found = Durations([record(linear(model, split), work / 2, work) for model, split, work in rows])
    for case in (linear("a"), linear("d", "L2"), linear("d", "L3")):
        if rows:
            measured = [work for *_, work in rows]
            assert min(measured) <= found.work(case) <= max(measured)
            assert min(measured) / 2 <= found.features(case) <= max(measured) / 2
        else:
            assert found.work(case) == UNKNOWN


def test_a_unit_is_a_model_on_a_split_whatever_the_protocol() -> None:
    assert unit_of(linear("a")) == unit_of(fewshot("a", "N004"))
    assert unit_of(linear("a")) != unit_of(linear("a", "L2"))
    assert unit_of(linear("a")) != unit_of(linear("b"))
