"""A graph of concepts as arrays: look-up by WNID or name, closures, descendants and counts."""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from harness.errors import ConfigError
from harness.errors import nearest
from harness.wordnet.graph import AncestorRows
from harness.wordnet.graph import BoolArray
from harness.wordnet.graph import IntArray
from harness.wordnet.graph import ancestor_rows
from harness.wordnet.graph import longest_depth
from harness.wordnet.graph import shortest_depth

Nodes: TypeAlias = IntArray
"""Positions of concepts in a taxonomy, int64."""

_WNID = re.compile(r"n(\d{8})")


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """Concepts in the order of their WordNet offsets, and the hypernym edges between them.

    Attributes:
        offsets: int32 [n], ascending; the WNID is ``n`` and eight digits of it.
        names: the synset names, such as ``dog.n.01`` [n].
        alias_names: every further sense name, such as ``domestic_dog.n.01`` [a].
        alias_nodes: int32 [a], whose name it is.
        child: int32 [e], lower end of each edge.
        parent: int32 [e], upper end.
        instance: bool [e], whether the edge is WordNet's ``@i``, as from ``rhine.n.01`` to ``river.n.01``.
        above: every node's ancestors over all these edges.
        max_depth: int16 [n], edges on the longest way to a root: ``Synset.max_depth()`` of NLTK.
        min_depth: int16 [n], edges on the shortest way: ``Synset.min_depth()``.
    """

    offsets: IntArray
    names: tuple[str, ...]
    alias_names: tuple[str, ...]
    alias_nodes: IntArray
    child: IntArray
    parent: IntArray
    instance: BoolArray
    above: AncestorRows
    max_depth: IntArray
    min_depth: IntArray

    def __len__(self) -> int:
        return len(self.names)

    def wnid(self, node: int) -> str:
        """Return the WNID of a node."""
        return f"n{self.offsets[node]:08d}"

    def find(self, concept: str) -> int | None:
        """Return the position of a concept given by WNID or a name such as ``dog.n.01``; None where there is none."""
        wnid = _WNID.fullmatch(concept)
        if wnid:
            return self._by_offset.get(int(wnid[1]))
        return self._by_name.get(concept.lower().replace(" ", "_"))

    def nodes(self, concepts: Iterable[str]) -> Nodes:
        """Return the positions of concepts, int64 [concepts]; see `find`.

        Raises:
            ConfigError: WordNet 3.0 has no such noun; says the nearest name.
        """
        return np.array([self._node(concept) for concept in concepts], dtype=np.int64)

    def _node(self, concept: str) -> int:
        node = self.find(concept)
        if node is None:
            raise ConfigError(self._unknown(concept))
        return node

    @cached_property
    def _by_offset(self) -> Mapping[int, int]:
        return {offset: node for node, offset in enumerate(self.offsets.tolist())}

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        aliases = zip(self.alias_names, self.alias_nodes.tolist(), strict=True)
        return {**dict(aliases), **{name: node for node, name in enumerate(self.names)}}

    def _unknown(self, concept: str) -> str:
        if _WNID.fullmatch(concept):
            return f"{concept}: no noun of WordNet 3.0 has this offset (offsets of other versions differ)"
        word = concept.lower().replace(" ", "_").split(".")[0]
        senses = sorted(name for name in self._by_name if name.startswith(f"{word}.n."))
        if senses:
            return f"{concept}: expected a WNID or one of its senses: {', '.join(senses)}"
        alike = (name for name in self._by_name if name[:1] == word[:1])
        return (
            f"{concept}: no noun of WordNet 3.0; expected a WNID or a name such as dog.n.01.{nearest(concept, alike)}"
        )

    def closure(self, nodes: Nodes) -> Nodes:
        """Return the nodes and all their ancestors, ascending, each once."""
        return np.flatnonzero(self.count_below(nodes))

    def below(self, roots: Nodes) -> Nodes:
        """Return the nodes and all their descendants, ascending, each once."""
        is_root = np.zeros(len(self), dtype=bool)
        is_root[roots] = True
        return np.flatnonzero(np.logical_or.reduceat(is_root[self.above.ancestor], self.above.start[:-1]))

    def count_below(self, nodes: Nodes) -> IntArray:
        """Return for every node of the taxonomy how many of ``nodes`` are it or below it, int64 [n]."""
        positions, _ = self.above.positions(nodes)
        return np.bincount(self.above.ancestor[positions], minlength=len(self))

    def leaves(self, nodes: Nodes) -> Nodes:
        """Return those of ``nodes`` that have no other of them among their descendants, at any depth."""
        alone: Nodes = nodes[self.count_below(nodes)[nodes] == 1]
        return alone

    def without_instance_edges(self) -> "Taxonomy":
        """Return the same concepts over proper hypernym edges (``@``) alone."""
        kept = ~self.instance
        return build_taxonomy(
            offsets=self.offsets,
            names=self.names,
            aliases=dict(zip(self.alias_names, self.alias_nodes.tolist(), strict=True)),
            child=self.child[kept],
            parent=self.parent[kept],
            instance=self.instance[kept],
        )


def build_taxonomy(
    *,
    offsets: IntArray,
    names: Iterable[str],
    aliases: Mapping[str, int],
    child: IntArray,
    parent: IntArray,
    instance: BoolArray,
) -> Taxonomy:
    """Return a taxonomy of these concepts and edges; see `Taxonomy` for shapes and dtypes.

    The graph must have no cycle. ``aliases`` are positions by further names.
    """
    above = ancestor_rows(offsets.size, child, parent)
    return Taxonomy(
        offsets=offsets.astype(np.int32),
        names=tuple(names),
        alias_names=tuple(aliases),
        alias_nodes=np.array(list(aliases.values()), dtype=np.int32),
        child=child.astype(np.int32),
        parent=parent.astype(np.int32),
        instance=instance,
        above=above,
        max_depth=longest_depth(offsets.size, child, parent),
        min_depth=shortest_depth(above, child),
    )
