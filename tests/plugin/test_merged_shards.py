"""Two shards on machines that share nothing, put together again: the run that was never parted."""

from pathlib import Path

import torch  # noqa: F401 - measured cases need it; where it is absent this module is left out

from harness.cache import copy_entries
from harness.merge import merge_reports
from harness.records.book import RecordBook
from harness.store import Store
from tests.plugin.conftest import Project


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in (folder / "records").rglob("*.*")}


def test_two_shards_on_two_caches_make_one_run(project: Project) -> None:
    for number in (1, 2):
        cache = project.fresh_cache(f"cache-{number}")
        result = project.run(
            "benchmarks", "-k", "random", "--shard", f"{number}/2", *cache, "--reports-dir", f"reports-{number}"
        )
        result.assert_outcomes(passed=4 if number == 1 else 2, deselected=8 if number == 1 else 10)
    parts = [project.path / f"reports-{number}" for number in (1, 2)]
    found = merge_reports(parts, project.path / "all")
    assert (len(RecordBook(project.path / "all").records()), found.conflicts, found.left) == (6, [], {})
    merge_reports(parts[::-1], project.path / "again")
    merge_reports([project.path / "all"], project.path / "again")
    assert content(project.path / "again") == content(project.path / "all")

    store = Store(project.path / "cache" / "store")
    entries = [copy_entries(Store(project.path / f"cache-{number}" / "store"), store).copied for number in (1, 2)]
    assert entries == [4 + 4, 2 + 2]  # results, and features of training and test images of two splits and of one
    whole = project.run("benchmarks", "-k", "random", "--overwrite", "only-cache", "--overwrite-features", "only-cache")
    whole.assert_outcomes(passed=6, deselected=6)
    assert merge_reports([project.path / "reports"], project.path / "all").conflicts == []
