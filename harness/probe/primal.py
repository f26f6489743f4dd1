"""SGD on the weights: the form for more rows than fit one batch."""

import torch

from harness.probe.chains import Chain
from harness.probe.matrix import empty
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack
from harness.probe.stack import residual_
from harness.probe.stack import state_dtype

# Numbers worked on at once: a megabyte of logits, and a quarter of one of weights, which have four companions.
_LOGITS = 1 << 18
_WEIGHTS = 1 << 16


def primal(stack: Stack, plan: Plan) -> Chain[Fit]:
    """Train over minibatches, pausing after each epoch."""
    n = stack.rows.shape[1]
    runs = _Runs(stack, plan)
    batches = [slice(k, min(k + stack.batch_size, n)) for k in range(0, n, stack.batch_size)]
    loss = torch.full((len(plan.factors) * len(batches), *plan.lr.shape), torch.nan).to(runs.weight)
    orders = [shuffle() for shuffle in stack.shuffles]
    for epoch, lr_factor in enumerate(plan.factors):
        order = torch.stack([torch.from_numpy(next(order)) for order in orders]).to(stack.x.device)
        rows = stack.rows.gather(1, order)
        labels = stack.labels[rows]
        for k, batch in enumerate(batches, start=epoch * len(batches)):
            if k == plan.stop:
                return Fit(runs.weight, loss)
            loss[k] = runs.step(rows[:, batch], labels[:, batch], lr_factor)
        yield
    return Fit(runs.weight, loss)


class _Runs:
    """All runs of a stack, one step at a time, in memory that each step writes anew.

    The runs of a problem share the gather of a batch and two wide matrix products, the second of which adds the
    gradient to the momentum itself. Features of lower precision are multiplied by a copy of the weights in that
    precision; weights, momentum, logits and softmax stay float32. What is left are passes over logits and weights; on
    a CPU they go over parts that stay in the cache of a core.
    """

    def __init__(self, stack: Stack, plan: Plan) -> None:
        x, device, dtype = stack.x, stack.x.device, state_dtype(stack.x)
        (s, r), (_, c, d) = plan.lr.shape, stack.start.shape
        b = min(stack.batch_size, stack.rows.shape[1])
        self._features, self._decay, self._low = x, plan.momentum, x.dtype != dtype
        self.weight = stack.start[:, None].repeat(1, r, 1, 1)
        weight = self.weight.view(s, r * c, d)
        self._momentum = torch.zeros_like(weight)
        self._factor = weight.to(x.dtype) if self._low else weight
        self._gradient = empty((s, r * c, d), x.dtype, device) if self._low else self._momentum
        self._x, self._logits = (empty((size,), x.dtype, device) for size in (s * b * d, s * r * c * b))
        lr, wd = (values.to(device, dtype).repeat_interleave(c, 1)[:, :, None] for values in (plan.lr, plan.wd))
        on_cpu = device.type == "cpu"
        self._tiles = _slices(r, _LOGITS // (c * b) if on_cpu else r)
        self._parts = [
            (
                weight[:, rows],
                self._momentum[:, rows],
                lr[:, rows],
                wd[:, rows],
                self._factor[:, rows],
                self._gradient[:, rows],
            )
            for rows in _slices(r * c, _WEIGHTS // d if on_cpu else r * c)
        ]

    def step(self, rows: torch.Tensor, labels: torch.Tensor, lr_factor: float) -> torch.Tensor:
        """Take one step.

        Args:
            rows: int64 [S, b], the batch.
            labels: int64 [S, b], its classes.
            lr_factor: factor on the learning rate.

        Returns:
            [S, R], the loss summed over the batch, before the step.
        """
        (s, b), (r, c, d) = rows.shape, self.weight.shape[1:]
        x, logits = self._x[: s * b * d].view(s, b, d), self._logits[: s * r * c * b].view(s, r * c, b)
        torch.index_select(self._features, 0, rows.flatten(), out=x.view(-1, d))
        torch.bmm(self._factor, x.mT, out=logits)
        loss = self._residuals_(logits.view(s, r, c, b), labels)
        if self._low:
            torch.bmm(logits, x, out=self._gradient)
        else:
            self._momentum.baddbmm_(logits, x, beta=self._decay, alpha=1 / b)
        self._update(lr_factor, 1 / b)
        return loss

    def _residuals_(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        losses = []
        for tile in self._tiles:
            part = logits[:, tile]
            full = part.to(self.weight.dtype)
            losses.append(residual_(full, labels))
            if self._low:
                part.copy_(full)
        return torch.cat(losses, 1)

    def _update(self, lr_factor: float, share: float) -> None:
        for weight, momentum, lr, wd, factor, gradient in self._parts:
            if self._low:
                momentum.mul_(self._decay).add_(gradient.to(momentum.dtype), alpha=share)
            momentum.addcmul_(weight, wd)
            weight.addcmul_(momentum, lr, value=-lr_factor)
            if self._low:
                factor.copy_(weight)


def _slices(total: int, size: int) -> list[slice]:
    step = max(1, size)
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]
