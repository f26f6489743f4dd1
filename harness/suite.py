"""Suites: which universe, seeds, trials and grids a run uses, one YAML file each.

The field defaults are the published protocol; a suite file names what it changes.
"""

from pathlib import Path
from typing import Annotated
from typing import Any
from typing import Literal

import yaml
from pydantic import AfterValidator
from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import Field
from pydantic import model_validator

from harness import data
from harness.errors import ConfigError
from harness.errors import nearest
from harness.yamlfile import validate

_STRICT = ConfigDict(frozen=True, extra="forbid")


def _different(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(numbers)) < len(numbers) or any(not 0 <= number < 2**32 for number in numbers):
        raise ValueError("expected different numbers from 0 to below 2**32")
    return numbers


def _positive(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if min(numbers, default=1) < 1:
        raise ValueError("expected numbers of at least 1")
    return numbers


Different = Annotated[tuple[int, ...], AfterValidator(_different)]


LEVEL_OPTIONS = ("lcs", "count", "instance_edges", "leaf_first", "exclusions", "measure", "vectors", "seen")
"""The options of `CogProtocol` that say how levels are derived."""


class CogProtocol(BaseModel):
    """The protocol of ImageNet-CoG (Sariyildiz et al., ICCV 2021, sections 3 and 4, and its reference code)."""

    model_config = _STRICT

    universe: str = "in21k"
    """Concepts, seen concepts, levels and images: a shipped name or the path of a universe file."""
    seeds: Different = Field(default=(22, 37, 45, 77, 93), min_length=1)
    trials: int = Field(default=30, ge=1)
    """Hyper-parameter trials of TPE per seed."""
    shots: Annotated[Different, AfterValidator(_positive)] = Field(default=(1, 2, 4, 8, 16, 32, 64, 128), min_length=1)
    epochs: int = Field(default=100, ge=1)
    batch_size: int = Field(default=1024, ge=1)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    lr_min: float = Field(default=1e-1, gt=0)
    lr_max: float = Field(default=1e2, gt=0)
    wd_min: float = Field(default=1e-12, gt=0)
    wd_max: float = Field(default=1e-4, gt=0)
    val_fraction: float = Field(default=0.2, gt=0, lt=1)
    schedule: Literal["reference", "exact"] = "reference"
    """``reference``: the cosine of the reference code, one epoch late; ``exact``: the cosine itself."""
    fewshot_val: Literal["full", "matched"] = "full"
    """Few-shot tuning on the whole 20 % (the paper), or on as many validation images as training images."""
    tpe: Literal["sequential", "batched"] = "sequential"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    l2_normalize: bool = True
    feature_precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """The lowest precision that features may be extracted in; used only while they stay within a tolerance."""
    resize: int | None = Field(default=None, ge=1)
    """Shortest side before the crop; None: as the model's entry says (the reference code: equal to the crop)."""
    unreadable: Literal["fail", "drop"] = "fail"
    """Unreadable images fail the case, or are dropped and counted (the reference code drops them silently)."""
    lcs: Literal["deepest", "max-ic"] = "deepest"
    count: Literal["closure", "in21k", "wordnet", "leaves"] = "closure"
    instance_edges: bool = True
    leaf_first: bool = True
    exclusions: Literal["all", "certain", "none"] = "all"
    measure: str = "lin"
    vectors: str | None = None
    """File of word or description vectors, for ``measure=cosine``."""
    seen: str | None = None
    """Which of the universe's lists of seen concepts levels are ranked against; None: its default."""
    levels: Literal["published", "derived"] = "published"
    """``published``: the universe's canonical levels where it has them; else as derived by the options above."""

    @model_validator(mode="after")
    def _consistent(self) -> "CogProtocol":
        if self.lr_min > self.lr_max or self.wd_min > self.wd_max:
            raise ValueError("lr_min must not exceed lr_max, nor wd_min wd_max")
        default = type(self).model_fields
        moved = [name for name in LEVEL_OPTIONS if getattr(self, name) != default[name].default]
        if self.levels == "published" and moved:
            raise ValueError(f"{', '.join(moved)} cannot move published levels: say levels=derived too")
        return self


class Suite(BaseModel):
    """One suite file."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str
    note: str = ""
    """A sentence that stands wherever the suite's numbers are shown."""
    baseline: str | None = None
    """The model that curves are relative to."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of one case: fixed, since sums in another order give other last digits."""
    cog: CogProtocol = CogProtocol()


def suite_names() -> list[str]:
    """Return the names of the shipped suites."""
    return sorted(path.stem for path in data.path("suites").glob("*.yaml"))


def load_suite(name_or_file: str) -> Suite:
    """Read a suite by its shipped name or from a YAML file.

    Raises:
        ConfigError: there is no such suite, or the file is not a valid one.
    """
    names = suite_names()
    if name_or_file in names:
        return validate(Suite, data.path(f"suites/{name_or_file}.yaml"))
    path = Path(name_or_file)
    if not path.is_file():
        hint = nearest(name_or_file, names)
        raise ConfigError(f"--suite {name_or_file}: neither a file nor a shipped suite ({', '.join(names)}).{hint}")
    suite = validate(Suite, path)
    if suite.name in names:
        raise ConfigError(f"{path}: name: {suite.name!r} is a shipped suite, whose records it would overwrite")
    return _with_universe_beside(suite, path)


def _with_universe_beside(suite: Suite, path: Path) -> Suite:
    """Read a suite file's universe relative to that file, wherever the run is started."""
    beside = path.parent / suite.cog.universe
    if not beside.is_file():
        return suite
    return suite.model_copy(update={"cog": suite.cog.model_copy(update={"universe": str(beside)})})


def with_options(suite: Suite, assignments: tuple[str, ...]) -> tuple[Suite, dict[str, dict[str, str]]]:
    """Apply ``KEY=VALUE`` or ``BENCHMARK.KEY=VALUE`` overrides to the protocols of a suite.

    Returns:
        The changed suite, and per benchmark the options that differ from the suite's own, as text.

    Raises:
        ConfigError: an unknown key, an ambiguous one, or a value that the protocol does not admit.
    """
    overrides: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        section, key, value = _parsed(suite, assignment)
        overrides.setdefault(section, {})[key] = value
    changed = suite.model_copy(update={name: _overridden(suite, name, values) for name, values in overrides.items()})
    return changed, {name: _changes(getattr(suite, name), getattr(changed, name)) for name in _sections(suite)}


def _sections(suite: Suite) -> list[str]:
    return [name for name in type(suite).model_fields if isinstance(getattr(suite, name), BaseModel)]


def _parsed(suite: Suite, assignment: str) -> tuple[str, str, Any]:
    path, separator, text = assignment.partition("=")
    if not separator:
        raise ConfigError(f"--protocol {assignment}: expected KEY=VALUE, for example trials=30")
    section, key = _locate(suite, path.strip())
    several = isinstance(getattr(getattr(suite, section), key), tuple)
    try:
        value = yaml.safe_load(f"[{text.strip().removeprefix('[').removesuffix(']')}]" if several else text)
    except yaml.YAMLError:
        return section, key, text
    return section, key, value


def _overridden(suite: Suite, section: str, values: dict[str, Any]) -> BaseModel:
    protocol: BaseModel = getattr(suite, section)
    given = " ".join(f"{key}={_as_text(value)}" for key, value in values.items())
    return validate(type(protocol), {**protocol.model_dump(), **values}, f"--protocol {given}")


def _locate(suite: Suite, path: str) -> tuple[str, str]:
    keys = {
        f"{section}.{key}": (section, key)
        for section in _sections(suite)
        for key in type(getattr(suite, section)).model_fields
    }
    found = [place for full, place in keys.items() if path in {full, full.partition(".")[2]}]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"--protocol {path}: say which, {' or '.join('.'.join(place) for place in found)}")
    known = sorted({key for _, key in keys.values()} | keys.keys())
    raise ConfigError(f"--protocol {path}: no such option.{nearest(path, known)}")


def _changes(own: BaseModel, changed: BaseModel) -> dict[str, str]:
    ours, theirs = own.model_dump(mode="json"), changed.model_dump(mode="json")
    return {key: _as_text(theirs[key]) for key in ours if ours[key] != theirs[key]}


def _as_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
