"""The command line of ``--launcher``: what srun is given, and what is refused before anything starts."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from typing import cast

import execnet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plugin import launcher
from harness.plugin.launcher import srun_command
from harness.plugin.launcher import worker_spec
from tests.cluster.conftest import run


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=4))
def test_execnet_gets_the_command_that_was_meant(command: list[str]) -> None:
    spec = execnet.XSpec(worker_spec(command))
    assert spec.popen is True
    assert spec.python is not None
    assert shlex.split(spec.python) == command


@pytest.mark.parametrize("path", ["/a b/python", "/a//b///python", "/it's/py=3*2/python", "--comment=https://x//y z"])
def test_awkward_paths_reach_execnet_whole(path: str) -> None:
    assert shlex.split(str(execnet.XSpec(worker_spec(["srun", path])).python)) == ["srun", path]


def test_srun_gets_one_gpu_and_one_core_for_a_worker_and_the_users_arguments_last() -> None:
    command = srun_command(["--partition=gpu"], gpu=True, environment={})
    assert command[0] == "srun"
    assert {"--unbuffered", "-n1", "-c1", "--gres=gpu:1"} <= set(command)
    assert command[-1] == "--partition=gpu"
    assert "--gres=gpu:1" not in srun_command([], gpu=False, environment={})


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("--gres=gpu:a100:2", "--gres=gpu:1"),
        ("--gpus-per-task=1", "--gres=gpu:1"),
        ("-G1", "--gres=gpu:1"),
        ("--tres-per-task=gres/gpu:1", "--gres=gpu:1"),
        ("-c4", "-c1"),
        ("--cpus-per-task=4", "-c1"),
        ("--cpus-per-gpu=4", "-c1"),
    ],
)
def test_what_the_user_says_replaces_ours(given: str, ours: str) -> None:
    assert ours not in srun_command([given], gpu=True, environment={})


def test_steps_of_an_allocation_do_not_wait_for_one_another() -> None:
    inside = {"SLURM_JOB_ID": "7"}
    assert {"--exact", "--mem=0"} <= set(srun_command([], gpu=True, environment=inside))
    assert "--mem=0" not in srun_command(["--mem-per-cpu=2G"], gpu=True, environment=inside)
    assert not {"--exact", "--mem=0"} & set(srun_command([], gpu=True, environment={}))


@pytest.mark.usefixtures("fake_slurm")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--launcher", "slrm", "-n2"], "--launcher slrm: expected one of local, slurm. Did you mean 'slurm'?"),
        (["--launcher", "slurm"], "--launcher slurm with no -n: say how many workers*"),
        (["--launcher", "slurm", "-n", "auto"], "--launcher slurm with -n auto: say how many workers*"),
        (["--launcher", "slurm", "-n2", "--tx", "popen"], "--launcher slurm makes the --tx of each worker itself*"),
        (["--launcher", "slurm", "-p", "no:xdist"], "--launcher slurm needs pytest-xdist*"),
        (["--launcher", "slurm", "-n2", "--launcher-args='"], "--launcher-args: No closing quotation"),
    ],
)
def test_what_cannot_be_meant_is_refused(project: pytest.Pytester, arguments: list[str], message: str) -> None:
    project.makepyfile("def test_case(): pass")
    result = run(project, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_without_srun_the_launcher_names_it(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project.mkdir("empty")))
    result = run(project, "-n2", "--launcher", "slurm")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --launcher slurm needs srun on the PATH*"])


def test_an_ini_file_may_name_the_launcher_and_n0_runs_the_cases_here(
    project: pytest.Pytester, fake_slurm: Path
) -> None:
    project.makeini("[pytest]\nharness_launcher = slurm\nharness_launcher_args = --partition=gpu\n")
    project.makepyfile("import os\ndef test_case(): assert os.environ.get('PYTEST_XDIST_WORKER', 'gw0') == 'gw0'")
    run(project, "-n0").assert_outcomes(passed=1)
    assert not (fake_slurm / "calls.txt").exists()
    run(project, "--collect-only").stdout.fnmatch_lines(["*1 test collected*"])
    run(project, "-n1").assert_outcomes(passed=1)
    assert (fake_slurm / "calls.txt").read_text().splitlines()[0].endswith("--gres=gpu:1 --partition=gpu")


@pytest.mark.parametrize(("basetemp", "kept"), [("here/popen-gw0", True), ("elsewhere/pytest-0/popen-gw0", False)])
def test_a_worker_that_lacks_the_controllers_temporary_folder_takes_its_own(
    tmp_path: Path, basetemp: str, kept: bool
) -> None:
    (tmp_path / "here").mkdir()
    config: Any = SimpleNamespace(workerinput={}, option=SimpleNamespace(basetemp=str(tmp_path / basetemp)))
    launcher.pytest_configure(cast("pytest.Config", config))
    assert (config.option.basetemp is not None) is kept
