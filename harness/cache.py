"""Upkeep of the cache folder: what lies there, whether it is whole, and what may go.

An entry may be read or built by others at any time. Nothing is moved or removed whose lock somebody else holds.
"""

import json
import shutil
import time
import uuid
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from harness.digest import digest_of
from harness.entry import KEY
from harness.entry import UNREADABLE
from harness.entry import fault_of
from harness.entry import read_manifest
from harness.files import flush
from harness.runs import runs_dir
from harness.store import Store
from harness.store import StoreWarning

_DIGEST = 64
_FEATURES = "features"
_ABOUT = "extraction.json"


@dataclass(frozen=True)
class Held:
    """One folder that the cache holds."""

    path: Path
    area: str
    """``entries``, ``work`` or ``quarantine``."""
    kind: str
    """``features``, ``probe`` ..."""
    since: float
    """When it was built, last written to, or set aside, in seconds since the epoch."""
    models: tuple[str, ...] = field(default=())
    """Names of the models it was computed with, as far as they are known."""

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return size_of(self.path)


@dataclass(frozen=True)
class Copied:
    """What came of copying the entries of a store."""

    copied: int
    there: int
    """How many the target had already."""
    left: Mapping[Path, str]
    """Damaged ones, with what is wrong with them."""


def signature(backbone: Mapping[str, Any], weights: str) -> str:
    """Return what tells the models of entries apart when their names have changed.

    Args:
        backbone: As in the key of features; the shortest side before the crop is the protocol's affair.
        weights: Digest of the weights.
    """
    own = {name: value for name, value in backbone["input"].items() if name != "resize"}
    return digest_of([{**backbone, "input": own}, weights])


def entries(store: Store, names: Mapping[str, Iterable[str]] | None = None) -> list[Held]:
    """Return all entries of a store.

    Args:
        store: The store.
        names: Names of models by their `signature`, beside those that entries themselves carry.
    """
    known: dict[str, set[str]] = {mark: set(given) for mark, given in (names or {}).items()}
    listed = [(path, _mark(path), _carried(path)) for path in store.entries()]
    for _, mark, own in listed:
        if mark is not None:
            known.setdefault(mark, set()).update(own)
    return [
        Held(path, "entries", path.parent.name, _built(path), tuple(sorted({*known.get(mark or "", ()), *own})))
        for path, mark, own in listed
    ]


def unfinished(store: Store) -> list[Held]:
    """Return the folders that builders fill, or were filling when they were killed."""
    folders = sorted((store.root / "work").glob("*/*"))
    return [Held(path, "work", path.parent.name, _touched(path)) for path in folders if path.is_dir()]


def set_aside(store: Store) -> list[Held]:
    """Return the entries that were set aside as damaged."""
    folders = sorted((store.root / "quarantine").glob("*"))
    return [Held(path, "quarantine", path.name.partition("-")[0], path.stat().st_ctime) for path in folders]


def size_of(path: Path) -> int:
    """Return the bytes of a file or of all files of a folder; what vanishes meanwhile counts nothing."""
    total = 0
    for each in [path, *path.rglob("*")]:
        try:
            total += 0 if each.is_dir() else each.stat().st_size
        except FileNotFoundError:
            continue
    return total


def areas(cache_dir: Path) -> dict[str, int]:
    """Return the bytes of each part of the cache folder beside the entries of the store."""
    store = cache_dir / "store"
    places = {"quarantine": store / "quarantine", "work": store / "work", "runs": runs_dir(cache_dir)}
    others = {path.name: path for path in cache_dir.iterdir()} if cache_dir.is_dir() else {}
    for taken in ("store", "runs"):
        others.pop(taken, None)
    return {name: size_of(path) for name, path in {**places, **dict(sorted(others.items()))}.items() if path.exists()}


def verify(store: Store) -> Iterator[tuple[Path, str | None, bool]]:
    """Read every digest of every entry anew, and set aside what is damaged.

    Yields:
        (entry, fault or None, whether it was set aside): a damaged one stays where somebody is building it anew.
    """
    for entry in store.entries():
        fault = _fault(entry)
        if fault is None or not entry.exists():
            yield entry, None, False
            continue
        with store.claimed(entry.name) as claimed, warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)  # whoever calls has its text
            # It may have been replaced by a good one between the first look and the lock.
            fault = _fault(entry)
            if fault is not None and claimed:
                store.set_aside(entry, fault)
        yield entry, fault, fault is not None and claimed


def remove(store: Store, held: Held) -> bool:
    """Remove a folder; False, and it stays, where somebody builds under its lock."""
    if held.area == "quarantine":
        shutil.rmtree(held.path, ignore_errors=True)
        return True
    with store.claimed(held.path.name[:_DIGEST]) as claimed:
        if claimed:
            # An entry disappears at once and whole; a reader that has mapped it keeps what it has.
            going = store.root / "work" / held.kind / f"{held.path.name[:_DIGEST]}-removed.{uuid.uuid4().hex}"
            going.parent.mkdir(parents=True, exist_ok=True)
            try:
                held.path.rename(going)
            except FileNotFoundError:
                return True
            shutil.rmtree(going, ignore_errors=True)
        return claimed


def copy_entries(source: Store, target: Store) -> Copied:
    """Copy the entries that a store lacks from another one, each verified before it appears.

    Nothing in the source is changed. No lock is needed: of two who publish the same entry, the first wins.
    """
    copied = there = 0
    left: dict[Path, str] = {}
    for entry in source.entries():
        own = target.root / "entries" / entry.parent.name / entry.name
        if own.is_dir() and _fault(own) is None:
            there += 1
        elif (fault := _copy(entry, own, target)) is not None:
            left[entry] = fault
        else:
            copied += 1
    return Copied(copied, there, left)


def _copy(entry: Path, own: Path, target: Store) -> str | None:
    """Copy one entry; returns why it is left where it is damaged."""
    # Named unlike a builder's folder: a half copy must not be handed to a builder as its own half work.
    folder = target.root / "work" / entry.parent.name / f"{entry.name}-copy.{uuid.uuid4().hex}"
    try:
        shutil.copytree(entry, folder)
        if (fault := _fault(folder, entry.name)) is not None:
            return fault
        for path in [*folder.rglob("*"), folder]:
            flush(path)
        if own.is_dir():
            target.set_aside(own, "it is replaced by a verified copy")
        own.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(own)
        flush(own.parent)
    except OSError:
        if (fault := _fault(entry)) is not None:
            return fault
        if _fault(own) is not None:  # else somebody published the same entry meanwhile
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def _fault(entry: Path, digest: str | None = None) -> str | None:
    """Say what is wrong with an entry, or that it lies where another one belongs."""
    if (fault := fault_of(entry)) is not None:
        return fault
    try:
        found = digest_of(json.loads((entry / KEY).read_text()))
    except ValueError as error:
        return f"{KEY}: {error}"
    return None if found == (digest or entry.name) else f"its key has the digest {found[:12]}"


def _mark(entry: Path) -> str | None:
    """Return the signature of the model that an entry was computed with; None where its key names none."""
    try:
        key = json.loads((entry / KEY).read_text())
        key = key.get("train", key)
        return signature(key["backbone"], key["weights"])
    except UNREADABLE:
        return None


def _carried(entry: Path) -> tuple[str, ...]:
    """Return the name of the model that features say they are of; none of any other entry."""
    if entry.parent.name != _FEATURES:
        return ()
    try:
        return (str(json.loads((entry / _ABOUT).read_text())["backbone"]),)
    except UNREADABLE:
        return ()


def _built(entry: Path) -> float:
    try:
        return float(read_manifest(entry)["built"])
    except UNREADABLE:
        return _touched(entry)


def _touched(folder: Path) -> float:
    """Return when anything in a folder was last written; now, where it vanishes meanwhile."""
    try:
        return max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
    except FileNotFoundError:
        return time.time()
