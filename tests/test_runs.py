"""Heartbeats: what a process writes is what another reads, and silence never harms the process."""

import time
from pathlib import Path

from harness.progress import listening
from harness.progress import report
from harness.runs import Pulse
from harness.runs import read_heartbeats


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
