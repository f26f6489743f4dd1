"""``harness levels`` and ``harness similarity``: WordNet distance for universes and for lists of one's own."""

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.cli.common import add_settings
from harness.cli.common import settings_of
from harness.cog.level_options import LevelOptions
from harness.cog.level_queries import concept_similarity
from harness.cog.level_queries import nearest_concepts
from harness.cog.level_queries import with_lists
from harness.cog.levels import Levels
from harness.cog.levels import agreement
from harness.cog.levels import derive_levels
from harness.cog.levels import published_concepts
from harness.cog.levels import published_levels
from harness.cog.universe import Universe
from harness.cog.universe import load_universe
from harness.errors import ConfigError
from harness.files import write_atomic
from harness.wordnet.cache import load_taxonomy

_LISTS = ("seen", "concepts", "exclude", "levels", "size")


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    parser = add_command(commands, "levels", _levels, "print the levels of a universe, or of your own lists, as CSV")
    parser.add_argument("universe", nargs="?", default="in21k", help="in21k (default), mini, or a universe file")
    parser.add_argument("--derive", action="store_true", help="derive them, even where they are published")
    parser.add_argument("--gaps", action="store_true", help="print the concepts between levels too")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write them to a file instead")
    lists = parser.add_argument_group("lists of your own, one WNID a line (.txt, .csv or .tsv)")
    lists.add_argument(
        "--seen", metavar="FILE|NAME", help="the concepts that your model has seen, or a universe's list"
    )
    lists.add_argument("--concepts", type=Path, metavar="FILE", help="the concepts to make levels of")
    lists.add_argument("--exclude", type=Path, metavar="FILE", help="concepts to leave out")
    lists.add_argument("--levels", type=int, metavar="N", help="number of levels")
    lists.add_argument("--size", type=int, metavar="N", help="concepts in a level")
    _add_readings(parser)
    parser = add_command(commands, "similarity", _similarity, "compare concepts: WNIDs or names such as dog.n.01")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B", nargs="?")
    parser.add_argument("--top", type=int, metavar="N", help="the N seen concepts of the universe most similar to A")
    parser.add_argument("--universe", default="in21k", metavar="NAME|FILE", help="where concepts are counted")
    parser.add_argument("--seen", metavar="NAME", help="which of the universe's lists of seen concepts")
    _add_readings(parser)


def _add_readings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("readings (the defaults reproduce the published levels)")
    group.add_argument("--measure", help="lin, wu-palmer, jiang-conrath, resnik, path or cosine (default: lin)")
    group.add_argument("--vectors", type=Path, metavar="FILE", help="word or description vectors, for cosine")
    group.add_argument("--lcs", help="deepest or max-ic (default: deepest)")
    group.add_argument("--count", help="closure, in21k, wordnet or leaves (default: closure)")
    group.add_argument("--exclusions", help="all, certain or none (default: all)")
    group.add_argument("--no-instance-edges", action="store_true", help="leave out @i edges")
    group.add_argument("--threshold-first", action="store_true", help="drop small concepts before finding leaves")
    add_settings(parser, "cache_dir")


def _levels(options: argparse.Namespace) -> int:
    universe = load_universe(options.universe)
    lists = {name: getattr(options, name) for name in _LISTS if getattr(options, name) is not None}
    named = lists.pop("seen", None)
    if named is not None and named not in universe.seen:
        lists["seen"], named = Path(named), None
    for name in ("seen", "concepts", "exclude"):
        if name in lists and not lists[name].is_file():
            raise ConfigError(f"--{name} {lists[name]}: no such file")
    own = with_lists(universe, **lists) if lists else universe
    readings = _readings(options, seen=named)
    taxonomy = load_taxonomy(settings_of(options).cache_dir)
    canonical = own.levels.published is not None and not lists and not options.derive
    if canonical and readings != LevelOptions():
        raise ConfigError("published levels do not follow other readings: add --derive")
    levels = published_levels(own, taxonomy) if canonical else derive_levels(own, taxonomy, readings)
    text = levels.to_csv(between=options.gaps)
    if options.out:
        write_atomic(options.out, text)
    else:
        sys.stdout.write(text)
    if options.derive and universe.levels.published and not lists:
        published = [wnid for wnids in published_concepts(universe).values() for wnid in wnids]
        _report_agreement("derived from scratch", levels, universe)
        _report_agreement("given the published concepts", derive_levels(own, taxonomy, readings, published), universe)
    return 0


def _report_agreement(how: str, levels: Levels, universe: Universe) -> None:
    agreeing = sum(agreement(levels, universe).values())
    total = universe.levels.number * universe.levels.size
    print(f"{how}: {agreeing} of {total} concepts are in their published level", file=sys.stderr)


def _similarity(options: argparse.Namespace) -> int:
    if (options.b is None) == (options.top is None) or (options.top or 1) < 1:
        raise ConfigError("harness similarity: expected A B, or A --top N with N from 1")
    universe, readings = load_universe(options.universe), _readings(options, seen=options.seen)
    taxonomy = load_taxonomy(settings_of(options).cache_dir)
    if options.b is not None:
        print(f"{concept_similarity(universe, taxonomy, options.a, options.b, readings):.12f}")
        return 0
    seen = universe.seen_concepts(options.seen)
    for found in nearest_concepts(universe, taxonomy, options.a, seen, options.top, readings):
        print(f"{found.similarity:.12f}  {found.wnid}  {found.name}")
    return 0


def _readings(options: argparse.Namespace, **more: Any) -> LevelOptions:
    given = {name: getattr(options, name) for name in ("measure", "vectors", "lcs", "count", "exclusions")}
    given |= more
    return LevelOptions(
        **{name: value for name, value in given.items() if value is not None},
        instance_edges=not options.no_instance_edges,
        leaf_first=not options.threshold_first,
    )
