"""Unseen classes that the backbone was trained on: accuracy on them says little (section 4.2 of the paper)."""

import re
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from typing import TypeAlias

import numpy as np

from harness import data
from harness.errors import ConfigError
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy
from harness.zsl.names import plain_name

Relation: TypeAlias = Literal["same", "kind", "below"]

COUNTED: tuple[Relation, ...] = ("same", "kind")
"""The relations by which a class counts as overlapping."""

_VIEW = re.compile(r" (indoor|outdoor|interior|exterior)$")
"""SUN parts some scenes by where the camera stands: ``tent/outdoor``."""
_WNID = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class Overlap:
    """An unseen class and what of the pre-training classes it overlaps with.

    Attributes:
        unseen: The class.
        pretraining: The pre-training class: WNID or name.
        relation: ``same``: WNID or name are the same. ``kind``: the pre-training class is a kind of the unseen one, by
            its name (``coffee mug`` of ``mug``) or by WordNet. ``below``: the unseen class is a kind of a pre-training
            class by WordNet, as a supermarket of a grocery store; fine-grained data sets are full of these, and the
            paper counts no other, so reports mark them and `COUNTED` leaves them out.
    """

    unseen: str
    pretraining: str
    relation: Relation


def imagenet1k() -> tuple[str, ...]:
    """Return the WNIDs of ImageNet-1K, what most backbones were trained on."""
    return tuple(data.path("cog/imagenet1k_wnids.txt").read_text(encoding="utf-8").split())


def read_pretraining(path: Path) -> tuple[str, ...]:
    """Read a list of pre-training classes: a WNID or a name a line.

    Raises:
        ConfigError: it cannot be read, or is empty.
    """
    try:
        classes = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not classes:
        raise ConfigError(f"{path}: no class in it")
    return classes


def overlaps(taxonomy: Taxonomy, unseen: Sequence[str], pretraining: Iterable[str]) -> list[Overlap]:
    """Find unseen classes among pre-training classes, each once, with its closest relation.

    Unseen classes that are WNIDs, or names such as ``dog.n.01``, are compared by their place in WordNet; others by name
    with every name of a pre-training class, blind to letter case and to the marks between words, and where no name fits
    by the place of their first sense.

    Args:
        taxonomy: The nouns of WordNet.
        unseen: The classes, by WNID or name.
        pretraining: WNIDs or names.

    Returns:
        Overlaps in the order of ``unseen``.
    """
    known = _Known(taxonomy, tuple(pretraining))
    found = (known.overlap(name) for name in unseen)
    return [overlap for overlap in found if overlap is not None]


class _Known:
    """Pre-training classes, by name and by place in WordNet."""

    def __init__(self, taxonomy: Taxonomy, classes: Sequence[str]) -> None:
        self._taxonomy = taxonomy
        nodes = {name: taxonomy.find(name) for name in classes}
        self._by_node = {node: name for name, node in nodes.items() if node is not None}
        self._by_name: dict[str, str] = {plain_name(name): name for name, node in nodes.items() if node is None}
        names = [*enumerate(taxonomy.names), *zip(taxonomy.alias_nodes.tolist(), taxonomy.alias_names, strict=True)]
        for node, name in names:
            if node in self._by_node:
                self._by_name.setdefault(plain_name(name.rsplit(".", 2)[0]), self._by_node[node])

    def overlap(self, unseen: str) -> Overlap | None:
        node = self._taxonomy.find(unseen)
        if node is not None and _placed(unseen):
            return self._by_place(unseen, node)
        name = _VIEW.sub("", plain_name(unseen))
        if name in self._by_name:
            return Overlap(unseen, self._by_name[name], "same")
        kinds = sorted(known for known in self._by_name if known.endswith(f" {name}"))
        if kinds:
            return Overlap(unseen, self._by_name[kinds[0]], "kind")
        first = self._taxonomy.find(f"{name}.n.01")
        return None if first is None else self._below(unseen, first)

    def _by_place(self, unseen: str, node: int) -> Overlap | None:
        if node in self._by_node:
            return Overlap(unseen, self._by_node[node], "same")
        taxonomy = self._taxonomy
        kinds = sorted(
            self._by_node[below] for below in taxonomy.below(_nodes(node)).tolist() if below in self._by_node
        )
        return Overlap(unseen, kinds[0], "kind") if kinds else self._below(unseen, node)

    def _below(self, unseen: str, node: int) -> Overlap | None:
        above = self._taxonomy.closure(_nodes(node)).tolist()
        kinds = [self._by_node[each] for each in above if each in self._by_node]
        return Overlap(unseen, kinds[0], "below") if kinds else None


def _placed(name: str) -> bool:
    return bool(_WNID.fullmatch(name)) or ".n." in name


def _nodes(node: int) -> Nodes:
    return np.array([node], dtype=np.int64)
