"""Networks from their source, initialised under a seed."""

import importlib
import random
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.zoo.sources import Architecture
from harness.zoo.sources import HuggingFaceArchitecture
from harness.zoo.sources import ImportArchitecture
from harness.zoo.sources import TimmArchitecture
from harness.zoo.sources import TorchHubArchitecture
from harness.zoo.sources import TorchvisionArchitecture


def build_network(architecture: Architecture, seed: int = 0, *, offline: bool = True) -> nn.Module:
    """Build a network with its own random initialisation, the same in every process; global generators are left alone.

    Args:
        architecture: the source and name.
        seed: of the initialisation.
        offline: never reach for the network, not even for code or a configuration (torch-hub, hugging-face).

    Raises:
        ConfigError: an unknown name, arguments that it does not take, or something that is no ``nn.Module``.
        MissingInput: an optional package, or the code or configuration of a hub, is not on this machine.
    """
    with _seeded(seed):
        try:
            network = _BUILDERS[type(architecture)](architecture, offline)
        except TypeError as error:
            raise ConfigError(f"{_describe(architecture)} cannot be built with these kwargs: {error}") from error
    if not isinstance(network, nn.Module):
        raise ConfigError(f"{_describe(architecture)} gives a {type(network).__name__}, not a torch.nn.Module")
    return network


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def _describe(architecture: Architecture) -> str:
    name = architecture.factory if isinstance(architecture, ImportArchitecture) else architecture.name
    return f"architecture {name!r} of {architecture.source}"


def _torchvision(architecture: TorchvisionArchitecture, _offline: bool) -> object:
    from torchvision import models

    names = models.list_models()
    if architecture.name not in names:
        raise ConfigError(f"torchvision has no model {architecture.name!r}.{nearest(architecture.name, names)}")
    return models.get_model(architecture.name, weights=None, **architecture.kwargs)


def _timm(architecture: TimmArchitecture, _offline: bool) -> object:
    import timm

    if not timm.is_model(architecture.name):
        raise ConfigError(f"timm has no model {architecture.name!r}.{nearest(architecture.name, timm.list_models())}")
    kwargs: dict[str, Any] = dict(architecture.kwargs)
    return timm.create_model(architecture.name, pretrained=False, **kwargs)


def _torch_hub(architecture: TorchHubArchitecture, offline: bool) -> object:
    folder = Path(torch.hub.get_dir()) / f"{architecture.repo.replace('/', '_')}_{architecture.commit}"
    if offline and not folder.is_dir():
        url = f"https://github.com/{architecture.repo}/archive/{architecture.commit}.zip"
        raise MissingInput(f"no code of {architecture.repo} at {folder}. Unpack {url} there, or run with --download")
    load: Callable[..., object] = torch.hub.load
    return load(
        f"{architecture.repo}:{architecture.commit}",
        architecture.name,
        trust_repo=True,
        skip_validation=True,
        verbose=False,
        **architecture.kwargs,
    )


def _hugging_face(architecture: HuggingFaceArchitecture, offline: bool) -> object:
    try:
        transformers: Any = importlib.import_module("transformers")
    except ModuleNotFoundError as error:
        raise MissingInput(f"{_describe(architecture)} needs transformers. Run: pip install transformers") from error
    try:
        config = transformers.AutoConfig.from_pretrained(
            architecture.repo, revision=architecture.commit, local_files_only=offline
        )
    except OSError as error:
        raise MissingInput(f"no configuration of {architecture.repo} at {architecture.commit}: {error}") from error
    kind = getattr(transformers, architecture.name, None)
    if kind is None:
        raise ConfigError(
            f"transformers has no class {architecture.name!r}.{nearest(architecture.name, dir(transformers))}"
        )
    build = getattr(kind, "from_config", kind)
    return build(config, **architecture.kwargs)


def _import(architecture: ImportArchitecture, _offline: bool) -> object:
    module_name, _, name = architecture.factory.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{_describe(architecture)}: {error}. Is its folder on PYTHONPATH?") from error
    factory = getattr(module, name, None)
    if not callable(factory):
        raise ConfigError(f"{module_name} has no function {name!r}.{nearest(name, dir(module))}")
    return factory(**architecture.kwargs)


_BUILDERS: dict[type, Callable[..., object]] = {
    TorchvisionArchitecture: _torchvision,
    TimmArchitecture: _timm,
    TorchHubArchitecture: _torch_hub,
    HuggingFaceArchitecture: _hugging_face,
    ImportArchitecture: _import,
}
