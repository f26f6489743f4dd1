"""Which tensor of a network is the feature: taken, pooled, and given as [n, d] float32."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

import torch
from torch import Tensor
from torch import nn

from harness.errors import ConfigError
from harness.errors import nearest
from harness.zoo.spec import Feature
from harness.zoo.spec import IdentityFeature
from harness.zoo.spec import MethodFeature
from harness.zoo.spec import ModuleFeature
from harness.zoo.spec import PreLogitsFeature

Readout: TypeAlias = Callable[[Tensor], Tensor]
"""From a normalised batch [n, 3, S, S] to features float32 [n, d]."""


def make_readout(network: nn.Module, feature: Feature) -> Readout:
    """Return the function that computes an entry's features. ``take: identity`` changes the network.

    Raises:
        ConfigError: the network has no such module or method. Raised by the function itself: its output is not of
            the shape that ``select`` and ``pooling`` expect.
    """
    run = _runner(network, feature)

    def readout(batch: Tensor) -> Tensor:
        return _pool(_select(run(batch), feature), feature).float()

    return readout


def _runner(network: nn.Module, feature: Feature) -> Callable[[Tensor], Any]:
    if isinstance(feature, PreLogitsFeature):
        forward_features, forward_head = _method(network, "forward_features"), _method(network, "forward_head")
        return lambda batch: forward_head(forward_features(batch), pre_logits=True)
    if isinstance(feature, MethodFeature):
        return _method(network, feature.method)
    if isinstance(feature, ModuleFeature):
        return _tap(network, _module(network, feature.module))
    if isinstance(feature, IdentityFeature):
        _module(network, feature.module)
        parent, _, name = feature.module.rpartition(".")
        setattr(network.get_submodule(parent), name, nn.Identity())
    return network


def _tap(network: nn.Module, module: nn.Module) -> Callable[[Tensor], Any]:
    def run(batch: Tensor) -> Any:
        outputs: list[Any] = []
        handle = module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
        try:
            network(batch)
        finally:
            handle.remove()
        if not outputs:
            raise ConfigError("feature.module: the network does not use that module when it is called")
        return outputs[-1]

    return run


def _method(network: nn.Module, name: str) -> Callable[..., Any]:
    method = getattr(network, name, None)
    if not callable(method):
        raise ConfigError(f"feature: {type(network).__name__} has no method {name!r}.{nearest(name, dir(network))}")
    return method  # type: ignore[no-any-return]  # what a network's method returns is checked by _select and _pool


def _module(network: nn.Module, name: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(network.named_modules())
    if not name or name not in modules:
        raise ConfigError(f"feature.module: {type(network).__name__} has no module {name!r}.{nearest(name, modules)}")
    return modules[name]


def _select(output: Any, feature: Feature) -> Tensor:
    if feature.select is not None:
        try:
            output = output[feature.select]
        except (KeyError, IndexError, TypeError) as error:
            keys = f", which has {', '.join(map(str, output))}" if isinstance(output, Mapping) else ""
            raise ConfigError(f"feature.select: no part {feature.select!r} in the output{keys}") from error
    if not torch.is_tensor(output):
        raise ConfigError(f"feature: the output is a {type(output).__name__}: name the wanted part under 'select'")
    return output


def _pool(output: Tensor, feature: Feature) -> Tensor:
    ranks = {"none": 2, "gap": 4, "cls": 3}
    if output.ndim != ranks[feature.pooling]:
        raise ConfigError(
            f"feature.pooling {feature.pooling!r} takes {ranks[feature.pooling]} dimensions, but the output has shape "
            f"{tuple(output.shape)}: 'gap' is for maps [n, d, h, w], 'cls' for tokens [n, t, d], 'none' for [n, d]"
        )
    if feature.pooling == "gap":
        return output.mean(dim=(2, 3))
    return output[:, 0] if feature.pooling == "cls" else output
