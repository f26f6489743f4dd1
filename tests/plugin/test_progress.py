"""Progress: estimates by hand, and lines that reach the terminal whatever captures the output of cases."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.case import Case
from harness.durations import Durations
from harness.durations import Timing
from harness.plugin.estimate import Estimate
from harness.plugin.estimate import State
from harness.runs import Heartbeat
from harness.runs import Run
from harness.runs import read_heartbeats
from harness.runs import read_runs
from tests.plugin.quick import Quick
from tests.plugin.quick import quick_project

NOW = 1_000_000.0


def case(model: str, split: str) -> Case:
    return Case("cog", "linear", model, "mini", {"split": split})


CASES: dict[str, Case | None] = {
    "a1": case("a", "L1"), "a2": case("a", "L2"), "b1": case("b", "L1"), "other": None,
}  # fmt: skip
KNOWN = Durations([], [Timing(case("a", "L1"), 10.0, 20.0), Timing(case("a", "L2"), 30.0, 40.0)])
"""Of b on L1 nothing is known: its extraction and its work are expected to take what others on L1 take."""


def left(
    known: Durations,
    outcomes: Mapping[str, str] | None = None,
    seconds: Mapping[str, float] | None = None,
    beats: Iterable[Heartbeat] = (),
    workers: int = 1,
) -> float | None:
    return Estimate(CASES, known).left(State(outcomes or {}, seconds or {}, list(beats), workers, NOW))


def beat(node: str, began: float, stage: str | None = None) -> Heartbeat:
    return Heartbeat("gw0", "here", 1, case=node, case_began=NOW - began, stage=stage, updated=NOW)


class TestEstimate:
    def test_of_one_case(self) -> None:
        estimate = Estimate(CASES, KNOWN)
        assert [estimate.case(node) for node in CASES] == [30.0, 70.0, 30.0, None]
        assert estimate.case(None) is None
        assert Estimate(CASES, Durations([])).case("a1") is None

    def test_nothing_is_known_before_the_first_case_has_ended(self) -> None:
        assert left(Durations([])) is None
        assert left(Durations([]), {"other": "passed"}, {"other": 3.0}) is None
        # One of three ended: each is expected to take as long, extraction included.
        assert left(Durations([]), {"a1": "passed"}, {"a1": 8.0}) == pytest.approx(16.0)

    def test_sum_over_workers_but_no_less_than_the_longest_case(self) -> None:
        assert left(KNOWN) == pytest.approx(30 + 70 + 30)
        assert left(KNOWN, workers=2) == pytest.approx(70.0)

    def test_time_that_running_cases_took_is_gone(self) -> None:
        assert left(KNOWN, beats=[beat("a2", 25.0)]) == pytest.approx(30 + 45 + 30)
        assert left(KNOWN, beats=[beat("a2", 99.0)]) == pytest.approx(30 + 0 + 30)
        assert left(KNOWN, beats=[beat("a2", 25.0, "probe")]) == pytest.approx(30 + (40 - 25) + 30)

    def test_pace(self) -> None:
        # Took 60 rather than 30 s; cases take 80 / 3 s as a rule, which has the weight of one case.
        usual = 80 / 3
        pace = (60 + usual) / (30 + usual)
        assert left(KNOWN, {"a1": "passed"}, {"a1": 60.0}) == pytest.approx(pace * (70 + 30))

    def test_what_one_case_of_an_extraction_misses_the_others_miss(self) -> None:
        cases = {**CASES, "few": Case("cog", "fewshot", "a", "mini", {"split": "L2", "shots": "N004"})}
        state = State({"few": "skipped"}, {"few": 0.0}, [], 1, NOW)
        assert Estimate(cases, KNOWN).left(state) == pytest.approx(30 + 30)


@pytest.fixture
def quick(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Quick:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("CHAOS_PAUSE", "0.15")
    return quick_project(pytester, monkeypatch)


def only_run(quick: Quick) -> tuple[Path, Run]:
    ((folder, run),) = read_runs(quick.path / "cache" / "runs").items()
    return folder, run


LINE = (
    r"progress: \d+ of 3 cases in \d+ s; 1 running; (about \d+ s|time) left( unknown)?; "
    r"longest: test_(linear|fewshot)\[model-a-\S+\] on {worker}(, (features|probe)( \d/6 \(\d+ %\))?)?, for \d s"
)


@pytest.mark.parametrize("capture", ["fd", "sys", "no"])
def test_lines_reach_the_terminal_while_a_case_runs(quick: Quick, capture: str) -> None:
    result = quick.run(
        "benchmarks", "-p", "no:xdist", "-k", "L1", "--progress-every", "1", f"--capture={capture}", "-rP"
    )
    result.assert_outcomes(passed=3, deselected=15)
    result.stdout.re_match_lines([LINE.format(worker="main")])
    before, _, after = result.stdout.str().partition("[100%]")
    assert before.count("progress: ") >= 2
    assert "progress: " not in after, "it is shown as what a case printed"


def test_with_workers_each_has_its_line_if_asked(quick: Quick) -> None:
    result = quick.run("benchmarks", "-n2", "-v", "-k", "L1 or L2", "--progress-every", "1")
    result.assert_outcomes(passed=6, deselected=12)
    table = r"progress: \d of 6 cases in .*\nworker +host +device +case +stage +for +trouble\n[- ]+\ngw0 .*\ngw1 "
    assert re.search(table, result.stdout.str())
    folder, run = only_run(quick)
    assert (run.selected, run.passed, run.failed, run.skipped, run.workers) == (6, 6, 0, 0, 2)
    assert run.exit_status == 0
    assert run.ended is not None
    assert run.ended > run.began
    assert re.fullmatch("pytest .*benchmarks -n2 -v -k 'L1 or L2' --progress-every 1", run.command)
    assert read_heartbeats(folder) == []


@pytest.mark.parametrize("options", [["-q"], []], ids=["quiet", "not yet"])
def test_nothing_is_shown(quick: Quick, options: list[str]) -> None:
    every = ["--progress-every", "0.5"] if options else []
    result = quick.run("benchmarks", "-p", "no:xdist", "-k", "L1", *options, *every)
    assert result.ret == 0
    assert "progress" not in result.stdout.str()
    assert only_run(quick)[1].passed == 3


STUCK = """
import time

def test_stuck():
    time.sleep(4)
"""


@pytest.mark.parametrize("mode", [["-n1"], ["-p", "no:xdist"]], ids=["n1", "no-xdist"])
def test_a_stuck_case_is_named(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_stuck=STUCK)
    quick.extend("from harness import watch\nwatch.PATIENCE_SECONDS = 1.5\n")
    result = quick.run("test_stuck.py", *mode, "--progress-every", "1")
    result.stdout.re_match_lines([r"stuck\? \w+ \(process \d+ on \S+\), test_stuck: no progress for \d s"])


def test_a_run_that_is_killed_leaves_a_file_that_says_so(quick: Quick) -> None:
    process = quick.start("benchmarks", "-p", "no:xdist")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        runs = read_runs(quick.path / "cache" / "runs")
        if any(run.passed for run in runs.values()):
            break
        time.sleep(0.05)
    process.kill()
    process.communicate()
    folder, run = only_run(quick)
    assert (run.ended, run.selected) == (None, 18)
    assert run.passed > 0
    assert run.dead(time.time())
    assert json.loads((folder / "run.json").read_text())["pid"] == process.pid


def test_on_a_terminal(quick: Quick) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "pytest", "benchmarks", "-n2", "-k", "L1 or L2", "--progress-every", "1"]
    process = subprocess.Popen(command, cwd=quick.path, stdout=follower, stderr=follower)
    os.close(follower)
    output = b""
    try:
        while part := os.read(leader, 65536):
            output += part
    except OSError:  # how a terminal ends on Linux
        pass
    finally:
        os.close(leader)
    assert process.wait() == 0
    lines = [line for line in output.decode().replace("\r", "").split("\n") if "of 6 cases" in line]
    assert lines
    assert all(re.fullmatch(r"progress: \d of 6 cases in .*", line) for line in lines), lines
