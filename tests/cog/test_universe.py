"""Universe files, shipped and the user's own, and the lists they name."""

import csv
import lzma
import random
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from harness import data
from harness.cog.universe import Families
from harness.cog.universe import Listed
from harness.cog.universe import load_universe
from harness.cog.universe import resolve_root
from harness.cog.universe import universe_names
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.errors import MissingInput

OWN = """
name: birds
title: My birds
concepts: lists/concepts.csv
seen: {known: lists/seen.txt}
levels: {number: 2, size: 3}
seen_split: {name: known}
images: {root: birds, test: {rule: random, count: 10}}
"""


def write(folder: Path, text: str) -> str:
    (folder / "lists").mkdir(exist_ok=True)
    (folder / "lists/concepts.csv").write_text("wnid,images\nn02084071,12\nn02121620,13\n")
    (folder / "lists/seen.txt").write_text("n01514668\n")
    path = folder / "birds.yaml"
    path.write_text(text)
    return str(path)


def test_shipped_universes_name_their_splits() -> None:
    assert universe_names() == ["in21k", "mini"]
    assert load_universe("in21k").splits == ("IN1K", "L1", "L2", "L3", "L4", "L5")
    assert load_universe("mini").splits == ("seen", "L1", "L2", "L3", "L4", "L5")


def test_in21k_lists_have_their_sizes() -> None:
    universe = load_universe("in21k")
    counts = universe.image_counts()
    assert (len(counts), sum(count or 0 for count in counts.values())) == (21_841, 14_197_114)
    assert len(universe.seen_concepts()) == len(universe.probed_seen_concepts()) == 1000
    assert set(universe.seen_concepts()) - counts.keys() == {"n04399382"}
    assert isinstance(universe.images.test, Listed)
    numbers = {wnid: cells["numbers"].split() for wnid, cells in read_table(universe.images.test.file).items()}
    assert (len(numbers), {len(set(each)) for each in numbers.values()}) == (5000, {50})


def test_mini_drops_two_concepts_and_probes_55_of_the_228_seen() -> None:
    universe = load_universe("mini")
    seen = universe.seen_concepts("mini")
    assert (len(universe.image_counts()), len(universe.dropped), len(seen)) == (505, 2, 228)
    assert sorted(random.Random(2021).sample(seen, 55)) == list(universe.probed_seen_concepts())  # noqa: S311 - a draw
    assert universe.never_unseen == universe.seen["mini"]
    rows = csv.DictReader(data.path("mini/concepts.tsv").read_text().splitlines(), delimiter="\t")
    flags = ("in_imagenet1k", "is_ancestor_of_imagenet1k", "is_descendant_of_imagenet1k")
    flagged = {row["wnid"] for row in rows if any(row[flag] == "1" for flag in flags)}
    assert flagged - universe.dropped.keys() == set(seen)


def test_every_mini_concept_has_enough_images_on_both_sides() -> None:
    universe = load_universe("mini")
    rule = universe.images.test
    assert isinstance(rule, Families)
    with zipfile.ZipFile(resolve_root(universe.images.root, None)) as archive:
        names = [name.split("/") for name in archive.namelist() if name.endswith(".webp")]
    family = {(wnid, file): rule.artists[file.removesuffix(".webp").removesuffix("-2")] for wnid, file in names}
    test = Counter(wnid for (wnid, _), one in family.items() if one in rule.test)
    train = Counter(wnid for (wnid, _), one in family.items() if one not in rule.test)
    concepts = universe.image_counts()
    assert len(names) == 6194
    assert all(test[wnid] + train[wnid] == count for wnid, count in concepts.items())
    assert min(test[wnid] for wnid in concepts) == 2
    assert min(train[wnid] for wnid in concepts) == 5
    assert all(test[wnid] < 2 or train[wnid] < 5 for wnid in universe.dropped)


def test_names_in_a_users_file_are_relative_to_it(tmp_path: Path) -> None:
    universe = load_universe(write(tmp_path, OWN + "exclusions: embedded:cog/exclusions.csv\n"))
    assert universe.image_counts() == {"n02084071": 12, "n02121620": 13}
    assert universe.probed_seen_concepts() == universe.seen_concepts() == ("n01514668",)
    assert universe.splits == ("known", "L1", "L2")
    assert universe.exclusions == data.path("cog/exclusions.csv")


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("title: My birds", "titel: My birds"), 3, "unknown field 'titel'. Did you mean 'title'?"),
        (("lists/seen.txt", "lists/sen.txt"), 5, "field 'seen.known': no such file"),
        (("lists/seen.txt", "embedded:cog/seen.txt"), 5, "field 'seen.known': cog/seen.txt is not among the embedded"),
        (("lists/concepts.csv", "[1]"), 4, "field 'concepts'"),
        (("name: known", "name: L3"), 7, "field 'seen_split': 'L3' is the name of a level"),
        (("rule: random", "rule: randm"), 8, "field 'images.test.rule'"),
        (("rule: random, count: 10", "rule: families, test: [b], artists: {x: a}"), 8, "belongs to family 'b'"),
        (("count: 10", "count: 0"), 8, "field 'images.test.count'"),
        (("size: 3", "size: 0"), 6, "field 'levels.size'"),
        (("{known: lists/seen.txt}", "{}"), 5, "field 'seen'"),
    ],
)
def test_faults_are_told_with_line_and_field(tmp_path: Path, change: tuple[str, str], line: int, says: str) -> None:
    path = write(tmp_path, OWN.replace(*change))
    with pytest.raises(ConfigError) as raised:
        load_universe(path)
    assert any(text.startswith(f"{path}:{line}: ") and says in text for text in str(raised.value).splitlines()), (
        raised.value
    )


def test_an_unknown_universe_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"universe in22k: neither a file .*in21k, mini.* Did you mean 'in21k'\?"):
        load_universe("in22k")


def test_ten_levels_and_more_have_numbers_of_equal_width(tmp_path: Path) -> None:
    splits = [load_universe(write(tmp_path, OWN.replace("number: 2", f"number: {n}"))).splits for n in (9, 10, 100)]
    assert (splits[0][1], splits[0][-1]) == ("L1", "L9")
    assert (splits[1][1], splits[1][-2], splits[1][-1]) == ("L01", "L09", "L10")
    assert (splits[2][1], splits[2][-2], splits[2][-1]) == ("L001", "L099", "L100")


def test_a_shipped_universe_is_identified_by_its_name() -> None:
    assert [load_universe(name).identity for name in universe_names()] == universe_names()
    assert load_universe(str(data.path("universes/mini.yaml"))).identity == "mini"


def test_the_name_of_a_shipped_universe_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path, OWN.replace("name: birds\n", "name: mini\n"))
    with pytest.raises(ConfigError, match=r"birds\.yaml: mini is the name of a shipped universe; give yours another"):
        load_universe(path)


def test_a_users_universe_is_identified_by_its_content_wherever_it_lies(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    identity = load_universe(write(first, OWN)).identity
    assert re.fullmatch(r"birds@[0-9a-f]{8}", identity)
    moved = write(second, "# the same, said otherwise\n" + OWN.replace("lists/seen.txt", "mine.txt"))
    (second / "lists/seen.txt").rename(second / "mine.txt")
    assert load_universe(moved).identity == identity


@pytest.mark.parametrize(
    "change",
    [
        ("size: 3", "size: 4"),
        ("count: 10", "count: 11"),
        ("root: birds", "root: sketches"),
        ("title: My birds", "title: Their birds"),
        ("{known: lists/seen.txt}", "{known: lists/seen.txt, all: lists/concepts.csv}"),
    ],
)
def test_another_field_makes_another_identity(tmp_path: Path, change: tuple[str, str]) -> None:
    before = load_universe(write(tmp_path, OWN)).identity
    assert load_universe(write(tmp_path, OWN.replace(*change))).identity != before


def test_another_list_or_another_default_list_makes_another_identity(tmp_path: Path) -> None:
    two = ["{a: lists/seen.txt, b: lists/concepts.csv}", "{b: lists/concepts.csv, a: lists/seen.txt}"]
    texts = [OWN.replace("{known: lists/seen.txt}", seen) for seen in two]
    first, second = (load_universe(write(tmp_path, text)).identity for text in texts)
    assert first != second
    universe = load_universe(write(tmp_path, texts[0]))
    assert universe.identity == first
    (tmp_path / "lists/concepts.csv").write_text("wnid,images\nn02084071,12\nn02121620,1\n")
    assert universe.identity not in {first, second}


def test_image_roots() -> None:
    assert resolve_root("embedded:mini/minicog.zip", None) == data.path("mini/minicog.zip")
    assert resolve_root("imagenet21k", Path("/data")) == Path("/data/imagenet21k")
    assert resolve_root("/mine/images", None) == resolve_root("/mine/images", Path("/data")) == Path("/mine/images")
    with pytest.raises(MissingInput, match="imagenet21k: say with --data-root"):
        resolve_root("imagenet21k", None)


@pytest.mark.parametrize(
    ("name", "text", "wnids"),
    [
        ("a.txt", "# mine\nn00000001\n\nn00000002\n", ["n00000001", "n00000002"]),
        ("a.csv", "images, wnid\n3,n00000001\n", ["n00000001"]),
        ("a.tsv", "wnid\tgloss\nn00000001\ta, b\n", ["n00000001"]),
        ("a.csv", 'wnid,gloss\nn00000001,"a, b"\n', ["n00000001"]),
    ],
)
def test_lists_in_each_form(tmp_path: Path, name: str, text: str, wnids: list[str]) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / f"{name}.xz").write_bytes(lzma.compress(text.encode()))
    assert list(read_table(tmp_path / name)) == list(read_table(tmp_path / f"{name}.xz")) == wnids


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "n00000001\nn0000002\n", ":2: 'n0000002' is no WNID"),
        ("a.txt", "n00000001\nn00000001\n", ":2: n00000001 stands twice"),
        ("a.csv", "wnid,images\nn00000001\n", ":2: 1 cells, expected 2 (wnid, images)"),
        ("a.csv", "wnids,images\nn00000001,2\n", ": column 'wnid' is missing. Did you mean 'wnids'?"),
        ("a.csv", "wnid,image\nn00000001,2\n", ": column 'images' is missing. Did you mean 'image'?"),
        ("a.csv", 'wnid,images\nn00000001,"2\n3"\n', ": a quoted cell does not end in its own line"),
        ("a.txt", "# nothing\n", ": no concept in it"),
        ("a.csv", "wnid,images\n", ": no concept in it"),
        ("a.json", "{}", ": expected a file of concepts"),
        ("a.txt.xz", "n00000001\n", ": cannot be read"),
    ],
)
def test_faulty_lists_are_told(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_table(path, ("images",) if "images" in says else ())
    assert f"{path}{says}" in str(raised.value)


def test_a_count_that_is_no_number_is_told(tmp_path: Path) -> None:
    universe = load_universe(write(tmp_path, OWN))
    (tmp_path / "lists/concepts.csv").write_text("wnid,images\nn02084071,many\n")
    with pytest.raises(ConfigError, match=r"concepts\.csv: n02084071: images is 'many', expected a whole number"):
        universe.image_counts()


def test_an_absent_list_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.txt: cannot be read: No such file"):
        read_table(tmp_path / "absent.txt")
