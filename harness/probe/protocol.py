"""The linear probe and the few-shot probe of ImageNet-CoG, as functions of features and labels."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from harness.errors import ConfigError
from harness.probe.chains import Chain
from harness.probe.chains import side_by_side
from harness.probe.data import Labelled
from harness.probe.data import ProbeData
from harness.probe.data import identity
from harness.probe.data import load_data
from harness.probe.draws import final_rows
from harness.probe.draws import stack_seeds
from harness.probe.draws import trial_rows
from harness.probe.journal import Journal
from harness.probe.logistic import top_classes
from harness.probe.logistic import train
from harness.probe.sampling import Rows
from harness.probe.score import ProbeScore
from harness.probe.score import SeedScore
from harness.probe.score import Trial
from harness.probe.score import has_collapsed
from harness.probe.search import Outcome
from harness.probe.search import Point
from harness.probe.search import best
from harness.probe.search import search
from harness.probe.settings import ProbeSettings
from harness.probe.settings import learning_rate_factors
from harness.probe.stack import Plan
from harness.probe.stack import Stack

T = TypeVar("T")

_DEFAULTS = ProbeSettings()


def linear_probe(
    train: Labelled,
    test: Labelled,
    *,
    seeds: Sequence[int],
    settings: ProbeSettings = _DEFAULTS,
    device: str | torch.device = "cpu",
    journal: Journal | None = None,
) -> ProbeScore:
    """Probe features with a linear classifier learnt from all training images (paper section 3.2).

    For each seed: a fifth of each class validates; 30 trials of learning rate and weight decay are trained on the
    rest and scored after their last epoch; the best pair is retrained on all training images and tested.

    Args:
        train: features [n, d] and classes [n] to learn from.
        test: features [m, d] and classes [m].
        seeds: one whole search and final run for each.
        settings: the protocol's numbers and options.
        device: where to train.
        journal: makes the search resumable.

    Returns:
        One score per seed, in order.

    Raises:
        ConfigError: shapes, labels or settings do not fit, or a class is too small to be split.
        CorruptInput: features are not finite.
        JournalError: the journal is damaged or that of another probe.
    """
    return _probe(train, test, tuple(seeds), settings, torch.device(device), journal, shots=None)


def few_shot_probe(
    train: Labelled,
    test: Labelled,
    *,
    shots: int,
    seeds: Sequence[int],
    settings: ProbeSettings = _DEFAULTS,
    device: str | torch.device = "cpu",
    journal: Journal | None = None,
) -> ProbeScore:
    """Probe features with a classifier learnt from ``shots`` images per class (paper section 4.2.2).

    As published, tuning is not few-shot: the images are first cut 80/20 and trials learn from ``shots`` per class of
    the 80%, but validate on the whole 20% (``settings.fewshot_val``: "matched" takes ``shots`` per class there too).
    The final run learns from a new draw of ``shots`` per class of all training images. Draws of different numbers
    of shots are not nested.

    Args and errors are those of ``linear_probe``; a class with too few images for a draw raises ``ConfigError``.
    """
    return _probe(train, test, tuple(seeds), settings, torch.device(device), journal, shots=shots)


@dataclass(frozen=True)
class _Final:
    """A final run: classifier [C, D], loss per epoch, training top-1 and the likeliest classes [k, n_test]."""

    weight: npt.NDArray[np.float32]
    loss: npt.NDArray[np.float64]
    train_top1: float
    predictions: npt.NDArray[np.int32]


def _probe(
    train: Labelled,
    test: Labelled,
    seeds: tuple[int, ...],
    settings: ProbeSettings,
    device: torch.device,
    journal: Journal | None,
    shots: int | None,
) -> ProbeScore:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError(f"probe seeds are {seeds}: expected one or more, all different and none below 0")
    data = load_data(train, test, settings, device)
    draws = [trial_rows(data.labels, seed, settings, shots) for seed in seeds]
    trials = _tune(data, draws, seeds, settings, (journal, identity(data, seeds, settings, shots)))
    rows = [final_rows(data.labels, seed, shots) for seed in seeds]
    finals = _retrain(data, rows, seeds, settings, [best(row) for row in trials])
    sizes = [(len(train_part), len(val_part)) for train_part, val_part in draws]
    return ProbeScore(
        tuple(_seed_score(data, settings, *column) for column in zip(seeds, trials, sizes, rows, finals, strict=True))
    )


def _tune(
    data: ProbeData,
    draws: Sequence[tuple[Rows, Rows]],
    seeds: Sequence[int],
    settings: ProbeSettings,
    record: tuple[Journal | None, str],
) -> list[tuple[Trial, ...]]:
    """Return the trials of each seed."""
    stacks = stack_seeds(data, [rows for rows, _ in draws], seeds, "trials", settings.batch_size)
    val_rows = [torch.from_numpy(rows).to(data.x.device) for _, rows in draws]

    def evaluate(points: list[list[Point]]) -> list[list[Outcome]]:
        parts = zip(stacks, _deal(points, stacks), _deal(val_rows, stacks), strict=True)
        chains = [_validate(stack, _plan(points, settings), rows) for stack, points, rows in parts]
        return [outcomes for part in side_by_side(chains) for outcomes in part]

    return search(seeds, settings, evaluate, *record)


def _retrain(
    data: ProbeData, rows: Sequence[Rows], seeds: Sequence[int], settings: ProbeSettings, chosen: Sequence[Trial]
) -> list[_Final]:
    """Return the final run of each seed, with the hyper-parameters of the chosen trial."""
    stacks = stack_seeds(data, rows, seeds, "final", settings.batch_size)
    points = _deal([[(trial.lr, trial.wd)] for trial in chosen], stacks)
    chains = [_finish(stack, _plan(part, settings), data) for stack, part in zip(stacks, points, strict=True)]
    return [final for part in side_by_side(chains) for final in part]


def _plan(points: Sequence[Sequence[Point]], settings: ProbeSettings) -> Plan:
    lr, wd = torch.tensor(points, dtype=torch.float64).unbind(-1)
    return Plan(lr, wd, learning_rate_factors(settings.epochs, settings.schedule), settings.momentum)


def _deal(items: Sequence[T], stacks: Sequence[Stack]) -> Iterator[Sequence[T]]:
    """Yield for each stack the items, one per seed, of its problems."""
    start = 0
    for stack in stacks:
        yield items[start : start + len(stack.rows)]
        start += len(stack.rows)


def _validate(stack: Stack, plan: Plan, val_rows: Sequence[torch.Tensor]) -> Chain[list[list[Outcome]]]:
    """Train a round of one stack and score it on each problem's validation rows."""
    fit = yield from train(stack, plan)
    finite = fit.loss.isfinite().all(0).tolist()
    return [
        [(top1, not fine) for top1, fine in zip(_top1(stack, rows, weight), row, strict=True)]
        for weight, rows, row in zip(fit.weight, val_rows, finite, strict=True)
    ]


def _finish(stack: Stack, plan: Plan, data: ProbeData) -> Chain[list[_Final]]:
    """Train the final runs of one stack and classify the test rows."""
    fit = yield from train(stack, plan)
    loss = fit.loss.double().view(len(plan.factors), -1, len(stack.rows)).sum(1) / stack.rows.shape[1]
    rows = torch.arange(len(data.test_x), device=data.x.device)
    return [
        _Final(
            weight=weight[0].cpu().numpy(),
            loss=loss[:, problem].cpu().numpy(),
            train_top1=_top1(stack, stack.rows[problem], weight)[0],
            predictions=top_classes(data.test_x, rows, weight, min(5, data.classes))[0].int().cpu().numpy(),
        )
        for problem, weight in enumerate(fit.weight)
    ]


def _top1(stack: Stack, rows: torch.Tensor, weight: torch.Tensor) -> list[float]:
    """Return the top-1 in percent of each run, of weights [R, C, D], on some rows."""
    hits = (top_classes(stack.x, rows, weight, 1)[:, 0] == stack.labels[rows]).sum(1)
    return [100 * hit / len(rows) for hit in hits.tolist()]


def _seed_score(
    data: ProbeData,
    settings: ProbeSettings,
    seed: int,
    trials: tuple[Trial, ...],
    sizes: tuple[int, int],
    rows: Rows,
    final: _Final,
) -> SeedScore:
    hits = final.predictions == data.test_labels
    counts = np.bincount(data.test_labels, minlength=data.classes)
    right = np.bincount(data.test_labels, weights=hits[0], minlength=data.classes)
    chosen = best(trials)
    return SeedScore(
        seed=seed,
        top1=100 * float(hits[0].mean()),
        top5=100 * float(hits.any(0).mean()),
        best=chosen,
        trials=trials,
        n_train=sizes[0],
        n_val=sizes[1],
        final_rows=rows,
        predictions=np.ascontiguousarray(final.predictions.T),
        per_class=100 * np.divide(right, counts, out=np.full(data.classes, np.nan), where=counts > 0),
        weight=final.weight[:, : data.d].copy(),
        bias=final.weight[:, data.d].copy(),
        train_top1=final.train_top1,
        train_loss=final.loss,
        lr=chosen.lr * np.array(learning_rate_factors(settings.epochs, settings.schedule)),
        diverged=bool(np.isnan(final.loss).any()),
        collapsed=has_collapsed(final.train_top1, chosen.val_top1, len(rows), sizes[1]),
    )
