"""The protocols end to end: against the plain protocol, their sizes, options and errors, and a killed probe."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import optuna
import pytest
import torch
from torch import nn

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.probe import logistic
from harness.probe import protocol
from harness.probe import sampling
from harness.probe.chains import threads
from harness.probe.journal import FileJournal
from harness.probe.journal import JournalError
from harness.probe.protocol import few_shot_probe
from harness.probe.protocol import linear_probe
from harness.probe.score import ProbeScore
from harness.probe.score import has_collapsed
from harness.probe.search import best
from harness.probe.settings import ProbeSettings
from harness.probe.settings import learning_rate_factors

Labelled: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]
Clusters: TypeAlias = Callable[..., tuple[Labelled, Labelled]]

SHORT = ProbeSettings(epochs=20, trials=4, startup_trials=3)
SEEDS = [22, 37, 45]


def equal(first: ProbeScore, second: ProbeScore) -> bool:
    """Say whether two scores are the same to the last bit."""
    return all(
        a.trials == b.trials and np.array_equal(a.weight, b.weight) and np.array_equal(a.predictions, b.predictions)
        for a, b in zip(first.seeds, second.seeds, strict=True)
    )


def plain_fit(x: torch.Tensor, y: torch.Tensor, lr: float, wd: float, settings: ProbeSettings) -> nn.Linear:
    """Train one classifier with torch's own layer, loss, optimiser and draws."""
    model = nn.Linear(x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=wd)
    for factor in learning_rate_factors(settings.epochs, "reference"):
        for group in optimizer.param_groups:
            group["lr"] = lr * factor
        for rows in torch.randperm(len(x)).split(settings.batch_size):  # type: ignore[no-untyped-call] # torch
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
    return model


def plain_probe(train: Labelled, test: Labelled, seed: int, settings: ProbeSettings) -> float:
    """Return the test top-1 of one seed's whole protocol, one trial at a time, draws as they come."""
    torch.manual_seed(seed)
    x, test_x = (nn.functional.normalize(torch.from_numpy(part[0])) for part in (train, test))
    y, test_y = torch.from_numpy(train[1]), torch.from_numpy(test[1])
    rows, val = map(torch.from_numpy, sampling.split(train[1], 0.2, sampling.stream(seed, "split")))

    def top1(model: nn.Linear, x: torch.Tensor, y: torch.Tensor) -> float:
        return 100 * float((model(x).argmax(1) == y).float().mean())

    def objective(trial: "optuna.Trial") -> float:
        lr = trial.suggest_float("lr", *settings.lr_range, log=True)
        wd = trial.suggest_float("wd", *settings.wd_range, log=True)
        return top1(plain_fit(x[rows], y[rows], lr, wd, settings), x[val], y[val])

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed), direction="maximize")
    study.optimize(objective, settings.trials)
    return top1(plain_fit(x, y, study.best_params["lr"], study.best_params["wd"], settings), test_x, test_y)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("batch_size", [64, 1024], ids=["primal", "dual"])
def test_top1_is_that_of_the_plain_protocol(clusters: Clusters, batch_size: int) -> None:
    train, test = clusters(12, 32, 20, 40, spread=2.5)
    settings = ProbeSettings(epochs=30, trials=8, startup_trials=5, batch_size=batch_size)
    found = linear_probe(train, test, seeds=SEEDS, settings=settings)
    with threads(1):
        plain = [plain_probe(train, test, seed, settings) for seed in SEEDS]
    assert 60 < found.mean < 95
    assert abs(found.mean - np.mean(plain)) <= max(found.std, float(np.std(plain)))


def test_linear_probe_records_what_it_did(clusters: Clusters) -> None:
    train, test = clusters(6, 10, 11, 7)
    score = linear_probe(train, test, seeds=SEEDS, settings=SHORT)
    shown = repr(score).splitlines()
    assert shown[0] == f"ProbeScore(mean={score.mean:.2f}, std={score.std:.2f}, seeds=("
    assert [line.partition(",")[0] for line in shown[1:-1]] == [f"  SeedScore(seed={seed}" for seed in SEEDS]
    assert [one.seed for one in score.seeds] == SEEDS
    tops = [one.top1 for one in score.seeds]
    assert score.mean == pytest.approx(sum(tops) / 3)
    assert score.std == pytest.approx((sum((top - score.mean) ** 2 for top in tops) / 3) ** 0.5)
    for one in score.seeds:
        assert (one.n_train, one.n_val) == (6 * 9, 6 * 2)
        assert one.final_rows.tolist() == list(range(66))
        assert len(one.trials) == 4
        assert one.best.val_top1 == max(trial.val_top1 for trial in one.trials)
        assert one.lr[0] == one.lr[1] == one.best.lr
        assert one.train_loss.shape == (20,)
        assert one.train_loss[-1] < one.train_loss[0] < 3
        assert one.predictions.shape == (42, 5)
        hits = one.predictions == test[1][:, None]
        assert one.top1 == pytest.approx(100 * hits[:, 0].mean())
        assert one.top5 == pytest.approx(100 * hits.any(1).mean())
        assert one.per_class.mean() == pytest.approx(one.top1)
        features = test[0] / np.linalg.norm(test[0], axis=1, keepdims=True)
        logits = features @ one.weight.T + one.bias
        assert np.array_equal(np.argsort(-logits, axis=1)[:, :5], one.predictions)
        assert not one.diverged


def test_seeds_do_not_depend_on_order_or_company(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_SMALL", 0)
    train, test = clusters(5, 8, 10, 5, spread=2.0)
    three = linear_probe(train, test, seeds=SEEDS, settings=SHORT)
    turned = linear_probe(train, test, seeds=SEEDS[::-1], settings=SHORT)
    assert equal(three, ProbeScore(turned.seeds[::-1]))
    pair = linear_probe(train, test, seeds=SEEDS[1:], settings=SHORT)
    assert equal(ProbeScore(three.seeds[1:]), pair)


def test_few_shot_probe_learns_from_exactly_n_per_class(clusters: Clusters) -> None:
    train, test = clusters(4, 8, 20, 5)
    score = few_shot_probe(train, test, shots=3, seeds=SEEDS, settings=SHORT)
    for one in score.seeds:
        assert np.bincount(train[1][one.final_rows]).tolist() == [3] * 4
        assert (one.n_train, one.n_val) == (3 * 4, 4 * 4)
    assert len({tuple(one.final_rows) for one in score.seeds}) == 3
    more = few_shot_probe(train, test, shots=5, seeds=SEEDS[:1], settings=SHORT)
    assert not set(score.seeds[0].final_rows) <= set(more.seeds[0].final_rows)


def test_matched_validation_has_as_many_as_training(clusters: Clusters) -> None:
    train, test = clusters(4, 8, 20, 5)
    matched = replace(SHORT, fewshot_val="matched")
    (one,) = few_shot_probe(train, test, shots=2, seeds=[22], settings=matched).seeds
    assert (one.n_train, one.n_val) == (8, 8)
    with pytest.raises(ConfigError, match="4 images to draw from: 5 shots"):
        few_shot_probe(train, test, shots=5, seeds=[22], settings=matched)


def test_more_shots_than_the_training_part_has_are_refused(clusters: Clusters) -> None:
    train, test = clusters(4, 8, 10, 5)
    few_shot_probe(train, test, shots=8, seeds=[22], settings=SHORT)
    with pytest.raises(ConfigError, match="class 0 has 8 images to draw from: 9 shots"):
        few_shot_probe(train, test, shots=9, seeds=[22], settings=SHORT)


def test_inputs_of_every_kind_give_the_same(clusters: Clusters, tmp_path: Path) -> None:
    train, test = clusters(4, 8, 10, 5)
    expected = linear_probe(train, test, seeds=[22], settings=SHORT)
    np.save(tmp_path / "x.npy", train[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert equal(expected, linear_probe((mapped, train[1].astype(np.int16)), test, seeds=[22], settings=SHORT))
    tensors = torch.from_numpy(train[0]), torch.from_numpy(train[1])
    assert equal(expected, linear_probe(tensors, test, seeds=[22], settings=SHORT, device=torch.device("cpu")))
    longer = train[0] * np.arange(1, 41, dtype=np.float32)[:, None]
    (rescaled,) = linear_probe((longer, train[1]), test, seeds=[22], settings=SHORT).seeds
    assert rescaled.top1 == expected.seeds[0].top1


def test_options_change_what_they_name(clusters: Clusters) -> None:
    train, test = clusters(5, 8, 10, 5, spread=2.0)
    base = linear_probe(train, test, seeds=[22], settings=SHORT).seeds[0]
    raw = linear_probe(train, test, seeds=[22], settings=replace(SHORT, l2_normalize=False)).seeds[0]
    assert np.abs(raw.train_loss - base.train_loss).max() > 0.01
    exact = linear_probe(train, test, seeds=[22], settings=replace(SHORT, schedule="exact")).seeds[0]
    assert exact.lr[1] < exact.lr[0]
    low = linear_probe(train, test, seeds=[22], settings=replace(SHORT, precision="bfloat16")).seeds[0]
    assert low.weight.dtype == np.float32
    assert 0 < np.abs(low.weight - base.weight).max() < 0.1 * np.abs(base.weight).max()


def test_a_diverging_search_and_final_run_are_flagged(clusters: Clusters) -> None:
    train, test = clusters(3, 6, 10, 5)
    huge = [(1e19 * part[0], part[1]) for part in (train, test)]
    settings = replace(SHORT, l2_normalize=False, lr_range=(1e2, 1e3))
    (one,) = linear_probe(huge[0], huge[1], seeds=[22], settings=settings).seeds
    assert all(trial.diverged and 0 <= trial.val_top1 <= 100 for trial in one.trials)
    assert one.diverged
    assert np.isnan(one.train_loss[-1])
    assert np.isfinite(one.weight).all()


@pytest.mark.parametrize(
    ("train_top1", "val_top1", "n", "collapsed"),
    [
        (10.0, 60.0, 1000, True),
        (29.0, 60.0, 1000, True),
        (31.0, 60.0, 1000, False),
        (99.0, 60.0, 1000, False),
        (0.0, 60.0, 5, False),
        (0.5, 2.0, 100, False),
        (0.0, 0.0, 100, False),
    ],
)
def test_collapse_is_under_half_by_more_than_chance(
    train_top1: float, val_top1: float, n: int, collapsed: bool
) -> None:
    assert has_collapsed(train_top1, val_top1, n, n) is collapsed


def test_a_final_run_that_does_not_learn_is_flagged(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = clusters(4, 16, 50, 50)
    (fine,) = linear_probe(train, test, seeds=[22], settings=SHORT).seeds
    assert fine.train_top1 > 90
    assert not fine.collapsed
    monkeypatch.setattr(protocol, "best", lambda trials: replace(best(trials), lr=1e-12))
    (failed,) = linear_probe(train, test, seeds=[22], settings=SHORT).seeds
    assert failed.best.val_top1 > 90
    assert failed.train_top1 < 50
    assert failed.collapsed


def test_a_harder_test_set_is_no_collapse(clusters: Clusters) -> None:
    train, test = clusters(4, 16, 50, 50)
    (one,) = linear_probe(train, (test[0], np.roll(test[1], 50)), seeds=[22], settings=SHORT).seeds
    assert one.top1 < 10
    assert not one.collapsed


def test_fewer_classes_than_five_and_classes_without_test_images(clusters: Clusters) -> None:
    train, test = clusters(3, 8, 10, 5)
    some = test[1] != 1
    (one,) = linear_probe(train, (test[0][some], test[1][some]), seeds=[22], settings=SHORT).seeds
    assert one.predictions.shape == (10, 3)
    assert one.top5 == 100
    assert np.isnan(one.per_class).tolist() == [False, True, False]


def test_bad_input_is_refused(clusters: Clusters) -> None:
    train, test = clusters(3, 8, 10, 5)
    x, y = train

    def probe(train: Any, test: Any = test, **changes: Any) -> None:
        linear_probe(train, test, **{"seeds": [22], "settings": SHORT, **changes})

    for wrong, message in (
        ((x.tolist(), y), "features are a list: expected an array or a tensor"),
        ((x[:, 0], y), "expected a matrix"),
        ((x, y[:-1]), "training labels have shape"),
        ((x, y.astype(float)), "expected one integer"),
        ((x, y - 1), "training labels hold -1"),
        ((x, 2 * y), r"classes \[1, 3\] of 5 have no training image"),
        ((x[7:], y[7:]), "class 0 has 3 training images"),
    ):
        with pytest.raises(ConfigError, match=message):
            probe(wrong)
    with pytest.raises(ConfigError, match="test class 3"):
        probe(train, (test[0], test[1] + 1))
    with pytest.raises(ConfigError, match="7 columns: expected 8"):
        probe(train, (test[0][:, 1:], test[1]))
    for seeds in ([], [22, 22], [-1]):
        with pytest.raises(ConfigError, match="probe seeds"):
            probe(train, seeds=seeds)
    with pytest.raises(ConfigError, match="float16 needs an accelerator"):
        probe(train, settings=replace(SHORT, precision="float16"))
    broken = x.copy()
    broken[17, 2] = np.inf
    with pytest.raises(CorruptInput, match="training features: row 17"):
        probe((broken, y))


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_protocol import probe_for_kill
from harness.probe.journal import FileJournal

class Deadly(FileJournal):
    def append(self, entry):
        super().append(entry)
        if len(self.read()) == {rounds}:
            os.kill(os.getpid(), signal.SIGKILL)

probe_for_kill(Deadly(Path({path!r})))
"""


def probe_for_kill(journal: FileJournal | None) -> ProbeScore:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 10)
    x = rng.normal(size=(40, 8)) + y[:, None]
    return few_shot_probe((x, y), (x + 0.1, y), shots=4, seeds=[22, 37], settings=SHORT, journal=journal)


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_killed_probe_goes_on_and_ends_with_the_same_numbers(tmp_path: Path, rounds: int) -> None:
    path = tmp_path / "trials.jsonl"
    code = KILLED.format(folder=str(Path(__file__).parent), rounds=rounds, path=str(path))
    killed = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path.cwd())
    assert killed.returncode == -signal.SIGKILL
    journal = FileJournal(path)
    assert len(journal.read()) == rounds
    resumed = probe_for_kill(journal)
    assert equal(resumed, probe_for_kill(None))
    assert len(journal.read()) == 2


def test_the_journal_of_other_features_is_refused(tmp_path: Path, clusters: Clusters) -> None:
    journal = FileJournal(tmp_path / "trials.jsonl")
    train, test = clusters(4, 8, 10, 5)
    linear_probe(train, test, seeds=[22], settings=SHORT, journal=journal)
    with pytest.raises(JournalError, match="another probe"):
        linear_probe((train[0] + 1, train[1]), test, seeds=[22], settings=SHORT, journal=journal)
    with pytest.raises(JournalError, match="another probe"):
        few_shot_probe(train, test, shots=1, seeds=[22], settings=SHORT, journal=journal)
