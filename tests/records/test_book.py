"""Records on disk: what was measured is never lost."""

import json
from pathlib import Path
from threading import Thread

import pytest

from harness.case import Case
from harness.records.book import RecordBook
from harness.records.book import RecordWarning
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Record
from harness.records.record import Status

CASE = Case("cog", "linear", "s-DINO", "mini", {"split": "L1"})


@pytest.fixture
def book(tmp_path: Path) -> RecordBook:
    return RecordBook(tmp_path)


def record(status: Status = "passed", value: float = 50.0, case: Case = CASE) -> Record:
    metrics = {"top1": Metric(value=value)} if status == "passed" else {}
    return Record(case=CaseIdentity.of(case), status=status, reason=None if metrics else "why", metrics=metrics)


def test_round_trip(book: RecordBook) -> None:
    book.write(record())
    assert book.read(CASE) == record()
    assert book.path(CASE).relative_to(book.root).as_posix() == "mini/cog/linear/s-DINO/L1.json"
    assert CaseIdentity.of(CASE).case() == CASE


def test_what_a_writer_has_read_does_not_change_before_it_writes(book: RecordBook) -> None:
    writer = Thread(target=book.write, args=(record("failed"),))
    with book.lock():
        writer.start()
        writer.join(timeout=0.2)
        assert book.read(CASE) is None
    writer.join(timeout=10)
    assert book.read(CASE) == record("failed")


def test_a_skip_leaves_a_measured_record_alone(book: RecordBook) -> None:
    book.write(record("skipped"))
    assert book.read(CASE) == record("skipped")
    book.write(record())
    before = book.path(CASE).read_bytes()
    book.write(record("skipped"))
    assert book.path(CASE).read_bytes() == before


def test_a_failure_is_noted_in_a_measured_record(book: RecordBook) -> None:
    book.write(record(value=71.0))
    book.write(record("failed"))
    kept = book.read(CASE)
    assert kept is not None
    assert kept.metrics["top1"].value == 71.0
    assert kept.last_attempt is not None
    assert (kept.last_attempt.status, kept.last_attempt.reason) == ("failed", "why")
    book.write(record(value=72.0))
    assert book.read(CASE) == record(value=72.0)


def test_readings_and_suites_have_their_own_files(book: RecordBook) -> None:
    others = [
        CASE,
        Case("cog", "linear", "s-DINO", "mini", {"split": "L1"}, {"trials": "30"}),
        Case("cog", "linear", "s-DINO", "paper", {"split": "L1"}),
    ]
    for number, case in enumerate(others):
        book.write(record(value=number, case=case))
    assert [r.metrics["top1"].value for r in book.records()] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("content", ["{", "[]", '{"schema_version": 99}', ""])
def test_a_file_that_is_no_record_is_named_and_the_others_are_read(book: RecordBook, content: str) -> None:
    book.write(record())
    stray = book.root / "mini" / "stray.json"
    stray.write_text(content)
    with pytest.warns(RecordWarning, match=r"stray\.json"):
        assert book.records() == [record()]


def test_the_file_is_plain_json_with_its_version(book: RecordBook) -> None:
    book.write(record())
    content = json.loads(book.path(CASE).read_text())
    assert content["schema_version"] == 1
    assert content["case"]["id"] == "cog/linear/s-DINO-L1"


def test_a_copy_of_a_record_is_named_and_passed_over(book: RecordBook) -> None:
    book.write(record())
    path = book.path(CASE)
    path.with_name("L1 (1).json").write_bytes(path.read_bytes())
    with pytest.warns(RecordWarning, match="copy of the record of cog/linear/s-DINO-L1"):
        assert book.records() == [record()]
