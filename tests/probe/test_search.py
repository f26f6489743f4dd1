"""Studies in step: the same trials as optuna's own loop, replayed from a journal where they are finished."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from harness.probe.journal import FileJournal
from harness.probe.journal import JournalError
from harness.probe.score import Trial
from harness.probe.search import Outcome
from harness.probe.search import Point
from harness.probe.search import best
from harness.probe.search import search
from harness.probe.settings import ProbeSettings

SETTINGS = ProbeSettings(trials=24)


def accuracy(lr: float, wd: float) -> float:
    """Peak at lr 3, wd 1e-6, in steps, so that there are ties as among accuracies."""
    return round(90 - 20 * abs(math.log10(lr / 3)) - 2 * abs(math.log10(wd / 1e-6)))


class Evaluator:
    """Counts rounds, and breaks off before a given one as a kill would."""

    def __init__(self, stop: int | None = None) -> None:
        self.sizes: list[list[int]] = []
        self._stop = stop

    def __call__(self, points: list[list[Point]]) -> list[list[Outcome]]:
        if len(self.sizes) == self._stop:
            raise KeyboardInterrupt
        self.sizes.append([len(row) for row in points])
        return [[(accuracy(*point), False) for point in row] for row in points]


def optuna_alone(seed: int, settings: ProbeSettings) -> "optuna.Study":
    """The reference's own loop."""

    def objective(trial: "optuna.Trial") -> float:
        lr = trial.suggest_float("lr", *settings.lr_range, log=True)
        return accuracy(lr, trial.suggest_float("wd", *settings.wd_range, log=True))

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed), direction="maximize")
    study.optimize(objective, n_trials=settings.trials)
    return study


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_sequential_search_is_optunas_own() -> None:
    evaluate = Evaluator()
    found = search([22, 37], SETTINGS, evaluate)
    assert evaluate.sizes == [[10, 10]] + [[1, 1]] * 14
    for seed, trials in zip([22, 37], found, strict=True):
        study = optuna_alone(seed, SETTINGS)
        assert [(t.lr, t.wd, t.val_top1) for t in trials] == [
            (t.params["lr"], t.params["wd"], t.value) for t in study.trials
        ]
        assert best(trials).number == study.best_trial.number


@pytest.mark.parametrize(("trials", "sizes"), [(4, [4]), (10, [10]), (11, [10, 1])])
def test_few_trials(trials: int, sizes: list[int]) -> None:
    evaluate = Evaluator()
    (found,) = search([1], replace(SETTINGS, trials=trials), evaluate)
    assert [row[0] for row in evaluate.sizes] == sizes
    assert [trial.number for trial in found] == list(range(trials))


def test_batched_search_asks_five_at_a_time() -> None:
    evaluate = Evaluator()
    (found,) = search([1], replace(SETTINGS, tpe="batched"), evaluate)
    assert [row[0] for row in evaluate.sizes] == [10, 5, 5, 4]
    assert len({(trial.lr, trial.wd) for trial in found}) == 24
    (sequential,) = search([1], SETTINGS, Evaluator())
    assert found[:10] == sequential[:10]


def test_best_is_the_first_of_equals() -> None:
    trials = [Trial(0, 1, 1, 50, False), Trial(1, 1, 1, 60, False), Trial(2, 1, 1, 60, True)]
    assert best(trials).number == 1


@pytest.mark.parametrize("stop", [0, 1, 4, 14])
def test_a_search_cut_short_goes_on_where_it_was(tmp_path: Path, stop: int) -> None:
    journal = FileJournal(tmp_path / "trials.jsonl")
    with pytest.raises(KeyboardInterrupt):
        search([22, 37], SETTINGS, Evaluator(stop), journal, "probe")
    with (tmp_path / "trials.jsonl").open("ab") as file:
        file.write(b'{"identity": "probe", "seeds": [[{"numb')
    rest = Evaluator()
    resumed = search([22, 37], SETTINGS, rest, journal, "probe")
    assert resumed == search([22, 37], SETTINGS, Evaluator())
    assert len(rest.sizes) == 15 - stop
    assert search([22, 37], SETTINGS, Evaluator(0), journal, "probe") == resumed


@pytest.mark.parametrize(
    "change",
    [
        lambda journal: search([22], SETTINGS, Evaluator(), journal, "another"),
        lambda journal: search([23], SETTINGS, Evaluator(), journal, "probe"),
        lambda journal: search([22, 37], SETTINGS, Evaluator(), journal, "probe"),
    ],
    ids=["identity", "seed", "seeds"],
)
def test_the_journal_of_another_probe_is_refused(tmp_path: Path, change: Callable[[FileJournal], Any]) -> None:
    journal = FileJournal(tmp_path / "trials.jsonl")
    search([22], SETTINGS, Evaluator(), journal, "probe")
    with pytest.raises(JournalError, match="another probe"):
        change(journal)


def test_entries_survive_in_order_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = FileJournal(path)
    assert journal.read() == []
    journal.append({"a": 0.1})
    journal.append({"a": 1 / 3})
    with path.open("ab") as file:
        file.write(b'{"a": 7')
    assert journal.read() == [{"a": 0.1}, {"a": 1 / 3}]
    journal.append({"a": 2})
    assert FileJournal(path).read() == [{"a": 0.1}, {"a": 1 / 3}, {"a": 2}]


@pytest.mark.parametrize("line", [b'{"a": \n', b"\x00\x00\n", b"[1]\n"])
def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'{"a": 2}\n')
    with pytest.raises(JournalError, match=r"journal\.jsonl, line 2"):
        FileJournal(path).read()
