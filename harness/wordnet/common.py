"""The ancestors that concepts share, found for many pairs at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.wordnet.graph import AncestorRows
from harness.wordnet.graph import IntArray
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy

FAR = 1 << 20
"""Stands for the distance of concepts without a common ancestor."""


@dataclass(frozen=True, eq=False)
class CommonAncestors:
    """Concepts b and all their ancestors, the best first, made ready to be compared with any concepts a.

    Attributes:
        above: the ancestors of all n concepts.
        order: int64 [k], the ancestors of b.
        row: int64 [n], each concept's place in ``order``; k where it has none.
        rank: int32 [k + 1, b], the row's own number where it is an ancestor of the column's concept, else k.
        away: int32 [k + 1, b], edges on the shortest way up to it, else `FAR`.
    """

    above: AncestorRows
    order: Nodes
    row: IntArray
    rank: IntArray
    away: IntArray

    def first(self, a: Nodes) -> IntArray:
        """Return the place in ``order`` of the best ancestor that a and b share, int32 [a, b]; k where none."""
        positions, begins = self.above.positions(a)
        return _lowest(self.rank[self.row[self.above.ancestor[positions]]], begins)

    def distance(self, a: Nodes) -> IntArray:
        """Return the edges on the shortest way from a to b over an ancestor of both, int32 [a, b]; else >= `FAR`."""
        positions, begins = self.above.positions(a)
        ways = self.away[self.row[self.above.ancestor[positions]]]
        return _lowest(ways + self.above.distance[positions][:, None], begins)


def _lowest(values: IntArray, begins: IntArray) -> IntArray:
    lowest: IntArray = np.minimum.reduceat(values, begins, axis=0)
    return lowest


def common_ancestors(taxonomy: Taxonomy, b: Nodes, worth: npt.NDArray[np.number[Any]]) -> CommonAncestors:
    """Prepare concepts ``b``; of two ancestors that of greater ``worth`` [n] is better, ties go to the first name."""
    by_name = np.array(sorted(taxonomy.closure(b).tolist(), key=taxonomy.names.__getitem__))
    order = by_name[np.argsort(-worth[by_name], kind="stable")]
    row = np.full(len(taxonomy), order.size)
    row[order] = np.arange(order.size)
    positions, begins = taxonomy.above.positions(b)
    column = np.repeat(np.arange(b.size), np.diff(begins, append=positions.size))
    place = row[taxonomy.above.ancestor[positions]]
    rank = np.full((order.size + 1, b.size), order.size, dtype=np.int32)
    rank[place, column] = place
    away = np.full_like(rank, FAR)
    away[place, column] = taxonomy.above.distance[positions]
    return CommonAncestors(taxonomy.above, order, row, rank, away)
