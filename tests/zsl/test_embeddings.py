"""Class embeddings of every kind: rows of unit length in the order of the classes."""

from pathlib import Path

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.wordnet.taxonomy import build_taxonomy
from harness.zsl.embeddings import file_embeddings
from harness.zsl.embeddings import hierarchy
from harness.zsl.embeddings import word_vectors
from harness.zsl.problem import Floats

# An entity is an animal, that is a cat or a dog, of which some are puppies; or it is a cup.
TAXONOMY = build_taxonomy(
    offsets=np.array([10, 20, 30, 40, 50, 60]),
    names=["entity.n.01", "animal.n.01", "cat.n.01", "dog.n.01", "puppy.n.01", "cup.n.01"],
    aliases={},
    child=np.array([1, 2, 3, 4, 5]),
    parent=np.array([0, 1, 1, 3, 0]),
    instance=np.zeros(5, dtype=bool),
)
NAMES = ("cup", "dog", "cat", "puppy")
CONCEPTS = ("n00000060", "dog.n.01", "cat.n.01", "puppy.n.01")
# entity animal cat dog puppy cup
ABOVE = np.array([[1, 0, 0, 0, 0, 1], [1, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 0]], dtype=float)


def test_the_hierarchy_by_hand() -> None:
    embeddings = hierarchy(TAXONOMY, NAMES, CONCEPTS)
    assert embeddings.original is not None
    np.testing.assert_array_equal(embeddings.original, ABOVE)
    unit = ABOVE / np.sqrt(ABOVE.sum(1, keepdims=True))
    # Cosines: cup-dog 1/sqrt(2*3), dog-cat 2/3, dog-puppy 3/sqrt(3*4) ...
    np.testing.assert_allclose(embeddings.values @ embeddings.values.T, unit @ unit.T, atol=1e-14)
    assert embeddings.values.shape == (4, 4)
    assert embeddings.values[0, 1] == 0
    assert (embeddings.name, embeddings.names) == ("wordnet", NAMES)


def test_the_projection_keeps_what_a_linear_method_sees() -> None:
    """Scores of a ridge classifier on the whole vectors and on the projected ones are the same."""
    stream = np.random.default_rng(0)
    target = stream.normal(size=(3, 5))
    embeddings = hierarchy(TAXONOMY, NAMES, CONCEPTS)
    whole = ABOVE / np.sqrt(ABOVE.sum(1, keepdims=True))

    def scores(vectors: Floats) -> Floats:
        seen = vectors[:3]
        found: Floats = vectors @ seen.T @ np.linalg.solve(seen @ seen.T + 0.3 * np.eye(3), target)
        return found

    np.testing.assert_allclose(scores(embeddings.values), scores(whole), atol=1e-12)


def test_information_content_weighs_the_hierarchy() -> None:
    embeddings = hierarchy(TAXONOMY, NAMES, CONCEPTS, "ic")
    # Counted over the closure of 6: entity 6, animal 4, dog 2, the others 1.
    ic = np.log(6 / np.array([6, 4, 1, 2, 1, 1]))
    gram = (ABOVE * ic) @ ABOVE.T
    expected = gram / np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    np.testing.assert_allclose(embeddings.values @ embeddings.values.T, expected, atol=1e-12)
    # Nothing is shared but the root, which tells nothing.
    assert abs(embeddings.values[0] @ embeddings.values[1]) < 1e-12
    assert embeddings.name == "wordnet-ic"


def test_concepts_that_wordnet_does_not_tell_apart_or_does_not_have() -> None:
    with pytest.raises(ConfigError, match=r"the same concept of WordNet: n00000040 stands twice"):
        hierarchy(TAXONOMY, ("a", "b"), ("n00000040", "dog.n.01"))
    with pytest.raises(ConfigError, match=r"dog: expected a WNID or one of its senses: dog\.n\.01"):
        hierarchy(TAXONOMY, ("a", "b"), ("cup.n.01", "dog"))


def test_vectors_of_one_file_line_per_class(tmp_path: Path) -> None:
    file = tmp_path / "colours.csv"
    file.write_text("class,red,green\ncat,0,2\nunrelated,1,1\ncup,3,4\ndog,-1,0\n")
    embeddings = file_embeddings(file, ("cup", "dog", "cat"))
    assert embeddings.name == "colours"
    assert embeddings.original is not None
    assert embeddings.original.tolist() == [[3, 4], [-1, 0], [0, 2]]
    np.testing.assert_allclose(embeddings.values, np.array([[0.6, 0.8], [-1, 0], [0, 1]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,x,y\ncup,1,2\n", r"no row of class dog, cat$"),
        ("class,x,y\ncup,1,2\ndog,1\ncat,1,1\n", r"own\.csv:3: dog has 2 cells, expected 3"),
        ("class,x,y\ncup,1,2\ncup,1,1\n", r"own\.csv:3: cup stands twice"),
        ("class,x,y\ncup,1,2\ndog,1,red\ncat,1,1\n", r"cannot be read: could not convert string to float: 'red'"),
        ("class,x,y\ncup,1,2\ndog,0,0\ncat,1,1\n", r"class 2 has no embedding, it is zero or not finite: dog"),
        ("class,x,y\ncup,1,2\ndog,nan,0\ncat,1,1\n", r"class 2 has no embedding, it is zero or not finite: dog"),
    ],
)
def test_faults_of_csv_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        file_embeddings(file, ("cup", "dog", "cat"))


def test_npy_files(tmp_path: Path) -> None:
    file = tmp_path / "own.npy"
    np.save(file, np.array([[3, 4], [0, -2]]))
    np.testing.assert_allclose(file_embeddings(file, ("cup", "dog")).values, np.array([[0.6, 0.8], [0, -1]]))
    with pytest.raises(ConfigError, match=r"shape 2 x 2, expected numbers with a row for each of 3 classes"):
        file_embeddings(file, ("cup", "dog", "cat"))
    with pytest.raises(ConfigError, match=r"expected class embeddings as \.csv or \.npy"):
        file_embeddings(tmp_path / "own.xlsx", ("cup",))
    with pytest.raises(ConfigError, match="cannot be read"):
        file_embeddings(tmp_path / "none.npy", ("cup",))


def test_word_vectors(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("Giant_Panda 0 5\ngiant 1 0\npersian 3 0\ncat 0 2\ngroove 1 0\nbilled 1 0\nani 0 1\nnoise 9 9\n")
    embeddings = word_vectors(file, ("giant+panda", "persian+cat", "004.Groove_billed_Ani"))
    half, third = 1 / np.sqrt(2), 1 / np.sqrt(5)
    np.testing.assert_allclose(embeddings.values, [[0, 1], [half, half], [2 * third, third]])
    assert (embeddings.name, embeddings.original) == ("words", None)
    with pytest.raises(ConfigError, match=r"words\.txt: no vector of seal, persian\+dog, 2 of 3 classes"):
        word_vectors(file, ("seal", "persian+dog", "cat"))
    assert word_vectors(file, ("n1", "n2"), ("cat", "giant panda")).values.tolist() == [[0, 1], [0, 1]]
