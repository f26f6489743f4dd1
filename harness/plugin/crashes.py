"""Cases whose worker died: they are recorded as failed, with what is known of the death."""

import signal
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import Any

import pytest

from harness.plugin.nodes import cases_by_node
from harness.plugin.options import SESSION
from harness.records.record import Outcome

_WAIT_SECONDS = 2.0
"""The channel of a dying process closes a moment before its exit status is there."""


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport) -> None:
    """Record the case that a worker was running when it died; what was measured before stays."""
    node: Any = report.node
    session = node.config.stash[SESSION]
    how = f" ({fate})" if (fate := fate_of(node)) else ""
    reason = f"worker {node.gateway.id} crashed{how}"
    report.longrepr = f"{reason} while running {crashitem}"
    (case,) = cases_by_node(session, [crashitem])
    if case is None:
        return
    report.user_properties.append(("case", case.id))
    try:
        session.record(case, "failed", reason, Outcome())
    except OSError as fault:
        report.longrepr += f"\nthe record of {case.id} cannot be written: {fault}"


def fate_of(node: Any) -> str | None:
    """Say how the process of a worker ended, where it is a child of this process: ``killed by SIGKILL``."""
    process = getattr(getattr(node.gateway, "_io", None), "popen", None)
    if process is None:
        return None
    with suppress(TimeoutExpired):
        status: int = process.wait(timeout=_WAIT_SECONDS)
        return f"killed by {_signal_name(-status)}" if status < 0 else f"exit status {status}"
    return None


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
