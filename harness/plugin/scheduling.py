"""The order in which cases run, on workers of xdist and without them."""

from collections.abc import Generator
from collections.abc import Sequence
from typing import Any

import pytest

from harness.case import unit_of
from harness.durations import durations_for
from harness.plugin.collection import case_of
from harness.plugin.nodes import cases_by_node
from harness.plugin.options import RUN
from harness.plugin.options import SESSION
from harness.plugin.scheduler_queue import Task
from harness.plugin.scheduler_worker import FILLERS
from harness.plugin.scheduler_xdist import CaseScheduling
from harness.session import Session

OURS = pytest.StashKey[bool]()
"""Whether the user left it to us how items are distributed."""

_SCHEDULING = pytest.StashKey[CaseScheduling]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Remember whether ``--dist`` or ``-d`` was given, before xdist sets the one and reads the other."""
    given = getattr(config.option, "dist", "no") != "no" or getattr(config.option, "distload", False)
    config.stash[OURS] = not given
    return (yield)


@pytest.hookimpl(optionalhook=True)  # without xdist, pytest does not know this hook
def pytest_configure_node(node: Any) -> None:
    """Tell a worker that fillers will stand between items."""
    node.workerinput[FILLERS] = node.config.stash[OURS]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> CaseScheduling | None:
    """Schedule, unless the user said how."""
    if not config.stash[OURS]:
        return None
    from xdist.workermanage import parse_tx_spec_config

    session = config.stash[SESSION]
    number = len(parse_tx_spec_config(config))
    scheduling = CaseScheduling(config, number, lambda ids: tasks(session, ids), config.stash[RUN])
    config.stash[_SCHEDULING] = scheduling
    return scheduling


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """On the controller: hear that a case passed."""
    config = getattr(getattr(report, "node", None), "config", None)
    if config is not None and report.when == "call" and report.passed and _SCHEDULING in config.stash:
        config.stash[_SCHEDULING].passed(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop watching heartbeats."""
    if (scheduling := session.config.stash.get(_SCHEDULING, None)) is not None:
        scheduling.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring cases of one unit together, where the first of them stood; other tests stay where they are."""
    if config.option.collectonly:
        return
    units = [None if (case := case_of(item)) is None else unit_of(case) for item in items]
    places = [place for place, unit in enumerate(units) if unit is not None]
    first = {units[place]: place for place in reversed(places)}
    together = [items[place] for place in sorted(places, key=lambda place: first[units[place]])]
    for place, item in zip(places, together, strict=True):
        items[place] = item


def tasks(session: Session, ids: Sequence[str]) -> list[Task]:
    """Return what is known beforehand of collected items."""
    cases = cases_by_node(session, ids)
    expected = durations_for(session.book, [case for case in cases if case is not None])
    return [
        Task()
        if case is None
        else Task((case.suite, *unit_of(case)), case.model, expected.features(case), expected.work(case))
        for case in cases
    ]
