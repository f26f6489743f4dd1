"""The errors a user may see, and the nearest-name hint that goes with them."""

import difflib
from collections.abc import Iterable


class HarnessError(Exception):
    """Base of every error whose message is meant for the user, without a traceback."""


class ConfigError(HarnessError):
    """A file, option or name the user gave is wrong. Exit status 4 from pytest, 2 from the command line."""


class MissingInput(HarnessError):
    """Data or weights a case needs are not on this machine. The case is skipped with this message."""


class CorruptInput(HarnessError):
    """An input exists but is damaged or is not what it claims to be. The case fails with this message."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which of ``names`` the user may have meant.

    Returns a sentence with a leading space, or an empty string where nothing is close, so that it can be
    appended to any message. Matching is blind to case.
    """
    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""
