"""``harness plan``: what a run would compute, what it misses and what it takes, before any model is loaded."""

import argparse
import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tabulate import tabulate

from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_select
from harness.cli.common import add_settings
from harness.cli.common import selected_cases
from harness.cli.common import session_of
from harness.durations import Durations
from harness.errors import ConfigError
from harness.files import write_atomic
from harness.planning.measure import measure
from harness.planning.needs import needs
from harness.planning.plan import Part
from harness.planning.plan import Plan
from harness.planning.plan import make_plan
from harness.planning.rates import Rates
from harness.session import Session

_RUN = (
    "suite",
    "models_file",
    "data_root",
    "cache_dir",
    "reports_dir",
    "device",
    "universe",
    "protocol",
    "download",
)
_HEADERS = ("model", "cases", "cached", "missing", "to do", "features", "extraction", "probes", "disk")


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "plan", _plan, "say what a run would compute, what data and weights it misses, and what it takes"
    )
    add_select(parser)
    add_settings(parser, *_RUN)
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="workers of the run (default: 1)")
    parser.add_argument(
        "--measure", action="store_true", help="first measure models of which nothing is known (loads them)"
    )
    parser.add_argument("--format", choices=("plain", "csv", "json"), default="plain", help="default: plain")
    parser.add_argument(
        "--durations-out", type=Path, metavar="FILE", help="write all recorded durations, to be committed for --shard"
    )


def _plan(options: argparse.Namespace) -> int:
    if options.workers < 1:
        raise ConfigError(f"--workers {options.workers}: expected at least 1")
    session = session_of(options)
    found = list(needs(session, selected_cases(session, options)))
    rates = _rates(session)
    if options.measure:
        for line in measure(session, found, rates):
            print(line, file=sys.stderr)
        rates = _rates(session)
    durations = Durations(session.book.records())
    if options.durations_out:
        write_atomic(options.durations_out, durations.to_json())
    plan = make_plan(
        found,
        rates,
        durations,
        session.models,
        workers=options.workers,
        cache_dir=session.settings.cache_dir,
    )
    _write(plan, options.format, session)
    return 0


def _rates(session: Session) -> Rates:
    return Rates(session.store, session.features.options, session.models)


def _write(plan: Plan, form: str, session: Session) -> None:
    if form == "json":
        print(json.dumps(asdict(plan), indent=1))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        rows = [asdict(part) for part in (*plan.models, plan.total)]
        writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    else:
        print("\n".join(_lines(plan, session)))


def _lines(plan: Plan, session: Session) -> list[str]:
    total = plan.total
    rows = [_row(part) for part in (*plan.models, total)]
    lines = [tabulate(rows, _HEADERS, tablefmt="plain", disable_numparse=True, colalign=("left", *["right"] * 8)), ""]
    if any(part.scaled for part in plan.models):
        lines.append("~ scaled from other models, by parameters and pixels; --measure measures")
    if plan.unknown:
        lines.append(f"? unknown, and not in the totals: {', '.join(plan.unknown)}; --measure measures extraction")
    if total.missing == total.cases:
        return [*lines, f"nothing can be computed: all {total.cases} cases lack data or weights", *_missing(plan)]
    if not total.to_do:
        return [*lines, "nothing to compute", *_missing(plan)]
    workers = f"{plan.workers} worker{'s' if plan.workers > 1 else ''}"
    lines.append(f"time    {_time(plan.wall_seconds)} on {workers}, at least")
    short = "" if (total.disk or 0) <= plan.disk_free else ": NOT ENOUGH"
    lines.append(f"disk    {_bytes(total.disk)} for features; {_bytes(plan.disk_free)} free{short}")
    lines.append(f"        at {session.settings.cache_dir}")
    lines.append(f"memory  about {_bytes(plan.memory)} a worker for the largest case; {_bytes(plan.memory_here)} here")
    return [*lines, *_missing(plan)]


def _missing(plan: Plan) -> list[str]:
    return [f"missing {count} case{'s' * (count > 1)}: {reason}" for reason, count in plan.missing.items()]


def _row(part: Part) -> tuple[str, ...]:
    scaled = "~" if part.scaled and part.model != "total" else ""
    return (
        part.model,
        str(part.cases),
        *(str(number or "-") for number in (part.cached, part.missing, part.to_do)),
        f"{part.features_cached} of {part.features}" if part.features else "-",
        scaled + _time(part.extraction_seconds),
        _time(part.probe_seconds),
        _bytes(part.disk),
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds else "-"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _bytes(size: int | None) -> str:
    if size is None:
        return "?"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB" if size else "-"
