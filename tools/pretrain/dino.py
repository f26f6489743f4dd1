"""Learning without labels: DINO (Caron et al., Emerging Properties in Self-Supervised Vision Transformers, 2021).

In place of a running mean the teacher's output is centred by Sinkhorn-Knopp, as SwAV and DINOv2 do: with batches of 64
and so small a network, short tries with a running mean learnt nothing or more slowly.
"""

import copy
import math

import torch
from torch import Generator
from torch import Tensor
from torch import nn
from torch.nn import functional as F

from tools.pretrain.augment import View
from tools.pretrain.augment import view
from tools.pretrain.drawings import Drawings
from tools.pretrain.training import Method

_WIDE = View(size=40, area=(0.5, 1.2), strength=0.4)
_NARROW = View(size=24, area=(0.3, 0.7), strength=0.4)
_WIDES, _NARROWS = 2, 2
_PROTOTYPES = 512
_STUDENT_TEMPERATURE = 0.1
_TEACHER_TEMPERATURE = 0.015
_TEACHER_MOMENTUM = 0.99


class Head(nn.Module):
    """Projection onto prototypes: three layers, unit length, cosine with each prototype (section 3.1)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(*_layer(dim), *_layer(512), nn.Linear(512, 128))
        self.prototypes = nn.Parameter(torch.randn(_PROTOTYPES, 128))

    def forward(self, features: Tensor) -> Tensor:
        """Return cosines [n, prototypes] of features [n, dim]."""
        return F.normalize(self.mlp(features), dim=1) @ F.normalize(self.prototypes, dim=1).T


def _layer(width: int) -> tuple[nn.Module, ...]:
    return nn.Linear(width, 512), nn.BatchNorm1d(512), nn.GELU()


class Dino(Method):
    """Student and momentum teacher: what the student says of any view is drawn to the teacher's word on wide ones."""

    def __init__(self, backbone: nn.Module, dim: int) -> None:
        super().__init__()
        self.student = nn.Sequential(backbone, Head(dim))
        self.teacher = copy.deepcopy(self.student).requires_grad_(requires_grad=False)

    @property
    def learnt(self) -> nn.Module:
        """The backbone that is kept: the teacher's, which is the better one (section 5.2)."""
        return self.teacher[0]

    def loss(self, drawings: Drawings, draw: Generator) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a batch, whose labels it does not look at, and the mean entropy of the teacher's targets.

        Both in nats. A student that knows nothing of the views has a loss of at least ln 512 = 6.24.
        """
        n = len(drawings)
        wide = torch.cat([view(drawings.pixels, _WIDE, draw) for _ in range(_WIDES)])
        narrow = torch.cat([view(drawings.pixels, _NARROW, draw) for _ in range(_NARROWS)])
        with torch.no_grad():
            targets = centred(self.teacher(wide))
        answers = (torch.cat([self.student(wide), self.student(narrow)]) / _STUDENT_TEMPERATURE).log_softmax(1)
        # Cross-entropies [teacher's view, student's view], mean over drawings; no view is compared with itself.
        distances = -torch.einsum("tnp,snp->ts", targets.view(_WIDES, n, -1), answers.view(-1, n, _PROTOTYPES)) / n
        apart = ~torch.eye(*distances.shape, dtype=torch.bool)
        return distances[apart].mean(), {"teacher_entropy": float(torch.special.entr(targets).sum(1).mean())}

    @torch.no_grad()
    def after_step(self, progress: float) -> None:
        """Move the teacher towards the student, ever more slowly."""
        share = (1 - _TEACHER_MOMENTUM) * (1 + math.cos(math.pi * progress)) / 2
        for mine, other in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            mine.lerp_(other, share)


def centred(scores: Tensor) -> Tensor:
    """Sharpen the teacher's scores [n, prototypes] to targets that sum to 1 and use all prototypes alike.

    Three rounds of Sinkhorn-Knopp (Caron et al., SwAV, 2020, appendix A), on logarithms, where nothing underflows.
    """
    logs = scores / _TEACHER_TEMPERATURE
    for _ in range(3):
        logs = logs.log_softmax(0).log_softmax(1)
    return logs.exp()
