"""SJE: rank the label above the worst offender (Akata et al., CVPR 2015; facts 2.10, authors' sje_train.m)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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
class Sje(Ranking):
    """``max_y [margin 1(y != l) + F(x, y)] - F(x, l)``.

    Options:
        features, precision: as for all ranking methods.
        margin: 1 in the authors' code.
    """

    margin: float = 1.0

    name: ClassVar[str] = "SJE"

    def grid(self, _dataset: str, /) -> Grid:
        """Return four learning rates; 15 epochs as in the authors' demo."""
        return {"eta": RATES, "epochs": (15,)}

    def rule(self, stacked: Stack, points: Sequence[Point]) -> Rule:
        """Return the rule for all points."""
        return WorstOffender(stacked, rates(points), self.margin)


@dataclass(frozen=True, eq=False)
class WorstOffender:
    """Towards the label, away from the class with the largest score plus margin; nothing where that is the label.

    The label takes part with its score lowered by the margin; the first of equal classes is taken.
    """

    stacked: Stack
    eta: Floats
    margin: float
    draws: int = 0

    def __call__(self, u: Floats, step: Step, /) -> Floats:
        """Return ``eta (y_l - y_m)``, [R, planes, r]."""
        scores, sets = all_scores(self.stacked, u), np.arange(len(u))
        scores[sets, :, step.labels] -= self.margin
        worst = self.stacked.embeddings[sets[:, None], scores.argmax(2)]
        update: Floats = self.eta * (step.own - worst)
        return update
