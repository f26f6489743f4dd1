"""Turn what a case measured into plain JSON types, or say clearly why that cannot be done."""

import math
from collections.abc import Mapping
from typing import Any

from harness.digest import Plain


class NotRecordable(TypeError):
    """A value has no plain JSON form: a mistake in the code of a case, so that its traceback is shown."""


def to_plain(value: Any, name: str = "value") -> Plain:
    """Return ``value`` made of None, bool, int, float, str, lists and dicts with text keys.

    NumPy and torch scalars become Python numbers, arrays and tensors (at most 1,000 elements) nested lists, tuples
    lists. NaN and infinities become None: a number that does not exist; `metric_reason` says which it was.
    Neither library is imported: their values know how to turn themselves into Python's.

    Args:
        value: What was measured.
        name: How the message of an error calls it.

    Raises:
        NotRecordable: anything else, such as a path, a set or a large array.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int | str):
        return int(value) if isinstance(value, int) else str(value)
    if isinstance(value, Mapping):
        return {_key(key, name): to_plain(inner, f"{name}[{key!r}]") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner, f"{name}[{index}]") for index, inner in enumerate(value)]
    if callable(tolist := getattr(value, "tolist", None)):
        return to_plain(_elements(value, tolist, name), name)
    raise NotRecordable(
        f"{name} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be recorded. "
        "Expected a number, text, None, a list or dict of these, or a NumPy or torch value."
    )


def is_number(value: Any) -> bool:
    """Say whether a value is a number, Python's or a 0-dimensional NumPy or torch one. Truth values are not."""
    value = _scalar(value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def metric_reason(value: Any) -> str | None:
    """Say why a number is recorded as None: ``not a number``, ``infinite``; None where it is finite."""
    value = _scalar(value)
    if isinstance(value, float) and math.isnan(value):
        return "not a number"
    return "infinite" if isinstance(value, float) and math.isinf(value) else None


def _scalar(value: Any) -> Any:
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) and tuple(getattr(value, "shape", (0,))) == () else value


def _elements(value: Any, tolist: Any, name: str) -> Any:
    size = math.prod(getattr(value, "shape", ()))
    if size > 1000:
        raise NotRecordable(
            f"{name} is an array of {size} elements: arrays go into the store, at most 1,000 into a record"
        )
    elements = tolist()
    if type(elements) is type(value):
        raise NotRecordable(f"{name} is a {type(value).__name__}, which has no plain form")
    return elements


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise NotRecordable(f"{name} has the key {key!r}: keys of a record are text")
    return key
