"""What is said of a run, word for word."""

from dataclasses import replace

import pytest

from harness.runs import Heartbeat
from harness.runs import Run
from harness.watch import headline
from harness.watch import longest
from harness.watch import spell
from harness.watch import stuck_lines
from harness.watch import trouble
from harness.watch import worker_table

NOW = 1_000_000.0
BEAT = Heartbeat("gw3", "elsewhere", 7, case="b/test_cog.py::test_linear[a-L1]", case_began=NOW - 75, updated=NOW)
RUN = Run("elsewhere", 6, NOW - 300, "pytest", "mini", workers=8, selected=40, updated=NOW)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (89, "1 min"), (91, "2 min"), (3569, "59 min"),
        (3571, "1 h"), (3600 + 30, "1 h"), (7500, "2 h 5 min"), (86399, "1 d"), (86400, "1 d"), (100 * 3600, "4 d 4 h"),
    ],
)  # fmt: skip
def test_durations_in_words(seconds: float, words: str) -> None:
    assert spell(seconds) == words


def test_a_run_in_one_line() -> None:
    assert headline(replace(RUN, selected=None), [], NOW) == "collecting cases for 5 min"
    assert headline(RUN, [], NOW) == "0 of 40 cases in 5 min; 0 running; time left unknown"
    later = replace(RUN, passed=8, failed=1, skipped=3, seconds_left=240.0)
    beats = [BEAT, replace(BEAT, case=None), replace(BEAT, updated=NOW - 31)]
    assert headline(later, beats, NOW) == "12 of 40 cases (1 failed, 3 skipped) in 5 min; 1 running; about 4 min left"


def test_the_longest_running_case() -> None:
    assert longest([replace(BEAT, case=None)], NOW) == ""
    other = replace(BEAT, worker="gw0", case_began=NOW - 80, stage="probe", done=9, total=20)
    assert longest([BEAT, other], NOW) == "test_linear[a-L1] on gw0, probe 9/20 (45 %), for 1 min"
    assert longest([BEAT], NOW) == "test_linear[a-L1] on gw3, for 1 min"


def test_a_worker_in_one_line() -> None:
    beats = [
        replace(BEAT, worker="gw0", case=None, device="cuda:1"),
        replace(BEAT, stage="features", done=3, total=8),
        replace(BEAT, worker="gw4", updated=NOW - 90),
    ]
    run = replace(RUN, stuck={"gw3": "no progress for 12 min"})
    titles, _, *lines = worker_table(run, beats, NOW)
    assert titles.split() == ["worker", "host", "device", "case", "stage", "for", "trouble"]
    assert lines[0].split() == ["gw0", "elsewhere", "cuda:1", "-"]
    assert lines[1].split()[:3] == ["gw3", "elsewhere", "-"], "no GPU is leased"
    assert lines[1].split("  ")[-3:] == ["features 3/8 (37 %)", "1 min", "no progress for 12 min"]
    assert lines[2].endswith("no sign of life for 2 min: the process is gone, or stopped")
    assert worker_table(run, [], NOW) == []


def test_stuck_is_who_is_silent_or_makes_no_progress_for_much_longer_than_expected() -> None:
    def after(seconds: float, expected: float | None, case: str | None = BEAT.case) -> str | None:
        return trouble(replace(BEAT, case=case, progressed=NOW - seconds), NOW, expected)

    assert after(599, None) is None
    assert after(601, None) == "no progress for 10 min"
    assert after(601, 10.0) == "no progress for 10 min"
    assert after(4999, 1000.0) is None
    assert after(5001, 1000.0) == "no progress for 1 h 23 min"
    assert after(9999, None, case=None) is None, "idle"
    silent = replace(BEAT, updated=NOW - 45, progressed=NOW)
    assert trouble(silent, NOW, None) == "no sign of life for 45 s: the process is gone, or stopped"
    assert stuck_lines(replace(RUN, stuck={"gw3": "no progress for 10 min"}), [BEAT]) == [
        "stuck? gw3 (process 7 on elsewhere), test_linear[a-L1]: no progress for 10 min"
    ]
