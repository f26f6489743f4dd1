"""A case of ImageNet-CoG from features to an outcome: probes through the store."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case import Case
from harness.cog.cases import shots_of
from harness.cog.concepts import ConceptLevels
from harness.cog.outcome import read_outcome
from harness.cog.outcome import write_score
from harness.devices import leased_gpu
from harness.digest import Plain
from harness.digest import digest_of
from harness.features.matrix import FeatureMatrix
from harness.features.matrix import kept_labels
from harness.features.source import FeatureSource
from harness.probe.journal import FileJournal
from harness.probe.journal import JournalError
from harness.probe.settings import ProbeSettings
from harness.progress import FEATURES
from harness.progress import report
from harness.records.provenance import measured_here
from harness.records.provenance import processor
from harness.records.provenance import versions
from harness.records.record import Outcome
from harness.store import Overwrite
from harness.store import StoreWarning
from harness.suite import CogProtocol

if TYPE_CHECKING:
    from harness.probe.score import ProbeScore

KIND = "probe"
"""The kind of entry that probes are in the store."""

COMPUTATION = 1
"""Raised with every change of the probe that can move a result."""


def evaluate(case: Case, levels: ConceptLevels, features: FeatureSource, overwrite: Overwrite) -> Outcome:
    """Probe the features of a model on a split, with all training images or with a few of each class.

    Args:
        case: Model, split and, for the few-shot probe, shots.
        levels: Concepts, images and protocol.
        features: Where features come from, and the store that keeps the result.
        overwrite: What to do where the store has the result.

    Raises:
        MissingInput: weights or images are not here; or nothing is cached and ``overwrite`` is ``only-cache``.
        CorruptInput: weights or images are damaged.
    """
    key = probe_key(case, levels, features)
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        _probe(case, levels, features, folder)

    # A probe is kept under the key of its features, so that features made anew call for a probe made anew.
    anew = Overwrite.ALWAYS in {overwrite, features.options.overwrite}
    entry = features.store.get(KIND, key, build, overwrite=Overwrite.ALWAYS if anew else overwrite, resumable=True)
    outcome = read_outcome(entry)
    outcome.key = key
    if outcome.provenance is not None:
        digests = {"result": digest_of(key), "weights": features.weights(case.model)}
        found = {"cached": not built, "licence": features.spec(case.model).licence}
        found["digests"] = {**outcome.provenance.digests, **digests}
        outcome.provenance = outcome.provenance.model_copy(update=found)
    split = levels.split(case.tokens["split"])
    if split.missing:
        outcome.warnings.append(f"{split.missing} images that the universe counts are not there")
    if (similarity := levels.mean_similarity(split.name)) is not None:
        outcome.details["mean_similarity"] = similarity
    return outcome


def probe_key(case: Case, levels: ConceptLevels, features: FeatureSource) -> dict[str, Plain]:
    """Return everything that can move the result of a case.

    Raises:
        MissingInput: weights or images are not here, so that their digests are not known.
    """
    protocol, split, shots = levels.protocol, levels.split(case.tokens["split"]), shots_of(case)
    settings = asdict(probe_settings(protocol))
    if shots is None:
        del settings["fewshot_val"]
    return {
        **feature_keys(case, levels, features),
        "labels": split.labels_digest,
        "unreadable": protocol.unreadable,
        "shots": shots,
        "seeds": protocol.seeds,
        "settings": settings,
        "device": features.options.device_type,
        "threads": features.options.threads if features.options.device_type == "cpu" else None,
        "libraries": {name: version for name, version in versions().items() if name in {"numpy", "optuna", "torch"}},
        "computation": COMPUTATION,
    }


def feature_keys(case: Case, levels: ConceptLevels, features: FeatureSource) -> dict[str, dict[str, Plain]]:
    """Return the keys of the features of training (``train``) and test images (``test``).

    Raises:
        MissingInput: weights or images are not here.
    """
    protocol, split = levels.protocol, levels.split(case.tokens["split"])
    return {
        part: features.key(case.model, images, resize=protocol.resize, precision=protocol.feature_precision)
        for part, images in (("train", split.train), ("test", split.test))
    }


def probe_settings(protocol: CogProtocol) -> ProbeSettings:
    """Return the part of a protocol that the probe follows."""
    return ProbeSettings(
        epochs=protocol.epochs,
        batch_size=protocol.batch_size,
        momentum=protocol.momentum,
        trials=protocol.trials,
        lr_range=(protocol.lr_min, protocol.lr_max),
        wd_range=(protocol.wd_min, protocol.wd_max),
        val_fraction=protocol.val_fraction,
        schedule=protocol.schedule,
        tpe=protocol.tpe,
        precision=protocol.precision,
        fewshot_val=protocol.fewshot_val,
        l2_normalize=protocol.l2_normalize,
    )


def _probe(case: Case, levels: ConceptLevels, features: FeatureSource, folder: Path) -> None:
    from harness.probe.chains import threads
    from harness.probe.protocol import few_shot_probe
    from harness.probe.protocol import linear_probe

    protocol, split, shots = levels.protocol, levels.split(case.tokens["split"]), shots_of(case)
    options = features.options
    began = time.perf_counter()
    report(FEATURES)
    train, test = (
        features(
            case.model,
            images,
            resize=protocol.resize,
            precision=protocol.feature_precision,
            drop_unreadable=protocol.unreadable == "drop",
        )
        for images in (split.train, split.test)
    )
    extracted = time.perf_counter()
    probe = partial(
        linear_probe if shots is None else partial(few_shot_probe, shots=shots),
        (train.features, kept_labels(split.train_labels, split.train, train)),
        (test.features, kept_labels(split.test_labels, split.test, test)),
        seeds=protocol.seeds,
        settings=probe_settings(protocol),
        device=options.device,
    )
    report("probe")
    with threads(options.threads):
        score = _resumed(probe, folder / "journal.jsonl")
    provenance = measured_here(
        device=_device(options.device, train),
        threads=options.threads,
        seeds=list(protocol.seeds),
        seconds={"features": extracted - began, "probe": time.perf_counter() - extracted},
        digests={"train_images": split.train.digest, "test_images": split.test.digest},
    )
    write_score(folder, score, split, train, test, provenance)


def _device(device: str, features: FeatureMatrix) -> str:
    if device == "cpu":
        return f"cpu: {processor()}"
    leased = f" {gpu}" if (gpu := leased_gpu()) else ""
    return f"{device}: {features.about['device']}{leased}"


def _resumed(probe: "Callable[..., ProbeScore]", path: Path) -> "ProbeScore":
    """Go on from the journal of finished trials; without it where it cannot be used, which gives the same score."""
    try:
        return probe(journal=FileJournal(path))
    except JournalError as fault:
        aside = path.with_suffix(".set-aside")
        path.replace(aside)
        warnings.warn(f"{fault}; it is set aside and the search starts over", StoreWarning, stacklevel=2)
        return probe(journal=FileJournal(path))
