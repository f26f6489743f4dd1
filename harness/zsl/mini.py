"""The emoji drawings as a zero-shot task: real images and the real WordNet hierarchy, offline, at small scale."""

from functools import partial
from pathlib import Path

from harness import data
from harness.images import EncodedImages
from harness.images import open_images
from harness.wordnet.cache import load_taxonomy
from harness.zsl.embeddings import hierarchy
from harness.zsl.tables import Embed
from harness.zsl.tables import load_tables
from harness.zsl.task import Task


def load_mini(cache_dir: Path, embed: Embed | None = None) -> tuple[Task, EncodedImages]:
    """Return the task and its drawings, in the order of its labels.

    Args:
        cache_dir: Where the arrays of WordNet are kept.
        embed: Makes the class embeddings; by default the WordNet hierarchy.
    """
    if embed is None:
        taxonomy = load_taxonomy(cache_dir)
        embed = partial(hierarchy, taxonomy)
    tables = load_tables(data.path("zsl/mini"), "mini", embed)
    return tables.task, open_images(data.path("mini/minicog.zip"), tables.images)
