"""Merging: the same bytes whatever the order and however often. No torch needed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case
from harness.cog.rankings import read_ranking
from harness.cog.rankings import save_ranking
from harness.durations import Durations
from harness.durations import Timing
from harness.errors import ConfigError
from harness.merge import Merged
from harness.merge import combine
from harness.merge import merge_reports
from harness.records.book import RecordBook
from harness.records.record import Attempt
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Provenance
from harness.records.record import Record
from harness.records.record import Status

CASE = Case("cog", "linear", "s-DINO", "mini", {"split": "L1"})
NAME = "records/mini/cog/linear/s-DINO/L1.json"


def at(hour: int) -> str:
    return f"2026-11-30T{hour:02}:00:00+00:00"


def record(status: Status = "passed", hour: int = 1, *, value: float = 50.0, case: Case = CASE, **more: Any) -> Record:
    passed = status == "passed"
    return Record(
        case=CaseIdentity.of(case),
        status=status,
        reason=None if passed else more.pop("reason", "why"),
        metrics={"top1": Metric(value=value)} if passed else {},
        provenance=Provenance(measured=at(hour)),
        **more,
    )


def in_bytes(record: Record) -> bytes:
    return (record.model_dump_json(indent=1) + "\n").encode()


def merged(*contents: bytes | None) -> bytes | None:
    return combine(NAME, {str(place): each for place, each in enumerate(contents) if each is not None}, Merged())


HOURS = st.integers(1, 3)
ATTEMPTS = st.builds(Attempt, status=st.just("failed"), reason=st.sampled_from("xy"), time=st.builds(at, HOURS))
RECORDS = st.builds(
    record,
    st.sampled_from(["passed", "failed", "skipped"]),
    HOURS,
    value=st.sampled_from([1.0, 2.0]),
    key=st.sampled_from([{}, {"seeds": [1]}]),
    details=st.sampled_from([{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
    last_attempt=st.none() | ATTEMPTS,
)
CONTENTS = st.builds(in_bytes, RECORDS) | st.sampled_from([None, b"{", b"[]", b'{"schema_version": 9}'])


@given(CONTENTS, CONTENTS, CONTENTS)
def test_merging_is_commutative_associative_and_idempotent_to_the_byte(
    a: bytes | None, b: bytes | None, c: bytes | None
) -> None:
    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c)) == merged(a, b, c)
    assert merged(merged(a, b), b) == merged(a, b)
    assert merged(merged(a)) == merged(a)


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        (record(), record("failed", 0), record()),
        (record(), record("skipped", 9), record()),
        (record("failed"), record("skipped", 9), record("failed")),
        (record(hour=1), record(hour=2, warnings=["w"]), record(hour=2, warnings=["w"])),
        (
            record(),
            record("failed", 2),
            record(last_attempt=Attempt(status="failed", reason="why", time=at(2))),
        ),
        (record(last_attempt=Attempt(status="failed", reason="old", time=at(2))), record(hour=3), record(hour=3)),
    ],
    ids=["measured", "skip", "failed", "latest", "attempt", "passed-since"],
)
def test_what_is_kept(one: Record, other: Record, kept: Record) -> None:
    assert merged(in_bytes(one), in_bytes(other)) == in_bytes(kept)


def clash(**contents: Record) -> dict[tuple[str, str], Mapping[str, object]]:
    found = Merged()
    combine(NAME, {name: in_bytes(each) for name, each in contents.items()}, found)
    return {(conflict.kept, conflict.other): conflict.fields for conflict in found.conflicts}


def test_other_numbers_or_another_key_are_a_conflict() -> None:
    numbers = clash(a=record(hour=2), b=record(value=51.0))
    assert numbers == {("a", "b"): {"metrics.top1.value": (50.0, 51.0)}}
    key = clash(a=record(key={"libraries": {"torch": "1"}}), b=record(hour=2, key={"libraries": {"torch": "2"}}))
    assert key == {("b", "a"): {"key.libraries.torch": ("2", "1")}}


def test_equal_numbers_are_none_whoever_measured_them_and_when() -> None:
    assert clash(a=record(hour=2), b=record(), c=record("failed"), d=record("skipped")) == {}


def test_files_that_are_no_records_are_named() -> None:
    for content, reason in ((b"{", "not a valid record"), (in_bytes(record(case=CASE_2)), "a copy of the record of")):
        found = Merged()
        assert combine(NAME, {"a": content}, found) is None
        assert reason in found.left[f"a/{NAME}"]
    found = Merged()
    combine("records/notes.txt", {"a": b"mine"}, found)
    assert found.left == {"a/records/notes.txt": "not a record"}


CASE_2 = Case("cog", "linear", "s-DINO", "mini", {"split": "L2"})


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Reports of two shards on machines of their own: a case each, and one that the second had no weights for."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, case in zip(folders, (CASE, CASE_2), strict=True):
        RecordBook(folder).write(record(case=case))
        save_ranking(RecordBook(folder).root, "mini", {}, [(1, 0.5, 1)])
        timings = Durations((), [Timing(CASE, 1.0, 2.0 if case is CASE else 3.0), Timing(case, 4.0, 4.0)])
        (folder / "durations.json").write_text(timings.to_json())
    RecordBook(folders[1]).write(record("skipped", case=CASE))
    return folders


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_folders_merge_in_any_order_and_again(shards: list[Path], tmp_path: Path) -> None:
    before = [content(shard) for shard in shards]
    first = merge_reports(shards, tmp_path / "a")
    assert (first.new, first.changed, first.same, first.conflicts, first.left) == (4, 0, 0, [], {})
    assert [each.status for each in RecordBook(tmp_path / "a").records()] == ["passed", "passed"]
    for shard in reversed(shards):
        merge_reports([shard], tmp_path / "b")
    assert content(tmp_path / "b") == content(tmp_path / "a")
    again = merge_reports([*shards, tmp_path / "b"], tmp_path / "a")
    assert (again.new, again.changed, again.same) == (0, 0, 4)
    assert [content(shard) for shard in shards] == before
    assert read_ranking(RecordBook(tmp_path / "a").root, "mini", {}) == [(1, 0.5, 1)]


def test_durations_are_those_of_where_a_case_was_computed(shards: list[Path], tmp_path: Path) -> None:
    merge_reports(shards, tmp_path / "a")
    durations = Durations.from_json((tmp_path / "a" / "durations.json").read_text())
    assert (durations.features(CASE), durations.work(CASE), durations.work(CASE_2)) == (4.0, 4.0, 4.0)


def test_rankings_that_differ_are_a_conflict(shards: list[Path], tmp_path: Path) -> None:
    save_ranking(RecordBook(shards[1]).root, "mini", {}, [(1, 0.7, 1)])
    found = merge_reports(shards, tmp_path / "a")
    assert [conflict.what for conflict in found.conflicts] == ["records/mini/cog/levels.csv"]
    merge_reports(shards[::-1], tmp_path / "b")
    assert content(tmp_path / "b") == content(tmp_path / "a")


def test_damaged_files_are_left_and_the_others_merge(shards: list[Path], tmp_path: Path) -> None:
    RecordBook(shards[0]).path(CASE).write_text("{")
    (shards[1] / "durations.json").write_text("[]")
    found = merge_reports(shards, tmp_path / "a")
    assert sorted(found.left) == [str(shards[0] / NAME), str(shards[1] / "durations.json")]
    assert [each.status for each in RecordBook(tmp_path / "a").records()] == ["skipped", "passed"]


def test_a_source_has_to_be_a_reports_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a reports folder"):
        merge_reports([tmp_path], tmp_path / "a")


def test_what_is_written_can_be_read_by_anyone(shards: list[Path], tmp_path: Path) -> None:
    merge_reports(shards, tmp_path / "a")
    assert json.loads((tmp_path / "a" / NAME).read_text())["case"]["id"] == CASE.id
