"""A worker that would compute otherwise, or write where nobody looks, is refused with one message."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.plugin.preflight import differences
from harness.plugin.remote import surroundings
from tests.cluster.conftest import run


def spec(command: list[str]) -> str:
    return f"--tx=2*popen//python={shlex.join(command)}"


def test_differences_are_said_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("other")
    there = surroundings(
        ["pytest", "no-such-package"],
        [str(tmp_path), str(tmp_path / "absent")],
        {str(tmp_path / "token"): "one", str(tmp_path / "cache" / "token"): "two"},
    )
    here = {**there["versions"], "pytest": "1.0", "no-such-package": "2.0"}
    assert differences(here, there) == [
        "no-such-package: 2.0 here, not installed there",
        f"pytest: 1.0 here, {pytest.__version__} there",
        f"{tmp_path / 'absent'}: no such folder there",
        f"{tmp_path}: not shared, what is written here is not seen there",
        f"{tmp_path / 'cache'}: not shared, what is written here is not seen there",
    ]


def test_equal_surroundings_are_no_difference(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    there = surroundings(["pytest"], [str(tmp_path)], {str(tmp_path / "token"): "one"})
    assert differences(there["versions"], there) == []


def test_another_python_is_refused_once_and_nothing_runs(project: pytest.Pytester) -> None:
    project.makepyfile("from pathlib import Path\ndef test_case(): Path('ran').touch()")
    other = project.mkdir("other")
    (other / "sitecustomize.py").write_text("import platform\nplatform.python_version = lambda: '3.99.0'\n")
    result = run(project, spec(["env", f"PYTHONPATH={other}", sys.executable]))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = result.stderr.str()
    assert errors.count("cannot take part in this run") == 1
    result.stderr.fnmatch_lines(["ERROR: worker gw0 on *", "*python: 3.* here, 3.99.0 there"])
    assert "Traceback" not in errors + result.stdout.str()
    assert not (project.path / "ran").exists()


@pytest.mark.parametrize("private", ["cache", "reports"])
def test_a_folder_that_is_not_shared_is_named(project: pytest.Pytester, private: str) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("a folder of a worker's own needs a mount namespace, and thus root")
    project.makepyfile("def test_case(): pass")
    folder = project.mkdir(private)
    hide = f'mount -t tmpfs none {folder} && exec "$0" "$@"'
    result = run(project, spec(["unshare", "-m", "sh", "-c", hide, sys.executable]))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{private}*: not shared, what is written here is not seen there"])


def test_a_good_run_leaves_no_trace_of_the_check(project: pytest.Pytester) -> None:
    project.makepyfile("def test_case(): pass")
    run(project, "-n2").assert_outcomes(passed=1)
    assert not (project.path / "reports").exists()
    assert not list((project.path / "cache").rglob(".preflight*"))


def test_a_worker_without_our_environment_has_the_same_cache(project: pytest.Pytester) -> None:
    project.makepyfile("import os\ndef test_case(): print('CACHE', os.environ['HARNESS_CACHE'])")
    result = run(project, spec(["env", "-u", "HARNESS_CACHE", sys.executable]), "-rP")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"CACHE {project.path / 'cache'}"])
