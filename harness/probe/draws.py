"""What each seed draws for its trials and for its final run."""

from collections.abc import Iterator
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from harness.probe import sampling
from harness.probe.data import ProbeData
from harness.probe.logistic import prepare
from harness.probe.sampling import Rows
from harness.probe.sampling import stream
from harness.probe.settings import ProbeSettings
from harness.probe.stack import Stack


def trial_rows(labels: Rows, seed: int, settings: ProbeSettings, shots: int | None) -> tuple[Rows, Rows]:
    """Return the rows that a seed's trials learn from and those they are validated on."""
    rows, val = sampling.split(labels, settings.val_fraction, stream(seed, "split"))
    if shots is None:
        return rows, val
    if settings.fewshot_val == "matched":
        val = sampling.draw_shots(val, labels, shots, stream(seed, f"{shots} shots/validation"))
    return sampling.draw_shots(rows, labels, shots, stream(seed, f"{shots} shots/trials")), val


def final_rows(labels: Rows, seed: int, shots: int | None) -> Rows:
    """Return the rows that a seed's final run learns from: all, or a new draw."""
    rows = np.arange(len(labels))
    return rows if shots is None else sampling.draw_shots(rows, labels, shots, stream(seed, f"{shots} shots/final"))


def stack_seeds(
    data: ProbeData, rows: Sequence[Rows], seeds: Sequence[int], purpose: str, batch_size: int
) -> list[Stack]:
    """Return the problems of all seeds, each with draws of its own for ``purpose``, ready to train.

    Args:
        data: what to learn from.
        rows: the rows of each seed, equally many.
        seeds: names of the streams.
        purpose: "trials" or "final".
        batch_size: rows per step.
    """
    start = np.zeros((len(seeds), data.classes, data.x.shape[1]), np.float32)
    for weights, seed in zip(start, seeds, strict=True):
        weights[:, : data.d + 1] = sampling.first_weights(stream(seed, f"{purpose}/start"), data.classes, data.d)
    n, device = len(rows[0]), data.x.device
    return prepare(
        Stack(
            x=data.x,
            labels=data.y,
            rows=torch.from_numpy(np.stack(rows)).to(device),
            start=torch.from_numpy(start).to(device),
            shuffles=[partial(_orders, seed, purpose, n, batch_size) for seed in seeds],
            batch_size=batch_size,
        )
    )


def _orders(seed: int, purpose: str, n: int, batch_size: int) -> Iterator[Rows]:
    return sampling.shuffles(stream(seed, f"{purpose}/order"), n, batch_size)
