"""What users and other plugins expect of xdist, under our scheduler: fixtures, stops, crashes, repeats, reports."""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Plain:
    """A folder of tests that are no cases."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("conftest", 'pytest_plugins = ["harness.plugin"]\n')
        (self.path / "pytest.ini").write_text("[pytest]\naddopts = -p no:hypothesispytest\n")

    def write(self, name: str, content: str) -> None:
        with (self.path / f"{name}.py").open("a") as file:
            file.write(content)

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(*arguments, timeout=60)

    def lines(self, name: str) -> list[str]:
        path = self.path / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def plain(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Plain:
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    return Plain(pytester)


TRACED = """
import os
import pytest

def trace(*words):
    with open("trace", "a") as file:
        print(*words, file=file)
"""

FIXTURES = (
    TRACED
    + """
@pytest.fixture(scope="session")
def whole(request):
    trace("session begins")
    yield
    trace("session ends")

@pytest.fixture(scope="module")
def part(request, whole):
    name = request.module.__name__
    trace(name, "begins")
    yield
    trace(name, "ends")
"""
)

THREE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_it(n, part): pass
"""


def test_fixtures_live_as_long_as_in_one_process(plain: Plain) -> None:
    plain.write("conftest", FIXTURES)
    plain.write("test_one", THREE)
    plain.write("test_two", THREE)
    plain.run("-n0").assert_outcomes(passed=6)
    expected = plain.lines("trace")
    (plain.path / "trace").unlink()
    assert len(expected) == 6
    plain.run("-n1").assert_outcomes(passed=6)
    assert plain.lines("trace") == expected


CLASSES = """
import pytest

class TestOne:
    @pytest.fixture(scope="class", autouse=True)
    def mine(self):
        with open("trace", "a") as file: file.write("begins\\n")
        yield
        with open("trace", "a") as file: file.write("ends\\n")
    def test_a(self): pass
    def test_b(self): pass

class TestTwo:
    def test_c(self): pass

def test_d(): pass
"""


def test_fixtures_of_a_class_live_through_it(plain: Plain) -> None:
    plain.write("test_classes", CLASSES)
    plain.run("-n1").assert_outcomes(passed=4)
    assert plain.lines("trace") == ["begins", "ends"]


@pytest.mark.parametrize(("scope", "blamed"), [("module", "test_bad.py"), ("session", "test_good.py")])
def test_a_fault_in_a_teardown_between_items_goes_by_the_item_before_it(plain: Plain, scope: str, blamed: str) -> None:
    fixture = f"import pytest\n@pytest.fixture(scope='{scope}')\ndef bad():\n    yield\n    raise OSError('torn')\n"
    plain.write("test_bad", fixture + "def test_it(bad): pass\n")
    plain.write("test_good", "def test_it(): pass\n")
    result = plain.run("-n1")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines("*OSError: torn*")
    result.stdout.fnmatch_lines(f"ERROR {blamed}::test_it - OSError: torn")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_module_that_cannot_be_set_up_fails_its_own_tests_alone(plain: Plain) -> None:
    plain.write("test_bad", "def setup_module(): raise OSError('no')\ndef test_a(): pass\ndef test_b(): pass\n")
    plain.write("test_good", "def test_it(): pass\n")
    plain.run("-n1").assert_outcomes(passed=1, errors=2)


@pytest.mark.parametrize(("number", "workers"), [(0, "-n2"), (1, "-n1"), (1, "-n2")])
def test_few_items_or_none(plain: Plain, number: int, workers: str) -> None:
    plain.write("test_few", "".join(f"def test_{n}(): pass\n" for n in range(number)))
    result = plain.run(workers)
    result.assert_outcomes(passed=number)
    assert result.ret == (pytest.ExitCode.OK if number else pytest.ExitCode.NO_TESTS_COLLECTED)


FAILING = """
import pytest, time

@pytest.mark.parametrize("n", range(20))
def test_it(n):
    time.sleep(0.1)
    assert n % 2
"""


@pytest.mark.parametrize(("option", "most"), [("-x", 3), ("--maxfail=3", 6)])
def test_a_run_stops_at_the_first_failures(plain: Plain, option: str, most: int) -> None:
    plain.write("test_fails", FAILING)
    result = plain.run("-n2", option)
    outcomes = result.parseoutcomes()
    assert 1 <= outcomes["failed"] <= most
    assert sum(outcomes.get(name, 0) for name in ("passed", "failed")) < 15
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines("*stopping after * failures*")


def test_last_failed_and_junit_know_every_item_once(plain: Plain) -> None:
    plain.write("test_fails", FAILING)
    plain.run("-n2", "--junit-xml=first.xml").assert_outcomes(passed=10, failed=10)
    plain.run("-n2", "--lf", "--junit-xml=second.xml").assert_outcomes(failed=10)
    names = [case.attrib["name"] for case in ET.parse(plain.path / "first.xml").iter("testcase")]  # noqa: S314 - ours
    assert sorted(names) == sorted(f"test_it[{n}]" for n in range(20))


CRASHING = """
import os, pytest, time

@pytest.mark.parametrize("n", range(8))
def test_it(n):
    if n == 3:
        os._exit(9)
"""

AGAIN = """
def pytest_handlecrashitem(crashitem, report, sched):
    import os
    if not os.path.exists("again"):
        open("again", "w").close()
        sched.mark_test_pending(crashitem)
        report.outcome = "rerun"
"""


def test_a_crash_costs_its_item_alone(plain: Plain) -> None:
    plain.write("test_crash", CRASHING)
    result = plain.run("-n2")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines("*crashed*while running test_crash.py::test_it?3?*")


def test_a_plugin_may_have_a_crashed_item_run_again(plain: Plain) -> None:
    plain.write("conftest", AGAIN)
    plain.write("test_crash", CRASHING)
    result = plain.run("-n2")
    assert result.parseoutcomes() == {"passed": 7, "failed": 1, "rerun": 1}


REPEATS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in range(2):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if attempt or not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_plugins_that_run_items_their_own_way_never_see_a_filler(plain: Plain) -> None:
    plain.write("conftest", REPEATS)
    plain.write("test_some", FAILING.replace("assert n % 2", "open(f'count{n}', 'a').write('+'); assert n % 2"))
    plain.run("-n2").assert_outcomes(passed=10, failed=10)
    assert [(plain.path / f"count{n}").read_text() for n in (0, 1)] == ["++", "+"]


def test_workers_that_collect_different_tests_run_none(plain: Plain) -> None:
    plain.write("test_odd", "import os\nexec(f\"def test_{os.environ.get('PYTEST_XDIST_WORKER')}(): pass\")\n")
    result = plain.run("-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines("*Different tests were collected between gw? and gw?*")


@pytest.mark.parametrize(
    ("options", "scheduler"),
    [
        (["-n2"], "CaseScheduling"),
        (["-n2", "--dist", "worksteal"], "WorkStealingScheduling"),
        (["--tx", "2*popen", "-d"], "LoadScheduling"),
    ],
)
def test_the_user_may_say_how_items_are_distributed(plain: Plain, options: list[str], scheduler: str) -> None:
    plain.write("test_some", FAILING.replace("assert n % 2", "pass"))
    result = plain.run("-v", *options)
    result.assert_outcomes(passed=20)
    result.stdout.fnmatch_lines(f"scheduling tests via {scheduler}")


def test_interrupted_from_the_keyboard(plain: Plain) -> None:
    plain.write(
        "test_long",
        "import time\ndef test_a(): time.sleep(0.1)\ndef test_b():\n    open('b', 'w')\n    time.sleep(60)\n",
    )
    run = subprocess.Popen([sys.executable, "-m", "pytest", "-n2"], cwd=plain.path, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (plain.path / "b").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=40)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output


THREADS = """
import os

def test_threads():
    with open(os.environ["PYTEST_XDIST_WORKER"], "w") as file:
        print(os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"], file=file)
"""


def test_workers_share_the_cores(plain: Plain, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.devices import usable_cores

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    plain.write("test_threads", THREADS)
    plain.run("-n1").assert_outcomes(passed=1)
    assert plain.lines("gw0") == [f"{usable_cores()} {usable_cores()}"]
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    plain.run("-n1").assert_outcomes(passed=1)
    assert plain.lines("gw0") == [f"77 {usable_cores()}"]
