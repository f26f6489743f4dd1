"""``models.yaml``: all entries, found by name whatever the case of the letters. Imports no torch."""

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from pydantic import ConfigDict

from harness.errors import ConfigError
from harness.errors import nearest
from harness.yamlfile import YamlDocument
from harness.yamlfile import load_yaml
from harness.yamlfile import validate
from harness.zoo.sources import UrlWeights
from harness.zoo.spec import ModelEntry
from harness.zoo.spec import ModelSpec

_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")


_LONGEST_NAME = 80
"""Names become names of folders."""


BENCHMARKS = ("cog", "zsl", "diagvib")
PROTOCOLS = ("linear", "fewshot")
RESERVED = (*BENCHMARKS, *PROTOCOLS, "seen", "IN1K")
"""Words that no model name may contain, whatever is run: a models file that is valid for one suite is so for the other.

Benchmarks to come are among them; the last two are the splits of seen concepts of the shipped universes.
"""

_AROUND = ("benchmarks", *(f"test_{word}.py" for word in BENCHMARKS), *(f"test_{word}" for word in PROTOCOLS))
"""Folders, files and functions around every case, of which ``-k`` takes parts too."""


class _ModelsFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    models: dict[str, ModelEntry]


class Models(Mapping[str, ModelSpec]):
    """The entries of one file in its order. Look-up is blind to case; names are spelled as in the file."""

    def __init__(self, path: Path, specs: Sequence[ModelSpec]) -> None:
        self.path = path
        self._specs = {spec.name.casefold(): spec for spec in specs}

    def __getitem__(self, name: str) -> ModelSpec:
        return self._specs[name.casefold()]

    def __iter__(self) -> Iterator[str]:
        return (spec.name for spec in self._specs.values())

    def __len__(self) -> int:
        return len(self._specs)

    def find(self, name: str) -> ModelSpec:
        """Return the entry called ``name``.

        Raises:
            ConfigError: there is none; the message has the nearest name.
        """
        if name not in self:
            raise ConfigError(f"{self.path}: no model is called {name!r}.{nearest(name, self)}")
        return self[name]


def load_models(path: Path) -> Models:
    """Read and validate a models file.

    Raises:
        ConfigError: one line for each fault, with file, line, field and the nearest valid name.
    """
    document = load_yaml(path)
    if document.content in (None, {"models": None}, {"models": {}}):
        raise ConfigError(f"{path}: no model in it: expected 'models:' and below it an entry for each (docs/models.md)")
    entries = validate(_ModelsFile, document).models
    faults = [*_name_faults(entries, document), *_file_faults(entries, document)]
    if faults:
        raise ConfigError("\n".join(faults))
    return Models(path, [ModelSpec(name=name, **dict(entry)) for name, entry in entries.items()])


def _name_faults(entries: Iterable[str], document: YamlDocument) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in entries:
        where = document.where(("models", name))
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            expected = f"at most {_LONGEST_NAME} letters and digits, joined by single '-', '_' or '.'"
            yield f"{where}: model name {name!r}: expected {expected}"
        if name.casefold() in seen:
            yield f"{where}: model name {name!r} differs from {seen[name.casefold()]!r} by case alone"
        seen.setdefault(name.casefold(), name)


def _file_faults(entries: Mapping[str, ModelEntry], document: YamlDocument) -> Iterator[str]:
    """Two sources must not share a file in the weights folder: the second fetch would find the first one's weights."""
    owners: dict[str, tuple[str, UrlWeights]] = {}
    for name, entry in entries.items():
        if isinstance(entry.weights, UrlWeights):
            weights = entry.weights
            owner, other = owners.setdefault(weights.target.casefold(), (name, weights))
            if (other.url, other.member) != (weights.url, weights.member):
                where = document.where(("models", name, "weights", "url"))
                yield f"{where}: {name} and {owner} keep different weights as {weights.target!r}: name a 'file' apart"


def reserved_token_problems(names: Iterable[str], tokens: Iterable[str]) -> list[str]:
    """Say which model names would make ``pytest -k`` ambiguous.

    ``-k`` matches parts of a case's id whatever their case: a model ``vit-L16`` would be selected by ``-k L1``, the
    name of a split, ``-k in1`` for a model ``in1`` would select every case of split ``IN1K``, and ``-k test`` for a
    model ``test`` every case.

    Args:
        names: names of models.
        tokens: words that benchmarks put into the ids of cases, such as ``L1``, ``N001``, ``seen`` and ``IN1K``.

    Returns:
        One message for each clash, in the order of ``names``.
    """
    by_folded = {token.casefold(): token for token in tokens}
    around = {word.casefold(): word for word in _AROUND}
    problems = []
    for name in names:
        folded = name.casefold()
        problems += [
            f"model name {name!r} contains {token!r}: -k {token} would select it"
            for part, token in sorted(by_folded.items())
            if part in folded
        ]
        if wholes := [word for part, word in sorted((by_folded | around).items()) if folded in part and folded != part]:
            problems.append(f"model name {name!r} is part of {wholes[0]!r}: -k {name} would select that too")
    return problems
