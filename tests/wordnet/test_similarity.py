"""Information content and measures: published values, NLTK as oracle, and a graph small enough to do by hand."""

import math
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest

from harness import data
from harness.errors import ConfigError
from harness.wordnet.common import common_ancestors
from harness.wordnet.similarity import MEASURES
from harness.wordnet.similarity import Count
from harness.wordnet.similarity import FloatArray
from harness.wordnet.similarity import Lcs
from harness.wordnet.similarity import compare_with
from harness.wordnet.similarity import information_content
from harness.wordnet.similarity import most_similar
from harness.wordnet.taxonomy import Nodes
from harness.wordnet.taxonomy import Taxonomy
from harness.wordnet.taxonomy import build_taxonomy


@pytest.fixture(scope="module")
def seen(taxonomy: Taxonomy) -> Nodes:
    return taxonomy.nodes(data.path("cog/imagenet1k_wnids.txt").read_text().split())


@pytest.fixture(scope="module")
def concepts(taxonomy: Taxonomy, seen: Nodes) -> Nodes:
    """ImageNet-21K of Fall 2011 and ImageNet-1K."""
    lines = data.path("cog/in21k_fall11_counts.csv").read_text().splitlines()[1:]
    return np.union1d(taxonomy.nodes(line.split(",")[0] for line in lines), seen)


@pytest.fixture(scope="module")
def ic(taxonomy: Taxonomy, concepts: Nodes) -> FloatArray:
    return information_content(taxonomy, concepts)


def test_the_graph_of_imagenet_21k_has_its_published_size(taxonomy: Taxonomy, concepts: Nodes) -> None:
    assert concepts.size == 21_842
    assert taxonomy.closure(concepts).size == 23_547


def test_information_content_of_leaf_and_root(taxonomy: Taxonomy, ic: FloatArray) -> None:
    gamecock, entity = taxonomy.nodes(["n01514752", "entity.n.01"])
    assert ic[gamecock] == pytest.approx(10.066753702795, abs=1e-12)
    assert ic[entity] == 0
    assert math.copysign(1, ic[entity]) == 1


@pytest.mark.parametrize(
    ("concept", "similarity", "nearest"),
    [
        ("n01514752", 0.964344941527, "n01514668"),
        ("n01531811", 0.641769209428, None),
        ("n00120010", 0.338238548710, None),
    ],
)
def test_published_similarities(
    taxonomy: Taxonomy, seen: Nodes, ic: FloatArray, concept: str, similarity: float, nearest: str | None
) -> None:
    best, place = most_similar(compare_with(taxonomy, seen, ic), taxonomy.nodes([concept]))
    assert best[0] == pytest.approx(similarity, abs=1e-12)
    assert nearest in {None, taxonomy.wnid(int(seen[place[0]]))}


@pytest.fixture(scope="module")
def pairs(taxonomy: Taxonomy, concepts: Nodes) -> tuple[Nodes, Nodes]:
    """Concepts of the graph, some an ancestor of another, some instances of the same, to be compared each with each."""
    generator = np.random.default_rng(0)
    near = taxonomy.closure(taxonomy.nodes(["dog.n.01", "cat.n.01", "chef.n.01", "rhine.n.01", "nile.n.01"]))
    inside = near[np.isin(near, taxonomy.closure(concepts))]
    return np.union1d(generator.choice(concepts, 30), inside), np.union1d(generator.choice(concepts, 25), inside)


def test_deepest_subsumer_is_the_first_lowest_common_hypernym_of_nltk(
    taxonomy: Taxonomy, reader: Any, pairs: tuple[Nodes, Nodes]
) -> None:
    common = common_ancestors(taxonomy, pairs[1], taxonomy.max_depth)
    found = common.order[common.first(pairs[0])]
    for (row, a), (column, b) in product(enumerate(pairs[0]), enumerate(pairs[1])):
        lowest = reader.synset(taxonomy.names[a]).lowest_common_hypernyms(reader.synset(taxonomy.names[b]))[0]
        assert taxonomy.names[found[row, column]] == lowest.name()


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_are_those_of_nltk(
    taxonomy: Taxonomy, reader: Any, concepts: Nodes, pairs: tuple[Nodes, Nodes], measure: str
) -> None:
    a, b = pairs
    closure = taxonomy.closure(concepts)
    counts = defaultdict(float, zip(taxonomy.offsets.tolist(), taxonomy.count_below(closure).tolist(), strict=True))
    counts[0] = closure.size
    found = compare_with(taxonomy, b, information_content(taxonomy, concepts), measure, "max-ic")(a)
    for (row, one), (column, other) in product(enumerate(a), enumerate(b)):
        expected = of_nltk(measure, reader.synset(taxonomy.names[one]), reader.synset(taxonomy.names[other]), counts)
        assert found[row, column] == pytest.approx(expected, rel=1e-9), (taxonomy.names[one], taxonomy.names[other])


def of_nltk(measure: str, a: Any, b: Any, counts: dict[int, float]) -> float:
    methods = {"lin": "lin", "resnik": "res", "jiang-conrath": "jcn", "wu-palmer": "wup", "path": "path"}
    method = getattr(a, f"{methods[measure]}_similarity")
    if measure in {"wu-palmer", "path"}:
        return float(method(b))
    if measure == "lin" and a == b and a.name() == "entity.n.01":
        return 1.0  # NLTK divides zero by zero here
    value = float(method(b, {"n": counts}))
    return math.inf if value == 1e300 else value  # what NLTK calls infinite


HAND = build_taxonomy(
    #              root 0
    #          left 1   right 2
    #        a 3   b 4    c 5     and d 6 below both b and c
    offsets=np.arange(7),
    names=["root", "left", "right", "a", "b", "c", "d"],
    aliases={},
    child=np.array([1, 2, 3, 4, 5, 6, 6]),
    parent=np.array([0, 0, 1, 1, 2, 4, 5]),
    instance=np.zeros(7, dtype=bool),
)


def test_what_is_counted_by_hand() -> None:
    concepts = np.array([3, 6, 1])  # with their ancestors 0, 1, 2, 3, 4, 5 and 6: a and d are leaves
    counted: dict[Count, list[int]] = {
        "closure": [7, 4, 3, 1, 2, 2, 1],
        "in21k": [3, 3, 1, 1, 1, 1, 1],
        "leaves": [2, 2, 1, 1, 1, 1, 1],
        "wordnet": [7, 4, 3, 1, 2, 2, 1],
    }
    for count, below in counted.items():
        expected = [math.log(below[0] / number) for number in below]
        assert information_content(HAND, concepts, count) == pytest.approx(expected)


def test_both_readings_of_the_subsumer_by_hand() -> None:
    ic = np.array([0, 1, 4, 2, 3, 5, 6], dtype=float)
    # b and d have b (depth 2) in common; d and c have c; a and d only left (depth 1) and root.
    lin = compare_with(HAND, np.array([6]), ic)(np.array([3, 4, 5, 6]))
    assert lin[:, 0].tolist() == [2 * 1 / 8, 2 * 3 / 9, 2 * 5 / 11, 1.0]
    # Of d's own ancestors b and c, both at depth 2, c tells more; d with itself has d.
    other = build_taxonomy(
        offsets=np.arange(8),
        names=[*HAND.names, "e"],
        aliases={},
        child=np.append(HAND.child, [7, 7]),
        parent=np.append(HAND.parent, [4, 5]),
        instance=np.zeros(9, dtype=bool),
    )
    ic = np.append(ic, 8.0)
    shared: dict[Lcs, float] = {"deepest": 3.0, "max-ic": 5.0}
    for lcs, expected in shared.items():
        assert compare_with(other, np.array([6]), ic, "resnik", lcs)(np.array([7])).tolist() == [[expected]]


def test_a_concept_outside_the_graph_is_refused() -> None:
    ic = information_content(HAND, np.array([3]))
    with pytest.raises(ConfigError, match=r"n00000006 \(d\): outside the graph .* count=wordnet"):
        compare_with(HAND, np.array([3, 6]), ic)
    with pytest.raises(ConfigError, match=r"n00000006 \(d\): outside the graph"):
        compare_with(HAND, np.array([3]), ic)(np.array([6]))


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"measure lim: expected one of .* Did you mean 'lin'\?"):
        compare_with(HAND, np.array([3]), np.zeros(7), "lim")
