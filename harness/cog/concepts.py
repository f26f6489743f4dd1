"""The concepts of a run: its universe, levels and the images of each split. What the fixture ``levels`` gives."""

from functools import cache
from functools import cached_property
from pathlib import Path
from statistics import fmean

from harness.cog.level_options import LevelOptions
from harness.cog.levels import Levels
from harness.cog.levels import derive_levels
from harness.cog.levels import published_levels
from harness.cog.levels import split_concepts
from harness.cog.rankings import Ranking
from harness.cog.splits import Counts
from harness.cog.splits import Split
from harness.cog.splits import load_split
from harness.cog.splits import require_images
from harness.cog.universe import Images
from harness.cog.universe import Universe
from harness.errors import ConfigError
from harness.errors import nearest
from harness.suite import LEVEL_OPTIONS
from harness.suite import CogProtocol
from harness.wordnet.cache import load_taxonomy


class ConceptLevels:
    """Seen concepts and levels of unseen ones.

    Args:
        universe: Its concepts and where their images are.
        protocol: Which reading of levels and probes the run follows.
        data_root: Where images lie that are not embedded.
        cache_dir: Where the arrays of WordNet are kept.
    """

    def __init__(self, universe: Universe, protocol: CogProtocol, data_root: Path | None, cache_dir: Path) -> None:
        self.universe = universe
        self.protocol = protocol
        self._data_root = data_root
        self._cache_dir = cache_dir
        self.split = cache(self._split)

    @cached_property
    def levels(self) -> Levels:
        """The published levels, or those that the protocol derives."""
        return levels_of(self.universe, self.protocol, self._cache_dir)

    @cached_property
    def _concepts(self) -> dict[str, tuple[str, ...]]:
        options = level_options(self.protocol)
        return split_concepts(self.universe, options, self.protocol.levels, lambda: load_taxonomy(self._cache_dir))

    def require(self, split: str) -> None:
        """Check that the place of a split's images is there, without looking into it.

        Raises:
            ConfigError: the universe has no such split.
            MissingInput: it is not.
        """
        require_images(self._images(split), self._data_root)

    def concepts(self, split: str) -> tuple[str, ...]:
        """Return the WNIDs of a split, sorted; reads WordNet only where levels are derived.

        Raises:
            ConfigError: the universe has no such split.
        """
        self._level(split)
        return self._concepts[split]

    def counts(self, split: str) -> Counts:
        """Return how many images the concepts of a split should have, by WNID, as far as the universe's list says it.

        Raises:
            ConfigError: the universe has no such split, or its list is faulty.
        """
        # The counts of the universe's concepts say nothing of other images.
        return self.universe.image_counts() if self._images(split) is self.universe.images else {}

    def mean_similarity(self, split: str) -> float | None:
        """Return the mean similarity of a level's concepts to the nearest seen one; None for the seen split.

        Raises:
            ConfigError: the universe has no such split.
        """
        level = self._level(split)
        return fmean(placed.similarity for placed in self.levels.ranked if placed.level == level) if level else None

    def _level(self, split: str) -> int:
        splits = self.universe.splits
        if split not in splits:
            raise ConfigError(
                f"{split}: universe {self.universe.name} has {', '.join(splits)}.{nearest(split, splits)}"
            )
        return splits.index(split)

    def _images(self, split: str) -> Images:
        own = None if self._level(split) else self.universe.seen_split.images
        return own or self.universe.images

    def _split(self, name: str) -> Split:
        """Return the images of a split, found once.

        Raises:
            ConfigError: the universe has no such split.
            MissingInput: images are not there.
        """
        return load_split(name, self.concepts(name), self._images(name), self._data_root, self.counts(name))


def levels_of(universe: Universe, protocol: CogProtocol, cache_dir: Path) -> Levels:
    """Return the levels of a universe under a protocol: published where they are and are wanted, else derived."""
    taxonomy = load_taxonomy(cache_dir)
    if protocol.levels == "published" and universe.levels.published is not None:
        return published_levels(universe, taxonomy)
    return derive_levels(universe, taxonomy, level_options(protocol))


def level_options(protocol: CogProtocol) -> LevelOptions:
    """Return the part of a protocol that says how levels are derived."""
    options = {name: getattr(protocol, name) for name in LEVEL_OPTIONS}
    if protocol.vectors is not None:
        options["vectors"] = Path(protocol.vectors)
    return LevelOptions(**options)


def similarities(levels: Levels) -> Ranking:
    """Return (rank from 1, similarity to the nearest seen concept, level or None in a gap) of every unseen concept."""
    return [(rank, placed.similarity, placed.level) for rank, placed in enumerate(levels.ranked, start=1)]
