"""``harness status``: runs under way, dead ones and past ones."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.runs import Heartbeat
from harness.runs import Run
from harness.runs import StateFile
from harness.runs import heartbeat_path
from harness.runs import run_path
from harness.runs import runs_dir

HERE = socket.gethostname()
CASE = "benchmarks/test_cog.py::test_linear[s-DINO-L1]"


def say_run(cache: Path, name: str, **news: Any) -> Path:
    """Write the file of a run of this process, and return its folder."""
    folder = runs_dir(cache) / name
    run = Run(HERE, os.getpid(), time.time() - 300, f"pytest {name}", "mini", workers=8, selected=40, passed=12)
    StateFile(run_path(folder), replace(run, **news)).write()
    return folder


def say_worker(folder: Path, worker: str, **news: Any) -> None:
    beat = replace(Heartbeat(worker, HERE, os.getpid()), **news)
    StateFile(heartbeat_path(folder, worker), beat).write()


def gone() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def ask(cache: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["status", "--cache-dir", str(cache), *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(tmp_path, capsys) == [f"no run is under way on {tmp_path}"]
    assert ask(tmp_path, capsys, "--watch") == [f"no run is under way on {tmp_path}"]


def test_a_run_under_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = say_run(tmp_path, "benchmarks -k dino -n 8", failed=1, seconds_left=7500.0, stuck={"gw1": "no progress"})
    now = time.time()
    say_worker(folder, "gw0", case=CASE, case_began=now - 600, stage="probe", done=3, total=10, device="cuda:1")
    say_worker(folder, "gw1", case=CASE, case_began=now - 7200)
    say_worker(folder, "gw2", pid=gone(), case=CASE, case_began=now)
    command, about, head, _, _, *workers = ask(tmp_path, capsys)
    assert command == "pytest benchmarks -k dino -n 8"
    assert f"suite mini, began {time.strftime('%Y-%m-%d')}" in about
    assert f"on {HERE}, process {os.getpid()}" in about
    assert head == "  13 of 40 cases (1 failed) in 5 min; 2 running; about 2 h 5 min left"
    words = [" ".join(line.split()) for line in workers]
    assert words[0] == f"gw0 {HERE} cuda:1 test_linear[s-DINO-L1] probe 3/10 (30 %) 10 min"
    assert words[1] == f"gw1 {HERE} - test_linear[s-DINO-L1] 2 h no progress"
    assert words[2].endswith("no sign of life for 0 s: the process is gone, or stopped")


def test_a_dead_run_is_shown_until_a_later_one_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = say_run(tmp_path, "1", pid=gone())
    say_worker(folder, "gw0", case=CASE, case_began=time.time())
    _, _, dead, workers, _, _, worker, _, last = ask(tmp_path, capsys)
    assert dead == "  dead: last heard of 0 s ago, after 12 of 40 cases; run it again to go on"
    assert workers == "  its workers end after their cases:"
    assert worker.split()[0] == "gw0"
    assert last.startswith("no run is under way")
    say_run(tmp_path, "2", began=time.time(), ended=time.time() + 60, exit_status=1, failed=28)
    assert ask(tmp_path, capsys) == [f"no run is under way on {tmp_path}"]
    every = ask(tmp_path, capsys, "--all")
    assert {"pytest 1", "pytest 2"} <= set(every)
    assert "  ended after 1 min with status 1: 12 passed, 28 failed, 0 skipped of 40" in every


def test_watching_ends_with_the_run_or_by_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_run(tmp_path, "1")
    monkeypatch.setattr(time, "sleep", lambda _: say_run(tmp_path, "1", ended=time.time(), exit_status=0))
    output = ask(tmp_path, capsys, "--watch")
    assert output[0] == "pytest 1"
    assert output[-1] == f"no run is under way on {tmp_path}"
    assert "\033" not in "".join(output), "no control characters where the output is no terminal"

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    say_run(tmp_path, "2")
    monkeypatch.setattr(time, "sleep", interrupt)
    assert ask(tmp_path, capsys, "--watch")[0] == "pytest 2"
