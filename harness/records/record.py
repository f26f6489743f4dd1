"""The record of a case: everything a table, a ranking or a gate needs, and where it came from.

Fields are only ever added. A change of meaning increments ``schema_version`` and gets a migration.
"""

from typing import Any
from typing import Literal

from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import model_validator

from harness.case import Case
from harness.records.plain import metric_reason
from harness.records.plain import to_plain

Status = Literal["passed", "failed", "skipped"]
_STRICT = ConfigDict(extra="forbid", frozen=True)


class CaseIdentity(BaseModel):
    """Which case this is."""

    model_config = _STRICT

    id: str
    """``cog/fewshot/s-DINO-L3-N004``, with ``?key=value`` for protocol options."""
    benchmark: str
    protocol: str
    """``linear``, ``fewshot`` ..."""
    model: str
    suite: str
    tokens: dict[str, str] = {}
    """Split, shots, method ...: what distinguishes the case within its model and protocol."""
    options: dict[str, str] = {}
    """Protocol options that differ from the suite's own."""

    @classmethod
    def of(cls, case: Case) -> "CaseIdentity":
        """Return the identity of a case."""
        return cls(
            id=case.id,
            benchmark=case.benchmark,
            protocol=case.protocol,
            model=case.model,
            suite=case.suite,
            tokens=dict(case.tokens),
            options=dict(case.options),
        )

    def case(self) -> Case:
        """Return the case."""
        return Case(self.benchmark, self.protocol, self.model, self.suite, self.tokens, self.options)


class Metric(BaseModel):
    """One number a case found."""

    model_config = _STRICT

    value: float | None
    """The headline value, the mean where there are seeds; null where it does not exist."""
    unit: str = "percent"
    """``percent`` (0 to 100), ``fraction`` (0 to 1), ``count``, ``seconds`` ..."""
    higher_is_better: bool = True
    std: float | None = None
    """Population standard deviation over the seeds (ddof 0, as published), in the same unit."""
    per_seed: list[float | None] = []
    """One value a seed, in the order of ``provenance.seeds``."""
    reason: str | None = None
    """Why the value is null."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, values: Any) -> Any:
        """Take NumPy's and torch's numbers too, and say why one that is not finite is null."""
        if not isinstance(values, dict) or values.get("value") is None:
            return values
        reason = metric_reason(values["value"])
        plain = {name: to_plain(value, name) for name, value in values.items()}
        return {**plain, "reason": plain.get("reason") or reason} if reason else plain


class Provenance(BaseModel):
    """Where and how a record was measured."""

    model_config = _STRICT

    measured: str
    """Time of measurement, UTC, ISO 8601."""
    commit: str | None = None
    """Git commit of the working directory; null outside a repository."""
    dirty: bool | None = None
    """Whether tracked files differed from the commit."""
    versions: dict[str, str] = {}
    """Versions of the packages that computed it, Python among them."""
    platform: str = ""
    device: str = ""
    """``cpu: <processor>`` or ``cuda: <name>``."""
    threads: int | None = None
    seeds: list[int] = []
    seconds: dict[str, float] = {}
    """Time of each phase when it was computed, not when it was read from the cache."""
    cached: bool = False
    """Whether this run found the result in the store."""
    digests: dict[str, str] = {}
    """SHA-256 of weights, images and of the store entries with predictions, trials and classifier."""
    licence: str | None = None
    """Licence of the weights."""


class Attempt(BaseModel):
    """A later run of a measured case that did not pass."""

    model_config = _STRICT

    status: Status
    reason: str
    time: str
    """UTC, ISO 8601."""


class Findings(BaseModel):
    """What a protocol found: the part that a record and an outcome share."""

    metrics: dict[str, Metric] = {}
    hyperparameters: list[dict[str, Any]] = []
    """The chosen hyper-parameters, one mapping a seed."""
    details: dict[str, Any] = {}
    """Plain facts: numbers of classes and images, group of the model, similarity of the level ..."""
    warnings: list[str] = []
    """What a reader of the number has to know: a collapsed run, dropped images ..."""
    key: dict[str, Any] = {}
    """The key of the result in the store: everything that can move it."""


class Record(Findings):
    """What one case found."""

    model_config = _STRICT

    schema_version: Literal[1] = 1
    case: CaseIdentity
    status: Status
    reason: str | None = None
    """Why it was skipped or how it failed."""
    provenance: Provenance | None = None
    last_attempt: Attempt | None = None
    """The latest run, where it failed and this record keeps what was measured before."""

    @property
    def measured(self) -> bool:
        """Whether the record holds numbers."""
        return self.status == "passed"


class Outcome(Findings):
    """What a protocol hands to the record."""

    model_config = ConfigDict(extra="forbid")

    provenance: Provenance | None = None
    """How it was measured, perhaps in an earlier run; None: here and now."""
