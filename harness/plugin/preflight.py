"""Before a worker runs: does it see the same files, and would it compute with the same packages?

What is asked of a worker is sent to its bare Python, so that a machine without the harness, or without pytest, is
refused with the same words as one with another version of torch.
"""

import sys
import uuid
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import ExitStack
from contextlib import contextmanager
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.digest import read_digest
from harness.plugin import remote
from harness.plugin.options import RUN
from harness.plugin.options import SESSION
from harness.records.provenance import versions
from harness.settings import CACHE_VARIABLE
from harness.settings import Settings

_PYTEST = ("pytest", "pytest-xdist", "execnet", "pluggy")


_MODELS = pytest.StashKey[str | None]()
"""Digest of the models file as the run began."""


def pytest_configure(config: pytest.Config) -> None:
    """Remember the models file, which workers read themselves."""
    config.stash[_MODELS] = _models_digest(config)


@pytest.hookimpl(optionalhook=True)  # without xdist, pytest does not know this hook
def pytest_configure_node(node: Any) -> None:
    """Refuse a worker whose surroundings differ. Called when its Python is up and pytest is not yet."""
    settings, run = node.config.stash[SESSION].settings, node.config.stash[RUN]
    if _models_digest(node.config) != node.config.stash[_MODELS]:
        node.nodemanager.teardown_nodes()
        raise pytest.UsageError(
            f"{settings.models_file} has changed since the run began: worker {node.gateway.id} would take other models "
            "than those before it. Run the same command again, what is done is in the store"
        )
    here = _surroundings_here()
    with ExitStack() as stack:
        shared = [stack.enter_context(_token(folder)) for folder in (run, settings.reports_dir.absolute())]
        tokens = dict(token for token in shared if token)
        channel = node.gateway.remote_exec(remote)
        # Neither ssh nor every configuration of Slurm passes the environment on.
        cache = {CACHE_VARIABLE: str(settings.cache_dir.absolute())}
        channel.send((cache, list(sys.path) if node.gateway.spec.popen else None))
        channel.send((_packages(), _folders(settings), tokens))
        there = channel.receive()
        channel.waitclose()
    if faults := differences(here["versions"], there):
        node.nodemanager.teardown_nodes()
        raise pytest.UsageError(
            f"worker {node.gateway.id} on {there['host']} cannot take part in this run, whose controller is on "
            f"{here['host']}:\n  " + "\n  ".join(faults) + "\nAll workers need the same Python environment and the "
            "same files by the same paths: a shared file system."
        )


def differences(versions_here: Mapping[str, str | None], there: Mapping[str, Any]) -> list[str]:
    """Say what a worker lacks or has otherwise, one line each.

    Args:
        versions_here: Versions on the controller, by package and ``python``; None for an absent package.
        there: What `harness.plugin.remote.surroundings` says on the worker.
    """
    said = [
        f"{name}: {ours or 'not installed'} here, {there['versions'][name] or 'not installed'} there"
        for name, ours in sorted(versions_here.items())
        if ours != there["versions"][name]
    ]
    said += [f"{folder}: no such folder there" for folder in there["absent"]]
    folders = [str(Path(path).parent) for path in there["not_shared"]]
    said += [f"{folder}: not shared, what is written here is not seen there" for folder in folders]
    return said


def _models_digest(config: pytest.Config) -> str | None:
    path = config.stash[SESSION].settings.models_file
    return read_digest(path) if path.is_file() else None


def _packages() -> list[str]:
    """Return the names of the packages that must be equal everywhere."""
    return [*_PYTEST, *(name for name in versions() if name != "python")]


@cache
def _surroundings_here() -> dict[str, Any]:
    return remote.surroundings(_packages(), [], {})


def _folders(settings: Settings) -> list[str]:
    """Return the folders that must be on every machine, of those that are on this one."""
    named = (settings.cache_dir, settings.data_root)
    return [str(folder.absolute()) for folder in named if folder is not None and folder.is_dir()]


@contextmanager
def _token(folder: Path) -> Iterator[tuple[str, str] | None]:
    """Put a file that nothing but this call can have written into a folder, for the time of the block.

    Nothing where the folder cannot be written here: a cache may be read-only, and that is no fault of a worker.
    """
    path, content = folder / f".preflight-{uuid.uuid4().hex}", uuid.uuid4().hex
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        token = (str(path), content)
    except OSError:
        token = None
    try:
        yield token
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
            if new:
                folder.rmdir()
