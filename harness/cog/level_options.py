"""The readings of how levels are made; the defaults are those that reproduce the published levels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from typing import get_args

from harness.errors import ConfigError
from harness.errors import nearest
from harness.wordnet.similarity import MEASURES
from harness.wordnet.similarity import Count
from harness.wordnet.similarity import Lcs
from harness.wordnet.taxonomy import Taxonomy

Exclusions = Literal["all", "certain", "none"]
_WORDS = {"lcs": get_args(Lcs), "count": get_args(Count), "exclusions": get_args(Exclusions)}


@dataclass(frozen=True)
class LevelOptions:
    """How concepts are compared and filtered.

    Raises:
        ConfigError: a value is not one of those admitted, or vectors are given to a measure that has no use for them.
    """

    measure: str = "lin"
    """One of `MEASURES`, or ``cosine`` of the vectors in a file."""
    lcs: Lcs = "deepest"
    """Lowest common subsumer: see `harness.wordnet.similarity.compare_with`."""
    count: Count = "closure"
    """What is counted in p(c): see `harness.wordnet.similarity.information_content`."""
    instance_edges: bool = True
    """Whether ``@i`` edges belong to the graph, beside ``@``."""
    leaf_first: bool = True
    """Leaves are found before concepts with too few images are dropped."""
    exclusions: Exclusions = "all"
    """Of the universe's list: all, those marked certain, or none."""
    seen: str | None = None
    """Which of the universe's lists of seen concepts levels are ranked against; None: its default."""
    vectors: Path | None = None
    """The file of ``cosine``: see `harness.wordnet.vectors.cosine_with`."""

    def __post_init__(self) -> None:
        for name, words in {**_WORDS, "measure": (*MEASURES, "cosine")}.items():
            value = getattr(self, name)
            if value not in words:
                raise ConfigError(f"{name}={value}: expected one of {', '.join(words)}.{nearest(value, words)}")
        if (self.measure == "cosine") != (self.vectors is not None):
            raise ConfigError("a file of vectors goes with measure=cosine, and measure=cosine with a file of vectors")

    def graph(self, taxonomy: Taxonomy) -> Taxonomy:
        """Return the taxonomy over the edges that belong to the graph."""
        return taxonomy if self.instance_edges else taxonomy.without_instance_edges()


DEFAULT_OPTIONS = LevelOptions()
