"""Run the tests of clusters with a real Slurm, whose Debian packages are installed first where they are missing.

Needs root. The tests start and stop a cluster of one node by themselves; arguments go to pytest.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.slurm import cluster

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("slurmd", "slurmctld", "slurm-client", "munge")


def main() -> int:
    if any(cluster.find(name) is None for name in cluster.PROGRAMS):
        apt = shutil.which("apt-get")
        if apt is None:
            print(f"Slurm is not installed, and without apt-get it is not installed here: {', '.join(PACKAGES)}")
            return 1
        subprocess.run([apt, "update", "-qq"], check=True)
        subprocess.run([apt, "install", "-y", "-qq", "--no-install-recommends", *PACKAGES], check=True)
    if reason := cluster.missing():
        print(reason)
        return 1
    command = [sys.executable, "-m", "pytest", "tests/cluster", "-k", "real", "-v", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
