"""What a job of ``harness submit`` does: one shard of a run, as pytest runs it."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any


class ShardFailed(Exception):
    """Pytest said that not all is well. Raised in the job, so that the cluster counts it as failed too."""


@dataclass(frozen=True)
class Shard:
    """One shard. Called, it runs; plain values only, so that it can be sent to another process."""

    number: int
    """From 1."""
    count: int
    arguments: tuple[str, ...]
    """Of pytest."""
    folder: str
    """Where pytest is run."""
    inherit_gpus: bool = False
    """Undo what submitit's local executor does, which shows all of its jobs the same GPUs, or none: with all of the
    user's GPUs in sight, each shard leases one that is free."""
    gpus: str | None = None
    """CUDA_VISIBLE_DEVICES where the run was submitted."""

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"shard {self.number}/{self.count}"

    @property
    def command(self) -> list[str]:
        """The command that the job runs."""
        return [sys.executable, "-m", "pytest", "--shard", f"{self.number}/{self.count}", *self.arguments]

    def __call__(self) -> None:
        """Run the shard.

        Raises:
            ShardFailed: pytest's exit status is not 0.
        """
        environment = dict(os.environ)
        if self.inherit_gpus:
            environment.pop("CUDA_VISIBLE_DEVICES", None)
            if self.gpus is not None:
                environment["CUDA_VISIBLE_DEVICES"] = self.gpus
        sys.stdout.write(f"{self.name}: {shlex.join(self.command)}\n")
        sys.stdout.flush()
        done = subprocess.run(self.command, cwd=self.folder, env=environment, check=False)  # noqa: S603 - the user's own
        if done.returncode:
            raise ShardFailed(f"{self.name}: pytest ended with exit status {done.returncode}")

    def checkpoint(self) -> Any:
        """Go on in a new job when the time of this one runs out: what is done is in the store (called by submitit)."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
