"""How similar concepts are: information content and the measures built on it and on the graph.

Definitions: Lin (ICML 1998), Resnik (IJCAI 1995), Jiang and Conrath (ROCLING 1997), Wu and Palmer (ACL 1994), path
length (Rada et al., 1989), each in the form of NLTK 3.10, except where said.
"""

from collections.abc import Callable
from typing import Literal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.errors import ConfigError
from harness.errors import nearest
from harness.wordnet.common import FAR
from harness.wordnet.common import common_ancestors
from harness.wordnet.graph import BoolArray
from harness.wordnet.graph import IntArray
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy

FloatArray: TypeAlias = npt.NDArray[np.float64]
Lcs: TypeAlias = Literal["deepest", "max-ic"]
Count: TypeAlias = Literal["closure", "in21k", "wordnet", "leaves"]
Compare: TypeAlias = Callable[[Nodes], FloatArray]
"""Compares concepts [a] with concepts [b] that were fixed before: float64 [a, b]."""

_BLOCK = 64
_TIE = 1e-12


def information_content(taxonomy: Taxonomy, concepts: Nodes, count: Count = "closure") -> FloatArray:
    """Return IC(c) = ln(N / n(c)) of every node; infinite where nothing is counted at or below it.

    Args:
        taxonomy: n concepts.
        concepts: the concepts whose graph it is: all of a data set, seen and unseen.
        count: what n(c) counts at or below c, and N in all: ``closure``, the concepts and their ancestors (the paper);
            ``in21k``, the concepts alone; ``leaves``, those of the closure with nothing below; ``wordnet``, every noun.

    Returns:
        float64 [n].
    """
    closure = taxonomy.closure(concepts)
    counted = {
        "closure": closure,
        "in21k": np.unique(concepts),
        "leaves": taxonomy.leaves(closure),
        "wordnet": np.arange(len(taxonomy)),
    }[count]
    with np.errstate(divide="ignore"):
        return np.log(counted.size / taxonomy.count_below(counted))


def compare_with(taxonomy: Taxonomy, b: Nodes, ic: FloatArray, measure: str = "lin", lcs: Lcs = "deepest") -> Compare:
    """Prepare the comparison of any concepts with the concepts ``b``.

    Args:
        taxonomy: n concepts.
        b: at least one.
        ic: information content, float64 [n].
        measure: ``lin``, 2 IC(lcs) / (IC(a) + IC(b)); ``resnik``, IC(lcs); ``jiang-conrath``,
            1 / (IC(a) + IC(b) - 2 IC(lcs)), infinite where that is 1 / 0; ``wu-palmer`` and ``path``, which count
            edges. All are 0 where there is no common subsumer.
        lcs: which subsumer the first three take. ``deepest``: the common ancestor of greatest maximal depth, ties to
            the first name, as NLTK's ``lowest_common_hypernyms``; ``max-ic``: the most informative, as in NLTK's own
            ``lin_similarity``. Wu-Palmer has the one that NLTK gives it: of greatest minimal depth.

    Raises:
        ConfigError: there is no such measure, or a concept lies outside the graph that ``ic`` was counted in (raised
            by the returned function too).
    """
    if measure in _BY_EDGES:
        return _BY_EDGES[measure](taxonomy, b)
    if measure not in _BY_CONTENT:
        raise ConfigError(f"measure {measure}: expected one of {', '.join(MEASURES)}.{nearest(measure, MEASURES)}")
    form = _BY_CONTENT[measure]
    _check_counted(taxonomy, b, ic)
    common = common_ancestors(taxonomy, b, taxonomy.max_depth if lcs == "deepest" else ic)
    shared = np.append(ic[common.order], 0.0)

    def compare(a: Nodes) -> FloatArray:
        _check_counted(taxonomy, a, ic)
        return form(shared[common.first(a)], ic[a][:, None], ic[b][None, :], a[:, None] == b[None, :])

    return compare


def most_similar(compare: Compare, a: Nodes) -> tuple[FloatArray, IntArray]:
    """Return each concept's greatest similarity, float64 [a], and the first place in ``b`` that has it, int64 [a].

    Similarities that differ by less than 1e-12 are equal: they come from equal counts by another order of rounding.
    """
    best = np.empty(len(a))
    place = np.empty(len(a), dtype=np.int64)
    for start in range(0, len(a), _BLOCK):  # so few that the rows compared stay in the processor's cache
        block = slice(start, start + _BLOCK)
        values = compare(a[block])
        best[block] = values.max(axis=1)
        place[block] = (values >= best[block, None] - _TIE).argmax(axis=1)
    return best, place


def _check_counted(taxonomy: Taxonomy, nodes: Nodes, ic: FloatArray) -> None:
    outside = nodes[np.isinf(ic[nodes])]
    if outside.size:
        names = ", ".join(f"{taxonomy.wnid(node)} ({taxonomy.names[node]})" for node in outside[:5])
        raise ConfigError(
            f"{names}{' and others' if outside.size > 5 else ''}: outside the graph in which concepts are counted. "
            "With count=wordnet every noun lies in it."
        )


def _lin(shared: FloatArray, of_a: FloatArray, of_b: FloatArray, same: BoolArray) -> FloatArray:
    total = of_a + of_b
    return np.divide(2 * shared, total, out=same.astype(np.float64), where=total > 0)


def _resnik(shared: FloatArray, _of_a: FloatArray, _of_b: FloatArray, _same: BoolArray) -> FloatArray:
    return shared


def _jiang_conrath(shared: FloatArray, of_a: FloatArray, of_b: FloatArray, same: BoolArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        value = 1 / (of_a + of_b - 2 * shared)
    # A root says nothing of what is below it: NLTK gives it 0 to all but itself.
    value[np.broadcast_to((of_a == 0) | (of_b == 0), value.shape)] = 0
    value[same] = np.inf
    return value


def _path(taxonomy: Taxonomy, b: Nodes) -> Compare:
    common = common_ancestors(taxonomy, b, taxonomy.max_depth)

    def compare(a: Nodes) -> FloatArray:
        edges = common.distance(a)
        return np.where(edges < FAR, 1 / (edges + 1), 0.0)

    return compare


def _wu_palmer(taxonomy: Taxonomy, b: Nodes) -> Compare:
    common = common_ancestors(taxonomy, b, taxonomy.min_depth)
    subsumers = common_ancestors(taxonomy, common.order, taxonomy.min_depth)
    # The column added stands for pairs without a common ancestor: their similarity is 0 / 2.
    length = np.append(taxonomy.max_depth[common.order] + 1, 0)
    shallow = np.append(taxonomy.min_depth[common.order], -1)
    from_b = _with_column(subsumers.distance(b))

    def compare(a: Nodes) -> FloatArray:
        first, own = common.first(a), common.rank[common.row[a]]
        # NLTK prefers a itself among subsumers of equal depth, before the first name.
        lcs = np.where(shallow[own] == shallow[first], own, first)
        edges = np.take_along_axis(_with_column(subsumers.distance(a)), lcs, axis=1) + from_b[np.arange(b.size), lcs]
        ratio: FloatArray = 2 * length[lcs] / (edges + 2 * length[lcs])
        return ratio

    return compare


def _with_column(edges: IntArray) -> IntArray:
    return np.pad(edges, ((0, 0), (0, 1)), constant_values=1)


_BY_CONTENT = {"lin": _lin, "resnik": _resnik, "jiang-conrath": _jiang_conrath}
_BY_EDGES = {"wu-palmer": _wu_palmer, "path": _path}
MEASURES = (*_BY_CONTENT, *_BY_EDGES)
