"""Graph algorithms against brute force on small random graphs."""

from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.wordnet.common import FAR
from harness.wordnet.common import common_ancestors
from harness.wordnet.similarity import compare_with
from harness.wordnet.similarity import most_similar
from harness.wordnet.taxonomy import Taxonomy
from harness.wordnet.taxonomy import build_taxonomy

Parents: TypeAlias = "dict[int, set[int]]"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Taxonomy, Parents]:
    """Draw a graph of up to 12 nodes, where an edge leads up to a node of smaller number, and each node's parents."""
    size = draw(st.integers(1, 12))
    parents = {node: draw(st.sets(st.integers(0, node - 1), max_size=3)) if node else set() for node in range(size)}
    edges = np.array([(child, parent) for child in parents for parent in parents[child]], dtype=np.int64).reshape(-1, 2)
    found = build_taxonomy(
        offsets=np.arange(size) * 10 + 1740,
        names=[f"{chr(97 + (node * 7) % 12)}.n.01" for node in range(size)],
        aliases={},
        child=edges[:, 0],
        parent=edges[:, 1],
        instance=np.zeros(len(edges), dtype=bool),
    )
    return found, parents


def ancestors(node: int, parents: Parents) -> set[int]:
    return {node}.union(*(ancestors(parent, parents) for parent in parents[node]))


@given(graphs(), st.data())
def test_closures_counts_and_leaves_against_brute_force(graph: tuple[Taxonomy, Parents], data: st.DataObject) -> None:
    taxonomy, parents = graph
    chosen = data.draw(st.sets(st.sampled_from(range(len(taxonomy))), min_size=1))
    nodes = np.array(sorted(chosen))
    above = {node: ancestors(node, parents) for node in parents}
    assert taxonomy.closure(nodes).tolist() == sorted(set().union(*(above[node] for node in chosen)))
    assert taxonomy.below(nodes).tolist() == [node for node in parents if above[node] & chosen]
    counts = [sum(node in above[other] for other in chosen) for node in parents]
    assert taxonomy.count_below(nodes).tolist() == counts
    assert taxonomy.leaves(nodes).tolist() == [node for node in sorted(chosen) if counts[node] == 1]


@given(graphs())
def test_depths_against_brute_force(graph: tuple[Taxonomy, Parents]) -> None:
    taxonomy, parents = graph
    longest: list[int] = []
    shortest: list[int] = []
    for node in parents:
        longest.append(1 + max((longest[parent] for parent in parents[node]), default=-1))
        shortest.append(1 + min((shortest[parent] for parent in parents[node]), default=-1))
    assert taxonomy.max_depth.tolist() == longest
    assert taxonomy.min_depth.tolist() == shortest


@given(graphs(), st.data())
def test_first_common_ancestor_and_distance_against_brute_force(
    graph: tuple[Taxonomy, Parents], data: st.DataObject
) -> None:
    taxonomy, parents = graph
    some = st.lists(st.sampled_from(range(len(taxonomy))), min_size=1, max_size=6, unique=True)
    a, b = data.draw(some), data.draw(some)
    worth = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(taxonomy), max_size=len(taxonomy))))
    common = common_ancestors(taxonomy, np.array(b), worth)
    first, distance = common.first(np.array(a)), common.distance(np.array(a))
    for row, one in enumerate(a):
        for column, other in enumerate(b):
            shared = ancestors(one, parents) & ancestors(other, parents)
            if not shared:
                assert first[row, column] == common.order.size
                assert distance[row, column] >= FAR
                continue
            best = min(shared, key=lambda node: (-worth[node], taxonomy.names[node]))
            assert common.order[first[row, column]] == best
            ways = (steps_up(one, node, parents) + steps_up(other, node, parents) for node in shared)
            assert distance[row, column] == min(ways)


def steps_up(node: int, ancestor: int, parents: Parents) -> int:
    if node == ancestor:
        return 0
    return 1 + min((steps_up(parent, ancestor, parents) for parent in parents[node]), default=FAR)


@given(st.integers(1, 200), st.integers(0, 4))
def test_the_most_similar_is_the_first_of_the_greatest(rows: int, levels: int) -> None:
    values = np.random.default_rng(rows).integers(0, levels + 1, (rows, 5)).astype(float)
    best, place = most_similar(lambda block: values[block], np.arange(rows))
    assert best.tolist() == values.max(axis=1).tolist()
    assert place.tolist() == [row.tolist().index(max(row)) for row in values]


def test_a_difference_of_rounding_is_a_tie() -> None:
    values = np.array([[0.3, 0.1 + 0.2, 0.3 - 1e-9]])
    assert values[0, 1] > values[0, 0]
    assert most_similar(lambda block: values[block], np.arange(1))[1].tolist() == [0]


def test_concepts_without_a_common_ancestor_are_not_similar() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    taxonomy = build_taxonomy(
        offsets=np.arange(2), names=["a", "b"], aliases={}, child=nothing, parent=nothing, instance=nothing.astype(bool)
    )
    ic = np.array([1.0, 1.0])
    for measure in ("lin", "resnik", "wu-palmer", "path"):
        assert compare_with(taxonomy, np.array([1]), ic, measure)(np.array([0])).tolist() == [[0.0]]
    assert compare_with(taxonomy, np.array([1]), ic, "jiang-conrath")(np.array([0])).tolist() == [[0.5]]
