"""Stochastic gradient descent, one image at a time, in blocks: the same updates with matrix products (facts 8.1, 8.2).

Every rule here adds ``x e'`` to W, where e is a combination of class embeddings that depends on ``x W`` (and on random
draws) only. Within a block, later images therefore need not wait for W: with K = X X' of the block,

    x_i W_now = x_i W_before + sum over earlier k of K[i, k] e_k,    W_after = W_before + X' E.

All points of a grid and all training sets go through their images in step. Two more exact savings: e lies in the span
of the embeddings of seen classes, so descent runs in coordinates of a basis of it where that has fewer dimensions than
the embedding; and features are normalised block by block, so that no copy of the training matrix is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from harness.zsl.methods.scaling import Scaling
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import TrainSet

BLOCK = 64


@dataclass(frozen=True, eq=False)
class Stack:
    """Training sets side by side, R of them; fewer classes or dimensions than the largest are padded with zeros.

    Attributes:
        sets: the training sets.
        scalings: the normalisation of each.
        bases: orthonormal columns that span the embeddings of seen classes, each [a, r].
        embeddings: of the seen classes in that basis, [R, k, r].
        counts: seen classes of each set.
        absent: [R, 1, k], 0 for classes of the set and -inf for padding; None where all sets have k classes.
    """

    sets: Sequence[TrainSet]
    scalings: Sequence[Scaling]
    bases: Sequence[Floats]
    embeddings: Floats
    counts: Sequence[int]
    absent: Floats | None


@dataclass(frozen=True, eq=False)
class Step:
    """One image of each set.

    Attributes:
        labels: int64 [R], rows of the set's seen classes.
        own: embedding of each label, [R, 1, r].
        negatives: int64 [R, draws], other classes drawn at random, no more than the set has classes; then the label.
    """

    labels: Labels
    own: Floats
    negatives: Labels


class Rule(Protocol):
    """What one image adds to the weights."""

    @property
    def draws(self) -> int:
        """How many random classes an image needs."""
        ...

    def __call__(self, u: Floats, step: Step, /) -> Floats:
        """Return e for ``u = x W``, both [R, planes, r]."""
        ...


class Draws:
    """The random numbers of one set: a new order each epoch, other classes for each image.

    They depend on the seed and on how much was drawn before, not on the size of blocks.
    """

    def __init__(self, seed: int, classes: int) -> None:
        self._orders, self._negatives = (np.random.default_rng([seed, stream]) for stream in (0, 1))
        self._classes = classes

    def order(self, images: int) -> Labels:
        """Return the order of the next epoch, int64 [images]."""
        return self._orders.permutation(images)

    def negatives(self, labels: Labels, draws: int) -> Labels:
        """Return classes drawn uniformly from all but the label, with replacement, int64 [len(labels), draws].

        No more are drawn than there are classes; the label itself stands for the rest.
        """
        drawn = np.tile(labels[:, None], draws)
        others = self._negatives.random((len(labels), min(draws, self._classes))) * (self._classes - 1)
        drawn[:, : self._classes] = others.astype(np.int64)
        drawn[:, : self._classes] += drawn[:, : self._classes] >= labels[:, None]
        return drawn


def stack(sets: Sequence[TrainSet], scalings: Sequence[Scaling], precision: str) -> Stack:
    """Put training sets side by side, embeddings in the given precision ("float64" or "float32").

    Raises:
        ValueError: a set has one class only, so that there is nothing to rank.
    """
    counts = [len(train.classes) for train in sets]
    if min(counts) < 2:
        raise ValueError("a training set of one class has no other class to rank")
    bases = [
        np.linalg.qr(train.seen.T)[0] if count < train.seen.shape[1] else np.eye(train.seen.shape[1])
        for train, count in zip(sets, counts, strict=True)
    ]
    embeddings = np.zeros((len(sets), max(counts), max(basis.shape[1] for basis in bases)), precision)
    absent = np.zeros((len(sets), 1, max(counts)), precision)
    for r, (train, basis) in enumerate(zip(sets, bases, strict=True)):
        embeddings[r, : counts[r], : basis.shape[1]] = train.seen @ basis
        absent[r, :, counts[r] :] = -np.inf
    return Stack(sets, scalings, bases, embeddings, counts, absent if min(counts) < max(counts) else None)


def descend(
    stacked: Stack, rule: Rule, starts: Floats, planes: Sequence[int], *, epochs: int, seed: int
) -> list[Floats]:
    """Train all planes on all sets.

    Args:
        stacked: the training sets.
        rule: what an image adds.
        starts: first weights, [s, d, a].
        planes: which of them each plane starts from.
        epochs: passes over the images.
        seed: of orders and draws, the same for each set.

    Returns:
        What was added to the first weights of each set, in its basis: [planes, d, r] each.
    """
    d, r = starts.shape[1], stacked.embeddings.shape[2]
    first = np.zeros((len(stacked.sets), d, len(planes), r), stacked.embeddings.dtype)
    for s, basis in enumerate(stacked.bases):
        first[s, :, :, : basis.shape[1]] = (starts @ basis)[planes].transpose(1, 0, 2)
    weights = torch.from_numpy(first.reshape(len(first), d, -1)).clone().to(torch.get_default_device())
    draws = [Draws(seed, count) for count in stacked.counts]
    images = [len(train.labels) for train in stacked.sets]
    for _ in range(epochs):
        orders = [stream.order(n) for stream, n in zip(draws, images, strict=True)]
        for start in range(0, max(images), BLOCK):
            rows = [order[start : start + BLOCK] for order in orders]
            _block(stacked, rule, weights, rows, draws)
    added = weights.cpu().numpy().reshape(first.shape) - first
    return [
        np.ascontiguousarray(change[..., : basis.shape[1]].transpose(1, 0, 2))
        for change, basis in zip(added, stacked.bases, strict=True)
    ]


def _block(stacked: Stack, rule: Rule, weights: torch.Tensor, rows: Sequence[Labels], draws: Sequence[Draws]) -> None:
    """Add the updates of one block of images to the weights, in place."""
    sets, size = len(rows), max(map(len, rows))
    x = np.zeros((sets, size, weights.shape[1]), stacked.embeddings.dtype)
    labels = np.zeros((sets, size), np.int64)
    negatives = np.zeros((sets, size, rule.draws), np.int64)
    for s, (train, scaling, some) in enumerate(zip(stacked.sets, stacked.scalings, rows, strict=True)):
        x[s, : len(some)] = scaling.apply(train.features[some])
        labels[s, : len(some)] = train.targets[some]
        negatives[s, : len(some)] = draws[s].negatives(labels[s, : len(some)], rule.draws)
    on_device = torch.from_numpy(x).to(weights.device)
    before = (on_device @ weights).cpu().numpy()
    gram = (on_device @ on_device.mT).cpu().numpy()
    updates = _walk(stacked, rule, before, gram, labels, negatives)
    weights.baddbmm_(on_device.mT, torch.from_numpy(updates).to(weights.device))


def _walk(stacked: Stack, rule: Rule, before: Floats, gram: Floats, labels: Labels, negatives: Labels) -> Floats:
    """Return the updates of the images of a block, one after the other, [R, block, planes * r]."""
    sets = np.arange(len(labels))
    own = stacked.embeddings[sets[:, None], labels][:, :, None]
    updates = np.zeros_like(before)
    shape = (len(labels), -1, stacked.embeddings.shape[2])
    for i in range(labels.shape[1]):
        now = before[:, i] + (gram[:, i : i + 1, :i] @ updates[:, :i])[:, 0]
        step = Step(labels[:, i], own[:, i], negatives[:, i])
        updates[:, i] = rule(now.reshape(shape), step).reshape(len(labels), -1)
    return updates
