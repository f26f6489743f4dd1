"""Learning the names of seen concepts."""

from torch import Generator
from torch import Tensor
from torch import nn
from torch.nn import functional as F

from tools.pretrain.augment import View
from tools.pretrain.augment import view
from tools.pretrain.drawings import Drawings
from tools.pretrain.training import Method

_VIEW = View(size=48, area=(0.35, 1.3))


class Supervised(Method):
    """A backbone with a linear classifier, trained by cross-entropy with smoothed labels (0.1)."""

    def __init__(self, backbone: nn.Module, dim: int, classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(dim, classes)

    @property
    def learnt(self) -> nn.Module:
        """The backbone that is kept."""
        return self.backbone

    def loss(self, drawings: Drawings, draw: Generator) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of a batch, and nothing else."""
        scores = self.classifier(self.backbone(view(drawings.pixels, _VIEW, draw)))
        return F.cross_entropy(scores, drawings.labels, label_smoothing=0.1), {}
