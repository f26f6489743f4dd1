"""What the ranking methods share: official SGD on a bilinear map, each with its own rule (facts 2, 2.7-2.10)."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal
from typing import TypeAlias

import numpy as np

from harness.zsl.methods.bilinear import Bilinear
from harness.zsl.methods.blocks import Rule
from harness.zsl.methods.blocks import Stack
from harness.zsl.methods.blocks import descend
from harness.zsl.methods.blocks import stack
from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet

Precision: TypeAlias = Literal["float64", "float32"]
RATES = (1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Ranking(Options):
    """Base of the methods trained image by image at a constant rate, without regulariser, for a fixed number of epochs.

    A point has ``eta`` and ``epochs``, and may have ``start`` (an integer, 0 unless given): another random start.

    Options:
        features: normalisation.
        precision: of weights and products.
    """

    features: Normalization = "official"
    precision: Precision = "float64"

    needs: ClassVar[str] = "torch"

    def grid(self, dataset: str, /) -> Grid:
        """Return the grid of the method."""
        raise NotImplementedError

    def rule(self, stacked: Stack, points: Sequence[Point]) -> Rule:
        """Return the rule for all planes of all points."""
        raise NotImplementedError

    def planes(self, _point: Point) -> int:
        """Return the number of matrices of a model."""
        return 1

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], seed: int, /) -> list[list[Model]]:
        """Train every point on every set, in step; points that differ in epochs one group after the other."""
        stacked = stack(sets, [fit_scaling(self.features, train.features) for train in sets], self.precision)
        models: dict[tuple[int, int], Model] = {}
        for epochs in sorted({int(point["epochs"]) for point in points}):
            group = [p for p, point in enumerate(points) if point["epochs"] == epochs]
            some = [points[p] for p in group]
            starts, planes = self._starts(stacked, some, seed)
            changes = descend(stacked, self.rule(stacked, some), starts, planes, epochs=epochs, seed=seed)
            for s, change in enumerate(changes):
                for p, rows in zip(group, self._slices(some), strict=True):
                    models[s, p] = Bilinear(
                        stacked.scalings[s], starts, planes[rows], change[rows], stacked.bases[s], sets[s].embeddings
                    )
        return [[models[s, p] for p in range(len(points))] for s in range(len(sets))]

    def _slices(self, points: Sequence[Point]) -> Iterator[slice]:
        first = 0
        for point in points:
            yield slice(first, first := first + self.planes(point))

    def _starts(self, stacked: Stack, points: Sequence[Point], seed: int) -> tuple[Floats, list[int]]:
        """Return the first weights ``randn / sqrt(d)``, [s, d, a], and which of them each plane starts from."""
        d, a = stacked.sets[0].features.shape[1], stacked.bases[0].shape[0]
        most = max(map(self.planes, points))
        names = sorted({int(point.get("start", 0)) for point in points})
        draws = [np.random.default_rng([seed, 2, name]).standard_normal((most, d, a)) for name in names]
        planes = [
            names.index(int(point.get("start", 0))) * most + k for point in points for k in range(self.planes(point))
        ]
        return np.concatenate(draws) / np.sqrt(d), planes


def rates(points: Sequence[Point]) -> Floats:
    """Return the learning rates of the points, [points, 1]."""
    return np.array([[float(point["eta"])] for point in points])


def all_scores(stacked: Stack, u: Floats) -> Floats:
    """Return ``u y`` for all seen classes, [R, planes, k]; -inf for padding."""
    scores: Floats = u @ stacked.embeddings.swapaxes(1, 2)
    if stacked.absent is not None:
        scores += stacked.absent
    return scores
