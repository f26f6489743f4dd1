"""WordNet 3.0 nouns, read by NLTK from the embedded archive."""

import gc
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from harness.wordnet.taxonomy import Taxonomy
from harness.wordnet.taxonomy import build_taxonomy


@contextmanager
def wordnet_reader(archive: Path) -> Iterator[Any]:
    """Give NLTK's ``WordNetCorpusReader`` over the nouns of ``archive``.

    The archive is unpacked into a temporary folder, which stands first on NLTK's data path for as long as the reader is
    used: NLTK opens no file elsewhere.
    """
    # NLTK takes a second to import and is needed only while no arrays are cached.
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    with tempfile.TemporaryDirectory(prefix="wordnet-") as folder:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        nltk.data.path.insert(0, folder)
        try:
            with warnings.catch_warnings():
                # The multilingual data that NLTK misses here say nothing about English nouns.
                warnings.filterwarnings("ignore", message="The multilingual functions are not available")
                reader = WordNetCorpusReader(nltk.data.find("corpora/wordnet"), omw_reader=None)
            yield reader
        finally:
            nltk.data.path.remove(folder)


def read_taxonomy(reader: Any) -> Taxonomy:
    """Return the nouns of an NLTK reader as arrays."""
    with _no_garbage():
        return _read(reader)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep the garbage collector from walking NLTK's growing heap of synsets: a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(reader: Any) -> Taxonomy:
    synsets = list(reader.all_synsets("n"))
    offsets = np.array([synset.offset() for synset in synsets])
    edges = np.array(
        [
            (synset.offset(), parent.offset(), is_instance)
            for synset in synsets
            for is_instance, parents in enumerate((synset.hypernyms(), synset.instance_hypernyms()))
            for parent in parents
        ]
    )
    return build_taxonomy(
        offsets=offsets,
        names=[synset.name() for synset in synsets],
        aliases=_aliases(reader, synsets),
        child=np.searchsorted(offsets, edges[:, 0]),
        parent=np.searchsorted(offsets, edges[:, 1]),
        instance=edges[:, 2].astype(bool),
    )


def _aliases(reader: Any, synsets: list[Any]) -> dict[str, int]:
    """Return the position of every sense name that is not its synset's own: ``domestic_dog.n.01`` of ``dog.n.01``."""
    node_of = {synset.name(): node for node, synset in enumerate(synsets)}
    senses = Counter(lemma for synset in synsets for lemma in {name.lower() for name in synset.lemma_names()})
    every = (f"{lemma}.n.{number:02d}" for lemma, count in senses.items() for number in range(1, count + 1))
    return {name: node_of[reader.synset(name).name()] for name in every if name not in node_of}
