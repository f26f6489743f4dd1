"""The cases of ImageNet-CoG: every model on every split, with all training images and with few."""

from collections.abc import Iterable
from collections.abc import Mapping

from harness.case import Case
from harness.suite import Suite


def cases(suite: Suite, options: Mapping[str, str], models: Iterable[str], splits: Iterable[str]) -> list[Case]:
    """Return all cases in the order in which they are run: by model, then split, then protocol.

    Args:
        suite: The suite, options applied.
        options: The options that differ from the suite's own.
        models: Names of models.
        splits: Names of splits, the seen concepts first.
    """
    shots = shot_tokens(suite.cog.shots)
    splits = list(splits)
    return [
        Case("cog", protocol, model, suite.name, {"split": split, **tokens}, options)
        for model in models
        for split in splits
        for protocol, tokens in [("linear", {}), *(("fewshot", {"shots": n}) for n in shots)]
    ]


def shot_tokens(shots: Iterable[int]) -> list[str]:
    """Return ``N001``, ``N004`` ...: of equal width, so that ``-k`` with one of them selects no other."""
    shots = list(shots)
    width = max(3, *(len(str(n)) for n in shots))
    return [f"N{n:0{width}d}" for n in shots]


def shots_of(case: Case) -> int | None:
    """Return the number of training images per class of a few-shot case, None for a linear probe."""
    return int(case.tokens["shots"].removeprefix("N")) if "shots" in case.tokens else None
