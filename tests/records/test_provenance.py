"""Where records come from."""

import subprocess
from pathlib import Path

from harness.records.provenance import git_state
from harness.records.provenance import processor
from harness.records.provenance import versions


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    run = subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_commit_and_dirty_flag(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "one")
    assert git_state(tmp_path) == (git(tmp_path, "rev-parse", "HEAD"), False)
    git_state.cache_clear()
    (tmp_path / "a").write_text("2")
    assert git_state(tmp_path)[1] is True


def test_no_repository(tmp_path: Path) -> None:
    assert git_state(tmp_path) == (None, None)


def test_versions_and_processor() -> None:
    assert {"python", "numpy"} <= versions().keys()
    assert processor()
