"""Run the torch-free tests on every supported Python and pytest, each in a bare environment without torch.

Interpreters are looked for as ``python3.N`` on the path; one that is not there is named and fails the run.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
PYTESTS = ("9.0.*", "9.1.*", "9.2.*")
PACKAGES = (
    "filelock", "h5py", "hatchling", "hypothesis", "jinja2", "matplotlib", "nltk", "numpy", "pillow", "platformdirs",
    "pydantic", "pytest-timeout", "pytest-xdist", "pyyaml", "safetensors", "scipy", "tabulate",
)  # fmt: skip


def main() -> int:
    failed = []
    for python, version in itertools.product(PYTHONS, PYTESTS):
        print(f"== Python {python}, pytest {version}", flush=True)
        if not run(python, version):
            failed.append(f"Python {python} with pytest {version}")
    print("\n".join(f"failed: {name}" for name in failed) or f"all {len(PYTHONS) * len(PYTESTS)} combinations passed")
    return bool(failed)


def run(python: str, version: str) -> bool:
    interpreter = shutil.which(f"python{python}")
    if interpreter is None:
        print(f"python{python} is not on the path")
        return False
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bin" / "python"
        pip = [str(bare), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        without_pytest = Path(folder) / "constraints.txt"
        try:
            subprocess.run([interpreter, "-m", "venv", folder], check=True)
            locked = (ROOT / "constraints.txt").read_text().splitlines()
            without_pytest.write_text("\n".join(line for line in locked if not line.startswith("pytest==")))
            subprocess.run([*pip, "-c", str(without_pytest), f"pytest=={version}", *PACKAGES], check=True)
            subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
        except subprocess.CalledProcessError as error:
            print(f"the environment could not be made: {error}")
            return False
        command = [str(bare), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
