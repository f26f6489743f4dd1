"""The heartbeat of this process: which case it runs and how far it is."""

import os
from collections.abc import Generator
from contextlib import ExitStack
from contextlib import suppress
from typing import Any

import pytest

from harness.plugin.options import RUN
from harness.plugin.scheduler_worker import Filler
from harness.progress import listening
from harness.runs import Pulse
from harness.runs import heartbeat_path

PULSE = pytest.StashKey[Pulse]()
"""The heartbeat of a process that runs cases: every one but the controller of xdist."""

_STACK = pytest.StashKey[ExitStack]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to beat."""
    config = session.config
    if config.pluginmanager.hasplugin("dsession") or config.option.collectonly:
        return
    stack = config.stash[_STACK] = ExitStack()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    config.stash[PULSE] = stack.enter_context(Pulse(config.stash[RUN], worker).beating())
    stack.enter_context(listening(config.stash[PULSE].stage))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Fall silent."""
    if (stack := config.stash.get(_STACK, None)) is not None:
        stack.close()


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_testnodedown(node: Any) -> None:
    """On the controller: remove what a worker left that was killed."""
    with suppress(OSError):
        heartbeat_path(node.config.stash[RUN], node.gateway.id).unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Say which case runs."""
    pulse = item.config.stash.get(PULSE, None)
    if pulse is None or isinstance(item, Filler):
        return (yield)
    pulse.begin(item.nodeid)
    try:
        return (yield)
    finally:
        pulse.end()
