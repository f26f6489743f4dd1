"""MATLAB files of both versions."""

from pathlib import Path

import numpy as np
import pytest

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.zsl.matfile import MatFile
from tests.zsl.xlsa17_files import Format
from tests.zsl.xlsa17_files import write_mat


@pytest.mark.parametrize("mat", ["5", "7.3"])
def test_both_versions_give_the_same_arrays(tmp_path: Path, mat: Format) -> None:
    path = tmp_path / "x.mat"
    matrix = np.arange(6.0).reshape(2, 3)
    write_mat(path, {"matrix": matrix, "loc": np.array([[300], [1]], np.uint16), "names": ["ä b", "c+d", ""]}, mat)
    file = MatFile(path)
    assert file.version == mat
    assert sorted(file.keys) == ["loc", "matrix", "names"]
    assert file.array("matrix").tolist() == matrix.tolist()
    assert file.texts("names") == ("ä b", "c+d", "")
    positions = file.positions("loc", 300)
    assert positions.dtype == np.int64
    assert positions.tolist() == [299, 0]
    # uint16 would wrap around to 65535 here.
    assert (positions - 1).tolist() == [298, -1]


@pytest.mark.parametrize("mat", ["5", "7.3"])
def test_what_is_wrong_is_named(tmp_path: Path, mat: Format) -> None:
    path = tmp_path / "x.mat"
    write_mat(path, {"loc": np.array([[3], [0]], np.uint16), "part": np.array([[1.5]]), "names": ["a"]}, mat)
    file = MatFile(path)
    with pytest.raises(CorruptInput, match=r"x\.mat: loc: entry 2 is 0, expected whole numbers from 1 to 9\. .*from 0"):
        file.positions("loc", 9)
    with pytest.raises(CorruptInput, match="loc: entry 1 is 3, expected whole numbers from 1 to 2"):
        file.positions("loc", 2)
    with pytest.raises(CorruptInput, match=r"part: entry 1 is 1\.5"):
        file.positions("part", 2)
    with pytest.raises(CorruptInput, match=r"has no Loc; it holds .* Did you mean 'loc'"):
        file.array("Loc")
    with pytest.raises(CorruptInput, match="names holds object, expected numbers"):
        file.array("names")
    with pytest.raises(CorruptInput, match="loc holds uint16, expected a cell array of text"):
        file.texts("loc")


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="no such file"):
        MatFile(tmp_path / "none.mat")
    path = tmp_path / "x.mat"
    path.write_bytes(b"not a MATLAB file" * 50)
    with pytest.raises(CorruptInput, match="cannot be read as a MATLAB file"):
        MatFile(path)
    write_mat(path, {"matrix": np.random.default_rng(0).random((100, 100))}, "5")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CorruptInput, match="matrix cannot be read"):
        MatFile(path).array("matrix")
