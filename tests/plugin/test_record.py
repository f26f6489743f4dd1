"""Values given to ``record`` inside cases: converted, null with a reason, or a clear error; never a dead worker."""

import xml.etree.ElementTree as ET

import pytest

from tests.plugin.conftest import Project

CASES = """
import math
from pathlib import Path
import numpy as np
import pytest

VALUES = {{
    "float": 1.5,
    "numpy": np.float64(2.5),
    "numpy32": np.float32(0.5),
    "nan": math.nan,
    "numpy_nan": np.float64("nan"),
    "path": Path("a"),
    "text": "71.2",
    "list": [1, None],
    "set": {{1}},
    {more}
}}

@pytest.mark.parametrize("name", VALUES)
def test_value(name, record):
    record(name, VALUES[name])
"""

EXPECTED = {
    "text": "71.2",
    "list": "[1, None]",
    "float": "1.5",
    "numpy": "2.5",
    "numpy32": "0.5",
    "nan": "None",
    "numpy_nan": "None",
}


@pytest.mark.parametrize("workers", [["-n0"], ["-n2"], ["-p", "no:xdist"]], ids=["n0", "n2", "no-xdist"])
def test_values(project: Project, workers: list[str]) -> None:
    more, expected = "", dict(EXPECTED)
    if pytest.importorskip("importlib.util").find_spec("torch"):
        more, expected["tensor"] = '"tensor": __import__("torch").tensor(3.5)', "3.5"
    (project.path / "test_values.py").write_text(CASES.format(more=more))
    result = project.run(*workers, "test_values.py", "--junitxml=out.xml")
    result.assert_outcomes(passed=len(expected), failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        ["*test_values.py:2?:*", "*path is a pathlib*PosixPath, which cannot be recorded*", "*set is a builtins.set*"]
    )
    root = ET.parse(project.path / "out.xml").getroot()  # noqa: S314 - our own file
    found = {prop.get("name"): prop.get("value") for prop in root.iter("property")}
    assert found == expected
