"""Stands in for ``srun`` where there is no Slurm: strips its options, waits for a free GPU, and becomes the program.

The lock of a GPU is an open file that the program inherits, so the system frees it however the program ends.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

GPUS = 2


def main() -> None:
    folder = Path(os.environ["FAKE_SRUN"])
    options = []
    arguments = sys.argv[1:]
    while arguments[0].startswith("-"):
        options.append(arguments.pop(0))
    with (folder / "calls.txt").open("a") as calls:
        calls.write(" ".join(options) + "\n")
    if "--partition=nix" in options:
        sys.exit("srun: error: invalid partition specified: nix")
    os.environ["SLURM_CPUS_PER_TASK"] = next(option[2:] for option in options if option.startswith("-c"))
    if "--gres=gpu:1" in options:
        gpu = lease(folder)
        os.environ |= {"CUDA_VISIBLE_DEVICES": gpu, "SLURM_STEP_GPUS": gpu}
    os.execvp(arguments[0], arguments)  # noqa: S606 - it has no shell, as meant


def lease(folder: Path) -> str:
    """Wait for a GPU that no living program holds."""
    while True:
        for number in range(GPUS):
            descriptor = os.open(folder / f"gpu{number}", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            else:
                os.set_inheritable(descriptor, True)
                return str(number)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
