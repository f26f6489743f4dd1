"""The arrays on disk: whole, damaged or absent, and what is left behind by reading WordNet."""

import tempfile
from contextlib import AbstractContextManager
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path

import nltk.data
import numpy as np
import pytest

from harness import data
from harness.wordnet import cache
from harness.wordnet.cache import load_taxonomy
from harness.wordnet.source import wordnet_reader
from harness.wordnet.taxonomy import Taxonomy


@pytest.fixture
def builds(taxonomy: Taxonomy, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stand in for NLTK's reading, which takes seconds, and note each time it is asked for."""
    asked: list[Path] = []

    def wordnet_reader(archive: Path) -> AbstractContextManager[None]:
        asked.append(archive)
        return nullcontext()

    monkeypatch.setattr(cache, "wordnet_reader", wordnet_reader)
    monkeypatch.setattr(cache, "read_taxonomy", lambda _: taxonomy)
    return asked


def same(one: Taxonomy, other: Taxonomy) -> bool:
    plain = [field.name for field in fields(Taxonomy) if field.name != "above"]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in plain) and all(
        np.array_equal(getattr(one.above, name), getattr(other.above, name))
        for name in ("start", "ancestor", "distance")
    )


def test_what_is_read_back_is_what_nltk_gave(tmp_path: Path, taxonomy: Taxonomy, builds: list[Path]) -> None:
    assert load_taxonomy(tmp_path) is taxonomy
    again = load_taxonomy(tmp_path)
    assert again is not taxonomy
    assert same(again, taxonomy)
    assert len(builds) == 1


@pytest.mark.parametrize("place", [0, 100, 5_000_000, -1])
def test_a_flipped_bit_is_noticed_and_the_file_built_anew(
    tmp_path: Path, taxonomy: Taxonomy, builds: list[Path], place: int
) -> None:
    load_taxonomy(tmp_path)
    (file,) = tmp_path.rglob("*.npz")
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged and is built anew"):
        load_taxonomy(tmp_path)
    assert len(builds) == 2
    assert same(load_taxonomy(tmp_path), taxonomy)


@pytest.mark.parametrize("size", [0, 10, 4_000_000])
def test_a_truncated_file_is_built_anew(tmp_path: Path, builds: list[Path], size: int) -> None:
    load_taxonomy(tmp_path)
    (file,) = tmp_path.rglob("*.npz")
    file.write_bytes(file.read_bytes()[:size])
    with pytest.warns(UserWarning, match="is damaged and is built anew"):
        load_taxonomy(tmp_path)
    assert len(builds) == 2


def test_reading_leaves_neither_files_nor_a_data_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = list(nltk.data.path)
    with wordnet_reader(data.path("wordnet/wordnet-3.0-nouns.zip")) as reader:
        assert reader.get_version() == "3.0"
        assert reader.synset_from_pos_and_offset("n", 2123159).name() == "tiger_cat.n.02"
        assert nltk.data.path[0].startswith(str(tmp_path))
    assert nltk.data.path == before
    assert list(tmp_path.iterdir()) == []
