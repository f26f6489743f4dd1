"""Data sets by name: the published ones, the mini one and folders of the user's own."""

import csv
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigError
from harness.errors import nearest
from harness.images import ImageSet
from harness.store import Store
from harness.wordnet.cache import load_taxonomy
from harness.zsl.embeddings import Weight
from harness.zsl.embeddings import file_embeddings
from harness.zsl.embeddings import hierarchy
from harness.zsl.embeddings import word_vectors
from harness.zsl.mini import load_mini
from harness.zsl.names import some
from harness.zsl.pictures import published_images
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.rows import FeatureRows
from harness.zsl.tables import Embed
from harness.zsl.tables import load_tables
from harness.zsl.tables import table_images
from harness.zsl.task import SplitName
from harness.zsl.task import Task
from harness.zsl.task import with_embeddings
from harness.zsl.xlsa17 import NAMES
from harness.zsl.xlsa17 import Folders
from harness.zsl.xlsa17 import find_folders
from harness.zsl.xlsa17 import load_task
from harness.zsl.xlsa17 import res101

MINI = "mini"
HIERARCHIES: Mapping[str, Weight] = {"wordnet": "indicator", "wordnet-ic": "ic"}


@dataclass(frozen=True, eq=False)
class Source:
    """A data set before it has features.

    Attributes:
        task: Classes, side information and splits.
        images: Finds the images, in the order of the task's labels. Raises MissingInput.
        published: Opens the published features; None where there are none.
    """

    task: Task
    images: Callable[[], ImageSet]
    published: Callable[[Store], FeatureRows] | None


def open_source(
    name: str, split: SplitName, data_root: Path | None, cache_dir: Path, embedding: str | None = None
) -> Source:
    """Open a data set.

    Args:
        name: SUN, CUB, AWA1, AWA2, APY, mini, or a folder of plain files (below the data root where it is relative).
        split: PS or SS; only published data sets have both.
        data_root: Where data lies.
        cache_dir: Where the arrays of WordNet are kept.
        embedding: None for the data set's own; ``wordnet`` or ``wordnet-ic``; or a file: ``.csv`` and ``.npy`` hold a
            vector per class, any other word vectors.

    Raises:
        ConfigError: there is no such data set, split or embedding.
        MissingInput: its files are not there.
        CorruptInput: its files are damaged or contradict each other.
    """
    embed = None if embedding is None else _embedder(embedding, cache_dir)
    if name in NAMES:
        return _published(find_folders(data_root, name), name, split, embed)
    if split != "PS":
        raise ConfigError(f"{name}: only {', '.join(NAMES)} have a standard split")
    if name == MINI:
        task, drawings = load_mini(cache_dir, embed)
        return Source(task, lambda: drawings, None)
    folder = (data_root or Path()) / Path(name).expanduser()
    if not folder.is_dir():
        known = [*NAMES, MINI]
        raise ConfigError(f"{name}: neither one of {', '.join(known)} nor a folder ({folder}).{nearest(name, known)}")
    tables = load_tables(folder, folder.name, embed)
    return Source(tables.task, lambda: table_images(folder, tables), None)


def _published(folders: Folders, name: str, split: SplitName, embed: Embed | None) -> Source:
    task = load_task(folders, name, split)
    if embed is not None:
        task = with_embeddings(task, embed(task.names, _concepts(folders.proposed / "concepts.csv", task.names)))
    return Source(task, lambda: published_images(folders, task), lambda store: res101(store, folders))


def _embedder(embedding: str, cache_dir: Path) -> Embed:
    if embedding in HIERARCHIES:
        weight = HIERARCHIES[embedding]
        return lambda names, concepts: hierarchy(load_taxonomy(cache_dir), names, concepts, weight)
    path = Path(embedding).expanduser()
    if not path.is_file():
        hint = nearest(embedding, HIERARCHIES)
        raise ConfigError(f"embedding {embedding}: neither one of {', '.join(HIERARCHIES)} nor a file.{hint}")

    def from_file(names: Sequence[str], concepts: Sequence[str]) -> ClassEmbeddings:
        if path.suffix in {".csv", ".npy"}:
            return file_embeddings(path, names)
        return word_vectors(path, names, [concept.partition(".n.")[0] for concept in concepts])

    return from_file


def _concepts(path: Path, names: Sequence[str]) -> Sequence[str]:
    """Read what the classes of a published data set are in WordNet, a line ``class,concept`` each, where it is told."""
    if not path.is_file():
        return names
    with path.open(encoding="utf-8", newline="") as lines:
        concepts = {row[0]: row[1] for row in csv.reader(lines) if len(row) == 2}
    if absent := [name for name in names if name not in concepts]:
        raise ConfigError(f"{path}: no concept of {some(absent)}")
    return [concepts[name] for name in names]
