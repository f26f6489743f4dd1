"""What a probe is told: the published protocol as numbers, and its learning-rate schedules. Imports no torch."""

import math
from dataclasses import dataclass
from typing import Literal
from typing import TypeAlias
from typing import get_args

from harness.errors import ConfigError
from harness.errors import nearest

Schedule: TypeAlias = Literal["reference", "exact"]
Tpe: TypeAlias = Literal["sequential", "batched"]
Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
FewShotVal: TypeAlias = Literal["full", "matched"]

_CHOICES = {"schedule": Schedule, "tpe": Tpe, "precision": Precision, "fewshot_val": FewShotVal}


@dataclass(frozen=True)
class ProbeSettings:
    """The linear-probe protocol of ImageNet-CoG (paper section 3.2; reference code: logreg.py and its default config).

    Attributes:
        epochs: passes over the training rows, in trials and in the final run alike.
        batch_size: rows per step; all rows where there are fewer. The last, smaller batch of an epoch is kept.
        momentum: of SGD, without Nesterov and without dampening.
        trials: hyper-parameter trials per seed.
        startup_trials: how many of them are drawn at random before TPE looks at results (optuna's default).
        lr_range: log-uniform range of the initial learning rate. It is never rescaled.
        wd_range: log-uniform range of the weight decay, which acts on weight and bias.
        val_fraction: part of each class that validates, ``int(val_fraction * n_c)`` images.
        schedule: ``reference`` (cosine one epoch late, as the published numbers were made) or ``exact``.
        tpe: ``sequential`` (each trial sees all earlier ones) or ``batched`` (five trials asked for at once).
        precision: how features are stored and multiplied. Weights and their updates are always float32.
        fewshot_val: few-shot trials are validated on the ``full`` validation part (published) or on as many
            images per class as they learn from (``matched``).
        l2_normalize: scale each feature vector to length one when it is loaded.
    """

    epochs: int = 100
    batch_size: int = 1024
    momentum: float = 0.9
    trials: int = 30
    startup_trials: int = 10
    lr_range: tuple[float, float] = (1e-1, 1e2)
    wd_range: tuple[float, float] = (1e-12, 1e-4)
    val_fraction: float = 0.2
    schedule: Schedule = "reference"
    tpe: Tpe = "sequential"
    precision: Precision = "float32"
    fewshot_val: FewShotVal = "full"
    l2_normalize: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "trials", "startup_trials"):
            if getattr(self, name) < 1:
                raise ConfigError(f"probe setting {name} is {getattr(self, name)}: expected at least 1")
        for name in ("lr_range", "wd_range"):
            low, high = getattr(self, name)
            if not 0 < low <= high < math.inf:
                raise ConfigError(f"probe setting {name} is ({low}, {high}): expected 0 < low <= high")
        if not 0 < self.val_fraction < 1:
            raise ConfigError(f"probe setting val_fraction is {self.val_fraction}: expected a number between 0 and 1")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"probe setting momentum is {self.momentum}: expected a number from 0 to below 1")
        for name, choices in _CHOICES.items():
            value, names = getattr(self, name), get_args(choices)
            if value not in names:
                hint = nearest(str(value), names)
                raise ConfigError(f"probe setting {name} is {value!r}: expected one of {', '.join(names)}.{hint}")


def learning_rate_factors(epochs: int, schedule: Schedule) -> list[float]:
    """Return the factor on the initial learning rate for each epoch of a cosine schedule.

    ``exact`` is ``(1 + cos(pi e / epochs)) / 2`` for epoch e counted from 0. ``reference`` is the same one epoch
    late: the reference code sets the rate after each epoch from the number of the epoch just done, so epochs 0 and
    1 both run at the full rate and the last of 100 at 0.000987 of it.
    """
    late = schedule == "reference"
    return [0.5 * (1.0 + math.cos(math.pi * max(epoch - late, 0) / epochs)) for epoch in range(epochs)]
