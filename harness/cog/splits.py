"""The images of a split: which are for training and which for testing, with the class of each."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.cog.universe import Families
from harness.cog.universe import Folder
from harness.cog.universe import Images
from harness.cog.universe import Listed
from harness.cog.universe import Random
from harness.cog.universe import resolve_root
from harness.cog.universe_lists import read_table
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.images import ImageSet
from harness.images import list_images
from harness.images import open_images

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
    """

    name: str
    concepts: tuple[str, ...]
    train: ImageSet
    train_labels: npt.NDArray[np.int64]
    test: ImageSet
    test_labels: npt.NDArray[np.int64]


def load_split(name: str, concepts: Sequence[str], images: Images, data_root: Path | None) -> Split:
    """Find the images of ``concepts`` and part them by the rule of the universe.

    Raises:
        MissingInput: the place, a concept or a listed image is not there.
        ConfigError: a concept is left without images to train or to test on.
    """
    concepts = tuple(sorted(concepts))
    place = resolve_root(images.root, data_root)
    found = _by_concept(list_images(place, concepts), concepts)
    test_place = place
    if isinstance(images.test, Folder):
        test_place = resolve_root(images.test.root, data_root)
        test = _by_concept(list_images(test_place, concepts), concepts)
    else:
        test = _test_images(images.test, found, place)
    train = [
        _capped(wnid, [image for image in found[wnid] if image not in held], images.train_cap)
        for wnid, held in ((wnid, set(test[wnid]) if test_place == place else set()) for wnid in concepts)
    ]
    tested = [test[wnid] for wnid in concepts]
    for wnid, training, testing in zip(concepts, train, tested, strict=True):
        if not training or not testing:
            raise ConfigError(f"{place}: {wnid} has {len(training)} training and {len(testing)} test images")
    return Split(
        name,
        concepts,
        open_images(place, _joined(train)),
        _labels(train),
        open_images(test_place, _joined(tested)),
        _labels(tested),
    )


def require_images(images: Images, data_root: Path | None) -> None:
    """Check, without looking into it, that the place of the images is there.

    Raises:
        MissingInput: it is not; the message names it.
    """
    roots = [images.root, *([images.test.root] if isinstance(images.test, Folder) else [])]
    for root in roots:
        place = resolve_root(root, data_root)
        if not place.exists():
            raise MissingInput(f"no images at {place}: put them there, or say with --data-root where they are")


def _by_concept(ids: Sequence[str], concepts: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {wnid: [] for wnid in concepts}
    for image in ids:
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


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return [image for part in parts for image in part]


def _labels(parts: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts])
