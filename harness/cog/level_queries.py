"""Questions a user asks of concepts: how similar two are, which are nearest to one, levels for lists of their own."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.cog.level_options import LevelOptions
from harness.cog.levels import comparison
from harness.cog.universe import LevelRule
from harness.cog.universe import Universe
from harness.wordnet.taxonomy import Taxonomy
from harness.yamlfile import validate


@dataclass(frozen=True)
class Neighbour:
    """A concept and its similarity to another."""

    wnid: str
    name: str
    similarity: float


def concept_similarity(universe: Universe, taxonomy: Taxonomy, a: str, b: str, options: LevelOptions) -> float:
    """Return the similarity of two concepts, each a WNID or a name such as ``dog.n.01``.

    Raises:
        ConfigError: there is no such concept, or it lies outside the universe's graph.
    """
    return nearest_concepts(universe, taxonomy, a, [b], 1, options)[0].similarity


def nearest_concepts(
    universe: Universe, taxonomy: Taxonomy, concept: str, among: Iterable[str], top: int, options: LevelOptions
) -> list[Neighbour]:
    """Return the concepts most similar to one, the most similar first, ties by WNID.

    Args:
        universe: Where information content is counted.
        taxonomy: WordNet.
        concept: A WNID or a name such as ``dog.n.01``.
        among: The concepts looked at, likewise; the concept itself may be one of them.
        top: How many are returned at most.
        options: Measure and readings.

    Raises:
        ConfigError: there is no such concept, or it lies outside the universe's graph.
    """
    taxonomy = options.graph(taxonomy)
    others = np.unique(taxonomy.nodes(among))
    values = comparison(universe, taxonomy, others, options)(taxonomy.nodes([concept]))[0]
    order = np.argsort(-values.round(12), kind="stable")[:top]
    return [Neighbour(taxonomy.wnid(others[i]), taxonomy.names[others[i]], float(values[i])) for i in order]


def with_lists(
    universe: Universe,
    *,
    seen: Path | None = None,
    concepts: Path | None = None,
    exclude: Path | None = None,
    levels: int | None = None,
    size: int | None = None,
) -> Universe:
    """Return a universe with lists of the user's own in place of its own; None keeps what it has.

    Its published levels go, since they belong to its own lists. With a list of concepts, so do the filters that choose
    among its own concepts: those dropped by hand, excluded subtrees and exclusions, and the least number of images.
    The filters on ancestors of seen concepts and on inner nodes stay.

    Raises:
        ConfigError: a number of levels or a size that makes no levels.
    """
    own = universe.levels
    numbers = {"number": own.number if levels is None else levels, "size": own.size if size is None else size}
    rule = validate(LevelRule, numbers, "levels of your own lists")
    changes: dict[str, object] = {"name": f"{universe.name}-own", "levels": rule}
    changes |= {"seen": {"own": seen}} if seen else {}
    if concepts:
        filters = universe.filters.model_copy(update={"min_images": 0, "drop_subtrees": ()})
        changes |= {"concepts": concepts, "filters": filters, "dropped": {}, "exclusions": None}
    changes |= {"exclusions": exclude} if exclude else {}
    return universe.model_copy(update=changes)
