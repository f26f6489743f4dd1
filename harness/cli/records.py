"""``harness report`` and ``harness why``: what has been recorded, and why a case is computed anew."""

import argparse
from pathlib import Path

from harness.case import Case
from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import session_of
from harness.cog.run import KIND as PROBE
from harness.cog.run import feature_keys
from harness.cog.run import probe_key
from harness.digest import digest_of
from harness.features.cached import KIND as FEATURES
from harness.session import Session
from harness.store import Key
from harness.store import Store
from harness.store import differences

_RUN = ("suite", "models_file", "data_root", "cache_dir", "reports_dir", "device", "universe", "protocol")


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    parser = add_command(commands, "report", _report, "write tables, rankings and figures from the records alone")
    add_settings(parser, "suite", "reports_dir", "cache_dir")
    parser = add_command(commands, "why", _why, "say what of a case is cached, and which settings differ from what is")
    parser.add_argument("case", help="id of a case, for example cog/linear/s-DINO-L1, or s-DINO-L1-N004")
    add_settings(parser, *_RUN)


def _report(options: argparse.Namespace) -> int:
    session = session_of(options)
    for path in session.write_reports():
        print(path)
    return 0


def _why(options: argparse.Namespace) -> int:
    name, _, given = options.case.partition("?")
    readings = [f"cog.{each}" for each in given.split("&") if each and not each.startswith("universe=")]
    options.protocol = [*(options.protocol or []), *readings]
    session = session_of(options)
    case = session.case(name)
    record = session.book.read(case)
    print(f"case      {case.id}")
    print(f"record    {_state(session, case) if record else 'none: never run'}")
    session.require(case)
    for part, key in feature_keys(case, session.levels, session.features).items():
        _explain(session.store, FEATURES, f"features of {part}", key)
    _explain(session.store, PROBE, "result", probe_key(case, session.levels, session.features))
    return 0


def _state(session: Session, case: Case) -> str:
    record = session.book.read(case)
    path: Path = session.book.path(case)
    measured = f", measured {record.provenance.measured}" if record and record.provenance else ""
    return f"{record.status if record else 'none'}{measured} ({path})"


def _explain(store: Store, kind: str, name: str, key: Key) -> None:
    if store.find(kind, key) is not None:
        print(f"{name}: cached ({digest_of(key)[:12]})")
        return
    others = [(differences(key, other), digest) for digest, other in store.keys(kind)]
    if not others:
        print(f"{name}: to be computed; the cache holds no other")
        return
    fields, digest = min(others, key=lambda pair: (len(pair[0]), pair[1]))
    print(f"{name}: to be computed; the nearest cached ({digest[:12]}) differs in")
    for path, (ours, theirs) in fields.items():
        print(f"  {path}: {theirs!r} there, {ours!r} now")
