"""What a worker's Python sees. Sent there as source before anything else runs: it imports the standard library only."""

import os
import platform
import socket
import sys
from importlib import metadata
from typing import Any


def surroundings(packages: list[str], folders: list[str], tokens: dict[str, str]) -> dict[str, Any]:
    """Return what this Python, here, has of what is asked for.

    Args:
        packages: Distributions whose versions are wanted; an absent one is None.
        folders: Which of them exist is wanted.
        tokens: Small files by path, with what they should contain; those that do not are wanted.
    """
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "host": socket.gethostname(),
        "versions": versions,
        "absent": [folder for folder in folders if not os.path.isdir(folder)],  # noqa: PTH112 - a str from afar
        "not_shared": [path for path, content in tokens.items() if _read(path) != content],
    }


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a str from afar
            return file.read()
    except OSError:
        return None


def settle(variables: dict[str, str], path: list[str] | None) -> None:
    """Set environment variables, and ``sys.path`` where it is known already: xdist gives it to workers of popen."""
    os.environ.update(variables)
    if path is not None:
        sys.path[:] = path


if __name__ == "__channelexec__":
    settle(*channel.receive())  # type: ignore[name-defined]  # noqa: F821 - execnet gives it
    channel.send(surroundings(*channel.receive()))  # type: ignore[name-defined]  # noqa: F821 - as above
