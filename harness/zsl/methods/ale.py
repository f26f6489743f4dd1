"""ALE and DEVISE: rank the label above all violators, or above one drawn at random (facts 2.8, 2.9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np

from harness.zsl.methods.blocks import Rule
from harness.zsl.methods.blocks import Stack
from harness.zsl.methods.blocks import Step
from harness.zsl.methods.ranking import RATES
from harness.zsl.methods.ranking import Ranking
from harness.zsl.methods.ranking import all_scores
from harness.zsl.methods.ranking import rates
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Point


@dataclass(frozen=True)
class Ale(Ranking):
    """Weighted approximate ranking (Akata et al., CVPR 2013 and PAMI 2016).

    Options:
        features, precision: as for all ranking methods.
        sampling: ``author`` draws classes until one violates, margin 0.1, weight 1/draws (authors' ale_train.m; whether
            CVPR 2017 used it is unverified); ``wsabie`` draws alike, margin 1, weight beta(floor((k - 1)/draws));
            ``rank`` takes all violators, margin 1, weight beta(r)/r ("ALE-rank"). beta(n) = 1 + 1/2 + ... + 1/n.
    """

    sampling: Literal["author", "wsabie", "rank"] = "author"

    name: ClassVar[str] = "ALE"

    def grid(self, _dataset: str, /) -> Grid:
        """Return four learning rates; 50 epochs, read from names of the authors' model files."""
        return {"eta": RATES, "epochs": (50,)}

    def rule(self, stacked: Stack, points: Sequence[Point]) -> Rule:
        """Return the rule for all points."""
        eta, most = rates(points), max(stacked.counts)
        beta = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])
        if self.sampling == "rank":
            return AllViolators(stacked, eta, 1.0, beta / np.arange(most + 1).clip(1))
        draws = np.arange(1, most + 1)
        if self.sampling == "author":
            return FirstViolator(stacked, eta, 0.1, np.tile(1 / draws, (len(stacked.counts), 1)), most)
        ranks = (np.array(stacked.counts)[:, None] - 1) // draws
        return FirstViolator(stacked, eta, 1.0, beta[ranks], most)


@dataclass(frozen=True)
class Devise(Ranking):
    """The sum of all hinge losses (Frome et al., NIPS 2013, as the benchmark's Eq. 4 has it; no author code known).

    Options:
        features, precision: as for all ranking methods.
        sampling: ``sum`` over all violators, margin 1; ``first``: the original's shortcut, one violator found by random
            draws, margin 0.1 (unverified).
    """

    sampling: Literal["sum", "first"] = "sum"

    name: ClassVar[str] = "DEVISE"

    def grid(self, _dataset: str, /) -> Grid:
        """Return five learning rates; the epochs of ALE, so that both differ in the loss only."""
        return {"eta": (1e-4, *RATES), "epochs": (50,)}

    def rule(self, stacked: Stack, points: Sequence[Point]) -> Rule:
        """Return the rule for all points."""
        eta, most = rates(points), max(stacked.counts)
        if self.sampling == "sum":
            return AllViolators(stacked, eta, 1.0, np.ones(most + 1))
        return FirstViolator(stacked, eta, 0.1, np.ones((len(stacked.counts), most)), most)


@dataclass(frozen=True, eq=False)
class AllViolators:
    """Away from every class whose score plus margin exceeds the label's, towards the label as often.

    Attributes:
        weights: by the number of violators, [k + 1].
    """

    stacked: Stack
    eta: Floats
    margin: float
    weights: Floats
    draws: int = 0

    def __call__(self, u: Floats, step: Step, /) -> Floats:
        """Return ``eta weight(r) (r y_l - sum of violators)``, [R, planes, r]."""
        scores, sets = all_scores(self.stacked, u), np.arange(len(u))
        scores[sets, :, step.labels] -= self.margin
        violators = scores > scores[sets, :, step.labels][..., None]
        rank = violators.sum(2, keepdims=True)
        away = violators.astype(u.dtype) @ self.stacked.embeddings
        update: Floats = self.eta * self.weights[rank] * (rank * step.own - away)
        return update


@dataclass(frozen=True, eq=False)
class FirstViolator:
    """Away from the first of the drawn classes whose score plus margin exceeds the label's, towards the label.

    As many classes are drawn as the set has; scores are those before the image's own update.

    Attributes:
        weights: by the number of draws made, [R, draws].
    """

    stacked: Stack
    eta: Floats
    margin: float
    weights: Floats
    draws: int

    def __call__(self, u: Floats, step: Step, /) -> Floats:
        """Return ``eta weight(draws made) (y_l - y_violator)``, [R, planes, r]."""
        scores, sets = all_scores(self.stacked, u), np.arange(len(u))[:, None]
        drawn = np.take_along_axis(scores, step.negatives[:, None, :], 2)
        violates = drawn + self.margin > scores[sets[:, 0], :, step.labels][..., None]
        first = violates.argmax(2)
        # where the label stands for a draw the update is 0
        weight = self.weights[sets, first] * violates.any(2)
        other = self.stacked.embeddings[sets, step.negatives[sets, first]]
        update: Floats = self.eta * weight[..., None] * (step.own - other)
        return update
