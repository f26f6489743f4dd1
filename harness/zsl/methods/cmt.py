"""CMT: a network with one hidden layer maps images to class embeddings (Socher et al., NIPS 2013; facts 2.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from typing import Literal

import numpy as np
import torch

from harness.zsl.methods.options import Options
from harness.zsl.methods.scaling import Normalization
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.problem import Floats
from harness.zsl.problem import Grid
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet


@dataclass(frozen=True)
class Layers:
    """Sizes of the network: d features, h hidden units, a dimensions of class embeddings."""

    d: int
    h: int
    a: int

    @property
    def size(self) -> int:
        """Number of weights and biases."""
        return self.h * (self.d + self.a + 1) + self.a

    def split(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return views of W1 [h, d], W2 [a, h], b1 [h], b2 [a] in one vector."""
        w1, w2, b1, b2 = torch.split(flat, [self.h * self.d, self.a * self.h, self.h, self.a])
        return w1.view(self.h, self.d), w2.view(self.a, self.h), b1, b2

    def draw(self, seed: int) -> Floats:
        """Return first weights, uniform in +-sqrt(6 / (d + h + a)), and biases of 0."""
        flat = np.zeros(self.size)
        weights = self.h * (self.d + self.a)
        radius = np.sqrt(6 / (self.d + self.h + self.a))
        flat[:weights] = np.random.default_rng(seed).uniform(-radius, radius, weights)
        return flat


def map_images(x: torch.Tensor, layers: Layers, flat: torch.Tensor) -> torch.Tensor:
    """Return ``W2 tanh(W1 x + b1) + b2`` for images [m, d], [m, a]."""
    w1, w2, b1, b2 = layers.split(flat)
    return torch.tanh(x @ w1.T + b1) @ w2.T + b2


def cost(
    x: torch.Tensor, wanted: torch.Tensor, layers: Layers, flat: torch.Tensor, penalty: float, *, biases: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``1/(2n) sum |f(x) - wanted|^2 + penalty/2 |theta|^2`` and its gradient."""
    w1, w2, b1, b2 = layers.split(flat)
    hidden = torch.tanh(x @ w1.T + b1)
    miss = (hidden @ w2.T + b2 - wanted) / len(x)
    back = (miss @ w2) * (1 - hidden * hidden)
    gradient = torch.cat([(back.T @ x).ravel(), (miss.T @ hidden).ravel(), back.sum(0), miss.sum(0)])
    gradient += penalty * flat
    if not biases:
        gradient[-layers.h - layers.a :] = 0
    return len(x) / 2 * (miss * miss).sum() + penalty / 2 * (flat @ flat), gradient


@dataclass(frozen=True, eq=False)
class CmtModel:
    """The class nearest to the mapped image, seen or not."""

    scaling: Scaling
    layers: Layers
    flat: Floats
    embeddings: Floats

    def map(self, features: Floats) -> Floats:
        """Return images in the space of class embeddings, float64 [m, a]."""
        device = torch.get_default_device()
        x = torch.from_numpy(self.scaling.apply(features)).to(device)
        mapped: Floats = map_images(x, self.layers, torch.from_numpy(self.flat).to(device)).cpu().numpy()
        return mapped

    def scores(self, features: Floats, classes: Labels) -> Floats:
        """Return minus the squared Euclidean distance, float64 [m, c]."""
        return -squared_distances(self.map(features), self.embeddings[classes])


@dataclass(frozen=True)
class Cmt(Options):
    """A point has ``hidden``, the number of hidden units, and ``lambda``, the penalty.

    Options:
        features: normalisation.
        biases: the paper's equation shows none, the released code has them.
        iterations: of L-BFGS at most.
    """

    features: Normalization = "official"
    biases: Literal["yes", "no"] = "yes"
    iterations: int = 200

    name: ClassVar[str] = "CMT"
    needs: ClassVar[str] = "torch"

    def grid(self, _dataset: str, /) -> Grid:
        """Return 15 points; no source gives any."""
        return {"hidden": (50, 100, 200), "lambda": tuple(10.0**power for power in range(-5, 0))}

    def fit(self, sets: Sequence[TrainSet], points: Sequence[Point], seed: int, /) -> list[list[Model]]:
        """Train one network after the other; those of one set share its features."""
        return [list(self.networks(train, points, seed)) for train in sets]

    def networks(self, train: TrainSet, points: Sequence[Point], seed: int) -> list[CmtModel]:
        """Return the network of each point; equal points share one."""
        scaling, device = fit_scaling(self.features, train.features), torch.get_default_device()
        x = torch.from_numpy(scaling.apply(train.features)).to(device)
        wanted = torch.from_numpy(train.embeddings.values[train.labels]).to(device)
        made: dict[tuple[int, float], CmtModel] = {}
        for hidden, penalty in ((int(point["hidden"]), float(point["lambda"])) for point in points):
            if (hidden, penalty) not in made:
                layers = Layers(x.shape[1], hidden, wanted.shape[1])
                flat = self._train(x, wanted, layers, penalty, seed)
                made[hidden, penalty] = CmtModel(scaling, layers, flat, train.embeddings.values)
        return [made[int(point["hidden"]), float(point["lambda"])] for point in points]

    def _train(self, x: torch.Tensor, wanted: torch.Tensor, layers: Layers, penalty: float, seed: int) -> Floats:
        from scipy.optimize import minimize

        def objective(flat: Floats) -> tuple[float, Floats]:
            theta = torch.from_numpy(flat).to(x.device)
            value, gradient = cost(x, wanted, layers, theta, penalty, biases=self.biases == "yes")
            return float(value), gradient.cpu().numpy()

        options = {"maxiter": self.iterations}
        flat: Floats = minimize(objective, layers.draw(seed), jac=True, method="L-BFGS-B", options=options).x
        return flat


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Return squared Euclidean distances, [m, c]."""
    distances: Floats = (rows**2).sum(1)[:, None] - 2 * rows @ others.T + (others**2).sum(1)
    return distances
