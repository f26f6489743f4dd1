"""Collection of 47,000 cases: without torch, in little memory, in little more time than pytest's own part."""

from pathlib import Path

import pytest

from perf.collection import CASES
from perf.collection import DINO
from perf.collection import OURS
from perf.collection import PLAIN
from perf.collection import Run
from perf.collection import collect
from perf.collection import write_project

BOUND = 400 * 2**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the project."""
    found = tmp_path_factory.mktemp("scale")
    write_project(found)
    return found


@pytest.fixture(scope="module")
def bare(folder: Path) -> Run:
    """Collect a bare parametrised module of as many tests."""
    run = collect(folder, *PLAIN)
    assert run.output.strip() == f"bare/test_bare.py: {CASES}"
    return run


def test_every_case_is_collected_in_little_memory(folder: Path, bare: Run) -> None:
    run = collect(folder, *OURS)
    assert run.status == 0, run.errors
    assert run.output.strip() == f"benchmarks/test_cog.py: {CASES}"
    assert run.errors.strip() == f"collected {CASES} heavy []"
    assert run.peak < BOUND
    assert run.seconds < 1.6 * bare.seconds


@pytest.mark.parametrize("selection", [["-k", "dino"], ["--select", f"model={','.join(DINO)}"]], ids=["k", "select"])
def test_a_selection_counts_what_it_leaves_out(folder: Path, bare: Run, selection: list[str]) -> None:
    wanted = 54 * len(DINO)
    run = collect(folder, *OURS, "-v", *selection)
    assert run.errors.strip() == f"collected {wanted} heavy []"
    assert f"{wanted}/{CASES} tests collected ({CASES - wanted} deselected)" in run.output
    assert run.peak < BOUND
    assert run.seconds < 1.3 * bare.seconds
