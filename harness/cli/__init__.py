"""The command line: what can be asked without running a benchmark."""

import argparse
import sys
from collections.abc import Sequence

from harness import __version__
from harness.cli import cache
from harness.cli import features
from harness.cli import init
from harness.cli import levels
from harness.cli import listing
from harness.cli import merge
from harness.cli import models
from harness.cli import plan
from harness.cli import records
from harness.cli import status
from harness.cli import submit
from harness.errors import ConfigError
from harness.errors import HarnessError

_EPILOG = """exit status: 0 done; 1 something is missing or damaged, or was found to be wrong; 2 wrong usage or settings

examples:
  harness validate
  harness fetch s-DINO
  harness ls cases --select 'model=s-dino split=L3'
  harness ls models
  harness levels mini
  harness similarity dog.n.01 cat.n.01
  harness why cog/linear/efficientnet-lite0-L1
  harness status --watch
  harness report"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with every command."""
    parser = argparse.ArgumentParser(
        prog="harness",
        description="Does my model generalize? Benchmarks are run by pytest; this answers everything around them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"harness {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (init, models, listing, levels, records, features, plan, cache, merge, submit, status):
        module.add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = build_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as head, has enough; Python would complain at exit otherwise
        return 0
    except OSError as error:
        print(f"harness: {error}", file=sys.stderr)
        return 1
