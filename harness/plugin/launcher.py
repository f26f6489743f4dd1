"""Where the workers of ``-n`` run: on this machine, or each as a step of Slurm (``--launcher slurm``).

The engine is pytest-xdist either way. A worker on another node is a Python that ``srun`` starts there and whose
standard input and output lead back here. One that dies is replaced by a new step, which gets the resources set free.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Generator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import nearest
from harness.plugin.threads import VARIABLES

LAUNCHERS = ("local", "slurm")

_OWN_CORES = f"""
import os
for name in {VARIABLES!r}:
    os.environ.setdefault(name, os.environ.get("SLURM_CPUS_PER_TASK", "1"))
"""

_RUNS_NOTHING = ("help", "version", "collectonly", "markers", "showfixtures", "show_fixtures_per_test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare who starts the workers."""
    group = parser.getgroup("harness", "generalization harness")
    for flag, metavar, meaning in (
        ("--launcher", "NAME", "who starts the workers of -n: local (default), or slurm, by srun, a GPU for each"),
        ("--launcher-args", "ARGS", "arguments of srun for each worker: --launcher-args='--partition=gpu -c4'"),
    ):
        name = _ini(flag)
        group.addoption(flag, dest=name, metavar=metavar, help=meaning)
        parser.addini(name, f"ini setting of {flag}", type="string", default="")


@pytest.hookimpl(wrapper=True)  # not the first of them: the scheduler looks before us whether --dist was given
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Let Slurm start the workers; before xdist, which would turn ``-n`` into processes of this machine."""
    if not hasattr(config, "workerinput") and not any(getattr(config.option, name, False) for name in _RUNS_NOTHING):
        launcher = _value(config, "--launcher") or "local"
        if launcher not in LAUNCHERS:
            hint = nearest(launcher, LAUNCHERS)
            raise pytest.UsageError(f"--launcher {launcher}: expected one of {', '.join(LAUNCHERS)}.{hint}")
        if launcher == "slurm":
            _launch_by_slurm(config)
        option = config.option
        if getattr(option, "tx", None) and option.numprocesses is None and option.dist == "no":
            option.dist = "load"  # else xdist passes over --tx without a word, and runs the cases here
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let a worker on another machine choose its own folder for ``tmp_path``: that of the controller is not there."""
    given = config.option.basetemp
    if hasattr(config, "workerinput") and given and not Path(given).parent.is_dir():
        config.option.basetemp = None


@pytest.hookimpl(optionalhook=True)  # without xdist, pytest does not know this hook
def pytest_xdist_newgateway(gateway: Any) -> None:
    """Say so where the Python of a worker, or of a dead worker's successor, did not come up.

    One that Slurm started has cores of its own, as many threads as those are for it; others share those of the machine.
    """
    try:
        gateway.remote_exec(_OWN_CORES if str(gateway.spec.python).startswith("srun ") else "").waitclose()
    except (EOFError, OSError) as fault:
        command = gateway.spec.python or gateway.spec.ssh or sys.executable
        raise pytest.UsageError(
            f"worker {gateway.id} did not start; what was said of it stands above. The command: {command}"
        ) from fault


def _launch_by_slurm(config: pytest.Config) -> None:
    number = _workers(config)
    if not number:
        return
    if shutil.which("srun") is None:
        raise pytest.UsageError("--launcher slurm needs srun on the PATH: run it where Slurm's commands are installed")
    try:
        arguments = shlex.split(_value(config, "--launcher-args"))
    except ValueError as fault:
        raise pytest.UsageError(f"--launcher-args: {fault}") from fault
    device = config.getoption("harness_device") or config.getini("harness_device")
    command = srun_command(arguments, gpu=device != "cpu", environment=os.environ)
    option = config.option
    option.tx = [worker_spec([*command, sys.executable])] * number
    option.numprocesses = None  # xdist would read it as processes of this machine
    if option.maxworkerrestart is None:
        option.maxworkerrestart = str(4 * number)  # xdist's own bound, which it takes from numprocesses


def _workers(config: pytest.Config) -> int:
    """Return how many workers ``-n`` asks for; 0 means that this process runs the cases."""
    option = config.option
    if not hasattr(option, "numprocesses"):
        raise pytest.UsageError("--launcher slurm needs pytest-xdist, which is not installed or is switched off")
    if option.tx:
        raise pytest.UsageError("--launcher slurm makes the --tx of each worker itself: give one of the two")
    number = option.numprocesses
    if not isinstance(number, int):
        given = f"-n {number}" if number else "no -n"
        raise pytest.UsageError(
            f"--launcher slurm with {given}: say how many workers, as in -n 8 (-n 0 runs them here)"
        )
    return min(number, option.maxprocesses or number)


def srun_command(arguments: Sequence[str], *, gpu: bool, environment: Mapping[str, str]) -> list[str]:
    """Return the command before that of a worker.

    Args:
        arguments: The user's for srun. What they say of cores, GPUs or memory replaces ours.
        gpu: Ask for one GPU.
        environment: Of this process: whether it runs within an allocation, of which each worker then is a step.
    """
    command = ["srun", "--unbuffered", "--disable-status", "--job-name=harness", "-N1", "-n1"]
    if not _any_starts(arguments, "-c", "--cpus-per-"):
        command.append("-c1")
    if gpu and not _any_starts(arguments, "--gres", "--gpus", "--tres", "-G"):
        command.append("--gres=gpu:1")
    if "SLURM_JOB_ID" in environment:
        command.append("--exact")  # else a step takes all cores of the allocation, and the next one waits for it
        if not _any_starts(arguments, "--mem"):
            command.append("--mem=0")  # likewise of its memory: 0 lets the steps share it
    return [*command, *arguments]


def _any_starts(arguments: Sequence[str], *prefixes: str) -> bool:
    return any(argument.startswith(prefixes) for argument in arguments)


def worker_spec(command: Sequence[str]) -> str:
    """Return xdist's ``--tx`` for a worker whose Python is started by a command.

    execnet splits it at every ``//``, then the command as a shell would; so quotes are put between two slashes.
    """
    return "popen//python=" + re.sub("/(?=/)", "/''", shlex.join(command))


def _ini(flag: str) -> str:
    return "harness_" + flag.removeprefix("--").replace("-", "_")


def _value(config: pytest.Config, flag: str) -> Any:
    return config.getoption(_ini(flag)) or config.getini(_ini(flag))
