"""Softmax regression by SGD with momentum and weight decay, many runs at once, gradients written out.

The update is that of ``torch.optim.SGD(momentum=, weight_decay=)`` on ``nn.Linear`` under ``nn.CrossEntropyLoss``.
What is independent is stacked: the runs of a problem, which share its rows, batches and first weights, are one wide
matrix product. Problems (seeds) see different rows: they are one batched product on an accelerator, and on a CPU
where they are so small that calling costs more than computing; larger ones are chains dealt to the CPU's threads,
each of which then computes alone and the same in any company.
"""

from dataclasses import replace

import torch

from harness.probe.chains import Chain
from harness.probe.chains import threads
from harness.probe.dual import dual
from harness.probe.dual import gram
from harness.probe.primal import primal
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack

_BLOCK = 4096
# Logits per step of a problem for which one batched product of all problems is still faster than threads.
_SMALL = 1 << 16


def prepare(stack: Stack) -> list[Stack]:
    """Return the stacks to train side by side: one of all problems, or one for each where they are large, on a CPU.

    Where all rows fit one batch and are fewer than twice the columns, the dual form takes fewer operations and its
    Gram matrix is added, which all rounds of a search then share.
    """
    s, n = stack.rows.shape
    if n <= stack.batch_size and n < 2 * stack.x.shape[1]:
        with threads(1):
            stack = replace(stack, gram=gram(stack.x, stack.rows))
    large = stack.start.shape[1] * min(n, stack.batch_size) > _SMALL
    return [stack.only(problem) for problem in range(s)] if large and stack.x.device.type == "cpu" else [stack]


def train(stack: Stack, plan: Plan) -> Chain[Fit]:
    """Train all runs of all problems of a stack.

    A run whose loss is not finite is trained again up to that step, which the reference code never takes: its weights
    are those the loss was computed with. So a run that does well pays nothing for the check but a look at its losses.
    """
    form = primal if stack.gram is None else dual
    fit = yield from form(stack, plan)
    failed = ~fit.loss.isfinite()
    for problem, run in failed.any(0).nonzero().tolist():
        stop = int(failed[:, problem, run].int().argmax())
        again = yield from form(stack.only(problem), plan.only(problem, run, stop))
        fit.weight[problem, run] = again.weight[0, 0]
        fit.loss[:, problem, run] = again.loss[:, 0, 0]
    return fit


def top_classes(x: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, k: int) -> torch.Tensor:
    """Return the k most likely classes of some rows, best first.

    Logits are computed in the precision of the weights, also from features of lower precision.

    Args:
        x: [N, D] features.
        rows: int64 [m].
        weight: [R, C, D].
        k: number of classes.

    Returns:
        int64 [R, k, m].
    """
    flat = weight.flatten(0, 1)
    found = []
    for start in range(0, len(rows), _BLOCK):
        logits = (flat @ x[rows[start : start + _BLOCK]].to(weight.dtype).T).view(*weight.shape[:2], -1)
        found.append(logits.argmax(1, keepdim=True) if k == 1 else logits.topk(k, dim=1).indices)
    return torch.cat(found, dim=2)
