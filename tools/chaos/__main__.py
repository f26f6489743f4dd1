"""Kill workers and controllers at random instants, and check that nothing is damaged, lost or silently missing.

After each kill: every record is whole and has the numbers of an undisturbed run, every entry of the store has the
digests it was written with, no run that missed a report ended with status 0. After each round an undisturbed run
completes what is there to exactly those numbers; at the end two controllers run at once.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.chaos.checks import Violated
from tools.chaos.kills import Chaos
from tools.chaos.project import make


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--project", type=Path, help="kill in this project's runs (default: a quick one without torch)")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest after -- (default: benchmarks)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        folder = options.project or Path(temporary)
        if options.project is None:
            make(folder)
        arguments = [*(options.pytest or ["benchmarks"]), "-n", str(options.workers)]
        stream = random.Random(options.seed)  # noqa: S311 - instants, not secrets
        chaos = Chaos(folder, stream, arguments, lambda line: print(line, flush=True))
        began = time.monotonic()
        try:
            chaos.run(options.kills)
        except Violated as error:
            print(f"VIOLATED: {error}")
            kept = Path.cwd() / "chaos-failed"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            print(f"everything is kept in {kept}")
            return 1
    print(f"{chaos.tally} in {time.monotonic() - began:.0f} s: nothing damaged, nothing lost, the same numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
