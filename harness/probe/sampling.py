"""The random draws of a probe: validation splits, few-shot draws, first weights and shuffles.

Every draw comes from a stream of its own, named by seed and purpose, on the CPU. So a draw depends neither on what
was drawn before it nor on the device, and all trials of a seed share first weights and shuffles: they differ by
their hyper-parameters alone, and one gather and one wide matrix product serve them all. This is ours; the reference
code seeds its process once and each trial draws anew.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from harness.errors import ConfigError

Rows = npt.NDArray[np.int64]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the random stream of one purpose, from its start."""
    name = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, name])


def split(labels: Rows, val_fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Cut each class at random into training and validation rows.

    The last ``int(val_fraction * n_c)`` of a random order validate (reference: feature_ops.py).

    Args:
        labels: int64 [n], classes 0 .. C-1.
        val_fraction: part that validates.
        rng: stream of the split.

    Returns:
        Training rows and validation rows, both ascending.

    Raises:
        ConfigError: a class is too small to give a validation image.
    """
    train, val = [], []
    for label, rows in enumerate(rows_by_class(labels)):
        n_val = int(val_fraction * len(rows))
        if n_val == 0:
            raise ConfigError(
                f"class {label} has {len(rows)} training images, of which int({val_fraction} * {len(rows)}) = 0 would "
                f"validate: expected at least {int(np.ceil(1 / val_fraction))} images per class"
            )
        order = rng.permutation(rows)
        train.append(order[:-n_val])
        val.append(order[-n_val:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(val))


def draw_shots(rows: Rows, labels: Rows, shots: int, rng: np.random.Generator) -> Rows:
    """Draw exactly ``shots`` of the given rows from each class.

    Args:
        rows: int64 [m], the rows to draw from.
        labels: int64 [n], the class of every row of the matrix.
        shots: images per class.
        rng: stream of the draw.

    Returns:
        int64 [C * shots], ascending.

    Raises:
        ConfigError: a class has fewer than ``shots`` rows.
    """
    if shots < 1:
        raise ConfigError(f"shots is {shots}: expected at least 1")
    drawn = []
    for label, positions in enumerate(rows_by_class(labels[rows], classes=int(labels.max()) + 1)):
        if len(positions) < shots:
            raise ConfigError(f"class {label} has {len(positions)} images to draw from: {shots} shots need {shots}")
        drawn.append(rng.permutation(rows[positions])[:shots])
    return np.sort(np.concatenate(drawn))


def rows_by_class(labels: Rows, classes: int | None = None) -> list[Rows]:
    """Return the ascending rows of each class 0 .. C-1; C is one more than the largest label where not given."""
    counts = np.bincount(labels, minlength=classes or 0)
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])


def first_weights(rng: np.random.Generator, classes: int, d: int) -> npt.NDArray[np.float32]:
    """Return float32 [classes, d + 1]: weight and, in the last column, bias as ``torch.nn.Linear`` draws them.

    Both are uniform within +-1/sqrt(d) (its default: Kaiming-uniform with a = sqrt(5), fan-in d).
    """
    bound = d**-0.5
    return rng.uniform(-bound, bound, size=(classes, d + 1)).astype(np.float32)


def shuffles(rng: np.random.Generator, n: int, batch_size: int) -> Iterator[Rows]:
    """Yield a new random order of ``n`` positions for each epoch, without end.

    Positions within a batch are sorted: a batch is a set, and rows gathered in memory order come faster.
    """
    whole = n - n % batch_size
    while True:
        order = rng.permutation(n)
        order[:whole].reshape(-1, batch_size).sort(axis=1)
        order[whole:].sort()
        yield order
