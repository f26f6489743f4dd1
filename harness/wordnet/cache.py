"""The arrays of the taxonomy on disk: NLTK takes seconds to read WordNet, they take milliseconds."""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from harness import data
from harness.digest import file_digest
from harness.files import write_atomic
from harness.wordnet.graph import AncestorRows
from harness.wordnet.source import read_taxonomy
from harness.wordnet.source import wordnet_reader
from harness.wordnet.taxonomy import Taxonomy

_VERSION = 1
_TEXTS = ("names", "alias_names")
_ROWS = ("start", "ancestor", "distance")
_ARRAYS = ("offsets", "alias_nodes", "child", "parent", "instance", "max_depth", "min_depth")


def load_taxonomy(cache_dir: Path) -> Taxonomy:
    """Return the nouns of WordNet 3.0.

    The first call reads them with NLTK and keeps the arrays under ``cache_dir``, named by the digest of the archive and
    the version of the computation. A file that is damaged is built anew, with a warning.
    """
    archive = data.path("wordnet/wordnet-3.0-nouns.zip")
    path = cache_dir / "wordnet" / f"nouns-{file_digest(archive)[:16]}-v{_VERSION}.npz"
    found = _read(path)
    if found is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Workers that start together wait for the first; without the lock each would do the same work.
        with FileLock(path.with_suffix(".lock")):
            found = _read(path)
            if found is None:
                with wordnet_reader(archive) as reader:
                    found = read_taxonomy(reader)
                write_atomic(path, _packed(found))
    return found


def _packed(taxonomy: Taxonomy) -> bytes:
    texts = {name: np.frombuffer("\n".join(getattr(taxonomy, name)).encode(), dtype=np.uint8) for name in _TEXTS}
    rows = {name: getattr(taxonomy.above, name) for name in _ROWS}
    arrays: dict[str, Any] = texts | rows | {name: getattr(taxonomy, name) for name in _ARRAYS}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    return content + hashlib.sha256(content).digest()  # a reader of .npz ignores what follows the archive


def _read(path: Path) -> Taxonomy | None:
    if not path.is_file():
        return None
    file = path.read_bytes()
    content, digest = file[:-32], file[-32:]
    if hashlib.sha256(content).digest() != digest:
        warnings.warn(f"{path} is damaged and is built anew", stacklevel=3)
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Taxonomy(
            names=tuple(arrays["names"].tobytes().decode().split("\n")),
            alias_names=tuple(arrays["alias_names"].tobytes().decode().split("\n")),
            above=AncestorRows(**{name: arrays[name] for name in _ROWS}),
            **{name: arrays[name] for name in _ARRAYS},
        )
