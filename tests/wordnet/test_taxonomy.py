"""The noun graph against NLTK."""

from typing import Any

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.wordnet.taxonomy import Taxonomy

EVERY = slice(5, None, 97)
"""A sample of 847 synsets."""


def test_every_noun_is_there(taxonomy: Taxonomy) -> None:
    assert len(taxonomy) == 82_115
    assert (taxonomy.child.size, int(taxonomy.instance.sum())) == (75_850 + 8_577, 8_577)
    assert taxonomy.names[0] == "entity.n.01"
    assert (np.diff(taxonomy.offsets) > 0).all()


def test_depths_are_those_of_nltk(taxonomy: Taxonomy, reader: Any) -> None:
    for node in range(len(taxonomy))[EVERY]:
        synset = reader.synset(taxonomy.names[node])
        assert (taxonomy.max_depth[node], taxonomy.min_depth[node]) == (synset.max_depth(), synset.min_depth())


def test_ancestors_and_distances_are_those_of_nltk(taxonomy: Taxonomy, reader: Any) -> None:
    for node in range(len(taxonomy))[EVERY]:
        expected: dict[int, int] = {}
        for ancestor, distance in reader.synset(taxonomy.names[node]).hypernym_distances():
            expected[ancestor.offset()] = min(distance, expected.get(ancestor.offset(), distance))
        positions, _ = taxonomy.above.positions(np.array([node]))
        found = taxonomy.offsets[taxonomy.above.ancestor[positions]].tolist()
        assert dict(zip(found, taxonomy.above.distance[positions].tolist(), strict=True)) == expected


def test_every_sense_name_finds_its_synset(taxonomy: Taxonomy, reader: Any) -> None:
    assert len(taxonomy.names) + len(taxonomy.alias_names) == 146_312
    for name in (*taxonomy.names[EVERY], *taxonomy.alias_names[EVERY]):
        assert taxonomy.offsets[taxonomy.nodes([name])[0]] == reader.synset(name).offset()


@pytest.mark.parametrize("concept", ["n02084071", "dog.n.01", "Dog.n.01", "domestic dog.n.01", "canis_familiaris.n.01"])
def test_a_concept_is_found_by_any_of_its_names(taxonomy: Taxonomy, concept: str) -> None:
    assert taxonomy.wnid(int(taxonomy.nodes([concept])[0])) == "n02084071"


@pytest.mark.parametrize(
    ("concept", "says"),
    [
        ("dog", "dog: expected a WNID or one of its senses: dog.n.01, dog.n.02"),
        ("dog.n.08", "dog.n.08: expected a WNID or one of its senses: dog.n.01"),
        ("golden_retriver.n.01", "Did you mean 'golden_retriever.n.01'?"),
        ("n02084072", "n02084072: no noun of WordNet 3.0 has this offset"),
        ("xyzzy.n.01", "xyzzy.n.01: no noun of WordNet 3.0; expected a WNID or a name such as dog.n.01."),
    ],
)
def test_an_unknown_concept_is_told_with_what_is_near(taxonomy: Taxonomy, concept: str, says: str) -> None:
    assert taxonomy.find(concept) is None
    with pytest.raises(ConfigError) as raised:
        taxonomy.nodes(["dog.n.01", concept])
    assert says in str(raised.value)


def test_without_instance_edges_an_instance_is_a_root(taxonomy: Taxonomy) -> None:
    rhine, dog, entity = taxonomy.nodes(["rhine.n.01", "dog.n.01", "entity.n.01"])
    proper = taxonomy.without_instance_edges()
    assert taxonomy.max_depth[rhine] > 0
    assert (proper.max_depth[rhine], proper.closure(np.array([rhine])).tolist()) == (0, [rhine])
    assert proper.names == taxonomy.names
    assert (proper.max_depth[dog], entity in proper.closure(np.array([dog]))) == (taxonomy.max_depth[dog], True)
