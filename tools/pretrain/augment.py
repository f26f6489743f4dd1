"""Random views of drawings, a batch at a time."""

import math
from dataclasses import dataclass

import torch
from torch import Generator
from torch import Tensor
from torch.nn import functional as F

from harness.zoo.spec import Input

_GREY = (0.299, 0.587, 0.114)
_INPUT = Input()


@dataclass(frozen=True)
class View:
    """A kind of random view.

    Attributes:
        size: Side of the square, pixels.
        area: Least and greatest part of the drawing that is in view; above 1 there is white around it.
        strength: From 0, nothing but crops and flips, to 1: how far drawings are turned, recoloured and outlined.
    """

    size: int
    area: tuple[float, float]
    strength: float = 1.0


def view(pixels: Tensor, kind: View, draw: Generator) -> Tensor:
    """Return a random view of each drawing: crop, turn, flip, colours, outline, blur.

    The outline stands for artists who draw with a pen: they drew a quarter of all.

    Args:
        pixels: uint8 [n, 3, h, w].
        kind: what of the drawing is in view.
        draw: source of all randomness.

    Returns:
        float32 [n, 3, size, size], normalised as the network expects.
    """
    n = len(pixels)
    # Ink on zero, so that what lies outside of a drawing is white.
    ink = F.grid_sample(1 - pixels.float() / 255, _grid(n, kind, draw), align_corners=False)
    colours = _recoloured(1 - ink, kind.strength, draw)
    grey = (colours * torch.tensor(_GREY).view(3, 1, 1)).sum(1, keepdim=True)
    outline = 1 - (F.max_pool2d(grey, 3, 1, 1) + F.max_pool2d(-grey, 3, 1, 1)).mul(1.5).clamp(0, 1)
    drawn = torch.where(_chosen(n, 0.15 * kind.strength, draw), outline.expand_as(colours), colours)
    seen = torch.where(_chosen(n, 0.3, draw), F.avg_pool2d(drawn, 3, 1, 1, count_include_pad=False), drawn)
    mean, std = (torch.tensor(value).view(3, 1, 1) for value in (_INPUT.mean, _INPUT.std))
    return ((seen - mean) / std).contiguous(memory_format=torch.channels_last)


def _grid(n: int, kind: View, draw: Generator) -> Tensor:
    """Return where each pixel of the views comes from, float32 [n, size, size, 2]."""
    low, high = kind.area
    side = _uniform(n, low, high, draw).sqrt()
    stretch = _uniform(n, -0.15, 0.15, draw).exp()
    angle = kind.strength * _uniform(n, -math.pi / 10, math.pi / 10, draw)
    flip = 1 - 2 * (torch.rand(n, generator=draw) < 0.5).float()
    # A crop stays inside the drawing; a drawing smaller than the view stays inside the view.
    shift = (1 - side).abs()[:, None] * (2 * torch.rand(n, 2, generator=draw) - 1)
    width, height = side * stretch * flip, side / stretch
    cosine, sine = angle.cos(), angle.sin()
    first, second = (width * cosine, -height * sine, shift[:, 0]), (width * sine, height * cosine, shift[:, 1])
    maps = torch.stack([*first, *second], dim=1).view(n, 2, 3)
    return F.affine_grid(maps, [n, 3, kind.size, kind.size], align_corners=False)


def _recoloured(images: Tensor, strength: float, draw: Generator) -> Tensor:
    """Turn the hue, change saturation, contrast and brightness; up to a fifth of the images lose their colours."""
    n = len(images)
    grey = torch.tensor(_GREY).expand(3, 3)
    saturation = 1 + strength * _uniform(n, -0.7, 0.5, draw)
    saturation *= torch.rand(n, generator=draw) > 0.2 * strength
    kept = saturation[:, None, None]
    colour = kept * _hue(strength * _uniform(n, -0.5, 0.5, draw)) + (1 - kept) * grey
    contrast = (1 + strength * _uniform(n, -0.4, 0.3, draw)).view(-1, 1, 1, 1)
    brightness = (strength * _uniform(n, -0.15, 0.15, draw)).view(-1, 1, 1, 1)
    # White paper is the common ground of all artists: contrast is taken around it.
    return (1 - contrast * (1 - torch.einsum("nij,njhw->nihw", colour, images)) + brightness).clamp(0, 1)


def _hue(angle: Tensor) -> Tensor:
    """Return the rotations of RGB around the grey axis by these angles, [n, 3, 3] (Rodrigues' formula)."""
    axis = 1 / math.sqrt(3)
    cross = torch.tensor([[0, -axis, axis], [axis, 0, -axis], [-axis, axis, 0]])
    sine, cosine = angle.sin()[:, None, None], angle.cos()[:, None, None]
    return cosine * torch.eye(3) + sine * cross + (1 - cosine) * torch.full((3, 3), 1 / 3)


def _uniform(n: int, low: float, high: float, draw: Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=draw)


def _chosen(n: int, share: float, draw: Generator) -> Tensor:
    return (torch.rand(n, generator=draw) < share).view(n, 1, 1, 1)
