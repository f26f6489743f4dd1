"""A run never loses a case silently: whatever takes it away is named and ends with a status that is not 0."""

import os
import signal
import time

import pytest

from harness.records.book import RecordBook
from harness.runs import Heartbeat
from harness.runs import is_gone
from harness.runs import read_heartbeats
from harness.runs import read_runs
from tests.plugin.quick import Quick
from tests.plugin.quick import quick_project

SCHEDULERS = [[], ["--dist", "load"], ["--dist", "worksteal"]]
EVERYWHERE = [["-n0"], ["-p", "no:xdist"], ["-n2"]]
BOTH = [["-p", "no:xdist"], ["-n2"]]

TEN = """
import pytest

@pytest.mark.parametrize("number", range(10))
def test_number(number):
    {body}
"""


@pytest.fixture
def quick(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Quick:
    return quick_project(pytester, monkeypatch)


def modes(every: list[list[str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mode", every, ids=["-".join(each).replace("--", "") or "ours" for each in every])


KILLED = """
import signal
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if item.name == "test_fewshot[model-a-L3-N004]":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@modes(SCHEDULERS)
def test_a_case_whose_worker_was_killed_fails_and_is_recorded(quick: Quick, mode: list[str]) -> None:
    quick.extend(KILLED)
    result = quick.run("benchmarks", "-n2", *mode, "--junitxml=out.xml")
    result.assert_outcomes(passed=quick.cases - 1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.re_match_lines([r"worker gw\d crashed \(killed by SIGKILL\) while running .*L3-N004\]"])
    records = quick.records()
    assert len(records) == quick.cases
    lost = records["cog/fewshot/model-a-L3-N004"]
    assert (lost.status, lost.metrics) == ("failed", {})
    assert lost.reason is not None
    assert lost.reason.endswith("crashed (killed by SIGKILL)")
    assert lost.reason in (quick.path / "out.xml").read_text()


def test_a_crash_does_not_replace_what_was_measured(quick: Quick) -> None:
    selected = ["benchmarks", "-k", "L3 and fewshot", "-n1"]
    quick.run(*selected).assert_outcomes(passed=2, deselected=16)
    before = quick.records()["cog/fewshot/model-a-L3-N004"]
    quick.extend(KILLED.replace("SIGKILL", "SIGSEGV"))
    quick.run(*selected).assert_outcomes(passed=1, failed=1, deselected=16)
    after = quick.records()["cog/fewshot/model-a-L3-N004"]
    assert (after.status, after.metrics) == ("passed", before.metrics)
    assert after.last_attempt is not None
    assert after.last_attempt.reason == "worker gw0 crashed (killed by SIGSEGV)"


@modes(SCHEDULERS[:2])
def test_workers_that_die_before_they_collect(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    quick.extend("if 'PYTEST_XDIST_WORKER' in os.environ: os._exit(3)\n")
    result = quick.run("test_ten.py", "-n2", *mode, "--max-worker-restart=1")
    assert result.ret not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    result.stdout.fnmatch_lines(["nothing was run: no worker*", "worker gw? died: exit status 3"])


def test_a_worker_that_never_finishes_its_collection(quick: Quick) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    quick.extend("def pytest_collection():\n    if os.environ.get('PYTEST_XDIST_WORKER') == 'gw1': os._exit(3)\n")
    result = quick.run("test_ten.py", "-n2", "--max-worker-restart=0")
    assert result.ret not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    result.stdout.fnmatch_lines(["10 of 10 selected cases did not report:", "test_ten.py::test_number[[]3]"])


UNSENDABLE = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ and report.when == "call" and report.nodeid.endswith("[3]"):
        report.user_properties.append(("made of what xdist cannot send", object()))
"""


@modes(SCHEDULERS)
def test_a_report_that_cannot_be_sent(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    quick.extend(UNSENDABLE)
    result = quick.run("test_ten.py", "-n2", *mode)
    assert result.ret not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    output = result.stdout.str()
    assert "test_ten.py::test_number[3]" in output.partition("reconciliation")[2]
    assert "internal error: execnet.gateway_base.DumpError: can't serialize" in output


@modes(BOTH)
def test_values_that_xdist_cannot_send_are_sent_as_text(quick: Quick, mode: list[str]) -> None:
    body = "import numpy; record_property('value', numpy.float64(number) / 4)"
    quick.plain(test_ten=TEN.replace("(number)", "(number, record_property)").format(body=body))
    quick.run("test_ten.py", *mode, "--junitxml=out.xml").assert_outcomes(passed=10)
    assert 'name="value" value="0.75"' in (quick.path / "out.xml").read_text()


SWALLOWED = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if item.name == "test_number[3]" else None
"""


@modes(EVERYWHERE)
def test_a_case_that_another_plugin_swallows(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    quick.extend(SWALLOWED)
    result = quick.run("test_ten.py", *mode)
    result.assert_outcomes(passed=9)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["1 of 10 selected cases did not report:", "test_ten.py::test_number[[]3]"])


@modes(BOTH)
def test_an_interruption_says_how_many_cases_were_not_run(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_ten=TEN.format(body="import time; time.sleep(0.2); assert number != 2"))
    result = quick.run("test_ten.py", "-x", *mode)
    assert result.ret in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    result.stdout.re_match_lines([r"interrupted: \d+ of 10 selected cases were not run"])
    assert "did not report" not in result.stdout.str()


def test_an_exit_that_claims_success_does_not_succeed(quick: Quick) -> None:
    quick.plain(test_ten=TEN.format(body="number == 4 and pytest.exit('enough', returncode=0)"))
    result = quick.run("test_ten.py", "-p", "no:xdist")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines("6 of 10 selected cases did not report:")


@modes(BOTH)
def test_what_is_deselected_is_counted_and_not_missed(quick: Quick, mode: list[str]) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    result = quick.run("test_ten.py", "-k", "3 or 4", *mode)
    result.assert_outcomes(passed=2, deselected=8)
    assert result.ret == pytest.ExitCode.OK
    assert quick.run("test_ten.py", "-k", "none", *mode).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert quick.run("test_ten.py", "--collect-only", *mode).ret == pytest.ExitCode.OK


def test_other_plugins_may_look_into_the_statistics_of_a_run(quick: Quick) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    quick.extend("""
def pytest_terminal_summary(terminalreporter):
    for reports in terminalreporter.stats.values():
        assert all(vars(report) is not None for report in reports)
""")
    result = quick.run("test_ten.py", "-k", "3 or 4", "-n2", "-p", "hypothesispytest")
    result.assert_outcomes(passed=2, deselected=8)
    assert result.ret == pytest.ExitCode.OK


EDITED = """
import signal
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if item.name == "test_fewshot[model-a-L3-N004]":
        with open("models.yaml", "a") as file:
            file.write("# changed\\n")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_models_file_that_changes_during_a_run_gives_no_records_of_two_kinds(quick: Quick) -> None:
    quick.extend(EDITED)
    result = quick.run("benchmarks", "-n2")
    assert result.ret != pytest.ExitCode.OK
    assert "models.yaml has changed since the run began" in "\n".join([*result.outlines, *result.errlines])
    assert all(record.measured or record.reason for record in quick.records().values())


def test_records_stay_in_one_folder_wherever_a_test_leaves_the_process(quick: Quick) -> None:
    (quick.path / "elsewhere").mkdir()
    (quick.path / "benchmarks" / "test_a.py").write_text("import os\ndef test_moves(): os.chdir('elsewhere')\n")
    quick.run("benchmarks", "-p", "no:xdist", "-k", "moves or L1", "--reports-dir", "out").assert_outcomes(
        passed=4, deselected=15
    )
    assert not list((quick.path / "elsewhere").iterdir())
    assert len(RecordBook(quick.path / "out").records()) == 3


def test_without_a_terminal_the_exit_status_tells(quick: Quick) -> None:
    quick.plain(test_ten=TEN.format(body="pass"))
    assert quick.run("test_ten.py", "-p", "no:terminal", "-p", "no:xdist").ret == pytest.ExitCode.OK
    quick.extend(SWALLOWED)
    assert quick.run("test_ten.py", "-p", "no:terminal", "-p", "no:xdist").ret == pytest.ExitCode.TESTS_FAILED


def test_many_lost_cases_are_named_in_part(quick: Quick) -> None:
    quick.plain(test_many=TEN.format(body="pass").replace("range(10)", "range(30)"))
    quick.extend(SWALLOWED.replace('"test_number[3]"', "item.name"))
    result = quick.run("test_many.py", "-p", "no:xdist")
    result.stdout.fnmatch_lines(["30 of 30 selected cases*", "*[[]19]", "... and 10 more (-v names all)"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "test_many.py::test_number[29]" in quick.run("test_many.py", "-p", "no:xdist", "-v").stdout.str()


def test_workers_of_a_killed_controller_end(quick: Quick) -> None:
    quick.plain(test_long="import time\n\ndef test_long():\n    time.sleep(120)\n")
    process = quick.start("test_long.py", "-n1")
    beats: list[Heartbeat] = []
    deadline = time.monotonic() + 60
    while not (beats and beats[0].case) and time.monotonic() < deadline:
        time.sleep(0.1)
        beats = [beat for folder in read_runs(quick.path / "cache" / "runs") for beat in read_heartbeats(folder)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (beat,) = beats
    while not is_gone(beat.host, beat.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_gone(beat.host, beat.pid), f"process {beat.pid} of the worker outlives its controller {os.getpid()}"
