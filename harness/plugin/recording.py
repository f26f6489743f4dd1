"""Records: what a case says is checked inside the case, and written when its outcome is known."""

from collections.abc import Generator
from collections.abc import Iterator
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.errors import MissingInput
from harness.plugin.collection import case_of
from harness.plugin.options import SESSION
from harness.records.plain import NotRecordable
from harness.records.plain import is_number
from harness.records.plain import to_plain
from harness.records.record import Metric
from harness.records.record import Outcome
from harness.records.record import Status

_REPORT = pytest.StashKey[pytest.TestReport]()


class Recorder:
    """What the ``record`` fixture gives: takes an outcome whole, or metrics and details one by one.

    Every metric also becomes a property of the test report, and so of JUnit XML.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self.outcome = Outcome()

    def __call__(
        self,
        what: "Outcome | str",
        value: Any = None,
        *,
        unit: str = "percent",
        higher_is_better: bool = True,
        reason: str | None = None,
    ) -> None:
        """Record an outcome, or one value by name.

        Args:
            what: An `Outcome`, or a name.
            value: A number, Python's, NumPy's or torch's, becomes a metric; NaN and infinities are recorded as null.
                Other plain values (text, lists, dicts ...) become details.
            unit: ``percent``, ``fraction``, ``count``, ``seconds`` ...
            higher_is_better: The direction of the metric.
            reason: Why the value does not exist; said for you where it is NaN or infinite.

        Raises:
            NotRecordable: the value has no plain form. Raised inside the case, where the traceback points to it.
        """
        __tracebackhide__ = True  # the line of the case is what its author looks for
        if isinstance(what, Outcome):
            self._take(what)
        elif not isinstance(what, str):
            raise NotRecordable(f"expected the name of a value, found {what!r}")
        elif is_number(value):
            self._add(what, Metric(value=value, unit=unit, higher_is_better=higher_is_better, reason=reason))
        else:
            plain: Any = to_plain(value, what)
            self.outcome.details[what] = plain
            self._item.user_properties.append((what, plain))

    def _take(self, outcome: Outcome) -> None:
        """Take an outcome beside what is recorded already, refusing here what could not be written later."""
        details: Any = to_plain(outcome.details, "details")
        metrics, known = outcome.metrics, self.outcome
        update = {"metrics": known.metrics, "details": {**known.details, **details}}
        self.outcome = outcome.model_copy(update=update)
        for name, metric in metrics.items():
            self._add(name, metric)

    def _add(self, name: str, metric: Metric) -> None:
        self.outcome.metrics[name] = metric
        self._item.user_properties.append((name, metric.value))


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Iterator[Recorder]:
    """Record what a case found: ``record("top1", value)`` or ``record(outcome)``."""
    recorder = Recorder(request.node)
    yield recorder
    report = request.node.stash.get(_REPORT, None)
    case = case_of(request.node)
    if report is not None and case is not None and report.passed:
        request.config.stash[SESSION].record(case, "passed", None, recorder.outcome)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, pytest.TestReport]:
    """Keep the report of the call for the fixture, and record what failed or was skipped."""
    report: pytest.TestReport = yield
    if call.when == "call":
        item.stash[_REPORT] = report
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, HarnessError):
        report.longrepr = str(error)  # a message meant for the user says more without our traceback
    case = case_of(item)
    if case is not None and not report.passed:
        status: Status = "skipped" if report.skipped else "failed"
        try:
            item.config.stash[SESSION].record(case, status, _reason(report, error), Outcome())
        except OSError as fault:  # raised from here it would end the whole run
            report.outcome = "failed"
            report.longrepr = f"{report.longreprtext}\nthe record of {case.id} cannot be written: {fault}"
    report.user_properties = [(name, _sendable(value)) for name, value in report.user_properties]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    """Skip a case whose fixtures find that something is missing."""
    yield from _missing_is_skipped()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Skip a case that finds, while it runs, that something is missing."""
    yield from _missing_is_skipped()


def _missing_is_skipped() -> Generator[None]:
    try:
        yield
    except MissingInput as missing:
        pytest.skip(str(missing))


def _sendable(value: object) -> object:
    """Return a property as it is, or as the text that JUnit XML has anyway where it would kill a worker of xdist."""
    if type(value) in {int, float, str, bytes}:
        return value
    try:
        return to_plain(value, "property")
    except NotRecordable:
        return str(value)


def _reason(report: pytest.TestReport, error: BaseException | None) -> str:
    if isinstance(report.longrepr, tuple):  # pytest's own form of a skip: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    kind = "" if isinstance(error, HarnessError) else f"{type(error).__name__}: "
    # A message may hold what JSON cannot, such as the name of a file in another encoding.
    return f"{report.when} failed: {kind}{error}".encode("utf-8", "backslashreplace").decode()
