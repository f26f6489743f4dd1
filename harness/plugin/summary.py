"""The end of a run: what was skipped and why, in a few lines, and the reports."""

import os
from collections import defaultdict
from collections.abc import Iterable

import pytest

from harness.plugin.options import SESSION
from harness.plugin.tally import is_worker
from harness.session import Session

_Terminal = pytest.TerminalReporter


def pytest_terminal_summary(terminalreporter: _Terminal, config: pytest.Config) -> None:
    """Fold skips, write the reports and show their tables, on the process that the user sees."""
    if is_worker(config):  # workers have a summary too, which nobody sees
        return
    stats = terminalreporter.stats
    reports = [report for name in ("passed", "failed", "skipped", "error") for report in stats.get(name, [])]
    if not any(_is_case(report) for report in reports):
        return
    for line in folded_skips(report for report in stats.get("skipped", []) if _is_case(report)):
        terminalreporter.write_line(line, yellow=True)
    try:
        lines = _report(config.stash[SESSION], measured="passed" in stats)
    except OSError as fault:
        lines = [f"the reports cannot be written: {fault}"]
    for line in lines:
        terminalreporter.write_line(line)


def _report(session: Session, *, measured: bool) -> list[str]:
    if measured:
        session.save_ranking()
    report = next(path for path in session.write_reports() if path.suffix == ".md")
    return ["", *session.summary(), f"report: {os.path.relpath(report)}"]


def folded_skips(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return one line for each reason, with the number of cases it stopped."""
    counts: dict[str, int] = defaultdict(int)
    for report in reports:
        counts[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1  # type: ignore[index]  # a skip's is a tuple
    return [f"skipped {count} case{'s' * (count > 1)}: {reason}" for reason, count in counts.items()]


def _is_case(report: pytest.TestReport) -> bool:
    # Reports of collection, which errors are among, have no properties.
    return any(name == "case" for name, _ in getattr(report, "user_properties", ()))
