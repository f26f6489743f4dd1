"""Where a record comes from: commit, versions, machine."""

import platform
import subprocess
from datetime import UTC
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.records.record import Provenance

_PACKAGES = (
    "generalization-harness",
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scikit-learn",
    "optuna",
    "nltk",
    "pillow",
)


def measured_here(**circumstances: Any) -> Provenance:
    """Return the provenance of what is measured here and now.

    Args:
        **circumstances: Fields of `Provenance` that the protocol knows: device, threads, seeds, seconds, digests ...
    """
    commit, dirty = git_state(Path.cwd())
    return Provenance(
        measured=now(),
        commit=commit,
        dirty=dirty,
        versions=versions(),
        platform=platform.platform(),
        **circumstances,
    )


def now() -> str:
    """Return the time, UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can move a result; absent ones are left out."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """Return (commit, whether tracked files differ from it), or (None, None) outside a repository or without git."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        dirty = bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None, None
    return commit, dirty


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed words


@cache
def processor() -> str:
    """Return the name of the CPU, as far as the platform tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
