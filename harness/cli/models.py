"""``harness validate`` and ``harness fetch``: the models file and the weights it names."""

import argparse
import sys
from functools import partial
from pathlib import Path

from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import session_of
from harness.errors import HarnessError
from harness.errors import MissingInput
from harness.zoo.contents import recognise
from harness.zoo.sources import RandomWeights
from harness.zoo.spec import ModelSpec
from harness.zoo.weights import fetch
from harness.zoo.weights import verify


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    parser = add_command(
        commands, "validate", _validate, "check the models file, its networks, the suite and weights that are here"
    )
    add_settings(parser, "models_file", "cache_dir", "suite", "protocol", "universe")
    parser = add_command(commands, "fetch", _fetch, "bring the weights of models into the cache, checked")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="names from the models file")
    add_settings(parser, "models_file", "cache_dir")


def _validate(options: argparse.Namespace) -> int:
    session = session_of(options)
    status = 0
    for name, spec in session.models.items():
        wrong, absent = _faults(spec, session.settings.weights_dir)
        if wrong:
            status = 1
            print(f"{name}: WRONG: {'; '.join(wrong)}")
        elif absent:
            print(f"{name}: not here: {'; '.join(absent)}")
        else:
            print(f"{name}: ok{' (random weights)' if isinstance(spec.weights, RandomWeights) else ''}")
    return status


def _faults(spec: ModelSpec, weights_dir: Path) -> tuple[list[str], list[str]]:
    """Return what is wrong with the weights and the network of an entry, and what is not here."""
    from harness.zoo.check import check_network

    def check_weights() -> None:
        if (path := verify(spec, weights_dir)) is not None:
            recognise(path)

    wrong: list[str] = []
    absent: list[str] = []
    for check in (check_weights, partial(check_network, spec)):
        try:
            check()
        except HarnessError as fault:
            (absent if isinstance(fault, MissingInput) else wrong).append(str(fault).removeprefix(f"{spec.name}: "))
    return wrong, absent


def _fetch(options: argparse.Namespace) -> int:
    session = session_of(options)
    specs = [session.models.find(name) for name in options.models]
    for spec in specs:
        path = fetch(spec, session.settings.weights_dir, progress=_show_progress if sys.stderr.isatty() else None)
        print(f"{spec.name}: {path or 'random weights need no file'}")
    return 0


def _show_progress(done: int, total: int | None) -> None:
    of = f" of {total / 1e6:.1f}" if total else ""
    end = "\n" if done == total else "\r"
    print(f"{done / 1e6:.1f}{of} MB", end=end, file=sys.stderr, flush=True)
