"""Depths, ancestors and counts in a directed acyclic graph, for all nodes at once.

Nodes are 0..n-1. Rows of different length lie in one array: row i is ``values[start[i] : start[i + 1]]``.
"""

from dataclasses import dataclass
from typing import Any
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AncestorRows:
    """Every node's ancestors, itself among them.

    Attributes:
        start: int64 [n + 1], where each row begins.
        ancestor: int32 [p], ascending within a row.
        distance: int16 [p], edges on the shortest way up to that ancestor; 0 for the node itself.
    """

    start: IntArray
    ancestor: IntArray
    distance: IntArray

    def positions(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the rows of ``nodes`` lie.

        Returns:
            Positions in ``ancestor`` and ``distance``, int64 [q], and where each node's part of them begins, [nodes].
        """
        lengths = self.start[nodes + 1] - self.start[nodes]
        begins = np.cumsum(lengths) - lengths
        return np.arange(lengths.sum()) + np.repeat(self.start[nodes] - begins, lengths), begins


def ancestor_rows(n: int, child: IntArray, parent: IntArray) -> AncestorRows:
    """Walk up from all nodes at once, one edge a step.

    Args:
        n: number of nodes.
        child: int [e], the lower end of each edge.
        parent: int [e], the upper end.
    """
    order = np.argsort(child, kind="stable")
    parents = parent[order].astype(np.int64)
    start = np.searchsorted(child[order], np.arange(n + 1))
    # A pair of node and ancestor is the number node * n + ancestor, so that sorting orders pairs.
    pairs: list[IntArray] = [np.arange(n, dtype=np.int64) * (n + 1)]
    while pairs[-1].size:
        node, at = np.divmod(pairs[-1], n)
        lengths = start[at + 1] - start[at]
        begins = np.cumsum(lengths) - lengths
        above = parents[np.arange(lengths.sum()) + np.repeat(start[at] - begins, lengths)]
        pairs.append(_distinct(np.repeat(node, lengths) * n + above))
    every = np.concatenate(pairs)
    steps = np.repeat(np.arange(len(pairs), dtype=np.int16), [step.size for step in pairs])
    order = np.argsort(every, kind="stable")  # of equal pairs the one of fewest steps comes first
    first = np.diff(every[order], prepend=-1) > 0
    node, ancestor = np.divmod(every[order][first], n)
    return AncestorRows(
        start=np.searchsorted(node, np.arange(n + 1)),
        ancestor=ancestor.astype(np.int32),
        distance=steps[order][first],
    )


def _distinct(numbers: IntArray) -> IntArray:
    # np.unique hashes integers since numpy 2.3: on these keys 100 times slower than sorting them.
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def longest_depth(n: int, child: IntArray, parent: IntArray) -> IntArray:
    """Return the number of edges on the longest way from each node up to a root, int16 [n]."""
    depth = np.zeros(n, dtype=np.int16)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, child, depth[parent] + 1)
        if np.array_equal(deeper, depth):
            return depth
        depth = deeper


def shortest_depth(rows: AncestorRows, child: IntArray) -> IntArray:
    """Return the number of edges on the shortest way from each node up to a root, int16 [n]."""
    n = rows.start.size - 1
    is_root = np.ones(n, dtype=bool)
    is_root[child] = False
    at_root = is_root[rows.ancestor]
    node = np.repeat(np.arange(n), np.diff(rows.start))
    depth = np.full(n, np.iinfo(np.int16).max, dtype=np.int16)
    np.minimum.at(depth, node[at_root], rows.distance[at_root])
    return depth
