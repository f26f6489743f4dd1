"""``--select``: cases by exact words, beside ``-k`` and ``-m``; what all of them leave is run."""

import pytest

from harness.errors import ConfigError
from harness.plugin.collection import case_of
from harness.plugin.collection import cases_of
from harness.selection import SELECT_HELP
from harness.selection import Selection
from harness.selection import parse
from harness.session import BENCHMARKS

_SELECTION = pytest.StashKey[Selection]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    group = parser.getgroup("harness")
    group.addoption("--select", action="append", default=[], metavar="'KEY=VALUE ...'", help=SELECT_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Read the selection against all cases, and refuse what none of them has before any worker starts."""
    if not (texts := config.getoption("select")):
        return
    try:
        cases = [case for benchmark in BENCHMARKS for case in cases_of(config, benchmark)]
        config.stash[_SELECTION] = parse(texts, cases)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(tryfirst=True)  # what others do to each item is not done for nothing
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect every other case, and tests that are no cases."""
    selection = config.stash.get(_SELECTION, None)
    if selection is None:
        return
    wanted: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        case = case_of(item)
        (wanted if case is not None and case in selection else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = wanted
