"""The training objective of SSE and its subgradients (facts 2.6; unverified)."""

from collections.abc import Iterator
from typing import Literal
from typing import TypeAlias

import numpy as np
import torch

from harness.zsl.problem import Floats
from harness.zsl.problem import Labels

Profile: TypeAlias = Literal["int", "relu"]

_ELEMENTS = 1 << 18
"""Elements of psi that are held at once: they stay in the cache between being made and being used."""


def memberships(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, profile: Profile) -> torch.Tensor:
    """Return ``<w, psi_y(x)>`` for images [n, d] and seen classes with profiles v [k, d], [n, k]."""
    return torch.cat([psi @ w for _, psi in _profiles(x, v, profile)])


def _profiles(x: torch.Tensor, v: torch.Tensor, profile: Profile) -> Iterator[tuple[slice, torch.Tensor]]:
    size = max(1, _ELEMENTS // v.numel())
    for start in range(0, len(x), size):
        rows = slice(start, start + size)
        some = x[rows, None]
        yield rows, torch.minimum(some, v) if profile == "int" else (some - v).clamp(min=0)


class Objective:
    """``1/2 |w|^2 + decay/2 |v|^2 + sum of hinge losses``, for single images and for the means of classes.

    An image x of class l and another class s lose ``max(0, gap_ls - f(x, l) + f(x, s))``, and so does the mean of
    the margins of all images of a class.
    """

    def __init__(
        self, x: Floats, targets: Labels, mixtures: Floats, gaps: Floats, *, profile: Profile, decay: float
    ) -> None:
        device = torch.get_default_device()
        self._x, self._targets, self._mixtures, self._gaps = (
            torch.from_numpy(part).to(device) for part in (x, targets, mixtures, gaps)
        )
        self._counts = torch.bincount(self._targets, minlength=len(gaps)).clamp(min=1).double()[:, None]
        self._profile, self._decay = profile, decay

    def class_means(self) -> Floats:
        """Return the mean image of each class, [k, d]; 0 for a class without images."""
        means: Floats = (self._per_class(self._x) / self._counts).clamp(min=0).cpu().numpy()
        return means

    def value_and_gradients(self, w: Floats, v: Floats) -> tuple[float, Floats, Floats]:
        """Return the objective, its derivative by w [d] and a subgradient by v [k, d]."""
        weights, profiles = self._tensors(w, v)
        value, by_membership = self._losses(weights, profiles)
        by_w, by_v = weights.clone(), self._decay * profiles
        for rows, psi in _profiles(self._x, profiles, self._profile):
            factor = by_membership[rows]
            by_w += factor.ravel() @ psi.view(-1, len(weights))
            if self._profile == "int":
                by_v += weights * torch.einsum("bk,bkd->kd", factor, (profiles < self._x[rows, None]).double())
            else:
                by_v -= weights * torch.einsum("bk,bkd->kd", factor, (psi > 0).double())
        return value, by_w.cpu().numpy(), by_v.cpu().numpy()

    def fit_w(self, w: Floats, v: Floats, steps: int) -> Floats:
        """Return w after some steps of L-BFGS; the objective is convex in w."""
        from scipy.optimize import minimize

        def objective(flat: Floats) -> tuple[float, Floats]:
            weights, profiles = self._tensors(flat, v)
            value, by_membership = self._losses(weights, profiles)
            gradient = weights.clone()
            for rows, psi in _profiles(self._x, profiles, self._profile):
                gradient += by_membership[rows].ravel() @ psi.view(-1, len(weights))
            return value, gradient.cpu().numpy()

        found: Floats = minimize(objective, w, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
        return found

    def fit_v(self, w: Floats, v: Floats, steps: int) -> Floats:
        """Return v after some projected subgradient steps; a step that does not lower the objective is halved."""
        value, _, gradient = self.value_and_gradients(w, v)
        rate = 0.1 * v.max() / max(np.abs(gradient).max(), 1e-300)
        for _ in range(steps):
            tried = (v - rate * gradient).clip(0)
            lower, _, next_gradient = self.value_and_gradients(w, tried)
            if lower < value:
                v, value, gradient, rate = tried, lower, next_gradient, 1.5 * rate
            else:
                rate /= 2
        return v

    def _tensors(self, w: Floats, v: Floats) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(w).to(self._x.device), torch.from_numpy(v).to(self._x.device)

    def _losses(self, w: torch.Tensor, v: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the objective and its derivative by the memberships [n, k]."""
        f = memberships(self._x, w, v, self._profile) @ self._mixtures.T
        own = self._targets[:, None]
        margins = f.gather(1, own) - f
        short = self._gaps[self._targets] - margins
        short_mean = self._gaps - self._per_class(margins) / self._counts
        # the label itself has gap and margin 0
        violates = (short > 0).double()
        violates += ((short_mean > 0) / self._counts)[self._targets]
        violates.scatter_(1, own, 0)
        by_f = violates.scatter_add(1, own, -violates.sum(1, keepdim=True))
        value = short.clamp(min=0).sum() + short_mean.clamp(min=0).sum()
        value += 0.5 * (w @ w) + self._decay / 2 * (v * v).sum()
        return float(value), by_f @ self._mixtures

    def _per_class(self, rows: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(len(self._gaps), rows.shape[1], dtype=rows.dtype, device=rows.device)
        return sums.index_add_(0, self._targets, rows)
