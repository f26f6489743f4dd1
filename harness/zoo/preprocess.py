"""From an image to the square of bytes that a network is fed, on the CPU, with Pillow's filters."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from harness.zoo.spec import Input

_FILTERS = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
}


def preprocess(image: Image.Image, rule: Input) -> Tensor:
    """Resize and crop an image.

    Equal to torchvision's ``Resize(rule.resize or rule.size)``, ``CenterCrop(rule.size)`` and ``PILToTensor()`` on a
    Pillow image, which is what naver/cog (data/__init__.py) applies before the normalisation. Safe in threads.

    Args:
        image: of any mode; converted to RGB.
        rule: the network's input.

    Returns:
        uint8 tensor [3, size, size], channels R, G, B.
    """
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    width, height = _resized(*rgb.size, rule)
    if rgb.size != (width, height):
        rgb = rgb.resize((width, height), _FILTERS[rule.interpolation])
    left, top = round((width - rule.size) / 2), round((height - rule.size) / 2)
    if (width, height) != (rule.size, rule.size):
        rgb = rgb.crop((left, top, left + rule.size, top + rule.size))
    return torch.from_numpy(np.array(rgb)).permute(2, 0, 1).contiguous()


def _resized(width: int, height: int, rule: Input) -> tuple[int, int]:
    if rule.crop == "squash":
        return rule.size, rule.size
    short = rule.resize or rule.size
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short
