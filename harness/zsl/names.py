"""Names of classes, which every data set spells in its own way."""

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"^\d+\.")
_GAP = re.compile(r"[\s_+/.-]+")


def plain_name(name: str) -> str:
    """Return the words of a class's name: ``giant+panda`` and ``004.Groove_billed_Ani`` become plain lower case."""
    return _GAP.sub(" ", _NUMBER.sub("", name)).strip().casefold()


def some(names: Sequence[str]) -> str:
    """Return up to five names for a message, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
