"""Cosine similarity of vectors from a file."""

from pathlib import Path

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.wordnet.taxonomy import build_taxonomy
from harness.wordnet.vectors import cosine_with

TAXONOMY = build_taxonomy(
    offsets=np.array([1740, 1930, 2137]),
    names=["entity.n.01", "thing.n.01", "dog.n.01"],
    aliases={"domestic_dog.n.01": 2},
    child=np.array([1, 2]),
    parent=np.array([0, 1]),
    instance=np.array([False, False]),
)
A, B = np.array([0, 1]), np.array([2])
COSINES = [[0.6], [-1.0]]


@pytest.mark.parametrize("header", ["", "4 2\n"])
def test_text_with_and_without_a_first_line(tmp_path: Path, header: str) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(f"{header}unrelated 1 1\nn00001740 3 4\nthing.n.01 -2 0\ndomestic_dog.n.01 5 0\n")
    assert cosine_with(TAXONOMY, B, file)(A) == pytest.approx(np.array(COSINES))


def test_npz(tmp_path: Path) -> None:
    file = tmp_path / "vectors.npz"
    np.savez(file, keys=["n00001740", "thing.n.01", "n00002137"], vectors=np.array([[3, 4], [-2, 0], [5, 0]]))
    assert cosine_with(TAXONOMY, B, file)(A) == pytest.approx(np.array(COSINES))


def test_a_missing_vector_is_told(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("dog.n.01 1 0\n")
    with pytest.raises(ConfigError, match=r"no vector of n00001740 \(entity\.n\.01\), n00001930 \(thing\.n\.01\)$"):
        cosine_with(TAXONOMY, B, file)(A)


@pytest.mark.parametrize("vector", ["0 0", "nan 1", "inf 1"])
def test_a_vector_without_direction_is_refused(tmp_path: Path, vector: str) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(f"dog.n.01 {vector}\n")
    with pytest.raises(ConfigError, match="the vector of n00002137 is zero or not finite"):
        cosine_with(TAXONOMY, B, file)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"dog.n.01 1 2\nthing.n.01 1\n", "line 2 has 1 numbers, the lines before 2"),
        ("a.txt", b"dog.n.01 1 two\n", "could not convert"),
        ("a.npz", b"no archive", "cannot be read as vectors"),
        ("a.txt", b"\xff\xfe\n", "cannot be read as vectors"),
    ],
)
def test_a_faulty_file_is_told(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=says) as raised:
        cosine_with(TAXONOMY, B, file)
    assert str(file) in str(raised.value)


def test_missing_arrays_and_pickled_ones_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", vectors=np.eye(2))
    np.savez(tmp_path / "b.npz", keys=np.array([{}], dtype=object), vectors=np.eye(1))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(ConfigError, match="cannot be read as vectors"):
            cosine_with(TAXONOMY, B, tmp_path / name)
