"""``harness cache``: how large the cache is, whether it is whole, what may go, and a key for caches of CI."""

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Iterator

from harness.cache import Held
from harness.cache import areas
from harness.cache import entries
from harness.cache import remove
from harness.cache import set_aside
from harness.cache import signature
from harness.cache import size_of
from harness.cache import unfinished
from harness.cache import verify
from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import session_of
from harness.cog.run import KIND as PROBE
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.features.cached import KIND as FEATURES
from harness.planning import cache_key
from harness.session import Session
from harness.zoo.spec import identity
from harness.zoo.weights import weights_digest

_UNITS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    description = "say how large the cache is and whether it is whole, remove what is old, give a key for caches of CI"
    parser = commands.add_parser("cache", help=description, description=description)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    parser = add_command(actions, "size", _size, "entries and bytes by kind and model, and of everything else")
    add_settings(parser, "cache_dir", "models_file")
    parser = add_command(
        actions,
        "verify",
        _verify,
        "read every digest anew; damaged entries are named and set aside",
    )
    add_settings(parser, "cache_dir")
    parser = add_command(
        actions, "prune", _prune, "remove entries (by age, model or kind), or what was set aside or left unfinished"
    )
    parser.add_argument("--older", metavar="AGE", help="only what is older than, for example, 12h, 30d or 4w")
    parser.add_argument("--model", metavar="NAME", help="only entries of this model")
    parser.add_argument("--kind", metavar="KIND", help="only this kind: features, probe ...")
    parser.add_argument("--quarantine", action="store_true", help="damaged entries that were set aside, not entries")
    parser.add_argument("--work", action="store_true", help="what killed builders left, not entries")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed")
    add_settings(parser, "cache_dir", "models_file")
    parser = add_command(
        actions,
        "key",
        _key,
        "print a key for caches of CI: under an equal key a cache holds every result of a whole run",
    )
    add_settings(parser, "suite", "models_file", "data_root", "cache_dir", "device", "universe", "protocol")


def _size(options: argparse.Namespace) -> int:
    session = session_of(options)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for held in entries(session.store, _names(session)):
        groups[held.kind, ", ".join(held.models) or "-"].append(held.size)
    rows = [(kind, models, str(len(sizes)), sum(sizes)) for (kind, models), sizes in sorted(groups.items())]
    rows += [(area, "", "", size) for area, size in areas(session.settings.cache_dir).items()]
    print(f"{'kind':12} {'models':40} {'entries':>7} {'size':>10}")
    for kind, models, number, size in rows:
        print(f"{kind:12} {models:40} {number:>7} {_bytes(size):>10}")
    print(f"{'total':61} {_bytes(size_of(session.settings.cache_dir)):>10}  {session.settings.cache_dir}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    store = session_of(options).store
    damaged = total = 0
    for entry, fault, aside in verify(store):
        total += 1
        if fault is not None:
            damaged += 1
            done = "set aside" if aside else "left, since its lock is held"
            print(f"{entry.parent.name}/{entry.name}: {fault}; {done}")
    print(f"{total} entries under {store.root}: {damaged or 'none'} damaged")
    return 1 if damaged else 0


def _prune(options: argparse.Namespace) -> int:
    session = session_of(options)
    chosen = list(_chosen(session, options))
    removed = freed = 0
    for held in chosen:
        size = held.size
        name = f"{held.area}/{held.kind}/{held.path.name[:12]} {', '.join(held.models)}".rstrip()
        if not options.dry_run and not remove(session.store, held):
            print(f"{name}: left, since its lock is held")
            continue
        removed, freed = removed + 1, freed + size
        print(f"{name}: {_bytes(size)}")
    print(f"{'would be removed' if options.dry_run else 'removed'}: {removed} of {len(chosen)}, {_bytes(freed)}")
    return 0


def _chosen(session: Session, options: argparse.Namespace) -> Iterator[Held]:
    if not (options.older or options.model or options.kind or options.quarantine or options.work):
        raise ConfigError("harness cache prune: say what, by --older, --model, --kind, --quarantine or --work")
    found = set_aside(session.store) if options.quarantine else []
    found += unfinished(session.store) if options.work else []
    if not (options.quarantine or options.work):
        found = entries(session.store, _names(session))
    elif options.model:
        raise ConfigError("--model does not go with --quarantine or --work: of what models these are is not known")
    models = {*_of_models_file(session), *(name for held in found for name in held.models)}
    _known("--model", options.model, models)
    _known("--kind", options.kind, {FEATURES, PROBE, *(held.kind for held in found)})
    before = time.time() - _seconds(options.older) if options.older else float("inf")
    for held in found:
        of_model = options.model is None or options.model.casefold() in {name.casefold() for name in held.models}
        if of_model and (options.kind or held.kind).casefold() == held.kind.casefold() and held.since < before:
            yield held


def _known(flag: str, wanted: str | None, names: set[str]) -> None:
    if wanted is not None and wanted.casefold() not in {name.casefold() for name in names}:
        raise ConfigError(f"{flag} {wanted}: the cache holds nothing of it.{nearest(wanted, names)}")


def _key(options: argparse.Namespace) -> int:
    print(cache_key(session_of(options)))
    return 0


def _names(session: Session) -> dict[str, list[str]]:
    """Return the names that the models file has now, by what entries know their model by."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in _of_models_file(session):
        spec = session.models[name]
        try:
            weights = weights_digest(spec, session.settings.weights_dir)
        except MissingInput:
            continue
        names[signature(identity(spec), weights)].append(name)
    return names


def _of_models_file(session: Session) -> list[str]:
    return list(session.models) if session.settings.models_file.exists() else []


def _seconds(age: str) -> float:
    match = re.fullmatch(r"(\d+)([hdw])", age)
    if match is None:
        raise ConfigError(f"--older {age}: expected a number of hours, days or weeks, such as 12h, 30d or 4w")
    return float(match[1]) * _UNITS[match[2]]


def _bytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
