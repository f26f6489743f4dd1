"""What commands share: the options of a run, and how a command is declared."""

import argparse
from collections.abc import Callable
from typing import Any
from typing import TypeAlias

from harness.case import Case
from harness.selection import SELECT_HELP
from harness.selection import select
from harness.session import BENCHMARKS
from harness.session import Session
from harness.settings import OPTIONS
from harness.settings import Option
from harness.settings import Settings
from harness.settings import settings_from

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], description: str
) -> argparse.ArgumentParser:
    """Declare a command; its description is also its line in the list of commands."""
    parser = commands.add_parser(name, help=description, description=description)
    parser.set_defaults(run=run)
    return parser


def add_settings(parser: argparse.ArgumentParser, *fields: str) -> None:
    """Declare options of a run, by the fields of `Settings` they fill."""
    for option in OPTIONS:
        if option.field not in fields:
            continue
        if option.switch:
            parser.add_argument(option.flag, action="store_true", dest=option.field, help=option.help)
        else:
            action = "append" if option.repeated else "store"
            parser.add_argument(option.flag, action=action, dest=option.field, metavar=option.metavar, help=option.help)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings that a command line gives."""

    def value_of(option: Option) -> Any:
        return getattr(options, option.field, None)

    return settings_from(value_of)


def session_of(options: argparse.Namespace) -> Session:
    """Return the session that a command line asks for."""
    return Session(settings_of(options))


def add_select(parser: argparse.ArgumentParser) -> None:
    """Declare ``--select``, as pytest has it."""
    parser.add_argument("--select", action="append", default=[], metavar="'KEY=VALUE ...'", help=SELECT_HELP)


def selected_cases(session: Session, options: argparse.Namespace) -> list[Case]:
    """Return the cases of all benchmarks that ``--select`` asks for, in the order in which they are run.

    Raises:
        ConfigError: see `harness.selection.parse`.
    """
    return select(options.select, [case for benchmark in BENCHMARKS for case in session.cases(benchmark)])
