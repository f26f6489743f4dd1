"""Is an entry's network one that can be built? Found out without its weights and, as a rule, without its memory."""

import torch
from torch import nn

from harness.errors import ConfigError
from harness.errors import HarnessError
from harness.zoo.architectures import build_network
from harness.zoo.readout import make_readout
from harness.zoo.sources import Architecture
from harness.zoo.spec import ModelSpec
from harness.zoo.weights import naming


def check_network(spec: ModelSpec) -> None:
    """Build the network of an entry and its readout, reaching for nothing outside this machine.

    Code that the entry names (``import``, ``torch-hub``) is run.

    Raises:
        MissingInput: an optional package, or the code or configuration of a hub, is not on this machine.
        ConfigError: there is no such network, it does not take these arguments, or it has no such module or method.
    """
    with naming(spec.name):
        try:
            network = _outline(spec.architecture)
        except HarnessError:
            raise
        except Exception as error:  # hub code and functions of the user's own may raise anything
            message = f"the architecture cannot be built: {type(error).__name__}: {error}"
            raise ConfigError(message) from error
        make_readout(network, spec.feature)


def _outline(architecture: Architecture) -> nn.Module:
    """Build a network of tensors without memory; a real one where its constructor computes with their values."""
    try:
        with torch.device("meta"):
            return build_network(architecture)
    except RuntimeError:
        return build_network(architecture)
