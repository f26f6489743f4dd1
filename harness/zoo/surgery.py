"""From the content of a checkpoint to the tensors of a network: cut, renamed, loaded with a report of every key."""

import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass

from torch import Tensor
from torch import nn

from harness.digest import Plain
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import nearest
from harness.zoo.checkpoint import Checkpoint
from harness.zoo.spec import Surgery

_SHOWN = 8
_NAMED = 20


@dataclass(frozen=True)
class CheckpointReport:
    """What became of the keys of a checkpoint; for the record of a case.

    Attributes:
        file: name of the weights file.
        format: its format.
        reader: what read it.
        objects_dropped: things other than tensors that were left out, as ``path (class)``.
        outside: number of keys outside the wanted prefix.
        dropped: keys left out by the entry's ``drop``.
        missing: keys of the network that the file lacks, as the entry allows.
        unexpected: keys of the file that the network lacks, as the entry allows.
        loaded: number of tensors loaded.
    """

    file: str
    format: str
    reader: str
    objects_dropped: tuple[str, ...]
    outside: int
    dropped: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    loaded: int

    def describe(self) -> dict[str, Plain]:
        """Return the report as plain values; of each list its ``count`` and, in ``first``, up to 20 names."""
        return {
            name: {"count": len(value), "first": list(value[:_NAMED])} if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class Cut:
    """The tensors that `cut` found, under the network's names, and what it left out."""

    tensors: dict[str, Tensor]
    outside: int
    dropped: tuple[str, ...]


def load_checkpoint(network: nn.Module, checkpoint: Checkpoint, surgery: Surgery) -> CheckpointReport:
    """Load a checkpoint into ``network`` by the rules of an entry, strictly.

    Raises:
        CorruptInput: see `cut` and `load_strictly`.
        ConfigError: see `cut`.
    """
    where = str(checkpoint.path)
    found = cut(checkpoint.content, surgery, where)
    missing, unexpected = load_strictly(network, found.tensors, surgery, where)
    return CheckpointReport(
        file=checkpoint.path.name,
        format=checkpoint.kind.value,
        reader=checkpoint.reader,
        objects_dropped=checkpoint.dropped,
        outside=found.outside,
        dropped=found.dropped,
        missing=missing,
        unexpected=unexpected,
        loaded=len(found.tensors) - len(unexpected),
    )


def cut(content: object, surgery: Surgery, where: str) -> Cut:
    """Take the wanted tensors out of a checkpoint and name them as the network does; see `Surgery` for the order.

    Args:
        content: as `harness.zoo.checkpoint.read_checkpoint` returns it.
        surgery: the rules.
        where: the file, for messages.

    Raises:
        CorruptInput: the sub-key is absent, no key has the wanted prefix, or two keys get the same name.
        ConfigError: a replacement refers to a group that its regular expression has not.
    """
    stripped = _renamed(_state_dict(content, surgery, where), lambda key: _strip(key, surgery.strip), where)
    kept = {key.removeprefix(surgery.keep): key for key in stripped if key.startswith(surgery.keep)}
    if not kept:
        raise CorruptInput(f"{where}: no key begins with {surgery.keep!r}; keys begin with {_prefixes(stripped)}")
    drops = [re.compile(pattern) for pattern in surgery.drop]
    dropped = tuple(key for key in kept if any(pattern.search(key) for pattern in drops))
    wanted = {key: stripped[full] for key, full in kept.items() if key not in dropped}
    tensors = _renamed(wanted, lambda key: _rename(key, surgery), where)
    return Cut(tensors, outside=len(stripped) - len(kept), dropped=dropped)


def _state_dict(content: object, surgery: Surgery, where: str) -> dict[str, Tensor]:
    node = content
    for part in surgery.sub_key.split("/") if surgery.sub_key else ():
        if not isinstance(node, Mapping) or part not in node:
            if surgery.sub_key_optional:
                node = content
                break
            names = [str(name) for name in node] if isinstance(node, Mapping) else []
            held = f"it holds {_listed(names)}" if names else f"it is a {type(node).__name__}"
            raise CorruptInput(f"{where}: no entry {surgery.sub_key!r}; {held}.{nearest(part, names)}")
        node = node[part]
    items = node.items() if isinstance(node, Mapping) else ()
    tensors = {str(key): value for key, value in items if isinstance(value, Tensor)}
    if not tensors:
        raise CorruptInput(f"{where}: no tensors at {surgery.sub_key or 'the root'}.{_sub_key_hint(node)}")
    return tensors


def _sub_key_hint(node: object) -> str:
    inner = node.items() if isinstance(node, Mapping) else ()
    holders = [
        f"{key!r} ({count} tensors)"
        for key, value in inner
        if isinstance(value, Mapping) and (count := sum(isinstance(item, Tensor) for item in value.values()))
    ]
    return f" Set surgery.sub_key to one of {', '.join(holders)}" if holders else ""


def _strip(key: str, prefixes: Sequence[str]) -> str:
    while found := next((prefix for prefix in prefixes if prefix and key.startswith(prefix)), None):
        key = key.removeprefix(found)
    return key


def _rename(key: str, surgery: Surgery) -> str:
    for pattern, replacement in surgery.rename:
        try:
            key = re.sub(pattern, replacement, key)
        except (re.error, IndexError) as error:
            raise ConfigError(f"surgery.rename: {pattern!r} with {replacement!r}: {error}") from error
    return key


def _renamed(tensors: Mapping[str, Tensor], name: Callable[[str], str], where: str) -> dict[str, Tensor]:
    renamed: dict[str, Tensor] = {}
    origins: dict[str, str] = {}
    for key, tensor in tensors.items():
        new = name(key)
        if new in renamed:
            raise CorruptInput(f"{where}: keys {origins[new]!r} and {key!r} both become {new!r}")
        renamed[new], origins[new] = tensor, key
    return renamed


def load_strictly(
    network: nn.Module, tensors: Mapping[str, Tensor], surgery: Surgery, where: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Load tensors into a network; every key and shape has to fit but those that the entry lists.

    Element types are converted to the network's. ``num_batches_tracked`` may be absent.

    Returns:
        The keys missing and the keys unexpected, as far as the entry allows them.

    Raises:
        CorruptInput: a key is missing, unexpected or misshaped; each is named with the nearest one.
    """
    expected = network.state_dict()
    missing = [key for key in expected if key not in tensors and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in tensors if key not in expected]
    misshaped = [
        f"{key} {tuple(tensors[key].shape)} for {tuple(expected[key].shape)}"
        for key in expected
        if key in tensors and tensors[key].shape != expected[key].shape
    ]
    faults = [
        _fault("missing", _beyond(missing, surgery.missing), unexpected),
        _fault("unexpected", _beyond(unexpected, surgery.unexpected), missing),
        f"{len(misshaped)} of another shape: {_listed(misshaped)}" if misshaped else "",
    ]
    if any(faults):
        raise CorruptInput(f"{where} does not fit the network: {'; '.join(fault for fault in faults if fault)}")
    network.load_state_dict({key: value for key, value in tensors.items() if key in expected}, strict=False)
    return tuple(missing), tuple(unexpected)


def _beyond(keys: Iterable[str], allowed: Sequence[str]) -> list[str]:
    return [key for key in keys if not any(re.fullmatch(pattern, key) for pattern in allowed)]


def _fault(kind: str, keys: Sequence[str], others: Sequence[str]) -> str:
    if not keys:
        return ""
    return f"{len(keys)} {kind}: {_listed(keys)}.{nearest(keys[0], others)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _prefixes(keys: Iterable[str]) -> str:
    counts = Counter(key.partition(".")[0] for key in keys)
    return _listed([f"{prefix}. ({count})" for prefix, count in counts.most_common()])
