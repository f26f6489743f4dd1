"""The emoji drawings as a zero-shot task: real images and the real WordNet hierarchy, offline, at small scale."""

from pathlib import Path

from harness import data
from harness.images import EncodedImages
from harness.images import open_images
from harness.wordnet.cache import load_taxonomy
from harness.zsl.embeddings import Weight
from harness.zsl.embeddings import hierarchy
from harness.zsl.tables import load_tables
from harness.zsl.task import Task


def load_mini(cache_dir: Path, weight: Weight = "indicator") -> tuple[Task, EncodedImages]:
    """Return the task, with class embeddings from the WordNet hierarchy, and its drawings, in the order of its labels.

    Args:
        cache_dir: Where the arrays of WordNet are kept.
        weight: Of the coordinates, see `hierarchy`.
    """
    taxonomy = load_taxonomy(cache_dir)
    tables = load_tables(
        data.path("zsl/mini"), "mini", lambda names, concepts: hierarchy(taxonomy, names, concepts, weight)
    )
    return tables.task, open_images(data.path("mini/minicog.zip"), tables.images)
