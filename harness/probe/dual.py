"""The same SGD in coordinates of the training rows: the form for few rows, all of them in every step."""

import torch

from harness.probe.chains import Chain
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack
from harness.probe.stack import residual_
from harness.probe.stack import state_dtype


def gram(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the products of each problem's rows, [S, n, n], in the precision of the weights."""
    chosen = x[rows].to(state_dtype(x))
    return torch.bmm(chosen, chosen.mT)


def dual(stack: Stack, plan: Plan) -> Chain[Fit]:
    """Train by full batches, pausing after each.

    Where every step sees all rows X [n, D], gradients are combinations of rows, and weight decay scales what is
    there. So weights are ``W = c W0 + A X`` and momentum is ``M = m W0 + B X``, with numbers c, m and coefficients
    A, B [C, n]. With K = X X^T and Z0 = W0 X^T the step

        M <- mu M + P X / n + wd W,    W <- W - lr M    (P: softmax less one-hot, [C, n])

    becomes

        Z = c Z0 + A K,    B <- mu B + P / n + wd A,    A <- A - lr B,    m <- mu m + wd c,    c <- c - lr m

    in 2 n^2 C operations instead of 4 n d C. A shuffle would only reorder the sums of a step, so none is drawn.
    ``b`` holds n B, which saves a pass. All of it is computed in the precision of the weights, also from features of
    lower precision.
    """
    x, dtype = stack.x, state_dtype(stack.x)
    (s, n), r, c = stack.rows.shape, plan.lr.shape[1], stack.start.shape[1]
    if stack.gram is None:
        raise ValueError("a stack without its Gram matrix trains in the primal form")
    chosen, labels = x[stack.rows].to(dtype), stack.labels[stack.rows]
    start_logits = torch.bmm(stack.start, chosen.mT)[:, None]
    scale = _start_scale(plan).to(x.device, dtype)[..., None, None]
    lr, wd = (value.to(x.device, dtype)[:, :, None, None] for value in (plan.lr / n, plan.wd * n))
    logits, a, b = (torch.zeros((s, r, c, n), dtype=dtype, device=x.device) for _ in range(3))
    flat_logits, flat_a = logits.view(s, -1, n), a.view(s, -1, n)
    steps = len(plan.factors) if plan.stop is None else plan.stop
    loss = torch.full((len(plan.factors), s, r), torch.nan, dtype=dtype, device=x.device)
    for k in range(steps):
        torch.mul(start_logits, scale[k], out=logits)
        flat_logits.baddbmm_(flat_a, stack.gram)
        loss[k] = residual_(logits, labels)
        torch.add(logits, b, alpha=plan.momentum, out=b)
        b.addcmul_(a, wd)
        a.addcmul_(b, lr, value=-plan.factors[k])
        yield
    weight = torch.bmm(flat_a, chosen).view(s, r, c, -1)
    return Fit(weight.addcmul_(stack.start[:, None], scale[steps]), loss)


def _start_scale(plan: Plan) -> torch.Tensor:
    """Return how much of the first weights is left before each step and after the last, float64 [epochs + 1, S, R]."""
    left = [torch.ones_like(plan.lr)]
    momentum = torch.zeros_like(plan.lr)
    for factor in plan.factors:
        momentum = plan.momentum * momentum + plan.wd * left[-1]
        left.append(left[-1] - plan.lr * factor * momentum)
    return torch.stack(left)
