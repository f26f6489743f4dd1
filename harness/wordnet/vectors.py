"""Cosine similarity of word or description vectors that the user brings in a file."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.errors import ConfigError
from harness.wordnet.similarity import Compare
from harness.wordnet.similarity import FloatArray
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy


def cosine_with(taxonomy: Taxonomy, b: Nodes, file: Path) -> Compare:
    """Prepare the comparison of any concepts with the concepts ``b`` by the cosine of their vectors.

    Args:
        taxonomy: n concepts.
        b: at least one.
        file: ``.npz`` with arrays ``keys``, text [m], and ``vectors``, numbers [m, d]; or text in the form of word2vec
            and GloVe, ``key v1 ... vd`` a line, with or without a first line ``m d``. A key is a WNID or a name such
            as ``dog.n.01``; lines of other keys are passed over.

    Raises:
        ConfigError: the file cannot be read, or a concept has no vector in it, or one without direction (raised by the
            returned function too).
    """
    rows = dict(_read(taxonomy, file))

    def directions(nodes: Nodes) -> FloatArray:
        missing = [f"{taxonomy.wnid(node)} ({taxonomy.names[node]})" for node in nodes if node not in rows]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise ConfigError(f"{file}: no vector of {', '.join(missing[:5])}{more}")
        vectors = np.stack([rows[node] for node in nodes.tolist()])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        faulty = ~(np.isfinite(lengths) & (lengths > 0)).ravel()
        if faulty.any():
            raise ConfigError(f"{file}: the vector of {taxonomy.wnid(nodes[faulty][0])} is zero or not finite")
        directed: FloatArray = vectors / lengths
        return directed

    of_b = directions(b)
    return lambda a: directions(a) @ of_b.T


def _read(taxonomy: Taxonomy, file: Path) -> Iterator[tuple[int, FloatArray]]:
    for key, vector in read_vectors(file):
        node = taxonomy.find(key)
        if node is not None:
            yield node, vector


def read_vectors(file: Path) -> Iterator[tuple[str, FloatArray]]:
    """Read key and vector of every line of a file of either form; see `cosine_with`.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        yield from _npz(file) if file.suffix == ".npz" else _text(file)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{file}: cannot be read as vectors: {error}") from error


def _npz(file: Path) -> Iterator[tuple[str, FloatArray]]:
    with np.load(file, allow_pickle=False) as arrays:
        keys, vectors = arrays["keys"], arrays["vectors"]
    yield from zip(keys.tolist(), vectors.astype(np.float64), strict=True)


def _text(file: Path) -> Iterator[tuple[str, FloatArray]]:
    width = 0
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            key, *numbers = line.split()
            if number == 1 and len(numbers) == 1:
                continue
            width = width or len(numbers)
            if len(numbers) != width:
                raise ValueError(f"line {number} has {len(numbers)} numbers, the lines before {width}")
            yield key, np.array(numbers, dtype=np.float64)
