"""What a probe finds, as plain values and numpy arrays. Imports no torch."""

from dataclasses import dataclass
from dataclasses import field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Trial:
    """One point of the hyper-parameter search.

    Attributes:
        number: position in its study, from 0.
        lr: initial learning rate.
        wd: weight decay.
        val_top1: validation top-1 after the last epoch, percent; after a stop, that of the weights at the stop.
        diverged: the loss became infinite or not a number, which stopped the run.
    """

    number: int
    lr: float
    wd: float
    val_top1: float
    diverged: bool


@dataclass(frozen=True, eq=False)
class SeedScore:
    """The probe of one seed: its search, its final run and that run's classifier.

    Attributes:
        seed: names the split, the draws and the study.
        top1: test top-1 after the last epoch, percent.
        top5: test top-5 after the last epoch, percent (all classes where there are fewer than five).
        best: the trial whose learning rate and weight decay the final run used.
        trials: all trials, by number.
        n_train: training rows of each trial.
        n_val: validation rows of each trial.
        final_rows: int64 [n], rows of the training matrix the final run learnt from.
        predictions: int32 [n_test, k], the k = min(5, classes) most likely classes, best first.
        per_class: float64 [classes], test top-1 of each class in percent, NaN for a class without test images.
        weight: float32 [classes, d], acts on features as the probe saw them (normalised if so set).
        bias: float32 [classes].
        train_top1: top-1 of the final run on the images it learnt from, percent.
        train_loss: float64 [epochs], mean cross-entropy over each epoch of the final run, NaN from a stop on.
        lr: float64 [epochs], learning rate of each epoch of the final run.
        diverged: the final run was stopped by a loss that was not finite.
        collapsed: the final run fell far below its validation score: see ``has_collapsed``.
    """

    seed: int
    top1: float
    top5: float
    best: Trial
    trials: tuple[Trial, ...] = field(repr=False)
    n_train: int
    n_val: int
    final_rows: npt.NDArray[np.int64] = field(repr=False)
    predictions: npt.NDArray[np.int32] = field(repr=False)
    per_class: npt.NDArray[np.float64] = field(repr=False)
    weight: npt.NDArray[np.float32] = field(repr=False)
    bias: npt.NDArray[np.float32] = field(repr=False)
    train_top1: float
    train_loss: npt.NDArray[np.float64] = field(repr=False)
    lr: npt.NDArray[np.float64] = field(repr=False)
    diverged: bool
    collapsed: bool


@dataclass(frozen=True, eq=False)
class ProbeScore:
    """The probe of one feature matrix: one score per seed, in the order the seeds were given."""

    seeds: tuple[SeedScore, ...]

    def __repr__(self) -> str:
        """Show mean and spread, then a line for each seed."""
        lines = "".join(f"\n  {score}," for score in self.seeds)
        return f"ProbeScore(mean={self.mean:.2f}, std={self.std:.2f}, seeds=({lines}\n))"

    @property
    def mean(self) -> float:
        """Mean test top-1 over the seeds, percent."""
        return float(np.mean([score.top1 for score in self.seeds]))

    @property
    def std(self) -> float:
        """Population standard deviation (ddof 0) of test top-1 over the seeds, as the reference prints it."""
        return float(np.std([score.top1 for score in self.seeds]))

    @property
    def mean_top5(self) -> float:
        """Mean test top-5 over the seeds, percent."""
        return float(np.mean([score.top5 for score in self.seeds]))

    @property
    def std_top5(self) -> float:
        """Population standard deviation (ddof 0) of test top-5 over the seeds."""
        return float(np.std([score.top5 for score in self.seeds]))


def has_collapsed(train_top1: float, val_top1: float, n_train: int, n_val: int) -> bool:
    """Say whether a final run fell so far below its validation score that its training must have failed.

    The run is judged on the images it learnt from: there even a run that generalises badly does at least as well as
    the trial did on images it had not seen, while one whose learning rate failed is near chance. The test score would
    also fall with a test set that is merely harder, as where whole styles of image are held out. Far below is less
    than half, by more than four standard errors of the difference, which keeps small sets from chance alarms.

    Args:
        train_top1: of the final run on its own training images, percent.
        val_top1: of the trial that gave its hyper-parameters, percent.
        n_train: training images of the final run.
        n_val: validation images.
    """
    train, val = train_top1 / 100, val_top1 / 100
    error = (train * (1 - train) / n_train + val * (1 - val) / n_val) ** 0.5
    return train < val / 2 and val - train > 4 * error
