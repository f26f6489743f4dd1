"""One pytest case for each case of a benchmark; those that cannot run are skipped with the reason."""

import gc
from collections.abc import Generator

import pytest

from harness.case import Case
from harness.errors import ConfigError
from harness.errors import nearest
from harness.plugin.options import SESSION
from harness.session import BENCHMARKS

_CASES = pytest.StashKey[dict[str, list[Case]]]()
"""The cases of each benchmark that was asked for: each of its tests takes a part."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect with the garbage collector at rest: it takes a third of the time of 47,000 cases, and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # items live as long as the process: each of pytest's own looks at the end would take as long again
        if enabled:
            gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test that takes ``case``: marked with its benchmark, named ``test_<protocol>``."""
    if "case" not in metafunc.fixturenames:
        return
    markers = sorted({mark.name for mark in metafunc.definition.iter_markers() if mark.name in BENCHMARKS})
    if not markers:
        return  # a test of something else, whose 'case' is its own
    if len(markers) > 1:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} is marked {' and '.join(markers)}: expected one of them")
    protocol = metafunc.function.__name__.removeprefix("test_")
    try:
        every = cases_of(metafunc.config, markers[0])
    except ConfigError as error:  # without a models file nothing was checked before
        raise pytest.UsageError(str(error)) from error
    cases = [case for case in every if case.protocol == protocol]
    if not cases:
        known = sorted({case.protocol for case in every})
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid} is named after a protocol that {markers[0]} does not have: "
            f"expected test_ and one of {', '.join(known)}.{nearest(protocol, known)}"
        )
    metafunc.parametrize("case", cases, ids=[case.name for case in cases])


def cases_of(config: pytest.Config, benchmark: str) -> list[Case]:
    """Return all cases of a benchmark, listed once for all that ask.

    Raises:
        ConfigError: there is no models file, or a wrong one.
    """
    known = config.stash.setdefault(_CASES, {})
    if benchmark not in known:
        known[benchmark] = config.stash[SESSION].cases(benchmark)
    return known[benchmark]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what misses data or weights, without running its fixtures. Last, so that only selected cases are asked."""
    session = config.stash[SESSION]
    for item in items:
        case = case_of(item)
        if case is None:
            continue
        item.user_properties.append(("case", case.id))
        if reason := session.reason_to_skip(case):
            item.add_marker(pytest.mark.skip(reason=reason))


def case_of(item: pytest.Item) -> Case | None:
    """Return the case of a benchmark item, None for any other test."""
    parameters = getattr(item, "callspec", None)
    case = parameters.params.get("case") if parameters else None
    return case if isinstance(case, Case) else None
