"""Unseen classes among pre-training classes: the paper's own overlaps (section 4.2) are found."""

from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.wordnet.cache import load_taxonomy
from harness.wordnet.taxonomy import Taxonomy
from harness.zsl.contamination import COUNTED
from harness.zsl.contamination import imagenet1k
from harness.zsl.contamination import overlaps
from harness.zsl.contamination import read_pretraining


@pytest.fixture(scope="module")
def taxonomy(wordnet_cache: Path) -> Taxonomy:
    return load_taxonomy(wordnet_cache)


APY = ["bag", "building", "carriage", "centaur", "donkey", "goat", "jetski", "monkey", "mug", "statue", "wolf", "zebra"]
AWA = [
    *("chimpanzee", "giant+panda", "leopard", "persian+cat", "pig", "hippopotamus"),
    *("humpback+whale", "raccoon", "rat", "seal"),
]
CUB = ["014.Indigo_Bunting", "001.Black_footed_Albatross", "004.Groove_billed_Ani", "100.Brown_Pelican"]


@pytest.mark.parametrize(
    ("unseen", "expected"),
    [
        (APY, ["bag", "building", "carriage", "monkey", "mug", "wolf", "zebra"]),
        (AWA, AWA[:6]),
        (CUB, ["014.Indigo_Bunting"]),
    ],
)
def test_the_overlaps_of_the_paper_and_no_others(taxonomy: Taxonomy, unseen: list[str], expected: list[str]) -> None:
    found = overlaps(taxonomy, unseen, imagenet1k())
    assert [overlap.unseen for overlap in found if overlap.relation in COUNTED] == expected


def test_the_six_scenes_of_sun(taxonomy: Taxonomy) -> None:
    scenes = ["restaurant", "supermarket", "planetarium_outdoor", "tent/outdoor", "market_indoor", "bridge", "volcano"]
    found = {overlap.unseen: overlap.relation for overlap in overlaps(taxonomy, scenes, imagenet1k())}
    assert [name for name in scenes if name in found][:6] == scenes[:6]
    # A supermarket is a grocery store, which is a class of ImageNet-1K.
    assert found["supermarket"] == "below"


def test_wnids_are_compared_by_their_place(taxonomy: Taxonomy) -> None:
    # dog, poodle, cat
    dog, poodle, cat = "n02084071", "n02113335", "n02121620"
    assert [(o.pretraining, o.relation) for o in overlaps(taxonomy, [dog], [poodle, cat])] == [(poodle, "kind")]
    assert [(o.pretraining, o.relation) for o in overlaps(taxonomy, ["poodle.n.01"], [cat, dog])] == [(dog, "below")]
    assert [(o.pretraining, o.relation) for o in overlaps(taxonomy, [cat], [cat, dog])] == [(cat, "same")]
    assert overlaps(taxonomy, [cat], [dog]) == []


def test_names_that_wordnet_does_not_have(taxonomy: Taxonomy, tmp_path: Path) -> None:
    file = tmp_path / "classes.txt"
    file.write_text("Space Elevator\n\nn02121620\n")
    classes = read_pretraining(file)
    assert classes == ("Space Elevator", "n02121620")
    found = overlaps(taxonomy, ["space+elevator", "elevator", "true_cat", "warp drive"], classes)
    assert [(o.unseen, o.pretraining, o.relation) for o in found] == [
        ("space+elevator", "Space Elevator", "same"),
        ("elevator", "Space Elevator", "kind"),
        ("true_cat", "n02121620", "same"),
    ]
    file.write_text("\n")
    with pytest.raises(ConfigError, match="no class in it"):
        read_pretraining(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_pretraining(tmp_path / "none.txt")
