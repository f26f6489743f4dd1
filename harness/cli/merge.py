"""``harness merge``: what shards on several machines have found, made one."""

import argparse
from pathlib import Path

from harness.cache import copy_entries
from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import settings_of
from harness.errors import ConfigError
from harness.merge import Conflict
from harness.merge import merge_reports
from harness.store import Store

_SHOWN = 60
"""Characters of a value that are shown."""


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "merge",
        _merge,
        "merge the records of shards, in any order and any number of times; exit status 1 where they disagree",
    )
    parser.add_argument(
        "sources", nargs="*", type=Path, metavar="SOURCE", help="reports folders; they stay as they are"
    )
    parser.add_argument("--into", type=Path, metavar="DIR", help="the reports folder that takes their records up")
    parser.add_argument(
        "--caches",
        nargs="+",
        type=Path,
        default=[],
        metavar="SOURCE",
        help="copy entries of these cache folders too",
    )
    parser.add_argument("--force", action="store_true", help="exit status 0 even where sources disagree or are damaged")
    add_settings(parser, "cache_dir")


def _merge(options: argparse.Namespace) -> int:
    if bool(options.sources) != bool(options.into) or not (options.sources or options.caches):
        raise ConfigError("harness merge: expected SOURCE... --into DIR, --caches SOURCE..., or both")
    wrong = 0
    if options.sources:
        wrong += _merge_reports(options.sources, options.into)
    if options.caches:
        wrong += _merge_caches(options.caches, settings_of(options).cache_dir)
    return 1 if wrong and not options.force else 0


def _merge_reports(sources: list[Path], into: Path) -> int:
    merged = merge_reports(sources, into)
    for conflict in merged.conflicts:
        print("\n".join(_lines(conflict)))
    for path, reason in merged.left.items():
        print(f"left: {path}: {reason}")
    print(f"{into}: {merged.new} new, {merged.changed} changed, {merged.same} as before", end="")
    print(f"; {_counted(len(merged.conflicts), 'conflict')}, {_counted(len(merged.left), 'file')} left")
    return len(merged.conflicts) + len(merged.left)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _lines(conflict: Conflict) -> list[str]:
    fields = [
        f"  {path}: {_short(kept)} kept, {_short(other)} there" for path, (kept, other) in conflict.fields.items()
    ]
    return [f"conflict: {conflict.what}: {conflict.kept} is kept, {conflict.other} differs in", *fields]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _merge_caches(caches: list[Path], cache_dir: Path) -> int:
    left = 0
    for cache in caches:
        if not (cache / "store").is_dir():
            raise ConfigError(f"{cache}: not a cache folder: it has no folder store")
        result = copy_entries(Store(cache / "store"), Store(cache_dir / "store"))
        for path, reason in result.left.items():
            print(f"left: {path}: {reason}")
        print(f"{cache}: {result.copied} entries copied, {result.there} there already, {len(result.left)} damaged")
        left += len(result.left)
    return left
