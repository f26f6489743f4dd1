"""Exact selection of cases: ``model=s-DINO split=L3 shots=4``, where ``pytest -k`` matches parts of words."""

import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from harness.case import Case
from harness.errors import ConfigError
from harness.errors import nearest

Known: TypeAlias = Mapping[str, Sequence[str]]
"""All keys of a list of cases, and all values of each, in the order of the list."""

SELECT_HELP = (
    "run only cases that fit exactly: benchmark=, protocol=, model=, split=, shots= ...; a,b for several values, "
    "* for any part; all of one --select have to hold, and each further --select adds cases"
)

_FIXED = ("benchmark", "protocol", "model")
_LISTED = 12
"""The most values that a message lists."""


@dataclass(frozen=True)
class Selection:
    """Which cases are wanted: those that fit at least one alternative."""

    alternatives: tuple[Mapping[str, frozenset[str]], ...]
    """By key the values admitted, as the cases spell them; a case without the key does not fit."""

    def __contains__(self, case: Case) -> bool:
        return any(
            all(_value(case, key) in values for key, values in alternative.items()) for alternative in self.alternatives
        )


def select(texts: Sequence[str], cases: Iterable[Case]) -> list[Case]:
    """Return the cases that fit at least one of ``texts``, in their order; all where there is none.

    Raises:
        ConfigError: see `parse`.
    """
    cases = list(cases)
    if not texts:
        return cases
    wanted = parse(texts, cases)
    return [case for case in cases if case in wanted]


def parse(texts: Sequence[str], cases: Sequence[Case]) -> Selection:
    """Read selections against the cases there are.

    Args:
        texts: Each ``KEY=VALUE KEY=VALUE,VALUE ...``, where all have to hold; a case is wanted where one text fits.
            Keys are ``benchmark``, ``protocol``, ``model`` and the names of tokens. Values are whole words, blind to
            case; ``*``, ``?`` and ``[...]`` stand for parts; a number stands for its padded token (4 for ``N004``).
        cases: All cases: keys and values that none of them has are mistakes.

    Raises:
        ConfigError: a text is malformed, has an unknown key or value, or fits no case; with the nearest valid word.
    """
    known = _known(cases)
    alternatives = []
    for text in texts:
        alternative = _alternative(text, known)
        if not any(case in Selection((alternative,)) for case in cases):
            raise ConfigError(f"--select {text!r}: each of its words is known, but no case fits all of them")
        alternatives.append(alternative)
    return Selection(tuple(alternatives))


def _value(case: Case, key: str) -> str | None:
    return getattr(case, key) if key in _FIXED else case.tokens.get(key)


def _known(cases: Iterable[Case]) -> Known:
    found: dict[str, dict[str, None]] = {key: {} for key in _FIXED}
    for case in cases:
        for key in _FIXED:
            found[key][getattr(case, key)] = None
        for key, value in case.tokens.items():
            found.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in found.items()}


def _alternative(text: str, known: Known) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for word in text.split():
        key, values = _term(text, word, known)
        if key in found:
            raise ConfigError(f"--select {text!r}: {key} stands twice; several values are {key}=A,B")
        found[key] = values
    if not found:
        raise ConfigError(f"--select {text!r}: expected KEY=VALUE, with a key of {', '.join(known)}")
    return found


def _term(text: str, word: str, known: Known) -> tuple[str, frozenset[str]]:
    where = f"--select {text!r}"
    name, separator, given = word.partition("=")
    patterns = given.split(",")
    if not separator or not all(patterns):
        homes = [key for key, values in known.items() if _matching(word, values)]
        hint = f" Did you mean {homes[0]}={word}?" if len(homes) == 1 else ""
        raise ConfigError(f"{where}: {word!r} is not KEY=VALUE, with a key of {', '.join(known)}.{hint}")
    key = next((key for key in known if key.casefold() == name.casefold()), None)
    if key is None:
        raise ConfigError(
            f"{where}: no case has a key {name!r}: expected one of {', '.join(known)}.{nearest(name, known)}"
        )
    found: set[str] = set()
    for pattern in patterns:
        matching = _matching(pattern, known[key])
        if not matching:
            some = f": expected one of {_listed(pattern, known[key])}" if len(known[key]) <= _LISTED else ""
            raise ConfigError(f"{where}: no case has {key} {pattern!r}{some}.{nearest(pattern, known[key])}")
        if pattern.isdecimal() and len(matching) > 1:
            raise ConfigError(f"{where}: {key}={pattern} may be {' or '.join(matching)}: say which")
        found.update(matching)
    return key, frozenset(found)


def _listed(pattern: str, values: Sequence[str]) -> str:
    """Return the values that there are, as numbers too where a number was given and all of them have one."""
    numbers = [names[-1] for value in values if (names := _unpadded(value.casefold()))]
    if pattern.isdecimal() and len(numbers) == len(values):
        return f"{', '.join(numbers)} ({', '.join(values)})"
    return ", ".join(values)


def _matching(pattern: str, values: Iterable[str]) -> list[str]:
    """Return the values that a pattern means: itself, else what it stands for by ``*``, ``?``, ``[...]`` or number."""
    folded = {value: value.casefold() for value in values}
    wanted = pattern.casefold()
    return (
        [value for value, name in folded.items() if name == wanted]
        or [value for value, name in folded.items() if fnmatchcase(name, wanted)]
        or [value for value, name in folded.items() if wanted in _unpadded(name)]
    )


def _unpadded(token: str) -> tuple[str, ...]:
    """Return the other names of a token that is a letter and a number: ``n004`` is also ``n4`` and ``4``."""
    parts = re.fullmatch(r"([a-z])0*(\d+)", token)
    return (parts[1] + parts[2], parts[2]) if parts else ()
