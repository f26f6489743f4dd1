"""A probe's score in the store, and the outcome it stands for in a record.

An entry holds ``score.json`` (the outcome), ``predictions.npz`` (predictions [seeds, test images, 5], most likely
first, accuracy per class [seeds, classes], the training rows of each final run, and the ids of the test images),
``curves.json`` (every trial and final run) and ``classifiers.safetensors`` (weight and bias of each seed).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from harness.digest import Plain
from harness.records.plain import metric_reason
from harness.records.plain import to_plain
from harness.records.record import Metric
from harness.records.record import Outcome
from harness.records.record import Provenance

if TYPE_CHECKING:
    from harness.cog.splits import Split
    from harness.features.matrix import FeatureMatrix
    from harness.probe.score import ProbeScore
    from harness.probe.score import SeedScore


def write_score(
    folder: Path,
    score: "ProbeScore",
    split: "Split",
    train: "FeatureMatrix",
    test: "FeatureMatrix",
    provenance: Provenance,
) -> None:
    """Fill an entry of the store with everything that a probe found."""
    seeds = score.seeds
    outcome = Outcome(
        metrics={
            "top1": _metric([seed.top1 for seed in seeds]),
            "top5": _metric([seed.top5 for seed in seeds]),
            "validation_top1": _metric([seed.best.val_top1 for seed in seeds]),
        },
        hyperparameters=[{"seed": s.seed, "lr": s.best.lr, "wd": s.best.wd, "trial": s.best.number} for s in seeds],
        details={
            "classes": len(split.concepts),
            "train_images": len(train.ids),
            "test_images": len(test.ids),
            "trial_images": seeds[0].n_train,
            "validation_images": seeds[0].n_val,
            "final_images": len(seeds[0].final_rows),
            "checkpoint": to_plain(train.about.get("checkpoint")),
        },
        warnings=[*_warnings(seeds), *_dropped(train, "training"), *_dropped(test, "test")],
        provenance=provenance,
    )
    _write_arrays(folder, seeds, test.ids)
    (folder / "curves.json").write_text(json.dumps([_curves(seed) for seed in seeds]))
    (folder / "score.json").write_text(outcome.model_dump_json())


def _write_arrays(folder: Path, seeds: Sequence["SeedScore"], test_ids: Sequence[str]) -> None:
    arrays: dict[str, Any] = {f"rows_{seed.seed}": seed.final_rows for seed in seeds}
    arrays |= {name: np.stack([getattr(seed, name) for seed in seeds]) for name in ("predictions", "per_class")}
    arrays["test_ids"] = np.array(test_ids)
    np.savez_compressed(folder / "predictions.npz", allow_pickle=False, **arrays)
    tensors = {f"{name}_{seed.seed}": getattr(seed, name) for seed in seeds for name in ("weight", "bias")}
    save_file(tensors, folder / "classifiers.safetensors")


def read_outcome(entry: Path) -> Outcome:
    """Return the outcome of an entry of the store."""
    return Outcome.model_validate_json((entry / "score.json").read_text())


def _metric(values: Sequence[float]) -> Metric:
    return Metric(value=np.mean(values), std=np.std(values), per_seed=list(values))


def _warnings(seeds: Sequence["SeedScore"]) -> list[str]:
    found = []
    for seed in seeds:
        if seed.diverged:
            found.append(f"seed {seed.seed}: the final run diverged and was stopped")
        elif seed.collapsed:
            found.append(
                f"seed {seed.seed}: the final run collapsed, {seed.train_top1:.1f} % on training images "
                f"after {seed.best.val_top1:.1f} % on validation images"
            )
    return found


def _dropped(matrix: "FeatureMatrix", kind: str) -> list[str]:
    return [f"{len(matrix.unreadable)} unreadable {kind} images were left out"] if matrix.unreadable else []


def _curves(seed: "SeedScore") -> dict[str, Plain]:
    return {
        "seed": seed.seed,
        "trials": to_plain([asdict(trial) for trial in seed.trials]),
        "train_loss": [None if metric_reason(loss) else float(loss) for loss in seed.train_loss],
        "lr": [float(rate) for rate in seed.lr],
    }
