"""The fourteen methods by their tokens."""

from collections.abc import Mapping

from harness.errors import ConfigError
from harness.errors import nearest
from harness.zsl.methods.options import parse_options
from harness.zsl.problem import Method
from harness.zsl.problem import Value

METHODS = (
    "DAP",
    "IAP",
    "CONSE",
    "CMT",
    "CMT-nd",
    "SSE",
    "LATEM",
    "ALE",
    "DEVISE",
    "SJE",
    "ESZSL",
    "SYNC",
    "SAE",
    "GFZSL",
)
"""Tokens in the order of the paper's tables, then those of the journal."""


def make_method(name: str, options: Mapping[str, Value] | None = None) -> Method:
    """Return a method with some of its options set, the others at their defaults.

    Raises:
        ConfigError: no such method, option or value.
    """
    if name not in METHODS:
        raise ConfigError(f"no zero-shot method {name!r}; there are {', '.join(METHODS)}.{nearest(name, METHODS)}")
    kind = _kinds()[name]
    method: Method = kind(**parse_options(kind, options or {}))
    return method


def _kinds() -> dict[str, type]:
    """Import the methods late: cases are listed by token, without torch."""
    from harness.zsl.methods.ale import Ale
    from harness.zsl.methods.ale import Devise
    from harness.zsl.methods.attributes import Dap
    from harness.zsl.methods.attributes import Iap
    from harness.zsl.methods.cmt import Cmt
    from harness.zsl.methods.conse import Conse
    from harness.zsl.methods.eszsl import Eszsl
    from harness.zsl.methods.gfzsl import Gfzsl
    from harness.zsl.methods.latem import Latem
    from harness.zsl.methods.novelty import CmtNovelty
    from harness.zsl.methods.sae import Sae
    from harness.zsl.methods.sje import Sje
    from harness.zsl.methods.sse import Sse
    from harness.zsl.methods.sync import Sync

    kinds = (Dap, Iap, Conse, Cmt, CmtNovelty, Sse, Latem, Ale, Devise, Sje, Eszsl, Sync, Sae, Gfzsl)
    return {kind.name: kind for kind in kinds}
