"""YAML files written by hand, read so that every fault is told with its file, line and field."""

import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any
from typing import TypeAlias
from typing import TypeVar

import yaml
from pydantic import BaseModel
from pydantic import ValidationError

from harness.errors import ConfigError
from harness.errors import nearest

Location: TypeAlias = "tuple[str | int, ...]"
Schema: TypeAlias = Mapping[str, Any]
Model = TypeVar("Model", bound=BaseModel)

_LONGEST_VALUE = 60

_FIELDS, _LIST = "expected fields, each 'name: value'", "expected a list"
_PLAIN_WORDS = {
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "dict_type": _FIELDS,
    "mapping_type": _FIELDS,
    "list_type": _LIST,
    "tuple_type": _LIST,
}
"""What to say for faults of pydantic whose own messages speak of Python."""

_TAGS = {"union_tag_invalid", "union_tag_not_found"}
"""Faults of the field that says which of several kinds an entry is."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time: libyaml is optional
    """The safe loader, with numbers such as 1e-4 read as numbers: PyYAML takes them for text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d[\d_]*(?:\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@dataclass(frozen=True)
class YamlDocument:
    """The content of a YAML file, and where in the file each part of it stands.

    Attributes:
        path: the file, as named in messages.
        content: plain Python values.
        lines: line number (from 1) of each key or list item, by its path from the top: ``("models", 3, "name")``.
    """

    path: Path
    content: object
    lines: Mapping[Location, int] = field(default_factory=dict)

    def where(self, location: Location) -> str:
        """Return ``file:line`` of a location, or of its nearest parent that stands in the file."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.lines:
                return f"{self.path}:{self.lines[location[:end]]}"
        return str(self.path)


def load_yaml(path: Path) -> YamlDocument:
    """Read a YAML file.

    Raises:
        ConfigError: the file is not there, is no YAML, or has a key twice in one mapping.
    """
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        lines = dict(_lines(node, (), path)) if node else {}
        content = loader.construct_document(node) if node else None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML: {getattr(error, 'problem', None) or error}") from error
    return YamlDocument(path, content, lines)


def _lines(
    node: yaml.Node, location: Location, path: Path, above: tuple[int, ...] = ()
) -> Iterator[tuple[Location, int]]:
    if id(node) in above:
        raise ConfigError(f"{path}:{node.start_mark.line + 1}: a YAML alias contains itself")
    above = (*above, id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*location, index), item.start_mark.line + 1
            yield from _lines(item, (*location, index), path, above)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{path}:{line}: a key has to be a plain name or number")
            if key.value in seen:
                raise ConfigError(f"{path}:{line}: key {key.value!r} stands twice; first in line {seen[key.value]}")
            seen[key.value] = line
            yield (*location, key.value), line
            yield from _lines(value, (*location, key.value), path, above)


def validate(
    model_class: type[Model],
    source: Path | YamlDocument | Mapping[str, object],
    name: str = "data",
    context: Mapping[str, object] | None = None,
) -> Model:
    """Return ``source`` as a pydantic model.

    Args:
        model_class: what the content has to be.
        source: a YAML file, one already read, or plain values.
        name: what messages call plain values, for example ``--protocol``.
        context: what the model's validators may ask for, such as the folder that paths are relative to.

    Raises:
        ConfigError: one message with a line for each fault: file, line, field, what is expected and the nearest
            valid key or value.
    """
    if isinstance(source, Path):
        document = load_yaml(source)
    elif isinstance(source, YamlDocument):
        document = source
    else:
        document = YamlDocument(Path(name), source)
    try:
        return model_class.model_validate(document.content, context=context)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise ConfigError("\n".join(_describe(fault, document, model_class) for fault in faults)) from error


def _describe(fault: Mapping[str, Any], document: YamlDocument, model_class: type[BaseModel]) -> str:
    kind, loc, context, value = fault["type"], fault["loc"], fault.get("ctx", {}), fault["input"]
    if kind in _TAGS:
        loc = (*loc, context["discriminator"].strip("'"))
        value = context.get("tag")
    schema = model_class.model_json_schema()
    location, _ = _walk(loc, document.content, schema)
    where, name = document.where(location), _dotted(location)
    if kind in {"missing", "union_tag_not_found"}:
        owner = f" of {name}" if location else ""
        return f"{where}: required field {str(loc[-1])!r}{owner} is missing"
    if kind == "extra_forbidden":
        _, variants = _walk(loc[:-1], document.content, schema)
        valid = [field for variant in variants for field in variant.get("properties", ())]
        hint = nearest(str(loc[-1]), valid) or f" Expected one of: {', '.join(dict.fromkeys(valid))}."
        return f"{where}: unknown field {name!r}.{hint}"
    shown = "nothing" if value is None else repr(value)
    cut = len(shown) > _LONGEST_VALUE
    if cut:
        shown = f"{shown[:_LONGEST_VALUE]}..."
    choices = re.findall(r"'([^']*)'", str(context.get("expected", context.get("expected_tags", ""))))
    subject = f"field {name!r}: " if location else ""
    expected = _expected(kind, choices, fault["msg"])
    # A fault of several fields names them: the beginning of all fields would tell no more.
    if kind == "value_error" and isinstance(value, Mapping) and (cut or not location):
        return f"{where}: {subject}{expected}{'' if expected.endswith('?') else '.'}"
    return f"{where}: {subject}{expected}; found {shown}.{nearest(str(value), choices)}"


def _expected(kind: str, choices: Sequence[str], message: str) -> str:
    if choices:
        return f"expected one of {', '.join(choices)}"
    return _PLAIN_WORDS.get(kind) or message.removeprefix("Value error, ").removesuffix(".")


def _dotted(location: Location) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _walk(loc: Location, content: Any, schema: Schema) -> tuple[Location, list[Schema]]:
    """Follow a pydantic location through content and JSON schema side by side.

    Pydantic's locations hold union tags and missing keys, which do not stand in the file.

    Returns:
        The part of the location that stands in the content, and the schemas valid there.
    """
    found: list[str | int] = []
    variants = list(_variants(schema, schema))
    for part in loc:
        mapping = next((tags for variant in variants if (tags := _tags(variant, content)) and part in tags), None)
        if mapping:
            variants = list(_variants({"$ref": mapping[part]}, schema))
            continue
        in_list = isinstance(content, list) and isinstance(part, int) and part < len(content)
        if in_list or (isinstance(content, Mapping) and part in content):
            found.append(part)
            content = content[part]
            inner = [_inner(variant, part) for variant in variants]
            variants = [each for node in inner if node for each in _variants(node, schema)]
    return tuple(found), variants


def _tags(variant: Schema, content: Any) -> Mapping[str | int, str] | None:
    """Return the schema of each tag, where the variant is a tagged union that the content has chosen from."""
    tag = variant.get("discriminator")
    return tag["mapping"] if tag and isinstance(content, Mapping) and tag["propertyName"] in content else None


def _inner(variant: Schema, part: str | int) -> Any:
    if isinstance(part, int):
        return variant.get("items")
    return variant.get("properties", {}).get(part) or variant.get("additionalProperties")


def _variants(node: Schema, root: Schema) -> Iterator[Schema]:
    """Resolve references and plain unions; a tagged union stays whole until its tag is known."""
    if "$ref" in node:
        yield from _variants(root["$defs"][node["$ref"].rsplit("/", 1)[-1]], root)
    elif "anyOf" in node:
        for member in node["anyOf"]:
            yield from _variants(member, root)
    else:
        yield node
