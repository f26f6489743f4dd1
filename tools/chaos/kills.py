"""Kill workers and controllers of real runs at random instants, and look at what they leave."""

import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path

from tools.chaos import checks
from tools.chaos.runs import Controller

END_SECONDS = 600.0
"""A run that lasts longer hangs."""

ORPHAN_SECONDS = 60.0
"""How long a worker may outlive its controller. execnet gives it fifteen seconds; machines can be busy."""


@dataclass
class Tally:
    """What was done, for the last line."""

    kills: dict[str, int] = field(default_factory=lambda: {"worker": 0, "controller": 0})
    runs: int = 0
    rounds: int = 0
    statuses: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        killed = f"{self.kills['worker']} workers and {self.kills['controller']} controllers killed"
        return (
            f"{killed} in {self.runs} runs ({self.rounds} rounds), exit statuses {dict(sorted(self.statuses.items()))}"
        )


class Chaos:
    """Kills and checks until it has killed often enough.

    Args:
        folder: A project; its ``cache`` and ``reports`` are made and removed.
        stream: Where chance comes from.
        arguments: Of pytest, beside the number of workers.
        say: Is told what happens.
    """

    def __init__(self, folder: Path, stream: random.Random, arguments: list[str], say: Callable[[str], None]) -> None:
        self._folder = folder
        self._stream = stream
        self._arguments = arguments
        self._say = say
        self._seconds = 0.0
        self._seen: set[int] = set()
        self._reference: Mapping[str, tuple[float | None, ...]] = {}
        self.tally = Tally()

    def run(self, kills: int) -> None:
        """Measure undisturbed, kill ``kills`` times over as many rounds as that takes, then run two at once.

        Raises:
            Violated: something that must hold did not.
        """
        self._seconds = self._undisturbed()
        self._reference = checks.read_numbers(self._folder)
        self._say(f"undisturbed: {len(self._reference)} cases in {self._seconds:.1f} s")
        while sum(self.tally.kills.values()) < kills:
            self._round(kills)
        self._fresh()
        self._two_at_once()
        self._no_orphans()

    def _round(self, kills: int) -> None:
        """From nothing to a complete set of numbers, through kills."""
        self._fresh()
        self.tally.rounds += 1
        while sum(self.tally.kills.values()) < kills and self._check() < len(self._reference):
            self._disturbed(kills)
        self._undisturbed()
        self._check(complete=True)
        self._say(f"round {self.tally.rounds}: an undisturbed run ended with the reference's numbers")

    def _disturbed(self, kills: int) -> None:
        """One run, sometimes two at once, in which workers or controllers are killed until it ends."""
        controllers = [self._start() for _ in range(self._stream.choice((1, 1, 1, 2)))]
        deadline = time.monotonic() + END_SECONDS
        if self._stream.random() < 0.75:  # the others are hit while they start and collect
            while all(each.alive and not each.runs_a_case() for each in controllers):
                time.sleep(0.02)
        more = self._stream.randint(1, 4)  # or each that takes a dead one's place is killed as it starts
        while any(each.alive for each in controllers):
            time.sleep(self._stream.uniform(0.01, 0.5 * self._seconds))
            if time.monotonic() > deadline:
                raise checks.Violated(f"a run hangs:\n{controllers[0].output()}")
            alive = [each for each in controllers if each.alive]
            if alive and more and sum(self.tally.kills.values()) < kills:
                self._kill(self._stream.choice(alive))
                more -= 1
        for each in controllers:
            self._ended(each, undisturbed=False)

    def _kill(self, controller: Controller) -> None:
        workers = controller.workers()
        self._seen.update(workers)
        what = "controller" if not workers or self._stream.random() < 0.3 else "worker"
        victim = controller.process.pid if what == "controller" else self._stream.choice(workers)
        with suppress(ProcessLookupError):
            controller.kill(victim)
            self.tally.kills[what] += 1
        done = self._check()
        number = sum(self.tally.kills.values())
        self._say(f"kill {number}: {what} after {controller.age:.1f} s, {done} of {len(self._reference)} measured")

    def _undisturbed(self) -> float:
        """Return how many seconds passed from the first case's begin to the last one's report."""
        controller = self._start()
        while controller.alive and not controller.runs_a_case():
            time.sleep(0.02)
        began = time.time()
        controller.wait(END_SECONDS)
        self._ended(controller, undisturbed=True)
        return controller.log.stat().st_mtime - began

    def _two_at_once(self) -> None:
        controllers = [self._start(), self._start()]
        for each in controllers:
            each.wait(END_SECONDS)
        for each in controllers:
            self._ended(each, undisturbed=True)
        self._check(complete=True)
        self._say("two controllers at once: both ended with the reference's numbers")

    def _start(self) -> Controller:
        self.tally.runs += 1
        command = [sys.executable, "-m", "pytest", *self._arguments]
        return Controller(self._folder, command, self.tally.runs)

    def _ended(self, controller: Controller, *, undisturbed: bool) -> None:
        status = controller.process.wait()
        self.tally.statuses[status] = self.tally.statuses.get(status, 0) + 1
        if status == -signal.SIGKILL and not undisturbed:
            return
        cases = len(self._reference) or len(checks.read_numbers(self._folder))
        try:
            checks.check_exit(status, controller.log, cases, undisturbed=undisturbed)
        except checks.Violated as error:
            raise checks.Violated(f"{error}\n{controller.output()}") from error

    def _check(self, *, complete: bool = False) -> int:
        checks.check_entries(self._folder)
        return checks.check_numbers(self._folder, self._reference, complete=complete)

    def _fresh(self) -> None:
        self._no_orphans()  # one that finishes its case would write into the next round
        for name in ("cache/store", "cache/runs", "reports"):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _no_orphans(self) -> None:
        deadline = time.monotonic() + ORPHAN_SECONDS
        while left := [pid for pid in self._seen if Path(f"/proc/{pid}").exists()]:
            if time.monotonic() > deadline:
                raise checks.Violated(f"workers outlive their controllers: {left}")
            time.sleep(0.1)
        self._seen.clear()
