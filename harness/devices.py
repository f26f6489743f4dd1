"""The GPUs and cores that this process may use, found without torch, which would take hold of a GPU."""

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"

WAITING = "waiting"
"""The device of a process that has none yet."""

_NVIDIA_SMI_SECONDS = 60
"""Drivers that do not stay loaded take several seconds to answer."""

_KINDS = ("GPU-", "MIG-")
"""How the identity of a GPU begins."""

_GPU = re.compile(r"GPU (\d+): (.+) \(UUID: (GPU-[^)]+)\)")
_INSTANCE = re.compile(r"\s+MIG (\S+) .*\(UUID: (MIG-[^)]+)\)")


class DeviceWarning(UserWarning):
    """GPUs may be there and cannot be found."""


@dataclass(frozen=True)
class Gpu:
    """A GPU, or an instance that one is divided into (MIG)."""

    index: int
    """Among the GPUs of the machine, as nvidia-smi counts; that of the whole for an instance."""
    name: str
    uuid: str
    """What CUDA_VISIBLE_DEVICES takes: ``GPU-5d5ba0d6-...`` or ``MIG-c6d4f1ef-...``."""

    def __str__(self) -> str:
        """Return number and name."""
        return f"GPU {self.index}: {self.name}"


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[Gpu]:
    """Return the GPUs that a user gives us: all of the machine, or those that CUDA_VISIBLE_DEVICES names, in its order.

    Numbers are nvidia-smi's, as with CUDA_DEVICE_ORDER=PCI_BUS_ID; CUDA itself counts the fastest first, which differs
    on machines with GPUs of several kinds.
    """
    listed = environment.get(VISIBLE)
    if listed is not None and not listed.strip(" ,"):
        return []
    gpus = machine_gpus()
    return gpus if listed is None else list(_named(listed, gpus))


def machine_gpus() -> list[Gpu]:
    """Return all GPUs of this machine from ``nvidia-smi -L``; none where there is no such program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - found on the path, fixed words
            [program, "-L"], capture_output=True, text=True, timeout=_NVIDIA_SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as fault:
        warnings.warn(f"GPUs are not looked for: {fault}", DeviceWarning, stacklevel=2)
        return []
    return parse(done.stdout)


def parse(listing: str) -> list[Gpu]:
    """Read ``nvidia-smi -L``. Of a GPU that is divided, its instances are what can be used."""
    whole: list[Gpu] = []
    parts: list[Gpu] = []
    for line in listing.splitlines():
        if found := _GPU.match(line):
            whole.append(Gpu(int(found[1]), found[2], found[3]))
        elif (found := _INSTANCE.match(line)) and whole:
            parts.append(Gpu(whole[-1].index, f"{whole[-1].name} MIG {found[1]}", found[2]))
    divided = {part.index for part in parts}
    return sorted([gpu for gpu in whole if gpu.index not in divided] + parts, key=lambda gpu: gpu.index)


def _named(listed: str, gpus: Sequence[Gpu]) -> Iterator[Gpu]:
    """Yield the GPUs that CUDA_VISIBLE_DEVICES names. Like CUDA, stop at what names none."""
    for word in listed.split(","):
        token = word.strip()
        if token.startswith("MIG-GPU-"):  # the notation of drivers before R470, which their nvidia-smi may not list
            yield Gpu(0, "MIG", token)
            continue
        number = int(token) if token.isdecimal() else None
        # An identity may be cut short as long as only one begins with it.
        found = [gpu for gpu in gpus if gpu.index == number or (token[:4] in _KINDS and gpu.uuid.startswith(token))]
        if not found or (number is None and len(found) > 1):
            return
        yield found[0]  # by its number, a divided GPU means its first instance


def leased_gpu(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the identity of the one GPU that this process uses, None where it may use several or none."""
    listed = environment.get(VISIBLE, "")
    return listed if listed.startswith(_KINDS) and "," not in listed else None


def usable_cores() -> int:
    """Return how many cores this process may keep busy: those of its affinity, within the limit of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(int, _container_limits())]))


def share_of_cores(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many cores are for this process, where others of the same run want theirs too."""
    return max(1, usable_cores() // max(1, int(environment.get("PYTEST_XDIST_WORKER_COUNT", 1))))


def _container_limits(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[float]:
    """Yield the limits that control groups set, in cores: version 2 for this group and all above, else version 1."""
    with suppress(OSError, ValueError):
        lines = own.read_text().splitlines()
        innermost = root / next((line[3:] for line in lines if line.startswith("0::")), "").strip("/")
        for group in [innermost, *innermost.parents]:
            with suppress(OSError, ValueError):
                quota, period = (group / "cpu.max").read_text().split()
                yield float(quota) / float(period)
    with suppress(OSError, ValueError):
        quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if float(quota) > 0:
            yield float(quota) / float(period)
