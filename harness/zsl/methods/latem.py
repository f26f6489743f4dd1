"""LATEM: the best of several bilinear maps (Xian et al., CVPR 2016; facts 2.7, authors' latEm_train.m)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.zsl.methods.blocks import Rule
from harness.zsl.methods.blocks import Stack
from harness.zsl.methods.blocks import Step
from harness.zsl.methods.ranking import RATES
from harness.zsl.methods.ranking import Ranking
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Point


@dataclass(frozen=True)
class Latem(Ranking):
    """Rank the label above one class drawn at random, each with the map that suits it best.

    A point has ``K``, the number of maps. No map is pruned.

    Options:
        features, precision: as for all ranking methods.
        margin: 1 in the authors' code.
    """

    margin: float = 1.0

    name: ClassVar[str] = "LATEM"

    def grid(self, dataset: str, /) -> Grid:
        """Return 20 points; epochs as in the authors' demos: 150 for coarse data sets, 10 for others."""
        epochs = 150 if dataset in ("AWA1", "AWA2", "APY") else 10
        return {"eta": RATES, "K": (2, 4, 6, 8, 10), "epochs": (epochs,)}

    def planes(self, point: Point) -> int:
        """Return the number of maps of a model."""
        return int(point["K"])

    def rule(self, stacked: Stack, points: Sequence[Point]) -> Rule:
        """Return the rule for all points."""
        counts = np.array([self.planes(point) for point in points])
        eta = np.array([float(point["eta"]) for point in points])
        return BestOfMaps(stacked, eta, self.margin, counts)


class BestOfMaps:
    """If drawn class and label are too close: away from the one with its best map, towards the other with its own."""

    draws = 1

    def __init__(self, stacked: Stack, eta: Floats, margin: float, counts: Labels) -> None:
        self.stacked, self.eta, self.margin = stacked, eta, margin
        self.first = np.cumsum(counts) - counts
        self.point = np.repeat(np.arange(len(counts)), counts)
        self.slot = np.arange(counts.sum()) - self.first[self.point]
        self.empty = np.full((len(stacked.sets), len(counts), counts.max(), 2), -np.inf)

    def __call__(self, u: Floats, step: Step, /) -> Floats:
        """Return the update of every map, [R, planes, r]; 0 for maps that are best for neither class."""
        sets = np.arange(len(u))[:, None]
        other = self.stacked.embeddings[sets, step.negatives]
        scores = self.empty.copy()
        scores[:, self.point, self.slot] = u @ np.concatenate([other, step.own], 1).swapaxes(1, 2)
        best, highest = scores.argmax(2), scores.max(2)
        eta = (self.eta * (highest[..., 0] + self.margin > highest[..., 1]))[..., None]
        update = np.zeros_like(u)
        update[sets, self.first + best[..., 0]] -= eta * other
        update[sets, self.first + best[..., 1]] += eta * step.own
        return update
