"""Similarity of concepts, neighbours, and levels for lists of the user's own."""

from pathlib import Path

import pytest

from harness.cog.level_candidates import find_candidates
from harness.cog.level_options import DEFAULT_OPTIONS
from harness.cog.level_options import LevelOptions
from harness.cog.level_queries import concept_similarity
from harness.cog.level_queries import nearest_concepts
from harness.cog.level_queries import with_lists
from harness.cog.levels import derive_levels
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.wordnet.taxonomy import Taxonomy

IN21K, MINI = load_universe("in21k"), load_universe("mini")


def test_two_concepts_by_wnid_and_by_name(taxonomy: Taxonomy) -> None:
    by_wnid = concept_similarity(IN21K, taxonomy, "n01514752", "n01514668", DEFAULT_OPTIONS)
    by_name = concept_similarity(IN21K, taxonomy, "gamecock.n.01", "cock.n.05", DEFAULT_OPTIONS)
    assert by_wnid == by_name == pytest.approx(0.964344941527, abs=1e-12)


def test_neighbours_come_by_similarity_then_wnid(taxonomy: Taxonomy) -> None:
    seen = IN21K.seen_concepts()
    nearest = nearest_concepts(IN21K, taxonomy, "n01514752", seen, 1000, DEFAULT_OPTIONS)
    assert (nearest[0].wnid, nearest[0].name) == ("n01514668", "cock.n.05")
    assert [one.wnid for one in sorted(nearest, key=lambda one: (-round(one.similarity, 12), one.wnid))] == [
        one.wnid for one in nearest
    ]
    assert len(nearest) == 1000
    assert nearest_concepts(IN21K, taxonomy, "n01514752", seen, 3, DEFAULT_OPTIONS) == nearest[:3]


def test_a_concept_outside_the_graph_is_told_and_counted_on_request(taxonomy: Taxonomy) -> None:
    with pytest.raises(ConfigError, match=r"freedom\.n\.01\): outside the graph .* count=wordnet"):
        concept_similarity(IN21K, taxonomy, "freedom.n.01", "dog.n.01", DEFAULT_OPTIONS)
    options = LevelOptions(count="wordnet")
    assert 0 <= concept_similarity(IN21K, taxonomy, "freedom.n.01", "dog.n.01", options) < 0.2


def test_vectors_of_a_file(tmp_path: Path, taxonomy: Taxonomy) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("dog.n.01 1 0\nn02121620 3 4\n")
    options = LevelOptions(measure="cosine", vectors=file)
    assert concept_similarity(IN21K, taxonomy, "dog.n.01", "cat.n.01", options) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"measure": "linn"}, r"measure=linn: expected one of lin, .* Did you mean 'lin'\?"),
        ({"lcs": "max"}, r"lcs=max: expected one of deepest, max-ic\. Did you mean 'max-ic'\?"),
        ({"count": "closures"}, r"Did you mean 'closure'\?"),
        ({"exclusions": "some"}, "exclusions=some: expected one of all, certain, none"),
        ({"measure": "cosine"}, "a file of vectors goes with measure=cosine"),
        ({"vectors": Path("a.txt")}, "a file of vectors goes with measure=cosine"),
    ],
)
def test_faulty_options_are_told(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LevelOptions(**values)  # type: ignore[arg-type]  # what a command line may bring


def test_levels_of_own_lists(tmp_path: Path, taxonomy: Taxonomy) -> None:
    seen, concepts, exclude = tmp_path / "seen.txt", tmp_path / "concepts.csv", tmp_path / "exclude.txt"
    seen.write_text("n02084071\n")  # dog
    # Two cats, a chair, a table, an animal (above dog: no candidate) and a cat above the two (no leaf).
    concepts.write_text(
        "wnid,images\nn02123045,800\nn02123394,900\nn03001627,1000\nn04379243,1000\nn00015388,1000\nn02121808,900\n"
    )
    exclude.write_text("n04379243\n")
    own = with_lists(IN21K, seen=seen, concepts=concepts, exclude=exclude, levels=2, size=1)
    assert own.name == "in21k-own"
    levels = derive_levels(own, taxonomy)
    assert [(placed.level, placed.name) for placed in levels.ranked] == [
        (1, "tabby.n.01"),
        (None, "persian_cat.n.01"),
        (2, "chair.n.01"),
    ]


def test_own_concepts_are_not_filtered_by_what_was_chosen_for_others(tmp_path: Path, taxonomy: Taxonomy) -> None:
    concepts, exclude = tmp_path / "concepts.csv", tmp_path / "exclude.txt"
    # An exclusion of in21k, a person, a rare gamecock, and a racket that mini drops.
    wnids = ("n00288384", "n10787470", "n01514752", "n04409806")
    assert read_table(IN21K.exclusions or Path()).keys() >= {wnids[0]}
    assert MINI.dropped.keys() >= {wnids[3]}
    concepts.write_text("wnid,images\n" + "".join(f"{wnid},10\n" for wnid in wnids))
    exclude.write_text(f"{wnids[2]}\n")
    for universe in (IN21K, MINI):
        own = with_lists(universe, concepts=concepts, levels=1, size=1)
        found = find_candidates(own, taxonomy, DEFAULT_OPTIONS).nodes
        assert {taxonomy.wnid(node) for node in found} >= {*wnids[:3]}
        own = with_lists(universe, concepts=concepts, exclude=exclude, levels=1, size=1)
        found = find_candidates(own, taxonomy, DEFAULT_OPTIONS).nodes
        assert wnids[2] not in {taxonomy.wnid(node) for node in found}
        kept = ("ancestors_of_seen", "inner_nodes")
        assert [getattr(own.filters, name) for name in kept] == [getattr(universe.filters, name) for name in kept]
    assert "n04409806" in with_lists(MINI, concepts=concepts).image_counts()


def test_a_list_without_counts_passes_every_threshold(tmp_path: Path, taxonomy: Taxonomy) -> None:
    concepts = tmp_path / "concepts.txt"
    concepts.write_text("n01514752\nn00120010\n")
    own = with_lists(IN21K, concepts=concepts, levels=1, size=2)
    levels = derive_levels(own, taxonomy)
    assert {placed.wnid: placed.images for placed in levels.ranked} == {"n01514752": None, "n00120010": None}
    assert levels.to_csv().splitlines()[1].endswith(",")
    assert find_candidates(own, taxonomy, DEFAULT_OPTIONS).left["images"] == 2


def test_own_lists_keep_what_they_do_not_change() -> None:
    larger = with_lists(IN21K, size=1100)
    assert (larger.levels.number, larger.levels.size, larger.levels.published) == (5, 1100, None)
    for name in ("seen", "concepts", "exclusions", "filters", "dropped"):
        assert getattr(larger, name) == getattr(IN21K, name)
    with pytest.raises(ConfigError, match="levels of your own lists: field 'size'"):
        with_lists(IN21K, size=0)
