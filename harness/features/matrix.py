"""The features of an image set, as they lie in the store."""

import json
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from typing import Self

import numpy as np
import numpy.typing as npt

from harness.digest import Plain
from harness.errors import CorruptInput
from harness.files import write_atomic
from harness.images import ImageSet
from harness.images import Unreadable

FEATURES = "features.npy"
LABELS = "labels.npy"
IDS = "ids.txt"
_UNREADABLE = "unreadable.json"
_ABOUT = "extraction.json"


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Features as the network gave them; L2 normalisation is for those who use them.

    Args:
        folder: The entry of the store; other programs may map its ``features.npy``.
        features: float32 [n, d], mapped from the file, read-only.
        ids: The sample id of each row, in the order of the image set.
        unreadable: The images of the set that have no row, since they cannot be decoded.
        about: How the features came to be: backbone, device, batch size, precision, images per second ...
        labels: int64 [n]; only where the features were imported with labels.
    """

    folder: Path
    features: npt.NDArray[np.float32]
    ids: tuple[str, ...]
    unreadable: tuple[Unreadable, ...]
    about: Mapping[str, Plain]
    labels: npt.NDArray[np.int64] | None = None

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open an entry of the store."""
        labels = folder / LABELS
        return cls(
            folder,
            np.load(folder / FEATURES, mmap_mode="r"),
            read_ids(folder),
            tuple(Unreadable(*pair) for pair in json.loads((folder / _UNREADABLE).read_text())),
            json.loads((folder / _ABOUT).read_text()),
            np.load(labels, mmap_mode="r") if labels.exists() else None,
        )

    def under(self, policy: Literal["fail", "drop"]) -> Self:
        """Return these features if the policy for unreadable images allows their use.

        Raises:
            CorruptInput: there are unreadable images and the policy is ``fail``, or there is nothing else.
        """
        if self.unreadable and (policy == "fail" or not self.ids):
            named = ", ".join(f"{image.id} ({image.reason})" for image in self.unreadable[:5])
            raise CorruptInput(
                f"{len(self.unreadable)} of {len(self.ids) + len(self.unreadable)} images cannot be read: {named}"
                f"{', ...' if len(self.unreadable) > 5 else ''}; replace them, or leave them out with unreadable=drop"
            )
        return self


def kept_labels(labels: npt.NDArray[np.int64], images: ImageSet, matrix: FeatureMatrix) -> npt.NDArray[np.int64]:
    """Return the labels of the images that have features, int64 [rows of ``matrix``].

    Args:
        labels: int64 [number of images].
        images: The set that the features are of.
        matrix: The features; images that cannot be read have no row.
    """
    if not matrix.unreadable:
        return labels
    lost = {image.id for image in matrix.unreadable}
    return labels[[identity not in lost for identity in images.ids]]


def describe(
    folder: Path, ids: Sequence[str], about: Mapping[str, Plain], unreadable: Sequence[Unreadable] = ()
) -> None:
    """Write all of an entry but its arrays."""
    write_ids(folder, ids)
    write_atomic(folder / _UNREADABLE, json.dumps([[image.id, image.reason] for image in unreadable]))
    write_atomic(folder / _ABOUT, json.dumps(about, indent=1))


def write_ids(folder: Path, ids: Sequence[str]) -> None:
    """Write one id a line."""
    write_atomic(folder / IDS, "".join(f"{identity}\n" for identity in ids))


def read_ids(folder: Path) -> tuple[str, ...]:
    """Return the ids of a folder.

    Raises:
        FileNotFoundError: it has none.
    """
    return tuple((folder / IDS).read_text(encoding="utf-8").split("\n")[:-1])
