"""A Slurm cluster of one node, this machine, with two GPUs that are mere device files. For tests.

Needs root and the Debian packages slurmd, slurmctld, slurm-client and munge. Everything it writes lies in one folder,
and its ports and its munge socket are its own, so that clusters do not meet.
"""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scancel", "squeue")
GPUS = 2

_CONF = """
ClusterName=harness
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
GresTypes=gpu
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=60 State=UP
"""


def missing() -> str | None:
    """Say why no cluster can be started here, None where one can."""
    if absent := [name for name in PROGRAMS if find(name) is None]:
        return f"Slurm is not installed ({', '.join(absent)})"
    if os.geteuid() != 0:
        return "a cluster is started by root only"
    return None


def find(program: str) -> str | None:
    """Return the path of a program, which may lie where only root looks."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster within the block.

    Args:
        folder: For its configuration, state and logs; empty, and with a short path: it holds a socket.

    Yields:
        The environment that its commands need.

    Raises:
        RuntimeError: it does not come up; the message has the end of its logs.
    """
    environment = {**os.environ, "SLURM_CONF": str(_configure(folder) / "slurm.conf")}
    with ExitStack() as stack:
        for command in _daemons(folder):
            stack.enter_context(_process(command, environment))
        _await_node(folder, environment)
        yield environment
        subprocess.run([str(find("scancel")), "--user=root"], env=environment, check=False)


def _configure(folder: Path) -> Path:
    """Write what the daemons read."""
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o755, parents=True)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    ports = {"controller_port": _free_port(), "node_port": _free_port()}
    cpus = min(os.cpu_count() or GPUS, 8)
    (folder / "slurm.conf").write_text(_CONF.format(host=host, folder=folder, cpus=cpus, **ports))
    gres = []
    for number in range(GPUS):
        device = folder / f"nvidia{number}"
        os.mknod(device, 0o20666, os.makedev(1, 3))  # the numbers of /dev/null: Slurm asks for a character device only
        gres.append(f"NodeName={host} Name=gpu File={device}\n")
    (folder / "gres.conf").write_text("".join(gres))
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _daemons(folder: Path) -> Iterator[list[str]]:
    munge = folder / "munge"
    options = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    yield [
        *(str(find("munged")), "--foreground", "--force"),
        *(f"--{option}={munge / name}" for option, name in options.items()),
    ]
    yield [str(find("slurmctld")), "-D", "-c"]
    yield [str(find("slurmd")), "-D", "-c"]


@contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await_node(folder: Path, environment: dict[str, str], seconds: float = 60) -> None:
    """Wait until a job with a GPU can be run."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        command = [str(find("srun")), "--immediate=5", "--gres=gpu:1", "-n1", "true"]
        if subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.3)
    logs = [path for path in (*folder.glob("*.log"), folder / "munge" / "log") if path.exists()]
    ends = [f"{path.name}: {''.join(path.read_text().splitlines(keepends=True)[-8:])}" for path in logs]
    raise RuntimeError("Slurm does not come up\n" + "\n".join(ends))
