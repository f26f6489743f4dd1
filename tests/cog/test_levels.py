"""Levels of ImageNet-CoG and of the mini universe against the published lists, and the rule of gaps."""

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import data
from harness.cog.level_candidates import find_candidates
from harness.cog.level_options import DEFAULT_OPTIONS
from harness.cog.level_options import LevelOptions
from harness.cog.levels import agreement
from harness.cog.levels import derive_levels
from harness.cog.levels import level_starts
from harness.cog.levels import published_concepts
from harness.cog.levels import published_levels
from harness.cog.levels import split_concepts
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.wordnet.taxonomy import Taxonomy

IN21K, MINI = load_universe("in21k"), load_universe("mini")
MINI_READING = LevelOptions(count="in21k", lcs="max-ic")
"""The reading of the similarities in mini/levels.tsv."""


def no_wordnet() -> Taxonomy:
    pytest.fail("WordNet was read")


def test_filters_leave_the_published_counts(taxonomy: Taxonomy) -> None:
    left = find_candidates(IN21K, taxonomy, DEFAULT_OPTIONS).left
    assert list(left.values()) == [21_841, 8_953, 7_443, 6_840, 5_216, 5_147]
    assert find_candidates(IN21K, taxonomy, LevelOptions(exclusions="certain")).nodes.size == 5_162
    threshold_first = find_candidates(IN21K, taxonomy, LevelOptions(leaf_first=False, exclusions="none"))
    assert threshold_first.nodes.size == 5_754


def test_seen_ancestors_and_subtrees_have_their_known_sizes(taxonomy: Taxonomy) -> None:
    concepts = taxonomy.nodes(IN21K.image_counts())
    above = taxonomy.closure(taxonomy.nodes(IN21K.seen_concepts()))
    person = taxonomy.below(taxonomy.nodes(["person.n.01"]))
    assert (above.size, np.isin(concepts, above).sum()) == (1_860, 1_760)
    assert np.isin(concepts, person).sum() == 2_836
    eligible = ~np.isin(concepts, above) & ~np.isin(concepts, person)
    enough = np.array([images is not None and images >= 782 for images in IN21K.image_counts().values()])
    pool = concepts[eligible & enough]
    # Two readings of "leaf" that the published lists do not follow.
    direct = np.intersect1d(pool, taxonomy.parent[np.isin(taxonomy.child, concepts[eligible])])
    assert pool.size - direct.size == 5_221
    inner = np.intersect1d(pool, taxonomy.parent)
    assert pool.size - inner.size == 5_069
    assert len({taxonomy.wnid(node) for node in inner} & set().union(*published_concepts(IN21K).values())) == 131


@pytest.mark.parametrize(
    ("options", "correct"),
    [
        (DEFAULT_OPTIONS, 4_966),
        (LevelOptions(exclusions="certain"), 4_938),
        (LevelOptions(exclusions="none"), 4_875),
        (LevelOptions(exclusions="none", leaf_first=False), 4_457),
    ],
)
def test_levels_from_scratch_agree_with_the_published(taxonomy: Taxonomy, options: LevelOptions, correct: int) -> None:
    assert sum(agreement(derive_levels(IN21K, taxonomy, options), IN21K).values()) == correct


def test_published_concepts_fall_into_their_published_levels(taxonomy: Taxonomy) -> None:
    members = sorted(set().union(*published_concepts(IN21K).values()))
    levels = derive_levels(IN21K, taxonomy, members=members)
    assert levels.concepts() == published_concepts(IN21K)
    scores = [placed.similarity for placed in levels.ranked]
    assert scores[0] == pytest.approx(0.964344941527, abs=1e-12)
    assert (scores[1000], scores[1999]) == pytest.approx((0.744178, 0.641769), abs=5e-7)
    assert all(scores[cut - 1] > scores[cut] for cut in (1000, 2000, 3000, 4000))
    assert len({round(score, 12) for score in scores}) == 335


@pytest.mark.parametrize(
    "options", [LevelOptions(lcs="max-ic"), LevelOptions(count="wordnet"), LevelOptions(instance_edges=False)]
)
def test_other_readings_agree_less(taxonomy: Taxonomy, options: LevelOptions) -> None:
    members = sorted(set().union(*published_concepts(IN21K).values()))
    correct = sum(agreement(derive_levels(IN21K, taxonomy, options, members), IN21K).values())
    assert 4_393 <= correct <= 4_998


def test_published_levels_come_with_the_ranking_and_the_concepts_between(taxonomy: Taxonomy) -> None:
    levels = published_levels(IN21K, taxonomy)
    assert levels.concepts() == published_concepts(IN21K)
    assert Counter(placed.level for placed in levels.ranked)[None] == 147
    assert levels.ranked[0].similarity == pytest.approx(0.964344941527, abs=1e-12)


def test_training_sizes_from_the_count_file() -> None:
    counts = IN21K.image_counts()
    cap = IN21K.images.train_cap
    assert cap is not None
    train = [[min((counts[wnid] or 0) - 50, cap) for wnid in wnids] for wnids in published_concepts(IN21K).values()]
    assert [sum(sizes) for sizes in train] == [1_118_804, 1_115_790, 1_095_206, 1_107_129, 1_091_662]
    assert [sizes.count(cap) for sizes in train] == [182, 161, 161, 168, 176]
    assert min(map(min, train)) == 732


def test_exclusions_lie_inside_the_published_levels(taxonomy: Taxonomy) -> None:
    assert IN21K.exclusions is not None
    table = read_table(IN21K.exclusions)
    certain = [wnid for wnid, cells in table.items() if cells["certain"] == "1"]
    assert (len(table), len(certain)) == (69, 54)
    levels = published_levels(IN21K, taxonomy, LevelOptions(exclusions="none"))
    spans = {level: [placed.similarity for placed in levels.ranked if placed.level == level] for level in range(1, 6)}
    similarity = {placed.wnid: placed.similarity for placed in levels.ranked}
    for wnid in certain:
        assert any(min(span) < similarity[wnid] < max(span) for span in spans.values()), wnid


def test_mini_levels_are_the_given_similarities_cut_anew(taxonomy: Taxonomy) -> None:
    lines = data.path("mini/levels.tsv").read_text().splitlines()
    given_rows = {row["wnid"]: row for row in csv.DictReader(lines, delimiter="\t") if row["lin_to_imagenet1k"]}
    levels = derive_levels(MINI, taxonomy, MINI_READING)
    assert [placed.level for placed in levels.ranked] == [1] * 55 + [2] * 55 + [3] * 55 + [None] + [4] * 55 + [None] + [
        5
    ] * 55
    assert {placed.wnid for placed in levels.ranked} == given_rows.keys()
    for placed in levels.ranked:
        row = given_rows[placed.wnid]
        assert placed.similarity == pytest.approx(float(row["lin_to_imagenet1k"]), abs=5.1e-5)
        if placed.level is not None:
            assert abs(placed.level - int(row["level"])) <= 1
    shipped = MINI.levels.published
    assert shipped is not None
    assert levels.to_csv(between=True) == shipped.read_text()


def test_mini_levels_need_no_computation(taxonomy: Taxonomy) -> None:
    levels = published_levels(MINI, taxonomy)
    assert [placed.wnid for placed in levels.ranked] == [
        placed.wnid for placed in derive_levels(MINI, taxonomy, MINI_READING).ranked
    ]
    assert levels.ranked[0].images == 8
    assert split_concepts(MINI, DEFAULT_OPTIONS, "published", no_wordnet)["L1"] == levels.concepts()[1]


def test_mini_can_be_ranked_against_its_own_seen_concepts(taxonomy: Taxonomy) -> None:
    levels = derive_levels(MINI, taxonomy, LevelOptions(seen="mini"))
    own = set(MINI.seen_concepts("mini"))
    assert len(levels.ranked) == 277
    assert {placed.nearest_seen for placed in levels.ranked} <= own
    assert not {placed.wnid for placed in levels.ranked} & own
    with pytest.raises(ConfigError, match=r"seen=imagenet: universe mini has imagenet1k, mini\. Did you mean"):
        derive_levels(MINI, taxonomy, LevelOptions(seen="imagenet"))


def test_splits_are_the_seen_concepts_and_the_levels() -> None:
    for universe, seen, size in ((IN21K, 1000, 1000), (MINI, 55, 55)):
        splits = split_concepts(universe, DEFAULT_OPTIONS, "published", no_wordnet)
        assert tuple(splits) == universe.splits
        assert [len(wnids) for wnids in splits.values()] == [seen, *[size] * 5]
        assert all(list(wnids) == sorted(wnids) for wnids in splits.values())
        assert len(set().union(*splits.values())) == seen + 5 * size


def test_options_that_published_levels_do_not_follow_are_refused(taxonomy: Taxonomy) -> None:
    options = LevelOptions(lcs="max-ic", exclusions="none")
    with pytest.raises(ConfigError, match=r"^lcs, exclusions: published levels do not follow"):
        split_concepts(IN21K, options, "published", no_wordnet)
    derived = split_concepts(MINI, MINI_READING, "derived", lambda: taxonomy)
    assert derived == split_concepts(MINI, DEFAULT_OPTIONS, "published", no_wordnet)


def test_csv_has_a_line_per_concept(taxonomy: Taxonomy) -> None:
    lines = published_levels(MINI, taxonomy).to_csv().splitlines()
    assert lines[0] == "level,wnid,name,similarity,nearest_seen,images"
    assert lines[1] == "1,n02860415,bobbin.n.01,0.911371181236,n04067472,8"
    assert len(lines) == 276


@pytest.mark.parametrize(
    ("concepts", "number", "size", "gaps"),
    [
        (5_146, 5, 1000, [36, 36, 37, 37]),
        (5_147, 5, 1000, [36, 37, 37, 37]),
        (5_216, 5, 1000, [54, 54, 54, 54]),
        (277, 5, 55, [0, 0, 1, 1]),
        (10, 1, 4, []),
    ],
)
def test_gaps_by_hand(concepts: int, number: int, size: int, gaps: list[int]) -> None:
    starts = level_starts(concepts, number, size)
    assert starts[0] == 0
    assert [after - before - size for before, after in pairwise(starts)] == gaps


@given(number=st.integers(1, 9), size=st.integers(1, 50), spare=st.integers(0, 60))
def test_gaps_are_even_and_the_larger_come_last(number: int, size: int, spare: int) -> None:
    starts = level_starts(number * size + spare, number, size)
    gaps = [after - before - size for before, after in pairwise(starts)]
    assert starts[0] == 0
    assert len(starts) == number
    if gaps:
        assert sum(gaps) == spare
        assert gaps == sorted(gaps)
        assert gaps[-1] - gaps[0] <= 1
        assert starts[-1] + size == number * size + spare


@given(number=st.integers(1, 9), size=st.integers(1, 50), missing=st.integers(1, 60))
def test_too_few_concepts_are_told(number: int, size: int, missing: int) -> None:
    with pytest.raises(ConfigError, match=f"too few for {number} levels of {size}$"):
        level_starts(number * size - missing, number, size)


def test_too_few_concepts_are_told_with_what_each_filter_left(taxonomy: Taxonomy) -> None:
    larger = IN21K.model_copy(update={"levels": IN21K.levels.model_copy(update={"size": 1100})})
    counts = ", ".join(
        f"{name} {left}" for name, left in find_candidates(IN21K, taxonomy, DEFAULT_OPTIONS).left.items()
    )
    with pytest.raises(ConfigError, match=f"too few for 5 levels of 1100; left after each filter: {counts}$"):
        derive_levels(larger, taxonomy, DEFAULT_OPTIONS)


def test_a_least_number_of_images_needs_their_numbers(taxonomy: Taxonomy, tmp_path: Path) -> None:
    concepts = tmp_path / "concepts.csv"
    concepts.write_text("wnid\nn02084071\n")
    wanted = IN21K.model_copy(update={"concepts": concepts})
    with pytest.raises(ConfigError, match=r"filters.min_images is 782, but .*concepts.csv has no column 'images'"):
        find_candidates(wanted, taxonomy, DEFAULT_OPTIONS)


def test_published_levels_of_another_shape_are_refused() -> None:
    smaller = MINI.model_copy(update={"levels": MINI.levels.model_copy(update={"size": 54})})
    with pytest.raises(ConfigError, match="level 1 has 55 concepts, expected 54"):
        published_concepts(smaller)
    fewer = MINI.model_copy(update={"levels": MINI.levels.model_copy(update={"number": 4})})
    with pytest.raises(ConfigError, match="level 5 has 55 concepts, expected 0"):
        published_concepts(fewer)
