"""``harness merge``: output and exit statuses. No torch needed."""

from pathlib import Path

import pytest

from harness.case import Case
from harness.cli import main
from harness.records.book import RecordBook
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Provenance
from harness.records.record import Record
from harness.store import Store

CASE = Case("cog", "linear", "s-DINO", "mini", {"split": "L1"})


def shard(folder: Path, value: float) -> Path:
    """A reports folder with one record, and a cache folder ``store`` beside it with one entry."""
    metrics = {"top1": Metric(value=value)}
    provenance = Provenance(measured=f"2026-11-30T{value:02.0f}:00:00+00:00")
    case = CaseIdentity.of(CASE)
    RecordBook(folder).write(Record(case=case, status="passed", metrics=metrics, provenance=provenance))
    Store(folder / "store").get("probe", {"seed": value}, lambda _: None)
    return folder


def test_shards_that_disagree_are_named_and_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = shard(tmp_path / "one", 10.0), shard(tmp_path / "two", 11.0)
    arguments = ["merge", str(one), str(two), "--into", str(tmp_path / "all")]
    assert main(arguments) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"conflict: cog/linear/s-DINO-L1 (suite mini): {two} is kept, {one} differs in",
        "  metrics.top1.value: 11.0 kept, 10.0 there",
        f"{tmp_path / 'all'}: 1 new, 0 changed, 0 as before; 1 conflict, 0 files left",
    ]
    assert main([*arguments, "--force"]) == 0
    assert main(["merge", str(two), "--into", str(tmp_path / "all")]) == 0
    (record,) = RecordBook(tmp_path / "all").records()
    assert record.metrics["top1"].value == 11.0


def test_caches_are_copied_beside_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    caches = [str(shard(tmp_path / name, value)) for name, value in (("one", 10.0), ("two", 11.0))]
    into = ["--cache-dir", str(tmp_path / "all")]
    assert main(["merge", "--caches", *caches, *into]) == 0
    assert len(Store(tmp_path / "all" / "store").entries()) == 2
    (Store(tmp_path / "one" / "store").entries()[0] / "key.json").write_text("{}")
    assert main(["merge", caches[0], "--into", str(tmp_path / "all"), "--caches", caches[0], *into]) == 0
    assert "0 entries copied, 1 there already" in capsys.readouterr().out
    assert main(["merge", "--caches", caches[0], "--cache-dir", str(tmp_path / "new")]) == 1
    assert "key.json does not have the digest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected SOURCE... --into DIR"),
        (["reports"], "expected SOURCE... --into DIR"),
        (["--into", "all"], "expected SOURCE... --into DIR"),
        (["nowhere", "--into", "all"], "nowhere: not a reports folder"),
        (["--caches", "nowhere"], "nowhere: not a cache folder"),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["merge", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
