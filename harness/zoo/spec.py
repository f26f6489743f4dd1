"""What an entry of ``models.yaml`` says: plain, validated, frozen data. Imports no torch."""

import re
from typing import Annotated
from typing import Literal
from typing import TypeAlias

from pydantic import AfterValidator
from pydantic import Field
from pydantic import model_validator

from harness.digest import Plain
from harness.yamlfile import validate
from harness.zoo.sources import Architecture
from harness.zoo.sources import Strict
from harness.zoo.sources import Weights


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


Regex = Annotated[str, AfterValidator(_regular_expression)]
Count = Annotated[int, Field(strict=True, ge=1)]
Positive = Annotated[float, Field(gt=0)]


class Surgery(Strict):
    """How the tensors of a checkpoint become those of the network. Applied in the order of the fields.

    Attributes:
        sub_key: path from the file's root to the state dict, parts divided by ``/``; empty: the root itself.
        sub_key_optional: the root itself is taken where ``sub_key`` is absent.
        strip: prefixes taken off every key that has them, as often as they occur.
        keep: prefix of the wanted keys, taken off; keys without it are left out. At least one key must have it.
        drop: keys in which one of these regular expressions is found are left out.
        rename: pairs (regular expression, replacement), each applied to the result of the one before.
        missing: keys of the network (whole-key regular expressions) that the file may lack. ``num_batches_tracked``
            of batch normalisation, which features do not depend on, may always be absent.
        unexpected: keys left over (whole-key regular expressions) that the network may lack.
        inert: classes and functions other than tensors that a published file is known to hold, such as
            ``argparse.Namespace``: replaced by inert stand-ins and left out. Any other fails.
    """

    sub_key: str = ""
    sub_key_optional: bool = False
    strip: tuple[str, ...] = ()
    keep: str = ""
    drop: tuple[Regex, ...] = ()
    rename: tuple[tuple[Regex, str], ...] = ()
    missing: tuple[Regex, ...] = ()
    unexpected: tuple[Regex, ...] = ()
    inert: tuple[str, ...] = ()


class _Feature(Strict):
    pooling: Literal["none", "gap", "cls"] = "none"
    select: str | Annotated[int, Field(strict=True)] | None = None
    dim: Count | None = None


class OutputFeature(_Feature):
    """The output of the network itself."""

    take: Literal["output"]


class IdentityFeature(_Feature):
    """The output of the network with ``module`` (usually the classifier) replaced by the identity."""

    take: Literal["identity"]
    module: str


class ModuleFeature(_Feature):
    """The output of ``module`` inside the network."""

    take: Literal["module"]
    module: str


class MethodFeature(_Feature):
    """The output of the method ``method`` of the network, such as ``forward_features`` or ``encode_image``."""

    take: Literal["method"]
    method: str


class PreLogitsFeature(_Feature):
    """timm's ``forward_head(forward_features(x), pre_logits=True)``."""

    take: Literal["pre_logits"]


Feature: TypeAlias = OutputFeature | IdentityFeature | ModuleFeature | MethodFeature | PreLogitsFeature


class Input(Strict):
    """What a network is fed. The defaults are those of ImageNet-CoG (naver/cog, data/__init__.py).

    Attributes:
        size: side of the square input in pixels.
        resize: length of the shortest side before the crop; None: ``size``, nothing but the long side is cut.
        crop: ``center`` keeps the aspect and cuts; ``squash`` resizes both sides to ``size``.
        interpolation: filter of the resize, by Pillow.
        mean: subtracted from the channels R, G, B, scaled to 0..1.
        std: what they are then divided by.
        channels: order in which the network takes the normalised channels.
    """

    size: Count = 224
    resize: Count | None = None
    crop: Literal["center", "squash"] = "center"
    interpolation: Literal["bicubic", "bilinear", "lanczos"] = "bicubic"
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[Positive, Positive, Positive] = (0.229, 0.224, 0.225)
    channels: Literal["RGB", "BGR"] = "RGB"

    @model_validator(mode="after")
    def _fits(self) -> "Input":
        if self.resize is not None and (self.crop == "squash" or self.resize < self.size):
            raise ValueError("'resize' must be at least 'size' and goes with crop 'center'")
        return self


class ModelEntry(Strict):
    """One entry of ``models.yaml``, without its name.

    Attributes:
        parameters: million parameters without the last layer, as published.
        may_have_seen: the training data may hold concepts that the benchmarks call unseen; marked in every table.
    """

    group: Literal["baseline", "architecture", "self-supervised", "regularization", "web-data"]
    architecture: Annotated[Architecture, Field(discriminator="source")]
    weights: Annotated[Weights, Field(discriminator="source")]
    surgery: Surgery = Surgery()
    feature: Annotated[Feature, Field(discriminator="take")]
    input: Input = Input()
    parameters: Positive | None = None
    training_data: str
    may_have_seen: bool = False
    licence: str
    notes: str = ""


class ModelSpec(ModelEntry):
    """An entry with its name."""

    name: str


def with_resize(spec: ModelSpec, resize: int | None) -> ModelSpec:
    """Return the entry with another length of the shortest side before the crop; None leaves it as it is.

    Raises:
        ConfigError: ``resize`` is smaller than the entry's input size, or the entry squashes.
    """
    if resize is None:
        return spec
    changed = validate(Input, {**spec.input.model_dump(), "resize": resize}, f"resize of {spec.name}")
    return spec.model_copy(update={"input": changed})


def identity(spec: ModelSpec) -> dict[str, Plain]:
    """Return everything in an entry that can move its features, for cache keys.

    The weights are not in it: their bytes are, by `harness.zoo.weights.weights_digest`. Names, groups, licences, notes,
    checks (feature dimension) and allowances (``missing``, ``unexpected``, ``inert``) move nothing.
    """
    plain = spec.model_dump(mode="json", include={"architecture", "surgery", "feature", "input"})
    for name in ("missing", "unexpected", "inert"):
        del plain["surgery"][name]
    del plain["feature"]["dim"]
    plain["input"]["resize"] = spec.input.resize or spec.input.size
    return plain
