"""``harness status``: what runs under way are doing, asked from another terminal."""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import settings_of
from harness.runs import Run
from harness.runs import read_heartbeats
from harness.runs import read_runs
from harness.runs import runs_dir
from harness.watch import headline
from harness.watch import spell
from harness.watch import worker_table

_WATCH_SECONDS = 2.0


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    description = "say what the runs under way on a cache folder are doing, and how long they may yet take"
    parser = add_command(commands, "status", _status, description)
    parser.add_argument("--all", action="store_true", help="past runs too")
    parser.add_argument("--watch", action="store_true", help="say it again every other second, until the last run ends")
    add_settings(parser, "cache_dir")


def _status(options: argparse.Namespace) -> int:
    runs = runs_dir(settings_of(options).cache_dir)
    try:
        while True:
            text, live = _look(runs, every=options.all)
            clear = "\033[H\033[2J" if options.watch and sys.stdout.isatty() else ""
            print(clear + text, flush=True)
            if not (options.watch and live):
                return 0
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:  # the way to end --watch
        return 0


def _look(runs: Path, *, every: bool) -> tuple[str, bool]:
    """Return what to say, and whether a run is under way."""
    now = time.time()
    known = read_runs(runs)
    live = any(run.ended is None and not run.dead(now) for run in known.values())
    shown = known if every else _of_interest(known, now)
    blocks = ["\n".join(_describe(folder, run, now)) for folder, run in shown.items()]
    if not live:
        blocks.append(f"no run is under way on {runs.parent}")
    return "\n\n".join(blocks), live


def _of_interest(known: Mapping[Path, Run], now: float) -> dict[Path, Run]:
    """Return the runs under way, and those that died since the last one that ended well."""
    last = max((run.began for run in known.values() if run.ended is not None), default=0.0)
    return {
        folder: run for folder, run in known.items() if run.ended is None and (run.began > last or not run.dead(now))
    }


def _describe(folder: Path, run: Run, now: float) -> list[str]:
    """Return what is said of one run."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.began))
    title = [f"{run.command}", f"  suite {run.suite}, began {began} on {run.host}, process {run.pid}"]
    if run.ended is not None:
        counts = f"{run.passed} passed, {run.failed} failed, {run.skipped} skipped of {run.selected or 0}"
        return [*title, f"  ended after {spell(run.ended - run.began)} with status {run.exit_status}: {counts}"]
    beats = read_heartbeats(folder)
    table = [f"  {line}" for line in worker_table(run, beats, now)]
    if not run.dead(now):
        return [*title, f"  {headline(run, beats, now)}", *table]
    known = "" if run.selected is None else f", after {run.reported} of {run.selected} cases"
    left = ["  its workers end after their cases:", *table] if any(not beat.silent(now) for beat in beats) else []
    return [*title, f"  dead: last heard of {spell(now - run.updated)} ago{known}; run it again to go on", *left]
