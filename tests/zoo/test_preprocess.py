"""Preprocessing against torchvision's transforms."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

from harness.zoo.preprocess import preprocess
from harness.zoo.spec import Input


def image(width: int, height: int, mode: str = "RGB") -> Image.Image:
    pixels = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


@settings(deadline=None, max_examples=60)
@given(
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    size=st.integers(1, 40),
    extra=st.integers(0, 9),
    interpolation=st.sampled_from(["bicubic", "bilinear", "lanczos"]),
)
def test_equal_to_torchvision(width: int, height: int, size: int, extra: int, interpolation: str) -> None:
    rule = Input.model_validate({"size": size, "resize": size + extra, "interpolation": interpolation})
    reference = transforms.Compose(
        [
            transforms.Resize(size + extra, InterpolationMode(interpolation)),
            transforms.CenterCrop(size),
            transforms.PILToTensor(),
        ]
    )
    source = image(width, height)
    assert torch.equal(preprocess(source, rule), reference(source))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_other_modes_are_converted_to_rgb(mode: str) -> None:
    source = image(20, 12, mode)
    assert torch.equal(preprocess(source, Input(size=8)), preprocess(source.convert("RGB"), Input(size=8)))


def test_squash_ignores_the_aspect() -> None:
    source = image(40, 10)
    found = preprocess(source, Input(size=8, crop="squash"))
    expected = transforms.PILToTensor()(transforms.Resize((8, 8), InterpolationMode.BICUBIC)(source))
    assert torch.equal(found, expected)


def test_what_it_gives() -> None:
    found: Any = preprocess(image(30, 30), Input(size=16))
    assert (found.dtype, found.shape, found.is_contiguous()) == (torch.uint8, (3, 16, 16), True)
