"""The loop that both methods share, and what is noted of it."""

import math
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Generator
from torch import Tensor
from torch import nn
from torch.nn import functional as F

from harness.zoo.spec import Input
from tools.pretrain.drawings import Drawings

_WARM_UP = 0.05
_CLIP = 3.0
_NEIGHBOURS = 5


class Method(nn.Module):
    """What is trained."""

    @property
    def learnt(self) -> nn.Module:
        """The backbone that is kept."""
        raise NotImplementedError

    def loss(self, drawings: Drawings, draw: Generator) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a batch in nats, and other figures to note, by name."""
        raise NotImplementedError

    def after_step(self, progress: float) -> None:
        """Do what is to be done after a step of the optimiser; ``progress`` goes from 0 to 1."""


@dataclass(frozen=True)
class Recipe:
    """How long and how fast.

    Attributes:
        epochs: Passes over the drawings that the learning rate is planned for.
        lr: Greatest learning rate of AdamW: reached after the first 5 % of the steps, then down to 0 along a cosine.
        batch: Drawings a step; the rest of an epoch that does not fill one is left out.
        weight_decay: Of AdamW.
        stop: Epoch after which training ends; None: the last one.
    """

    epochs: int
    lr: float
    batch: int = 64
    weight_decay: float = 0.05
    stop: int | None = None


def train(method: Method, drawings: Drawings, recipe: Recipe, seed: int) -> Iterator[dict[str, float]]:
    """Train, yielding after each step its number and epoch (from 1), loss, learning rate and the method's figures."""
    method.train().to(memory_format=torch.channels_last)
    draw = Generator().manual_seed(seed)
    weights = [weight for weight in method.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=recipe.lr, weight_decay=recipe.weight_decay)
    per_epoch = len(drawings) // recipe.batch
    for epoch in range(recipe.stop or recipe.epochs):
        order = torch.randperm(len(drawings), generator=draw).tolist()
        for number in range(per_epoch):
            step = epoch * per_epoch + number + 1
            progress = step / (recipe.epochs * per_epoch)
            lr = optimiser.param_groups[0]["lr"] = recipe.lr * _schedule(progress)
            loss, figures = method.loss(drawings.subset(order[number * recipe.batch :][: recipe.batch]), draw)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(weights, _CLIP)
            optimiser.step()
            method.after_step(progress)
            yield {"step": step, "epoch": epoch + 1, "loss": loss.item(), "lr": lr, **figures}


def by_epoch(steps: Iterable[dict[str, float]]) -> Iterator[dict[str, float]]:
    """Yield the means over each epoch of the figures of its steps, without their numbers."""
    for _, group in groupby(steps, key=lambda figures: figures["epoch"]):
        rows = list(group)
        yield {name: sum(row[name] for row in rows) / len(rows) for name in rows[0] if name != "step"}


@torch.no_grad()
def neighbours_accuracy(network: nn.Module, rule: Input, known: Drawings, asked: Drawings) -> float:
    """Return the percentage of ``asked`` whose concept wins among the 5 nearest of ``known``, votes by cosine.

    The network is left in training mode.
    """
    network.eval()
    bank, queries = (_features(network, rule, drawings) for drawings in (known, asked))
    network.train()
    near, where = (queries @ bank.T).topk(_NEIGHBOURS)
    votes = torch.zeros(len(asked), int(known.labels.max()) + 1).scatter_add_(1, known.labels[where], near)
    return 100 * float((votes.argmax(1) == asked.labels).float().mean())


def _features(network: nn.Module, rule: Input, drawings: Drawings) -> Tensor:
    """Return features of whole drawings, of unit length, float32 [n, dim]."""
    mean, std = (torch.tensor(value).view(3, 1, 1) for value in (rule.mean, rule.std))
    found = []
    for pixels in torch.split(drawings.pixels, 128):
        small = F.interpolate(pixels.float() / 255, size=rule.size, mode="bicubic", antialias=True).clamp(0, 1)
        found.append(network(((small - mean) / std).contiguous(memory_format=torch.channels_last)))
    return F.normalize(torch.cat(found), dim=1)


def _schedule(progress: float) -> float:
    if progress < _WARM_UP:
        return progress / _WARM_UP
    return (1 + math.cos(math.pi * (progress - _WARM_UP) / (1 - _WARM_UP))) / 2
