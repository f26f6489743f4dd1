"""Which concepts may be in a level: the filters of ImageNet-CoG (section 3.1), in the order of their counts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.cog.level_options import LevelOptions
from harness.cog.universe import Universe
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.wordnet.graph import BoolArray
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Candidates:
    """The concepts that pass all filters of a universe.

    Attributes:
        nodes: int64 [c], ascending.
        left: how many concepts were left after each filter, by its name, in order.
    """

    nodes: Nodes
    left: Mapping[str, int]


def find_candidates(universe: Universe, taxonomy: Taxonomy, options: LevelOptions) -> Candidates:
    """Filter the concepts of a universe.

    A concept is a leaf if no other that passes the filters on seen concepts and subtrees lies below it, at any depth.
    By ``options.leaf_first`` those with too few images count there too, which is what the published levels show.

    Raises:
        ConfigError: a list cannot be read, does not count images although a least number is asked for, or names a
            concept that WordNet 3.0 does not have.
    """
    counts = universe.image_counts()
    if universe.filters.min_images and not any(counts.values()):
        raise ConfigError(
            f"filters.min_images is {universe.filters.min_images}, but {universe.concepts} has no column "
            f"{universe.images_column!r} with the number of each concept"
        )
    concepts = taxonomy.nodes(counts)
    seen = taxonomy.nodes(universe.seen_concepts(options.seen))
    gone = seen if universe.filters.ancestors_of_seen else taxonomy.closure(seen)
    if universe.never_unseen:
        gone = np.concatenate([gone, taxonomy.nodes(read_table(universe.never_unseen))])
    enough = np.array([images is None or images >= universe.filters.min_images for images in counts.values()])
    unseen = ~_among(taxonomy, concepts, gone)
    wanted = ~_among(taxonomy, concepts, taxonomy.below(taxonomy.nodes(universe.filters.drop_subtrees)))
    eligible = unseen & wanted if options.leaf_first else unseen & wanted & enough
    leaf = universe.filters.inner_nodes | _among(taxonomy, concepts, taxonomy.leaves(concepts[eligible]))
    kept = ~_among(taxonomy, concepts, taxonomy.nodes(excluded(universe, options)))
    left, passed = {"all": concepts.size}, np.ones_like(enough)
    steps = {"images": enough, "unseen": unseen, "subtrees": wanted, "leaves": leaf, "exclusions": kept}
    for name, mask in steps.items():
        passed &= mask
        left[name] = int(passed.sum())
    return Candidates(np.sort(concepts[passed]), left)


def excluded(universe: Universe, options: LevelOptions) -> list[str]:
    """Return the WNIDs of the universe's exclusion list that the options ask for."""
    if universe.exclusions is None or options.exclusions == "none":
        return []
    table = read_table(universe.exclusions)
    return [wnid for wnid, cells in table.items() if options.exclusions == "all" or cells.get("certain", "1") == "1"]


def _among(taxonomy: Taxonomy, concepts: Nodes, others: Nodes) -> BoolArray:
    mask = np.zeros(len(taxonomy), dtype=bool)
    mask[others] = True
    found: BoolArray = mask[concepts]
    return found
