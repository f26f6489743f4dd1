"""Which tensor of a network is the feature."""

from typing import Any

import pytest
import timm
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch import nn

from harness.errors import ConfigError
from harness.zoo.readout import make_readout
from harness.zoo.spec import Feature


class Net(nn.Module):
    """Gives maps, tokens, dicts and tuples on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 2, 2)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
        self.unused = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.conv(x))
        return out

    def tokens(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x).flatten(2).transpose(1, 2)
        return out

    def parts(self, x: Tensor) -> dict[str, Any]:
        return {"tokens": self.tokens(x), "tuple": (1, self.tokens(x))}


BATCH = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def features(net: nn.Module, **rule: Any) -> Tensor:
    feature: Feature = TypeAdapter(Feature).validate_python(rule)
    with torch.inference_mode():
        return make_readout(net.eval(), feature)(BATCH)


def test_where_features_are_taken() -> None:
    net = Net()
    maps, tokens, output = net.conv(BATCH), net.tokens(BATCH), net(BATCH)
    assert torch.allclose(features(net, take="output"), output)
    assert torch.allclose(features(net, take="module", module="conv", pooling="gap"), maps.mean((2, 3)))
    assert torch.allclose(features(net, take="module", module="head.1"), maps.mean((2, 3)))
    assert torch.allclose(features(net, take="method", method="tokens", pooling="cls"), tokens[:, 0])
    parts = {"take": "method", "method": "parts", "pooling": "cls"}
    assert torch.allclose(features(net, **parts, select="tokens"), tokens[:, 0])
    assert torch.allclose(features(net, take="identity", module="head.2"), maps.mean((2, 3)))
    assert isinstance(net.head[2], nn.Identity)


def test_timm_pre_logits() -> None:
    net: Any = timm.create_model("resnet18", num_classes=3).eval()
    expected = net.forward_features(BATCH).mean((2, 3))
    assert torch.allclose(features(net, take="pre_logits"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"take": "identity", "module": "haed"}, r"feature\.module: Net has no module 'haed'\. Did you mean 'head'\?"),
        ({"take": "module", "module": ""}, r"feature\.module: Net has no module ''"),
        ({"take": "module", "module": "unused"}, r"the network does not use that module"),
        ({"take": "method", "method": "token"}, r"feature: Net has no method 'token'\. Did you mean 'tokens'\?"),
        ({"take": "pre_logits"}, r"feature: Net has no method 'forward_features'"),
        ({"take": "method", "method": "parts"}, r"the output is a dict: name the wanted part under 'select'"),
        (
            {"take": "method", "method": "parts", "select": "cls"},
            r"no part 'cls' in the output, which has tokens, tuple",
        ),
        ({"take": "method", "method": "parts", "select": "tuple"}, r"the output is a tuple: name the wanted part"),
        ({"take": "method", "method": "tokens"}, r"'none' takes 2 dimensions, but the output has shape \(2, 16, 4\)"),
        ({"take": "module", "module": "conv", "pooling": "cls"}, r"'cls' takes 3 dimensions, .*: 'gap' is for maps"),
    ],
)
def test_what_does_not_fit_is_told(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        features(Net(), **rule)
