"""Seen concepts and levels as a run asks for them."""

from pathlib import Path
from statistics import fmean

import pytest

from harness.cog.concepts import ConceptLevels
from harness.cog.concepts import levels_of
from harness.cog.concepts import similarities
from harness.cog.levels import Levels
from harness.cog.universe import Universe
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.suite import CogProtocol

MINI = load_universe("mini")
DERIVED = CogProtocol(levels="derived")
CATS, DOGS, CHAIRS = ("n02123045", "n02123159"), ("n02099601", "n02099712"), ("n03001627", "n04099969")


def own_universe(folder: Path, levels: int = 2) -> Universe:
    """Two cats, two dogs and two chairs, ranked against a cat or against a chair."""
    wnids = (*CATS, *DOGS, *CHAIRS)
    (folder / "concepts.csv").write_text("wnid,images\n" + "".join(f"{wnid},3\n" for wnid in wnids))
    (folder / "cat.txt").write_text("n02124075\n")
    (folder / "chair.txt").write_text("n02791124\n")
    (folder / "own.yaml").write_text(
        "{name: own, title: Own, concepts: concepts.csv, seen: {cat: cat.txt, chair: chair.txt}, "
        f"levels: {{number: {levels}, size: 1}}, seen_split: {{name: seen, images: {{root: other, test: &t "
        "{rule: random, count: 1}}}, images: {root: images, test: *t}}"
    )
    return load_universe(str(folder / "own.yaml"))


def put(root: Path, wnids: tuple[str, ...], count: int) -> None:
    for wnid in wnids:
        (root / wnid).mkdir(parents=True)
        for number in range(count):
            (root / wnid / f"{number}.jpg").touch()


def level(levels: Levels, number: int) -> list[str]:
    return [placed.wnid for placed in levels.ranked if placed.level == number]


@pytest.mark.parametrize("ask", ["split", "require", "mean_similarity"])
def test_an_unknown_split_is_told_with_the_nearest(ask: str, cache: Path) -> None:
    levels = ConceptLevels(MINI, CogProtocol(), None, cache)
    with pytest.raises(ConfigError, match=r"sen: universe mini has seen, L1, .*, L5\. Did you mean 'seen'\?"):
        getattr(levels, ask)("sen")
    with pytest.raises(ConfigError, match="L6: universe mini has"):
        getattr(levels, ask)("L6")


def test_mean_similarity_is_that_of_the_published_list(cache: Path) -> None:
    levels = ConceptLevels(MINI, CogProtocol(), None, cache)
    assert MINI.levels.published is not None
    rows = read_table(MINI.levels.published).values()
    for number in range(1, 6):
        stated = [float(cells["similarity"]) for cells in rows if cells["level"] == str(number)]
        assert len(stated) == 55
        assert levels.mean_similarity(f"L{number}") == pytest.approx(fmean(stated), abs=1e-12)
    assert levels.mean_similarity("seen") is None


def test_published_levels_hold_until_others_are_asked_for(cache: Path) -> None:
    published, derived = (ConceptLevels(MINI, protocol, None, cache) for protocol in (CogProtocol(), DERIVED))
    stated = {placed.wnid for placed in published.levels.ranked if placed.level == 1}
    assert {*published.split("L1").concepts} == stated
    ours = {*derived.split("L1").concepts}
    assert ours == {placed.wnid for placed in derived.levels.ranked if placed.level == 1}
    assert 0 < len(ours - stated) < 10
    assert derived.split("seen").concepts == published.split("seen").concepts == MINI.probed_seen_concepts()


def test_a_split_is_looked_for_once(cache: Path) -> None:
    levels = ConceptLevels(MINI, CogProtocol(), None, cache)
    assert levels.split("L2") is levels.split("L2")


def test_levels_are_ranked_against_the_list_of_seen_concepts_asked_for(tmp_path: Path, cache: Path) -> None:
    universe = own_universe(tmp_path)
    by_cat = levels_of(universe, CogProtocol(), cache)
    by_chair = levels_of(universe, CogProtocol(levels="derived", seen="chair"), cache)
    assert (by_cat.ranked[0].nearest_seen, by_chair.ranked[0].nearest_seen) == ("n02124075", "n02791124")
    assert level(by_cat, 1)[0] in CATS
    assert level(by_chair, 2)[0] in {*CATS, *DOGS}
    assert level(by_chair, 1)[0] == "n04099969"  # rocking chair; the chair itself lies above the seen one
    with pytest.raises(ConfigError, match=r"seen=chairs: universe own has cat, chair\. Did you mean 'chair'\?"):
        levels_of(universe, CogProtocol(levels="derived", seen="chairs"), cache)


def test_places_are_required_by_split(tmp_path: Path, cache: Path) -> None:
    levels = ConceptLevels(own_universe(tmp_path), CogProtocol(), tmp_path, cache)
    (tmp_path / "other").mkdir()
    levels.require("seen")
    with pytest.raises(MissingInput, match=r"no images at .*images: "):
        levels.require("L1")


def test_images_that_the_concept_list_counts_are_missed_in_the_universe_s_own_place_only(
    tmp_path: Path, cache: Path
) -> None:
    put(tmp_path / "images", (*CATS, *DOGS, *CHAIRS), 2)
    put(tmp_path / "other", ("n02124075",), 2)
    universe = own_universe(tmp_path)
    with (tmp_path / "concepts.csv").open("a") as concepts:
        concepts.write("n02124075,30\n")
    levels = ConceptLevels(universe, CogProtocol(), tmp_path, cache)
    assert (levels.split("L1").missing, levels.split("seen").missing) == (1, 0)


def test_ten_levels_have_names_none_of_which_is_part_of_another(cache: Path) -> None:
    rule = MINI.levels.model_copy(update={"number": 10, "size": 20, "published": None})
    universe = MINI.model_copy(update={"levels": rule})
    levels = ConceptLevels(universe, CogProtocol(), None, cache)
    assert not [(a, b) for a in universe.splits for b in universe.splits if a != b and a in b]
    assert universe.splits[1:] == ("L01", "L02", "L03", "L04", "L05", "L06", "L07", "L08", "L09", "L10")
    for number in (1, 10):
        name = f"L{number:02}"
        assert {*levels.split(name).concepts} == {*level(levels.levels, number)}
    assert (levels.mean_similarity("L01") or 0) > (levels.mean_similarity("L10") or 1)


def test_ranks_count_from_one_and_gaps_have_no_level(cache: Path) -> None:
    ranks = similarities(levels_of(MINI, CogProtocol(), cache))
    assert [rank for rank, _, _ in ranks] == list(range(1, 278))
    assert [value for _, value, _ in ranks] == sorted((value for _, value, _ in ranks), reverse=True)
    assert sum(number is None for _, _, number in ranks) == 2
