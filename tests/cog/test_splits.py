"""The rules that part images into training and test, on small folders of files that nobody decodes."""

import re
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import data
from harness.cog.concepts import ConceptLevels
from harness.cog.splits import Counts
from harness.cog.splits import Split
from harness.cog.splits import load_split
from harness.cog.splits import require_images
from harness.cog.universe import Images
from harness.cog.universe import Listed
from harness.cog.universe import load_universe
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.images import ImageSet
from harness.suite import CogProtocol

README = data.path("mini/README.md")
A, B, C = "n00000001", "n00000002", "n00000003"


def put(root: Path, names: Mapping[str, Sequence[str]]) -> Path:
    for wnid, files in names.items():
        (root / wnid).mkdir(parents=True, exist_ok=True)
        for file in files:
            (root / wnid / file).touch()
    return root


def numbered(count: int) -> list[str]:
    return [f"{number}.jpg" for number in range(count)]


def rule(test: Mapping[str, object], cap: int | None = None, root: str = "images") -> Images:
    return Images.model_validate({"root": root, "test": test, "train_cap": cap})


def load(folder: Path, images: Images, concepts: Sequence[str], counts: Counts | None = None) -> Split:
    return load_split("L1", concepts, images, folder, counts or {})


def of(images: ImageSet, wnid: str) -> list[str]:
    return [identity for identity in images.ids if identity.startswith(wnid)]


def artist(identity: str) -> str:
    return identity.partition("/")[2].removesuffix(".webp").removesuffix("-2")


def assert_consistent(split: Split) -> None:
    """No image on both sides, and every label is the place of its image's concept among the sorted WNIDs."""
    assert not {*split.train.ids} & {*split.test.ids}
    assert list(split.concepts) == sorted(split.concepts)
    for images, labels in ((split.train, split.train_labels), (split.test, split.test_labels)):
        assert labels.dtype == np.int64
        assert [split.concepts[label] for label in labels] == [identity.partition("/")[0] for identity in images.ids]


def test_families_hold_out_all_drawings_of_their_artists(tmp_path: Path) -> None:
    put(tmp_path / "images", {wnid: ["x.png", "x-2.png", "y.png", "z.png"] for wnid in (A, B)})
    images = rule({"rule": "families", "test": ["one"], "artists": {"x": "one", "y": "two", "z": "one"}})
    split = load(tmp_path, images, [B, A])
    assert_consistent(split)
    assert split.train.ids == (f"{A}/y.png", f"{B}/y.png")
    assert split.test.ids == tuple(f"{wnid}/{file}.png" for wnid in (A, B) for file in ("x-2", "x", "z"))
    assert split.train_labels.tolist() == [0, 1]
    assert split.test_labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_an_artist_without_family_is_told(tmp_path: Path) -> None:
    put(tmp_path / "images", {A: ["x.png", "w-2.png"]})
    with pytest.raises(ConfigError, match=rf"{A}/w-2\.png: the universe names no family of artist 'w'"):
        load(tmp_path, rule({"rule": "families", "test": ["one"], "artists": {"x": "one"}}), [A])


def test_listed_images_are_held_out(tmp_path: Path) -> None:
    put(tmp_path / "images", {wnid: [f"{wnid}_{number}.JPEG" for number in range(4)] for wnid in (A, B)})
    (tmp_path / "test.csv").write_text(f"wnid,numbers\n{A},2 0\n{B},3\n{C},1\n")
    split = load(tmp_path, rule({"rule": "listed", "file": str(tmp_path / "test.csv")}), [A, B])
    assert_consistent(split)
    assert split.test.ids == (f"{A}/{A}_2.JPEG", f"{A}/{A}_0.JPEG", f"{B}/{B}_3.JPEG")
    assert split.test_labels.tolist() == [0, 0, 1]
    assert split.train_labels.tolist() == [0, 0, 1, 1, 1]


def test_listed_images_that_are_missing_and_concepts_that_are_not_listed_are_named(tmp_path: Path) -> None:
    put(tmp_path / "images", {wnid: [f"{wnid}_{number}.JPEG" for number in range(4)] for wnid in (A, B)})
    (tmp_path / "test.csv").write_text(f"wnid,numbers\n{A},2 7 9\n")
    images = rule({"rule": "listed", "file": str(tmp_path / "test.csv")})
    with pytest.raises(MissingInput, match=rf"2 published test images of {A} are missing: {A}/{A}_7\.JPEG"):
        load(tmp_path, images, [A])
    with pytest.raises(ConfigError, match=rf"test\.csv: lists no test images of {B}"):
        load(tmp_path, images, [B])


@given(size=st.integers(6, 30), count=st.integers(1, 5), seed=st.integers(0, 99))
def test_random_draws_do_not_depend_on_other_concepts_nor_on_order(
    tmp_path_factory: pytest.TempPathFactory, size: int, count: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("data")
    put(folder / "images", {wnid: numbered(size) for wnid in (A, B, C)})
    images = rule({"rule": "random", "count": count, "seed": seed}, cap=4)
    every, alone = load(folder, images, [C, A, B]), load(folder, images, [B])
    assert_consistent(every)
    assert (of(every.test, B), of(every.train, B)) == (list(alone.test.ids), list(alone.train.ids))
    assert Counter(every.test_labels.tolist()) == {0: count, 1: count, 2: count}
    assert set(Counter(every.train_labels.tolist()).values()) == {min(size - count, 4)}


def test_random_draws_differ_by_concept_and_by_seed(tmp_path: Path) -> None:
    put(tmp_path / "images", {wnid: numbered(60) for wnid in (A, B)})
    first, second = (load(tmp_path, rule({"rule": "random", "count": 20, "seed": seed}), [A, B]) for seed in (1, 2))
    drawn = [{name.partition("/")[2] for name in of(one.test, wnid)} for one in (first, second) for wnid in (A, B)]
    assert len({frozenset(names) for names in drawn}) == 4


def test_the_draw_is_by_seed_and_concept_alone(tmp_path: Path) -> None:
    put(tmp_path / "images", {A: numbered(8)})
    # random.Random("22 n00000001").sample(sorted names, 3): Mersenne Twister draws are the same on every machine.
    split = load(tmp_path, rule({"rule": "random", "count": 3, "seed": 22}), [A])
    assert split.test.ids == (f"{A}/0.jpg", f"{A}/1.jpg", f"{A}/3.jpg")


def test_a_folder_of_its_own_holds_the_test_images(tmp_path: Path) -> None:
    put(tmp_path / "train", {wnid: numbered(3) for wnid in (A, B, C)})
    put(tmp_path / "val", {A: ["0.jpg"], B: ["8.jpg", "9.jpg"]})
    split = load(tmp_path, rule({"rule": "folder", "root": "val"}, root="train"), [A, B], {A: 4, B: 6})
    # The same name in another place is another image.
    assert split.train.ids == tuple(f"{wnid}/{number}.jpg" for wnid in (A, B) for number in range(3))
    assert split.test.ids == (f"{A}/0.jpg", f"{B}/8.jpg", f"{B}/9.jpg")
    assert (split.train_labels.tolist(), split.test_labels.tolist()) == ([0, 0, 0, 1, 1, 1], [0, 1, 1])
    assert split.missing == 1


def test_missing_concepts_and_places_are_named(tmp_path: Path) -> None:
    put(tmp_path / "images", {A: numbered(9)})
    put(tmp_path / "val", {A: numbered(2)})
    drawn = rule({"rule": "random", "count": 2})
    with pytest.raises(MissingInput, match=B):
        load(tmp_path, drawn, [A, B])
    elsewhere = rule({"rule": "folder", "root": "val"})
    put(tmp_path / "images", {B: numbered(2)})
    with pytest.raises(MissingInput, match=rf"val.*{B}"):
        load(tmp_path, elsewhere, [A, B])
    require_images(elsewhere, tmp_path)
    with pytest.raises(MissingInput, match=r"no images at .*gone"):
        require_images(rule({"rule": "folder", "root": "gone"}), tmp_path)
    with pytest.raises(MissingInput, match="images images: say with --data-root"):
        require_images(drawn, None)


@pytest.mark.parametrize(
    ("files", "count", "says"),
    [(numbered(3), 3, "0 training and 3 test"), (["notes.txt"], 2, "0 training and 0 test")],
)
def test_a_concept_without_images_on_a_side_is_told(tmp_path: Path, files: list[str], count: int, says: str) -> None:
    put(tmp_path / "images", {A: numbered(9), B: files})
    with pytest.raises(ConfigError, match=f"{B} has {says} images"):
        load(tmp_path, rule({"rule": "random", "count": count}), [A, B])
    put(tmp_path / "val", {A: numbered(2), B: []})
    with pytest.raises(ConfigError, match=f"{B} has .* and 0 test images"):
        load(tmp_path, rule({"rule": "folder", "root": "val"}), [A, B])


def test_images_that_the_list_counts_and_the_place_lacks_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "images", {A: numbered(5), B: numbered(5), C: numbered(5)})
    drawn = rule({"rule": "random", "count": 1}, cap=2)
    assert load(tmp_path, drawn, [A, B, C]).missing == 0
    assert load(tmp_path, drawn, [A, B, C], {A: 5, B: 5, C: 5}).missing == 0
    assert load(tmp_path, drawn, [A, B, C], {A: 7, B: 3, C: None}).missing == 2
    assert load(tmp_path, drawn, [B, C], {A: 7, C: 9}).missing == 4


def test_in21k_holds_out_the_published_images_and_then_caps(tmp_path: Path) -> None:
    published = load_universe("in21k")
    assert isinstance(published.images.test, Listed)
    numbers = {wnid: cells["numbers"].split() for wnid, cells in read_table(published.images.test.file).items()}
    small, large = sorted(numbers)[:2]
    (tmp_path / "concepts.csv").write_text(f"wnid,images\n{small},60\n{large},1450\n")
    (tmp_path / "levels.csv").write_text(f"level,wnid\n1,{small}\n1,{large}\n")
    rules = published.levels.model_copy(update={"number": 1, "size": 2, "published": tmp_path / "levels.csv"})
    universe = published.model_copy(update={"levels": rules, "concepts": tmp_path / "concepts.csv"})
    held = {wnid: [f"{wnid}_{number}.JPEG" for number in numbers[wnid]] for wnid in (small, large)}
    others = {small: 7, large: 1398}
    place = tmp_path / "imagenet21k"
    put(place, held)
    put(place, {wnid: [f"{wnid}_0{number}.JPEG" for number in range(count)] for wnid, count in others.items()})
    split = ConceptLevels(universe, CogProtocol(), tmp_path, tmp_path / "cache").split("L1")
    assert_consistent(split)
    assert split.test.ids == tuple(f"{wnid}/{file}" for wnid in (small, large) for file in held[wnid])
    # min(n - 50, 1300), of 57 and 1448 images; 60 and 1450 are listed.
    assert (len(of(split.train, small)), len(of(split.train, large))) == (7, 1300)
    assert split.missing == 5


def test_the_cap_leaves_out_images_by_a_draw(tmp_path: Path) -> None:
    put(tmp_path / "images", {A: [f"{number:02}.jpg" for number in range(60)]})
    drawn = {"rule": "random", "count": 10}
    whole, capped = (load(tmp_path, rule(drawn, cap), [A]) for cap in (None, 20))
    assert capped.test.ids == whole.test.ids
    assert {*capped.train.ids} < {*whole.train.ids}
    assert list(capped.train.ids) == sorted(capped.train.ids)
    assert capped.train.ids != whole.train.ids[:20]
    assert len(capped.train) == 20


def test_mini_splits_have_their_sizes_and_share_no_family(tmp_path: Path) -> None:
    universe = load_universe("mini")
    levels = ConceptLevels(universe, CogProtocol(), None, tmp_path)
    splits = {name: levels.split(name) for name in universe.splits}
    assert {name: (len(split.train), len(split.test)) for name, split in splits.items()} == {
        "seen": (476, 176),
        "L1": (497, 181),
        "L2": (476, 179),
        "L3": (477, 171),
        "L4": (482, 179),
        "L5": (490, 179),
    }
    # From the table of artists where the images are described, not from the universe file.
    family_of = dict(
        re.findall(r"^\| ([a-z0-9-]+) \| ([a-z0-9-]+) \| (?:colour|line)", README.read_text(), re.MULTILINE)
    )
    assert len(family_of) == 13
    for split in splits.values():
        assert_consistent(split)
        assert split.missing == 0
        assert len(split.concepts) == 55
        train, test = ({family_of[artist(identity)] for identity in images.ids} for images in (split.train, split.test))
        assert test == {"openmoji", "twemoji"}
        assert not train & test
