"""A small project whose cases need no torch, and how it is run."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.records.book import RecordBook
from harness.records.record import Record
from tools.chaos.project import ROOT
from tools.chaos.project import make


@dataclass
class Quick:
    """The project's folder; one model, 18 cases in 6 units of extraction, each of some hundredths of a second."""

    pytester: pytest.Pytester
    cases: int = 18

    @property
    def path(self) -> Path:
        """The folder."""
        return self.pytester.path

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own and wait for its end."""
        return self.pytester.runpytest_subprocess(*arguments, timeout=120)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run pytest in a process of its own, beside the test."""
        command = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.Popen(command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def plain(self, **files: str) -> None:
        """Write test files that are no cases; without benchmarks and models the project is quicker still."""
        (self.path / "models.yaml").unlink(missing_ok=True)
        for name, content in files.items():
            (self.path / f"{name}.py").write_text(content)

    def extend(self, hooks: str) -> None:
        """Add hooks to the conftest."""
        with (self.path / "conftest.py").open("a") as file:
            file.write(hooks)

    def records(self) -> dict[str, Record]:
        """Return the records by case id."""
        return {record.case.id: record for record in RecordBook(self.path / "reports").records()}


def quick_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """Fill pytester's folder with the project."""
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    make(pytester.path, models=1)
    return Quick(pytester)
