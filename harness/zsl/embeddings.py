"""Class embeddings: attributes, vectors from files and the WordNet hierarchy, always as rows of unit length."""

import csv
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from typing import TypeAlias

import numpy as np

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.wordnet.similarity import information_content
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy
from harness.wordnet.vectors import read_vectors
from harness.zsl.names import plain_name
from harness.zsl.names import some
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats

Weight: TypeAlias = Literal["indicator", "ic"]

_TOLERANCE = 1e-6
"""Published unit columns are exact to 2e-16; copies saved in float32 are to 1e-7."""


def published_attributes(att: Floats, original: Floats, names: Sequence[str], where: str) -> ClassEmbeddings:
    """Return ``att`` of the published files, checked against ``original_att``, whose columns it has at unit length.

    Args:
        att: [a, C], a column per class.
        original: [a, C].
        names: Of the C classes.
        where: The file, for messages.

    Raises:
        CorruptInput: shapes, lengths or the order of the columns do not agree.
    """
    for key, values in (("att", att), ("original_att", original)):
        if values.shape != (len(att), len(names)):
            shape = " x ".join(map(str, values.shape))
            turned = values.shape[0] == len(names)
            hint = " It is turned by 90 degrees: classes are columns." if turned else ""
            raise CorruptInput(f"{where}: {key} is {shape}, expected attributes x {len(names)} classes.{hint}")
    found = _unit(names, original.T, f"{where}: original_att")
    apart = np.abs(found - att.T).max(axis=1)
    if not (apart <= _TOLERANCE).all():
        row = int(np.argmax(~(apart <= _TOLERANCE)))
        length = float(np.linalg.norm(att[:, row]))
        reason = "is not of unit length" if abs(length - 1) > _TOLERANCE else "is not that of original_att"
        raise CorruptInput(
            f"{where}: column {row + 1} of att ({names[row]}) {reason} (length {length:.6g}): att has to be "
            "original_att divided by the length of each column, in the same order of classes"
        )
    return ClassEmbeddings(tuple(names), found, np.asarray(original.T, dtype=np.float64), "att")


def file_embeddings(file: Path, names: Sequence[str]) -> ClassEmbeddings:
    """Read class embeddings of the user's own.

    Args:
        file: ``.npy`` [C, a] with rows in the order of ``names``; or ``.csv`` with a first line ``class,...`` and then
            a line per class, its name first, in any order.
        names: Of the C classes.

    Raises:
        ConfigError: the file cannot be read, or a class has no vector in it, or one without direction.
    """
    if file.suffix == ".npy":
        values = _npy(file, len(names))
    elif file.suffix == ".csv":
        values = _csv(file, names)
    else:
        raise ConfigError(f"{file}: expected class embeddings as .csv or .npy")
    try:
        return ClassEmbeddings(tuple(names), _unit(names, values, str(file)), values, file.stem)
    except CorruptInput as error:
        raise ConfigError(str(error)) from error


def word_vectors(file: Path, names: Sequence[str], terms: Sequence[str] | None = None) -> ClassEmbeddings:
    """Look up the vectors of class names in a file of word vectors (word2vec or GloVe as text, or ``.npz``).

    Letter case and the marks between words do not count. A name of several words that has no vector of its own gets
    the mean of the unit vectors of its words.

    Args:
        file: The vectors.
        names: Of the C classes.
        terms: What to look up for each class; its name by default.

    Raises:
        ConfigError: the file cannot be read, or a class or one of its words has no vector in it.
    """
    words = {name: plain_name(term) for name, term in zip(names, terms or names, strict=True)}
    wanted = {part for name in words.values() for part in (name, *name.split())}
    found: dict[str, Floats] = {}
    for key, vector in read_vectors(file):
        plain = plain_name(key)
        length = float(np.linalg.norm(vector))
        if plain in wanted and plain not in found and np.isfinite(length) and length > 0:
            found[plain] = vector / length
    absent = [name for name, plain in words.items() if not all(part in found for part in _parts(plain, found))]
    if absent:
        raise ConfigError(f"{file}: no vector of {some(absent)}, {len(absent)} of {len(names)} classes")
    values = np.stack([np.mean([found[part] for part in _parts(plain, found)], axis=0) for plain in words.values()])
    return ClassEmbeddings(tuple(names), _unit(names, values, str(file)), None, file.stem)


def hierarchy(
    taxonomy: Taxonomy, names: Sequence[str], concepts: Sequence[str], weight: Weight = "indicator"
) -> ClassEmbeddings:
    """Describe classes by what lies above them in WordNet.

    A class has a coordinate for every concept that is one of the classes or above one: ``indicator`` 1 where the class
    is it or below it, ``ic`` the root of its information content there, so that inner products add up the information
    that two classes share. These vectors [C, concepts] are projected to the space they span, which keeps all inner
    products: the rows of the Cholesky factor of their Gram matrix, unique up to rounding.

    Args:
        taxonomy: The nouns of WordNet.
        names: Of the C classes.
        concepts: What each class is: a WNID or a name such as ``dog.n.01``.
        weight: Of the coordinates.

    Returns:
        Embeddings with ``original`` [C, concepts], the vectors before the projection: their non-zero entries are
        binary attributes.

    Raises:
        ConfigError: WordNet does not have a concept, or two classes are the same one.
    """
    nodes = taxonomy.nodes(concepts)
    _, first, counts = np.unique(nodes, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = concepts[int(first[counts > 1][0])]
        raise ConfigError(f"classes are the same concept of WordNet: {twice} stands twice")
    above = _indicator(taxonomy, nodes)
    if weight == "ic":
        above = above * np.sqrt(information_content(taxonomy, nodes)[taxonomy.closure(nodes)])
    directions = _unit(names, above, "WordNet hierarchy")
    projected = np.asarray(np.linalg.cholesky(directions @ directions.T), dtype=np.float64)
    return ClassEmbeddings(tuple(names), projected, above, "wordnet" if weight == "indicator" else "wordnet-ic")


def _indicator(taxonomy: Taxonomy, nodes: Nodes) -> Floats:
    """Return float64 [nodes, closure]: 1 where the class is the concept or below it."""
    closure = taxonomy.closure(nodes)
    positions, begins = taxonomy.above.positions(nodes)
    row = np.repeat(np.arange(nodes.size), np.diff(begins, append=positions.size))
    above = np.zeros((nodes.size, closure.size))
    above[row, np.searchsorted(closure, taxonomy.above.ancestor[positions])] = 1
    return above


def _parts(plain: str, found: Iterable[str]) -> list[str]:
    return [plain] if plain in found else plain.split()


def _unit(names: Sequence[str], values: Floats, where: str) -> Floats:
    lengths = np.linalg.norm(np.asarray(values, dtype=np.float64), axis=1, keepdims=True)
    faulty = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)).ravel()).tolist()
    if faulty:
        named = some([names[row] for row in faulty])
        raise CorruptInput(f"{where}: class {faulty[0] + 1} has no embedding, it is zero or not finite: {named}")
    return np.asarray(values / lengths, dtype=np.float64)


def _npy(file: Path, count: int) -> Floats:
    try:
        values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    if values.ndim != 2 or len(values) != count or values.dtype.kind not in "iuf":
        shape = " x ".join(map(str, values.shape))
        raise ConfigError(
            f"{file}: {values.dtype} of shape {shape}, expected numbers with a row for each of {count} classes"
        )
    return np.asarray(values, dtype=np.float64)


def _csv(file: Path, names: Sequence[str]) -> Floats:
    rows: dict[str, list[float]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines)
            width = len(next(reader, []))
            for cells in reader:
                if len(cells) != width or cells[0] in rows:
                    fault = (
                        "stands twice" if cells and cells[0] in rows else f"has {len(cells)} cells, expected {width}"
                    )
                    raise ConfigError(f"{file}:{reader.line_num}: {cells[0] if cells else 'an empty line'} {fault}")
                rows[cells[0]] = [float(cell) for cell in cells[1:]]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    if absent := [name for name in names if name not in rows]:
        raise ConfigError(f"{file}: no row of class {some(absent)}")
    return np.array([rows[name] for name in names], dtype=np.float64)
