"""Each SGD rule as published: one image at a time, one interpreted step after the other, nothing shared.

What the block form is compared with, in tests (same weights) and in ``perf/zsl.py`` (time).
"""

from collections.abc import Callable

import numpy as np

from harness.zsl.methods.blocks import Draws
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels

Rule = Callable[[Floats, Floats, Floats, int, Labels], None]
"""Change W [K, d, a] in place, given an image [d], class embeddings [a, k], its label and drawn classes."""


def plain_sgd(
    rule: Rule, w: Floats, x: Floats, y: Floats, targets: Labels, *, draws: int, epochs: int, seed: int
) -> Floats:
    """Return W [K, d, a] after some epochs over images [n, d] of classes [a, k]; ``w`` is left as it was."""
    w, stream = w.copy(), Draws(seed, y.shape[1])
    for _ in range(epochs):
        order = stream.order(len(x))
        negatives = stream.negatives(targets[order], draws)
        for n, drawn in zip(order, negatives, strict=True):
            rule(w, x[n], y, int(targets[n]), drawn)
    return w


def sje(eta: float) -> Rule:
    def step(w: Floats, x: Floats, y: Floats, label: int, _drawn: Labels) -> None:
        scores = x @ w[0] @ y
        scores[label] -= 1
        worst = int(scores.argmax())
        if worst != label:
            w[0] += eta * np.outer(x, y[:, label] - y[:, worst])

    return step


def devise(eta: float) -> Rule:
    def step(w: Floats, x: Floats, y: Floats, label: int, _drawn: Labels) -> None:
        scores = x @ w[0] @ y
        change = np.zeros(len(y))
        for other in range(y.shape[1]):
            if other != label and scores[other] + 1 > scores[label]:
                change += y[:, label] - y[:, other]
        if change.any():
            w[0] += eta * np.outer(x, change)

    return step


def ale_rank(eta: float) -> Rule:
    def step(w: Floats, x: Floats, y: Floats, label: int, _drawn: Labels) -> None:
        scores = x @ w[0] @ y
        violators = [k for k in range(y.shape[1]) if k != label and scores[k] + 1 > scores[label]]
        if violators:
            r = len(violators)
            weight = sum(1 / i for i in range(1, r + 1)) / r
            w[0] += eta * weight * np.outer(x, r * y[:, label] - y[:, violators].sum(1))

    return step


def _sampled(eta: float, margin: float, weight: Callable[[int, int], float]) -> Rule:
    def step(w: Floats, x: Floats, y: Floats, label: int, drawn: Labels) -> None:
        scores = x @ w[0] @ y
        for count, other in enumerate(drawn[: y.shape[1]], 1):
            if scores[other] + margin > scores[label]:
                w[0] -= weight(count, y.shape[1]) * eta * np.outer(x, y[:, other] - y[:, label])
                break

    return step


def ale_author(eta: float) -> Rule:
    return _sampled(eta, 0.1, lambda count, _: 1 / count)


def ale_wsabie(eta: float) -> Rule:
    return _sampled(eta, 1.0, lambda count, k: sum(1 / i for i in range(1, (k - 1) // count + 1)))


def devise_first(eta: float) -> Rule:
    return _sampled(eta, 0.1, lambda _count, _k: 1.0)


def latem(eta: float) -> Rule:
    def step(w: Floats, x: Floats, y: Floats, label: int, drawn: Labels) -> None:
        other = drawn[0]
        at_other, at_label = ([x @ plane @ y[:, k] for plane in w] for k in (other, label))
        j, best = int(np.argmax(at_other)), int(np.argmax(at_label))
        if at_other[j] + 1 > at_label[best]:
            if j == best:
                w[j] -= eta * np.outer(x, y[:, other] - y[:, label])
            else:
                w[j] -= eta * np.outer(x, y[:, other])
                w[best] += eta * np.outer(x, y[:, label])

    return step
