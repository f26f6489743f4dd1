"""What is built: wheel and sdist have everything that the harness reads when it runs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def test_embedded_data_are_in_wheel_and_sdist(built: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "harness"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted = set(tracked.stdout.split())
    assert {"harness/data/mini/minicog.zip", "harness/data/init/benchmarks/test_cog.py.template"} <= wanted
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        assert wanted <= set(wheel.namelist())
        assert any(name.endswith("licenses/NOTICE") for name in wheel.namelist())
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert wanted | {"models.yaml", "benchmarks/test_cog.py", "conftest.py", "README.md", "LICENSE"} <= names
