"""The images of a split: which are for training and which for testing, with the class of each."""

import random
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from harness.cog.universe import Families
from harness.cog.universe import Folder
from harness.cog.universe import Images
from harness.cog.universe import Listed
from harness.cog.universe import Random
from harness.cog.universe import resolve_root
from harness.cog.universe_lists import read_table
from harness.digest import digest_of
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.images import ImageSet
from harness.images import list_images
from harness.images import open_images

Counts: TypeAlias = Mapping[str, int | None]
"""The number of images of concepts by WNID; None where it is not known."""

_CAP_SEED = 22
"""Which images are left out above the cap is known only from the official pickles; we draw them."""


@dataclass(frozen=True, eq=False)
class Split:
    """The images of some concepts, in the order of the concepts.

    Attributes:
        name: ``seen``, ``L1`` ...
        concepts: WNIDs, sorted: the class of an image is the position of its concept (naver/cog, data/datasets.py).
        train: The images to train on.
        train_labels: int64 [number of training images].
        test: The images to test on.
        test_labels: int64 [number of test images].
        missing: How many images are not there of those that the universe's list counts; 0 where it has no counts.
    """

    name: str
    concepts: tuple[str, ...]
    train: ImageSet
    train_labels: npt.NDArray[np.int64]
    test: ImageSet
    test_labels: npt.NDArray[np.int64]
    missing: int

    @cached_property
    def labels_digest(self) -> str:
        """What tells apart concepts and the labels of the images. Made once: of a million it takes a while."""
        return digest_of([self.concepts, self.train_labels.tolist(), self.test_labels.tolist()])


def load_split(name: str, concepts: Sequence[str], images: Images, data_root: Path | None, counts: Counts) -> Split:
    """Find the images of ``concepts`` and part them by the rule of the universe.

    Args:
        name: Of the split.
        concepts: WNIDs.
        images: Where the images lie, and the rule.
        data_root: What their roots are relative to.
        counts: How many images each concept should have, for training and testing together, where that is known.

    Raises:
        MissingInput: the place, a concept or a listed image is not there.
        ConfigError: a concept is left without images to train or to test on.
    """
    concepts = tuple(sorted(concepts))
    place, test_place = (resolve_root(root, data_root) for root in _roots(images))
    found = _by_concept(place, concepts)
    if isinstance(images.test, Folder):
        test = _by_concept(test_place, concepts)
    else:
        test = _test_images(images.test, found, place)
    train, missing = {}, 0
    for wnid in concepts:
        held_out = set(test[wnid]) if test_place == place else set()
        left = [image for image in found[wnid] if image not in held_out]
        if not left or not test[wnid]:
            raise ConfigError(f"{place}: {wnid} has {len(left)} training and {len(test[wnid])} test images")
        train[wnid] = _capped(wnid, left, images.train_cap)
        missing += max(0, (counts.get(wnid) or 0) - len(left) - len(test[wnid]))
    return Split(
        name, concepts, *_labelled(place, train, concepts), *_labelled(test_place, test, concepts), missing=missing
    )


def require_images(images: Images, data_root: Path | None) -> None:
    """Check, without looking into it, that the place of the images is there.

    Raises:
        MissingInput: it is not; the message names it.
    """
    for root in _roots(images):
        place = resolve_root(root, data_root)
        if not place.exists():
            raise MissingInput(f"no images at {place}: put them there, or say with --data-root where they are")


def _roots(images: Images) -> tuple[str, str]:
    return images.root, images.test.root if isinstance(images.test, Folder) else images.root


def _by_concept(place: Path, concepts: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {wnid: [] for wnid in concepts}
    for image in list_images(place, concepts):
        found[image.partition("/")[0]].append(image)
    return found


def _test_images(rule: Families | Listed | Random, found: dict[str, list[str]], place: Path) -> dict[str, list[str]]:
    if isinstance(rule, Families):
        return {wnid: [i for i in ids if _family(rule, i) in rule.test] for wnid, ids in found.items()}
    if isinstance(rule, Listed):
        return _listed(rule, found, place)
    return {wnid: _drawn(wnid, ids, rule.count, rule.seed) for wnid, ids in found.items()}


def _family(rule: Families, image: str) -> str:
    artist = Path(image).stem.removesuffix("-2")
    try:
        return rule.artists[artist]
    except KeyError:
        raise ConfigError(f"{image}: the universe names no family of artist {artist!r}") from None


def _listed(rule: Listed, found: dict[str, list[str]], place: Path) -> dict[str, list[str]]:
    table = read_table(rule.file, needed=("numbers",))
    test = {}
    for wnid, ids in found.items():
        if wnid not in table:
            raise ConfigError(f"{rule.file}: lists no test images of {wnid}")
        test[wnid] = [f"{wnid}/{wnid}_{number}.JPEG" for number in table[wnid]["numbers"].split()]
        if absent := sorted(set(test[wnid]) - set(ids)):
            raise MissingInput(f"{place}: {len(absent)} published test images of {wnid} are missing: {absent[0]}, ...")
    return test


def _drawn(wnid: str, ids: Sequence[str], count: int, seed: int) -> list[str]:
    """Draw images of one concept, whatever other concepts there are. ``ids`` are sorted, and so is the result."""
    stream = random.Random(f"{seed} {wnid}")  # noqa: S311 - a draw, not a secret
    return sorted(stream.sample(ids, min(count, len(ids))))


def _capped(wnid: str, ids: Sequence[str], cap: int | None) -> list[str]:
    return list(ids) if cap is None or len(ids) <= cap else _drawn(wnid, ids, cap, _CAP_SEED)


def _labelled(
    place: Path, ids: Mapping[str, Sequence[str]], concepts: Sequence[str]
) -> tuple[ImageSet, npt.NDArray[np.int64]]:
    """Return the images of concepts, one after the other, and the label of each."""
    joined = [image for wnid in concepts for image in ids[wnid]]
    return open_images(place, joined), np.repeat(np.arange(len(concepts)), [len(ids[wnid]) for wnid in concepts])
