"""What cases need to run, and what of it is here. Looks up everything by its key; loads no model, imports no torch."""

from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.case import Case
from harness.cog.run import KIND as PROBE
from harness.cog.run import feature_keys
from harness.cog.run import probe_key
from harness.errors import HarnessError
from harness.errors import MissingInput
from harness.features.cached import KIND as FEATURES
from harness.images import ImageSet
from harness.session import Session
from harness.zoo.weights import locate


@dataclass(frozen=True, eq=False)
class Extraction:
    """The features of a model on an image set."""

    model: str
    images: ImageSet
    entry: Path | None
    """Of the store; None where they are to be extracted."""

    @property
    def id(self) -> tuple[str, str]:
        """Equal where the features are the same."""
        return self.model, self.images.digest


@dataclass(frozen=True)
class Need:
    """What a case needs."""

    case: Case
    missing: tuple[str, ...] = ()
    """What is wanted for the case to run at all: files, with how to get them."""
    result: Path | None = None
    """Entry of the store; None where it is to be computed."""
    extractions: tuple[Extraction, ...] = ()

    @property
    def to_do(self) -> bool:
        """Whether the case has anything to compute."""
        return not self.missing and self.result is None


def needs(session: Session, cases: Iterable[Case]) -> Iterator[Need]:
    """Yield what each case needs. Nothing is downloaded: weights that a run would fetch count as not used before."""

    @cache
    def weights_fault(model: str) -> str | None:
        try:
            locate(session.models.find(model), session.settings.weights_dir)
        except MissingInput as missing:
            return str(missing)
        return None

    @cache
    def data_fault(split: str) -> str | None:
        try:
            session.levels.require(split)
            session.levels.split(split)
        except HarnessError as fault:  # whatever is wrong with the images: no case of theirs can run
            return str(fault)
        return None

    for case in cases:
        absent = weights_fault(case.model)
        faults = (None if session.settings.download else absent, data_fault(case.tokens["split"]))
        if missing := tuple(fault for fault in faults if fault is not None):
            yield Need(case, missing)
        else:
            yield _looked_up(session, case)


def _looked_up(session: Session, case: Case) -> Need:
    source, levels, store = replace(session.features, download=False), session.levels, session.store
    split = levels.split(case.tokens["split"])
    found: dict[str, Path | None] = {}
    result = None
    with suppress(MissingInput):  # weights that are still to be fetched: nothing can be known under their digest
        found = {part: store.holds(FEATURES, key) for part, key in feature_keys(case, levels, source).items()}
        result = store.holds(PROBE, probe_key(case, levels, source))
    parts = {"train": split.train, "test": split.test}
    extractions = (Extraction(case.model, images, found.get(part)) for part, images in parts.items())
    return Need(case, (), result, tuple(extractions))
