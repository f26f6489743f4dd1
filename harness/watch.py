"""What is said of a run under way: the same words at the end of pytest's dots and in ``harness status``."""

from collections.abc import Iterable

from tabulate import tabulate

from harness.runs import Heartbeat
from harness.runs import Run

PATIENCE_SECONDS = 600.0
"""A case that makes no progress for so long is called stuck, unless it is expected to take long."""

_PATIENCE_FACTOR = 5.0


def spell(seconds: float) -> str:
    """Return a duration in words, in two figures at most: ``8 s``, ``4 min``, ``2 h 5 min``, ``3 d 4 h``."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(hours + minutes / 60), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def headline(run: Run, beats: Iterable[Heartbeat], now: float) -> str:
    """Return one line on the whole run: what is done, what runs, how long it took and how long it may yet take."""
    if run.selected is None:
        return f"collecting cases for {spell(now - run.began)}"
    outcomes = [f"{count} {name}" for count, name in ((run.failed, "failed"), (run.skipped, "skipped")) if count]
    done = f"{run.reported} of {run.selected} cases" + (f" ({', '.join(outcomes)})" if outcomes else "")
    running = sum(beat.case is not None and not beat.silent(now) for beat in beats)
    left = "time left unknown" if run.seconds_left is None else f"about {spell(run.seconds_left)} left"
    return f"{done} in {spell(now - run.began)}; {running} running; {left}"


def worker_table(run: Run, beats: Iterable[Heartbeat], now: float) -> list[str]:
    """Return one line for each worker under a line of titles: its case, how far that is and for how long it runs."""
    rows = [
        [beat.worker, beat.host, beat.device or "-", _short(beat.case), _stage(beat), _for(beat, now), note]
        for beat in beats
        for note in [_silence(beat, now) or run.stuck.get(beat.worker, "")]
    ]
    if not rows:
        return []
    titles = ["worker", "host", "device", "case", "stage", "for", "trouble"]
    return [line.rstrip() for line in tabulate(rows, titles, tablefmt="simple", disable_numparse=True).splitlines()]


def longest(beats: Iterable[Heartbeat], now: float) -> str:
    """Return what is said of the case that has been running for longest; empty where none runs."""
    running = [beat for beat in beats if beat.case is not None]
    if not running:
        return ""
    beat = min(running, key=lambda beat: beat.case_began)
    stage = f", {_stage(beat)}" if beat.stage else ""
    return f"{_short(beat.case)} on {beat.worker}{stage}, for {_for(beat, now)}"


def stuck_lines(run: Run, beats: Iterable[Heartbeat]) -> list[str]:
    """Return one line for each worker that is stuck, with what is needed to look after it."""
    return [
        f"stuck? {beat.worker} (process {beat.pid} on {beat.host}), {_short(beat.case)}: {run.stuck[beat.worker]}"
        for beat in beats
        if beat.worker in run.stuck
    ]


def trouble(beat: Heartbeat, now: float, expected: float | None) -> str | None:
    """Say what is wrong with a process, None where nothing is.

    Args:
        beat: Its latest word.
        now: Seconds since the epoch.
        expected: Seconds that its case is expected to take, None where nothing is known.
    """
    if silence := _silence(beat, now):
        return silence
    still = now - beat.progressed
    if beat.case is not None and still > max(PATIENCE_SECONDS, _PATIENCE_FACTOR * (expected or 0.0)):
        return f"no progress for {spell(still)}"
    return None


def _silence(beat: Heartbeat, now: float) -> str | None:
    if not beat.silent(now):
        return None
    return f"no sign of life for {spell(now - beat.updated)}: the process is gone, or stopped"


def _short(case: str | None) -> str:
    """Return a node id without its file."""
    return case.rpartition("::")[2] if case else "-"


def _stage(beat: Heartbeat) -> str:
    if beat.case is None or beat.stage is None:
        return ""
    if not beat.total or beat.done is None:
        return beat.stage
    return f"{beat.stage} {beat.done}/{beat.total} ({100 * beat.done // beat.total} %)"


def _for(beat: Heartbeat, now: float) -> str:
    return spell(now - beat.case_began) if beat.case else ""
