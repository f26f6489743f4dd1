"""Hyper-parameter search: one optuna study per seed, all in step, so that their trials train side by side."""

import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING
from typing import TypeAlias

from harness.probe.journal import Journal
from harness.probe.journal import JournalError
from harness.probe.score import Trial
from harness.probe.settings import ProbeSettings
from harness.progress import report

if TYPE_CHECKING:
    import optuna

Point: TypeAlias = tuple[float, float]
"""Learning rate and weight decay."""

Outcome: TypeAlias = tuple[float, bool]
"""Validation top-1 in percent, and whether the run diverged."""

Evaluate: TypeAlias = Callable[[list[list[Point]]], list[list[Outcome]]]
"""Trains, for every seed, the same number of points."""

_BATCH = 5


def search(
    seeds: Sequence[int],
    settings: ProbeSettings,
    evaluate: Evaluate,
    journal: Journal | None = None,
    identity: str = "",
) -> list[tuple[Trial, ...]]:
    """Run a study of ``settings.trials`` trials for each seed.

    The sampler is that of the reference code, ``TPESampler(multivariate=True, seed=seed)`` maximising. Its start-up
    trials are random and look at no result, so all are asked for at once; it yields the very trials it would have
    yielded one at a time. After them each round has one trial per seed, or five where ``settings.tpe`` is "batched":
    those are sampled with ``constant_liar``, which keeps them apart.

    Rounds finished earlier are replayed from the journal, whose entries must carry the same ``identity``.

    Returns:
        All trials of each seed, by number.

    Raises:
        JournalError: the journal was written by another probe.
    """
    studies = [_study(seed, settings) for seed in seeds]
    finished = journal.read() if journal else []
    found: list[list[Trial]] = [[] for _ in seeds]
    for number, size in enumerate(_round_sizes(settings)):
        asked = [[_ask(study, settings) for _ in range(size)] for study in studies]
        if number < len(finished):
            results = _replay(finished[number], identity, _points(asked))
        else:
            results = _run(asked, evaluate)
            if journal:
                journal.append({"identity": identity, "seeds": [[asdict(trial) for trial in row] for row in results]})
        for study, row, trials in zip(studies, results, found, strict=True):
            for trial in row:
                study.tell(trial.number, trial.val_top1)
            trials.extend(row)
        report("probe", len(found[0]), settings.trials)
    return [tuple(trials) for trials in found]


def best(trials: Sequence[Trial]) -> Trial:
    """Return the trial of highest validation top-1, the first of equals, as optuna's ``best_trial`` does."""
    return max(trials, key=lambda trial: (trial.val_top1, -trial.number))


def _round_sizes(settings: ProbeSettings) -> list[int]:
    startup = min(settings.startup_trials, settings.trials)
    step = _BATCH if settings.tpe == "batched" else 1
    rest = settings.trials - startup
    return [startup, *(min(step, rest - done) for done in range(0, rest, step))]


def _study(seed: int, settings: ProbeSettings) -> "optuna.Study":
    import optuna

    with _quiet():
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=settings.startup_trials,
            multivariate=True,
            constant_liar=settings.tpe == "batched",
            seed=seed,
        )
        return optuna.create_study(sampler=sampler, direction="maximize")


def _ask(study: "optuna.Study", settings: ProbeSettings) -> "optuna.Trial":
    trial = study.ask()
    trial.suggest_float("lr", *settings.lr_range, log=True)
    trial.suggest_float("wd", *settings.wd_range, log=True)
    return trial


def _points(asked: "list[list[optuna.Trial]]") -> list[list[Point]]:
    return [[(trial.params["lr"], trial.params["wd"]) for trial in trials] for trials in asked]


def _run(asked: "list[list[optuna.Trial]]", evaluate: Evaluate) -> list[list[Trial]]:
    points = _points(asked)
    return [
        [Trial(trial.number, *point, *outcome) for trial, point, outcome in zip(*columns, strict=True)]
        for columns in zip(asked, points, evaluate(points), strict=True)
    ]


def _replay(entry: dict[str, object], identity: str, points: list[list[Point]]) -> list[list[Trial]]:
    rows = entry.get("seeds")
    if entry.get("identity") == identity and isinstance(rows, list):
        trials = [[Trial(**trial) for trial in row] for row in rows]
        if [[(trial.lr, trial.wd) for trial in row] for row in trials] == points:
            return trials
    raise JournalError("the probe's journal of finished trials is that of another probe; remove it to start over")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep optuna from announcing the study and from warning of arguments it calls experimental."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)
