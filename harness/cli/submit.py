"""``harness submit``: the shards of a run as jobs of a cluster, through submitit."""

import argparse
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.shard import Shard
from harness.errors import ConfigError
from harness.errors import HarnessError
from harness.errors import MissingInput
from harness.runs import run_name
from harness.settings import default_cache_dir

_EPILOG = """examples:
  harness submit --shards 8 --slurm time=8:00:00 --slurm partition=gpu -- benchmarks -k dino
  harness submit --shards 4 --slurm time=2:00:00 --slurm cpus-per-task=8 -- benchmarks --device cpu -n 8
  harness submit --shards 2 --executor local --wait -- benchmarks -k resnet50

All shards share the cache and the reports folder. Give the same command again after a failure: what is done is in the
store, and only the rest runs."""

_GPU_OPTIONS = ("gres", "gpus", "tres")
_REQUEUES = 10
_NO_LIMIT_MINUTES = 60 * 24 * 365
_POLL_SECONDS = {"slurm": 10.0, "local": 0.5}


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    description = "run the shards of a run as jobs of a cluster (needs the extra 'cluster')"
    parser = add_command(commands, "submit", _submit, description)
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--shards", type=int, required=True, metavar="N", help="number of jobs")
    parser.add_argument(
        "--executor", choices=("slurm", "local"), default="slurm", help="local: processes here, to try (default: slurm)"
    )
    help_ = "an option of sbatch; time is required, a GPU asked for unless pytest is told --device cpu; repeatable"
    parser.add_argument("--slurm", action="append", default=[], metavar="KEY=VALUE", help=help_)
    help_ = "folder of logs, seen by all machines (default: jobs/ in the cache folder)"
    parser.add_argument("--logs", type=Path, metavar="DIR", help=help_)
    parser.add_argument("--wait", action="store_true", help="wait for the end; exit status 1 if a shard failed")
    parser.add_argument("--dry-run", action="store_true", help="print what would be submitted")
    parser.add_argument("arguments", nargs="*", metavar="-- PYTEST ARGUMENTS", help="as for pytest, without --shard")


def _submit(options: argparse.Namespace) -> int:
    if options.shards < 1:
        raise ConfigError(f"--shards {options.shards}: expected 1 or more")
    if any(argument.partition("=")[0] == "--shard" for argument in options.arguments):
        raise ConfigError("--shard is given by harness submit: say how many with --shards")
    local = options.executor == "local"
    if local and options.slurm:
        raise ConfigError("--slurm says nothing to --executor local")
    parameters = {} if local else slurm_parameters(options.slurm, options.arguments)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    shards = [
        Shard(number, options.shards, tuple(options.arguments), str(Path.cwd()), inherit_gpus=local, gpus=visible)
        for number in range(1, options.shards + 1)
    ]
    folder = (options.logs or default_cache_dir() / "jobs").absolute() / run_name(time.time())
    if options.dry_run:
        for shard in shards:
            print(shlex.join(shard.command))
        for line in (f"executor {options.executor}", f"logs     {folder}", *_as_sbatch(parameters)):
            print(line)
        return 0
    jobs = _start(options.executor, folder, parameters, shards)
    _describe(options.executor, folder, shards, jobs)
    return _wait(options.executor, shards, jobs) if options.wait else 0


def slurm_parameters(given: Sequence[str], arguments: Sequence[str]) -> dict[str, Any]:
    """Return submitit's parameters for a shard.

    Args:
        given: ``KEY=VALUE``, or ``KEY`` for a switch: options of sbatch, and ``array_parallelism``.
        arguments: Of pytest: they say whether a GPU is needed.

    Raises:
        ConfigError: one that cannot be read, or none for the time.
    """
    extra: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key.strip("-"):
            raise ConfigError(f"--slurm {text}: expected KEY=VALUE, such as partition=gpu")
        extra[key.strip("-").replace("_", "-")] = value if equals else True
    if "time" not in extra:
        raise ConfigError("say how long a shard may take: --slurm time=8:00:00. One that takes longer is queued again")
    if not any(key.startswith(_GPU_OPTIONS) for key in extra) and not _on_cpu(arguments):
        extra["gres"] = "gpu:1"
    parameters: dict[str, Any] = {"time": minutes(str(extra.pop("time"))), "job_name": extra.pop("job-name", "harness")}
    if parallel := extra.pop("array-parallelism", None):
        if not str(parallel).isdecimal():
            raise ConfigError(f"--slurm array_parallelism={parallel}: expected a number")
        parameters["array_parallelism"] = int(parallel)
    if cores := extra.get("cpus-per-task"):
        parameters["srun_args"] = [f"--cpus-per-task={cores}"]  # since Slurm 22.05 srun does not take it from sbatch
    return {**parameters, "additional_parameters": extra}


def minutes(text: str) -> int:
    """Return the minutes that sbatch understands by ``90``, ``90:00``, ``1:30:00``, ``1-12`` or ``1-12:00:00``.

    Raises:
        ConfigError: it is of no such form.
    """
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in [*parts, days or "0"]) or len(parts) > 3 or (dash and not days):
        raise ConfigError(f"--slurm time={text}: expected minutes, or a time such as 8:00:00 or 1-12:00:00")
    from_hours = dash or len(parts) == 3
    hours, minutes_, seconds = [int(part) for part in [*([] if from_hours else ["0"]), *parts, "0", "0"]][:3]
    seconds += 60 * (minutes_ + 60 * (hours + 24 * int(days or 0)))
    if seconds == 0:
        raise ConfigError(f"--slurm time={text}: a shard needs some time")
    return -(-seconds // 60)


def _on_cpu(arguments: Sequence[str]) -> bool:
    return "--device=cpu" in arguments or ("--device", "cpu") in pairwise(arguments)


def _as_sbatch(parameters: Mapping[str, Any]) -> list[str]:
    flat = {**parameters, **parameters.get("additional_parameters", {})}
    flat.pop("additional_parameters", None)
    return [f"slurm    {key}={value}" for key, value in sorted(flat.items())]


def _start(executor: str, folder: Path, parameters: Mapping[str, Any], shards: Sequence[Shard]) -> list[Any]:
    """Submit the shards; return submitit's jobs."""
    try:
        import submitit
    except ImportError as error:
        raise MissingInput(
            "harness submit needs submitit: pip install 'generalization-harness[cluster]'. Without it, "
            f"run each shard yourself: {shlex.join(shards[0].command)}"
        ) from error
    if executor == "local":
        engine: Any = submitit.LocalExecutor(folder, max_num_timeout=_REQUEUES)
        engine.update_parameters(timeout_min=_NO_LIMIT_MINUTES)
    else:
        if shutil.which("sbatch") is None:
            raise MissingInput("sbatch is not on the PATH: submit where Slurm's commands are installed")
        engine = submitit.SlurmExecutor(folder, max_num_timeout=_REQUEUES)
        engine.update_parameters(**parameters)
    try:
        with engine.batch():
            jobs = [engine.submit(shard) for shard in shards]
    except submitit.core.utils.FailedJobError as error:
        raise HarnessError(f"Slurm does not take the jobs: {str(error).strip()}") from error
    return jobs


def _describe(executor: str, folder: Path, shards: Sequence[Shard], jobs: Sequence[Any]) -> None:
    for shard, job in zip(shards, jobs, strict=True):
        print(f"{shard.name}: job {job.job_id}, {job.paths.stdout}")
    queue = "" if executor == "local" else f", or squeue --me, or scancel {jobs[0].job_id.partition('_')[0]} to end it"
    print(f"logs    {folder}")
    print(f"follow  harness status{queue}")
    print("after a failure give this command again: what is done is in the store, and only the rest runs")


def _wait(executor: str, shards: Sequence[Shard], jobs: Sequence[Any]) -> int:
    """Wait for all; return 1 if one failed."""
    while _under_way(executor, jobs):
        time.sleep(_POLL_SECONDS[executor])
    status = 0
    for shard, job in zip(shards, jobs, strict=True):
        if not job.paths.result_pickle.exists():
            print(f"{shard.name}: ended without a word, killed or cancelled; see {job.paths.stderr}")
        elif job.exception() is not None:
            print(f"{shard.name}: failed; see {job.paths.stdout}")
        else:
            print(f"{shard.name}: done")
            continue
        status = 1
    return status


def _under_way(executor: str, jobs: Sequence[Any]) -> bool:
    """Say whether a job waits or runs. Slurm's queue is asked, since its accounting may be off."""
    if executor == "local":
        return not all(job.done() for job in jobs)
    command = ["squeue", "--noheader", "--jobs", jobs[0].job_id.partition("_")[0]]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - an id that Slurm gave
    if asked.returncode:
        return "Invalid job id" not in asked.stderr  # of a job long ended; otherwise Slurm is busy
    return bool(asked.stdout.strip())
