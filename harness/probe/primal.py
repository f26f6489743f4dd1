"""SGD on the weights: the form for more rows than fit one batch."""

import torch

from harness.probe.chains import Chain
from harness.probe.matrix import empty
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack
from harness.probe.stack import residual_
from harness.probe.stack import state_dtype

_CACHED = 1 << 18


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
    precision; weights, momentum, logits and softmax stay float32. The passes over logits that the softmax is made of
    go, on a CPU, over so few runs at a time that they stay in its cache. The momentum is kept a batch size times as
    large, which saves a pass.
    """

    def __init__(self, stack: Stack, plan: Plan) -> None:
        x, device, dtype = stack.x, stack.x.device, state_dtype(stack.x)
        (s, r), (_, c, d) = plan.lr.shape, stack.start.shape
        self._batch_size = b = min(stack.batch_size, stack.rows.shape[1])
        self._features, self._decay, self._low = x, plan.momentum, x.dtype != dtype
        self._lr, self._wd = (
            values.to(device, dtype).repeat_interleave(c, 1)[:, :, None] for values in (plan.lr / b, plan.wd * b)
        )
        self.weight = stack.start[:, None].repeat(1, r, 1, 1)
        self._flat = self.weight.view(s, r * c, d)
        self._momentum = torch.zeros_like(self._flat)
        self._factor = self._flat.to(x.dtype)
        self._x, self._logits = (empty((size,), x.dtype, device) for size in (s * b * d, s * r * c * b))
        at_once = max(1, _CACHED // (c * b)) if device.type == "cpu" else r
        self._tiles = [slice(k, min(k + at_once, r)) for k in range(0, r, at_once)]
        if self._low:
            self._gradient = empty((s, r * c, d), x.dtype, device)

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
        self._add_gradient(logits, x, self._batch_size / b)
        self._momentum.addcmul_(self._flat, self._wd)
        self._flat.addcmul_(self._momentum, self._lr, value=-lr_factor)
        if self._low:
            self._factor.copy_(self._flat)
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

    def _add_gradient(self, residuals: torch.Tensor, x: torch.Tensor, factor: float) -> None:
        if not self._low:
            self._momentum.baddbmm_(residuals, x, beta=self._decay, alpha=factor)
            return
        gradient = torch.bmm(residuals, x, out=self._gradient).to(self._momentum.dtype)
        if factor != 1:
            gradient.mul_(factor)
        torch.add(gradient, self._momentum, alpha=self._decay, out=self._momentum)
