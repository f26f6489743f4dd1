"""Heartbeats: what a process writes is what another reads, and silence never harms the process."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.progress import listening
from harness.progress import report
from harness.runs import Pulse
from harness.runs import Run
from harness.runs import StateFile
from harness.runs import read_heartbeats
from harness.runs import read_runs
from harness.runs import remove_old_runs
from harness.runs import run_path


def test_a_reader_sees_case_stage_and_steps(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path / "run", "gw3")
    before = time.time()
    with pulse.beating(), listening(pulse.stage):
        pulse.begin("test_cog.py::test_linear[a-L1]")
        report("features", 16, 64)
        (beat,) = read_heartbeats(tmp_path / "run")
        assert (beat.worker, beat.case, beat.stage, beat.done, beat.total) == (
            "gw3", "test_cog.py::test_linear[a-L1]", "features", 16, 64,
        )  # fmt: skip
        assert before <= beat.case_began <= beat.progressed <= beat.updated <= time.time()
        report("probe")
        assert [(beat.stage, beat.done) for beat in read_heartbeats(tmp_path / "run")] == [("probe", None)]
        pulse.end()
        assert [beat.case for beat in read_heartbeats(tmp_path / "run")] == [None]
    assert read_heartbeats(tmp_path / "run") == []


def test_what_cannot_be_written_or_read_is_not_said(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with Pulse(tmp_path / "run", "gw0").beating() as pulse:
        pulse.begin("case")
        pulse.stage("features", 1, 2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "gw1.beat.json").write_text('{"worker": "gw1", "ho')
    assert read_heartbeats(tmp_path / "other") == []


def test_who_no_longer_listens_hears_nothing() -> None:
    heard: list[str] = []
    with listening(lambda stage, *_: heard.append(stage)):
        report("features", 1, 2)
    report("probe")
    assert heard == ["features"]


def a_run(runs: Path, name: str, **news: Any) -> Path:
    """Write the file of a run of this process; ``updated`` is the time of writing."""
    run = Run(host=socket.gethostname(), pid=os.getpid(), began=1.0, command="pytest", suite="mini")
    StateFile(run_path(runs / name), replace(run, **news)).write()
    return runs / name


def ended_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_run_is_dead_when_its_controller_is_gone_or_silent(tmp_path: Path) -> None:
    gone = ended_process()
    a_run(tmp_path, "a")
    a_run(tmp_path, "b", pid=gone)
    a_run(tmp_path, "c", pid=gone, host="elsewhere")
    a_run(tmp_path, "d", pid=gone, ended=2.0, exit_status=0)
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "run.json").write_text("{")
    runs = {folder.name: run for folder, run in read_runs(tmp_path).items()}
    now = time.time()
    assert {name: run.dead(now) for name, run in runs.items()} == {"a": False, "b": True, "c": False, "d": False}
    assert runs["a"].dead(now + 60)
    assert runs["c"].dead(now + 60)


def test_old_runs_are_removed_and_those_that_may_go_on_are_kept(tmp_path: Path) -> None:
    gone = ended_process()
    a_run(tmp_path, "1-ended", ended=2.0)
    a_run(tmp_path, "2-dead", pid=gone)
    a_run(tmp_path, "3-alive")
    a_run(tmp_path, "4-elsewhere", pid=gone, host="elsewhere")
    (tmp_path / "5-begins").mkdir()
    (tmp_path / "6-left").mkdir()
    os.utime(tmp_path / "6-left", (1.0, 1.0))
    a_run(tmp_path, "7-ended", ended=2.0)
    remove_old_runs(tmp_path, keep=1)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["3-alive", "4-elsewhere", "5-begins", "7-ended"]
    remove_old_runs(tmp_path / "absent")
