"""Levels: unseen concepts, ranked by similarity to the nearest seen one and cut into groups (ImageNet-CoG, 3.1)."""

import csv
import io
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from harness.cog.level_candidates import find_candidates
from harness.cog.level_options import DEFAULT_OPTIONS
from harness.cog.level_options import LevelOptions
from harness.cog.universe import Universe
from harness.cog.universe_lists import Table
from harness.cog.universe_lists import read_table
from harness.cog.universe_lists import real_number
from harness.cog.universe_lists import whole_number
from harness.errors import ConfigError
from harness.wordnet.similarity import Compare
from harness.wordnet.similarity import compare_with
from harness.wordnet.similarity import information_content
from harness.wordnet.similarity import most_similar
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy
from harness.wordnet.vectors import cosine_with

COLUMNS = ("level", "wnid", "name", "similarity", "nearest_seen", "images")


@dataclass(frozen=True)
class Placed:
    """A concept and where it stands."""

    level: int | None
    """From 1, the nearest; None between two levels."""
    wnid: str
    name: str
    similarity: float
    """To the nearest seen concept."""
    nearest_seen: str
    """Its WNID; of several that are equally similar, the first."""
    images: int | None


@dataclass(frozen=True)
class Levels:
    """Concepts in the order of falling similarity, those between levels among them."""

    ranked: tuple[Placed, ...]

    def concepts(self) -> dict[int, tuple[str, ...]]:
        """Return the WNIDs of each level, sorted: a concept's place is its class index."""
        found: dict[int, list[str]] = {}
        for placed in self.ranked:
            if placed.level is not None:
                found.setdefault(placed.level, []).append(placed.wnid)
        return {level: tuple(sorted(wnids)) for level, wnids in sorted(found.items())}

    def to_csv(self, *, between: bool = False) -> str:
        """Return the levels as CSV, from near to far; with the concepts between levels too, if asked."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for placed in self.ranked:
            if between or placed.level is not None:
                similarity = f"{placed.similarity:.12f}"
                writer.writerow(
                    (placed.level, placed.wnid, placed.name, similarity, placed.nearest_seen, placed.images)
                )
        return text.getvalue()


def derive_levels(
    universe: Universe,
    taxonomy: Taxonomy,
    options: LevelOptions = DEFAULT_OPTIONS,
    members: Iterable[str] | None = None,
) -> Levels:
    """Make the levels of a universe.

    Args:
        universe: Its concepts, seen concepts, filters and the number and size of levels.
        taxonomy: WordNet.
        options: The readings.
        members: Rank these concepts, by WNID, in place of those that pass the universe's filters.

    Raises:
        ConfigError: a list is faulty, or fewer concepts are left than the levels need.
    """
    taxonomy = options.graph(taxonomy)
    if members is None:
        candidates = find_candidates(universe, taxonomy, options)
        nodes, left = candidates.nodes, candidates.left
    else:
        nodes, left = taxonomy.nodes(members), {}
    try:
        starts = level_starts(len(nodes), universe.levels.number, universe.levels.size)
    except ConfigError as error:
        steps = ", ".join(f"{name} {count}" for name, count in left.items())
        raise ConfigError(f"{error}; left after each filter: {steps}" if left else str(error)) from error
    ranked = rank_concepts(universe, taxonomy, nodes, options)
    level_at = {
        start + place: level for level, start in enumerate(starts, start=1) for place in range(universe.levels.size)
    }
    return Levels(tuple(replace(placed, level=level_at.get(place)) for place, placed in enumerate(ranked)))


def level_starts(concepts: int, number: int, size: int) -> list[int]:
    """Return where each level begins in the ranking, from 0.

    The first level begins at the very top and the last ends at the very bottom; what is to spare lies in gaps between
    them, as even as can be, the larger gaps last (the published gaps are 36, 36, 37 and 37). One level takes the top.

    Raises:
        ConfigError: there are fewer concepts than the levels need.
    """
    spare = concepts - number * size
    if spare < 0:
        raise ConfigError(f"{concepts} concepts are too few for {number} levels of {size}")
    gaps = number - 1
    each, larger = divmod(spare, gaps) if gaps else (0, 0)
    return [level * (size + each) + max(0, level - (gaps - larger)) for level in range(number)]


def rank_concepts(universe: Universe, taxonomy: Taxonomy, nodes: Nodes, options: LevelOptions) -> list[Placed]:
    """Return concepts by falling similarity to the nearest seen one; ties, to 12 decimals, by WNID. No levels yet."""
    seen = np.sort(taxonomy.nodes(universe.seen_concepts(options.seen)))
    similarity, place = most_similar(comparison(universe, taxonomy, seen, options), nodes)
    counts = universe.image_counts()
    wnids = [taxonomy.wnid(node) for node in nodes.tolist()]
    placed = [
        Placed(None, wnid, taxonomy.names[node], value, taxonomy.wnid(nearest), counts.get(wnid))
        for wnid, node, value, nearest in zip(
            wnids, nodes.tolist(), similarity.tolist(), seen[place].tolist(), strict=True
        )
    ]
    return sorted(placed, key=_order)


def _order(placed: Placed) -> tuple[float, str]:
    return -round(placed.similarity, 12), placed.wnid


def comparison(universe: Universe, taxonomy: Taxonomy, b: Nodes, options: LevelOptions) -> Compare:
    """Prepare the comparison of any concepts with the concepts ``b``, by the options and in the universe's graph.

    The taxonomy is that of ``options.graph``.
    """
    if options.vectors is not None:
        return cosine_with(taxonomy, b, options.vectors)
    counted = [read_table(universe.concepts), universe.seen_concepts(options.seen)]
    counted += [read_table(path) for path in universe.counted_with]
    ic = information_content(taxonomy, np.concatenate([taxonomy.nodes(wnids) for wnids in counted]), options.count)
    return compare_with(taxonomy, b, ic, options.measure, options.lcs)


def published_levels(universe: Universe, taxonomy: Taxonomy, options: LevelOptions = DEFAULT_OPTIONS) -> Levels:
    """Return the canonical levels, with the similarities of their file or, where it has none, by the options.

    In the second case what passes the universe's filters but is in no level comes along, as lying between levels.

    Raises:
        ConfigError: the universe has no published levels, or their file is faulty.
    """
    file, table = _published(universe)
    level_of = {wnid: whole_number(file, cells, "level") if cells["level"] else None for wnid, cells in table.items()}
    if "similarity" in next(iter(table.values())):
        table = read_table(file, ("nearest_seen",))
        counts = universe.image_counts()
        placed = [
            Placed(
                level=level_of[wnid],
                wnid=wnid,
                name=taxonomy.names[node],
                similarity=real_number(file, cells, "similarity"),
                nearest_seen=cells["nearest_seen"],
                images=counts.get(wnid),
            )
            for (wnid, cells), node in zip(table.items(), taxonomy.nodes(table), strict=True)
        ]
        return Levels(tuple(sorted(placed, key=_order)))
    taxonomy = options.graph(taxonomy)
    nodes = np.union1d(find_candidates(universe, taxonomy, options).nodes, taxonomy.nodes(table))
    ranked = rank_concepts(universe, taxonomy, nodes, options)
    return Levels(tuple(replace(placed, level=level_of.get(placed.wnid)) for placed in ranked))


def agreement(levels: Levels, universe: Universe) -> dict[int, int]:
    """Return for each published level how many of its concepts the given levels have in the same level."""
    published, ours = published_concepts(universe), levels.concepts()
    return {level: len({*wnids} & {*ours.get(level, ())}) for level, wnids in published.items()}


def published_concepts(universe: Universe) -> dict[int, tuple[str, ...]]:
    """Return the WNIDs of each canonical level, sorted; reads no WordNet.

    Raises:
        ConfigError: the universe has no published levels.
    """
    file, table = _published(universe)
    rule = universe.levels
    found: dict[int, list[str]] = {level: [] for level in range(1, rule.number + 1)}
    for wnid, cells in table.items():
        if cells["level"]:
            found.setdefault(whole_number(file, cells, "level"), []).append(wnid)
    for level, wnids in found.items():
        expected = rule.size if level in range(1, rule.number + 1) else 0
        if len(wnids) != expected:
            raise ConfigError(f"{file}: level {level} has {len(wnids)} concepts, expected {expected}")
    return {level: tuple(sorted(wnids)) for level, wnids in sorted(found.items())}


def _published(universe: Universe) -> tuple[Path, Table]:
    if universe.levels.published is None:
        raise ConfigError(f"universe {universe.name} has no published levels; derive them")
    return universe.levels.published, read_table(universe.levels.published, ("level",))


def split_concepts(
    universe: Universe, options: LevelOptions, source: Literal["published", "derived"], load: Callable[[], Taxonomy]
) -> dict[str, tuple[str, ...]]:
    """Return the WNIDs of every split, sorted: a concept's place is its class index.

    Args:
        universe: The universe; one without published levels has them derived.
        options: The readings, for derived levels.
        source: Whether the published levels are taken, where there are any.
        load: Gives WordNet; called only where levels are derived.

    Raises:
        ConfigError: an option was changed that published levels do not follow, or a list is faulty.
    """
    if source == "published" and universe.levels.published is not None:
        changed = [field.name for field in fields(options) if getattr(options, field.name) != field.default]
        if changed:
            raise ConfigError(f"{', '.join(changed)}: published levels do not follow this option; add levels=derived")
        levels = published_concepts(universe)
    else:
        levels = derive_levels(universe, load(), options).concepts()
    return dict(zip(universe.splits, (universe.probed_seen_concepts(), *levels.values()), strict=True))
