"""SGD on the weights: the form for more rows than fit one batch."""

import torch

from harness.probe.chains import Chain
from harness.probe.matrix import empty
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack
from harness.probe.stack import residual_
from harness.probe.stack import state_dtype


def primal(stack: Stack, plan: Plan) -> Chain[Fit]:
    """Train over minibatches, pausing after each epoch.

    The matrix product adds the gradient to the momentum itself, so a step of float32 is two products, one softmax
    and two passes over the weights. Features of lower precision are multiplied by a copy of the weights in that
    precision; weights, momentum, logits and softmax stay float32.
    """
    x, dtype = stack.x, state_dtype(stack.x)
    (s, n), (r, c, d) = stack.rows.shape, (plan.lr.shape[1], *stack.start.shape[1:])
    weight = stack.start[:, None].repeat(1, r, 1, 1)
    momentum = torch.zeros_like(weight)
    flat, factor = weight.view(s, r * c, d), weight.view(s, r * c, d).to(x.dtype)
    lr, wd = (value.to(x.device, dtype)[:, :, None, None] for value in (plan.lr, plan.wd))
    batches = [slice(k, min(k + stack.batch_size, n)) for k in range(0, n, stack.batch_size)]
    buffers = {b: _Batch(stack, r, b) for b in {batch.stop - batch.start for batch in batches}}
    loss = torch.full((len(plan.factors) * len(batches), s, r), torch.nan, dtype=dtype, device=x.device)
    orders = [shuffle() for shuffle in stack.shuffles]
    for epoch, lr_factor in enumerate(plan.factors):
        order = torch.stack([torch.from_numpy(next(order)) for order in orders]).to(x.device)
        for k, batch in enumerate(batches, start=epoch * len(batches)):
            if k == plan.stop:
                return Fit(weight, loss)
            rows = stack.rows.gather(1, order[:, batch])
            loss[k] = buffers[rows.shape[1]].accumulate(rows, factor, momentum.view_as(flat), plan.momentum)
            momentum.addcmul_(weight, wd)
            weight.addcmul_(momentum, lr, value=-lr_factor)
            if factor.dtype != dtype:
                factor.copy_(flat)
        yield
    return Fit(weight, loss)


class _Batch:
    """The gradient over batches of one size, in memory that each step writes anew."""

    def __init__(self, stack: Stack, runs: int, b: int) -> None:
        s, c, d = stack.start.shape
        x, dtype = stack.x, state_dtype(stack.x)
        self._stack = stack
        self._low = x.dtype != dtype
        self._x = empty((s, b, d), x.dtype, x.device)
        self._logits = empty((s, runs, c, b), dtype, x.device)
        self._low_logits = empty((s, runs * c, b), x.dtype, x.device) if self._low else self._logits.view(s, -1, b)
        self._low_gradient = empty((s, runs * c, d) if self._low else (0,), x.dtype, x.device)

    def accumulate(
        self, rows: torch.Tensor, weight: torch.Tensor, momentum: torch.Tensor, decay: float
    ) -> torch.Tensor:
        """Set the momentum to ``decay`` times itself plus the mean gradient over a batch.

        Args:
            rows: int64 [S, b], the batch.
            weight: [S, RC, D] in the precision of the features.
            momentum: [S, RC, D], changed in place.
            decay: momentum coefficient.

        Returns:
            [S, R], the loss summed over the batch.
        """
        x, logits, b = self._x, self._low_logits, rows.shape[1]
        chosen = rows.flatten()
        torch.index_select(self._stack.x, 0, chosen, out=x.view(-1, x.shape[2]))
        labels = self._stack.labels.index_select(0, chosen).view_as(rows)
        torch.bmm(weight, x.mT, out=logits)
        if not self._low:
            loss = residual_(self._logits, labels)
            momentum.baddbmm_(logits, x, beta=decay, alpha=1 / b)
            return loss
        loss = residual_(self._logits.copy_(logits.view_as(self._logits)), labels)
        gradient = torch.bmm(logits.copy_(self._logits.view_as(logits)), x, out=self._low_gradient)
        momentum.mul_(decay).add_(gradient, alpha=1 / b)
        return loss
