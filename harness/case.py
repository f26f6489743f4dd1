"""A case: one model on one split under one protocol, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field

from harness.digest import digest_of


@dataclass(frozen=True)
class Case:
    """What one pytest case evaluates. Frozen plain data: made by the thousand at collection, without torch."""

    benchmark: str
    """``cog``, ``zsl`` or ``diagvib``."""
    protocol: str
    """The test function without ``test_``: ``linear``, ``fewshot`` ..."""
    model: str
    suite: str
    tokens: Mapping[str, str] = field(default_factory=dict)
    """What distinguishes this case within its model and protocol, in the order of the id: split, shots, method ..."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Protocol options that differ from the suite's own: part of the identity and of every title."""

    @property
    def name(self) -> str:
        """The bracketed part of the pytest id: ``s-DINO-L3-N004``."""
        return "-".join([self.model, *self.tokens.values()])

    @property
    def id(self) -> str:
        """The id that names the case everywhere: ``cog/fewshot/s-DINO-L3-N004``, with ``?key=value`` for options."""
        options = "&".join(f"{key}={value}" for key, value in sorted(self.options.items()))
        return f"{self.benchmark}/{self.protocol}/{self.name}" + (f"?{options}" if options else "")

    @property
    def file_name(self) -> str:
        """A file name that no other case of the same benchmark, protocol, suite and model has."""
        tokens = "-".join(self.tokens.values()) or "all"
        return f"{tokens}~{digest_of(dict(self.options))[:10]}" if self.options else tokens


def unit_of(case: Case) -> tuple[str, ...]:
    """Return which extraction a case waits for: cases of one unit need the same features."""
    return case.benchmark, case.model, case.tokens.get("split", "")
