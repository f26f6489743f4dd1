"""Problems stacked, how to train them, what training leaves, and the softmax both forms of it share.

Shapes: N rows in the matrix, n of them in a problem, d features, D columns (features, constant, padding), C
classes, S problems, R runs of each. Everything is class-major, [S, R, C, ...]: a batch of logits is ``W X^T`` and
its gradient ``P X``, the fast orientations on CPUs, and reductions over classes run along contiguous samples.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

import torch

from harness.probe.sampling import Rows

Shuffles = Callable[[], Iterator[Rows]]


@dataclass(frozen=True)
class Stack:
    """S problems of n rows each over one matrix.

    Attributes:
        x: [N, D] features, constant and padding (``load_matrix``), float32, float64, bfloat16 or float16.
        labels: int64 [N].
        rows: int64 [S, n], the rows each problem learns from.
        start: [S, C, D] first weights, float32, or float64 where ``x`` is.
        shuffles: for each problem a function that starts its sequence of row orders, one per epoch.
        batch_size: rows per step.
        gram: [S, n, n] products of a problem's rows where it trains in the dual form, else None.
    """

    x: torch.Tensor
    labels: torch.Tensor
    rows: torch.Tensor
    start: torch.Tensor
    shuffles: Sequence[Shuffles]
    batch_size: int
    gram: torch.Tensor | None = None

    def only(self, problem: int) -> "Stack":
        """Return the stack of one of the problems."""
        one = slice(problem, problem + 1)
        gram = None if self.gram is None else self.gram[one]
        return replace(self, rows=self.rows[one], start=self.start[one], shuffles=self.shuffles[one], gram=gram)


@dataclass(frozen=True)
class Plan:
    """How to train a stack.

    Attributes:
        lr: float64 [S, R], initial learning rates.
        wd: float64 [S, R], weight decays.
        factors: factor on the learning rate for each epoch.
        momentum: of SGD.
        stop: the number of steps after which to end; None for all.
    """

    lr: torch.Tensor
    wd: torch.Tensor
    factors: Sequence[float]
    momentum: float
    stop: int | None = None

    def only(self, problem: int, run: int, stop: int) -> "Plan":
        """Return the plan of one run that ends after ``stop`` steps."""
        at = slice(problem, problem + 1), slice(run, run + 1)
        return replace(self, lr=self.lr[at], wd=self.wd[at], stop=stop)


@dataclass(frozen=True)
class Fit:
    """What training leaves.

    Attributes:
        weight: [S, R, C, D], bias in column d.
        loss: [steps, S, R], cross-entropy summed over the batch, before its step; NaN for steps not taken.
    """

    weight: torch.Tensor
    loss: torch.Tensor


def state_dtype(x: torch.Tensor) -> torch.dtype:
    """Return the dtype of weights, momentum and logits for features stored as ``x``."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def residual_(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Turn logits into the gradient of the summed cross-entropy, in place, and return that loss.

    The loss is finite where the logits are: it is log-sum-exp less the label's logit, not the log of a probability.

    Args:
        logits: [S, R, C, b].
        labels: int64 [S, b].

    Returns:
        [S, R], summed over the batch.
    """
    s, r, _, b = logits.shape
    index = labels[:, None, None].expand(s, r, 1, b)
    top = logits.amax(2, keepdim=True)
    label = logits.gather(2, index).sub_(top)
    # e^-64 is nothing beside the largest term, 1, and keeps off results below 1e-38, at which exp is 100 times slower.
    total = logits.sub_(top).clamp_(min=-64).exp_().sum(2, keepdim=True)
    logits.mul_(total.reciprocal()).scatter_(2, index, -1, reduce="add")
    return (total.log_() - label).sum((2, 3))
