"""The one store: expensive results, each found by everything that can move it.

An entry is a folder named by the digest of its key. It is built in a temporary folder, described by a manifest,
flushed and renamed into place as the last act, so that a reader finds a complete entry or none. A lock saves two
processes from building the same entry; without it the work is done twice and the first to finish wins.
"""

import json
import math
import shutil
import time
import uuid
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path

from harness.digest import Plain
from harness.digest import canonical_json
from harness.digest import digest_of
from harness.entry import BEGUN
from harness.entry import UNREADABLE
from harness.entry import describe
from harness.entry import fault_of
from harness.entry import state_of
from harness.errors import MissingInput
from harness.files import flush
from harness.files import locked

Key = Mapping[str, Plain]


class Overwrite(StrEnum):
    """What to do about entries that exist, and about entries that do not."""

    ALWAYS = "always"
    """Build anew, once a run, and replace."""
    NEVER = "never"
    """Use what exists, build what is missing; a case that has a measured record is left alone whatever its key."""
    ONLY_MISSING = "only-missing"
    """Use what exists, build what is missing."""
    ONLY_CACHE = "only-cache"
    """Use what exists, build nothing: what is missing is skipped with that reason."""


class StoreWarning(UserWarning):
    """A damaged entry was set aside."""


class Store:
    """A folder of verified entries.

    Args:
        root: The folder; made when the first entry is built.
        run_started: Seconds since the epoch. Under ``Overwrite.ALWAYS`` an entry built since then is fresh, so that
            the cases of one run share what the first of them built.
    """

    def __init__(self, root: Path, run_started: float = 0.0) -> None:
        self.root = root
        self._run_started = run_started
        self._verified: dict[Path, tuple[tuple[str, int, int], ...]] = {}

    def get(
        self,
        kind: str,
        key: Key,
        build: Callable[[Path], None],
        *,
        overwrite: Overwrite = Overwrite.ONLY_MISSING,
        resumable: bool = False,
    ) -> Path:
        """Return the folder of the entry ``key``, built by ``build(folder)`` where it is missing.

        Args:
            kind: A word that groups entries, for example ``features``.
            key: Everything that can move the result.
            build: Fills the (temporary) folder it is given with files.
            overwrite: See `Overwrite`.
            resumable: Hand the temporary folder of a builder that was killed to the next builder, as it was left.

        Raises:
            MissingInput: nothing is cached and ``overwrite`` is ``only-cache``.
            OSError: the disk is full or not writable; nothing half-written remains, what existed is as it was.
        """
        if (entry := self._usable(kind, key, overwrite)) is not None:
            return entry
        if overwrite is Overwrite.ONLY_CACHE:
            raise MissingInput(
                f"not in the cache ({kind} {digest_of(key)[:12]} under {self.root}), and only-cache is set"
            )
        # On a file system without locks, work may be done twice.
        with locked(self._lock_path(digest_of(key))) as alone:
            if (entry := self._usable(kind, key, overwrite)) is not None:
                return entry
            return self._build(kind, key, build, overwrite, resumable=resumable, alone=alone)

    def find(self, kind: str, key: Key) -> Path | None:
        """Return the folder of a complete, undamaged entry, or None. A damaged one is set aside with a warning."""
        entry = self._entry(kind, digest_of(key))
        if not entry.is_dir():
            return None
        fault = self._fault(entry)
        if fault is None:
            return entry
        self.set_aside(entry, fault)
        return None

    def holds(self, kind: str, key: Key) -> Path | None:
        """Return the folder of an entry, or None, without reading its content: for plans, which promise nothing."""
        entry = self._entry(kind, digest_of(key))
        try:
            state_of(entry)
        except UNREADABLE:
            return None
        return entry

    def entries(self) -> list[Path]:
        """Return the folders ``<kind>/<digest>`` of all entries, damaged ones among them, in their order."""
        return sorted(path for path in (self.root / "entries").glob("*/*") if path.is_dir())

    def keys(self, kind: str) -> Iterator[tuple[str, Key]]:
        """Yield (digest, key) of every entry of a kind, in the order of digests; unreadable keys are passed over."""
        for path in sorted((self.root / "entries" / kind).glob("*/key.json")):
            try:
                yield path.parent.name, json.loads(path.read_text())
            except (OSError, ValueError):
                continue  # a damaged entry is dealt with when it is asked for

    def seconds(self, entry: Path) -> float:
        """Return how many seconds building this entry took."""
        return float(json.loads((entry / "manifest.json").read_text())["seconds"])

    def _entry(self, kind: str, digest: str) -> Path:
        return self.root / "entries" / kind / digest

    def _usable(self, kind: str, key: Key, overwrite: Overwrite) -> Path | None:
        entry = self.find(kind, key)
        if entry is not None and overwrite is Overwrite.ALWAYS:
            built = json.loads((entry / "manifest.json").read_text())["built"]
            return entry if built >= self._run_started > 0 else None
        return entry

    def _fault(self, entry: Path) -> str | None:
        """Say what is wrong with an entry. Each file's digest is read once per process and change of the file."""
        try:
            state = state_of(entry)
        except UNREADABLE as error:
            return f"{type(error).__name__}: {error}"
        if self._verified.get(entry) == state:
            return None
        fault = fault_of(entry)
        if fault is None:
            self._verified[entry] = state
        return fault

    def set_aside(self, entry: Path, fault: str) -> None:
        """Move a damaged entry out of the way, with a warning that says what is wrong with it."""
        aside = self.root / "quarantine" / f"{entry.parent.name}-{entry.name[:16]}-{uuid.uuid4().hex[:8]}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            entry.rename(aside)
        except FileNotFoundError:
            return  # another process was quicker
        warnings.warn(f"damaged cache entry set aside to {aside}: {fault}", StoreWarning, stacklevel=4)

    def _build(
        self,
        kind: str,
        key: Key,
        build: Callable[[Path], None],
        overwrite: Overwrite,
        *,
        resumable: bool,
        alone: bool,
    ) -> Path:
        always = overwrite is Overwrite.ALWAYS
        # Under ALWAYS even half of an entry counts as old if it was begun before this run.
        since = math.inf if not resumable else self._run_started if always else -math.inf
        folder = self._work_folder(kind, digest_of(key), since, clear=alone)
        began = time.time()
        try:
            build(folder)
            describe(folder, key, seconds=time.time() - began)
            return self._publish(folder, self._entry(kind, digest_of(key)), replace=always)
        except BaseException:
            if not resumable:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def _work_folder(self, kind: str, digest: str, since: float, *, clear: bool) -> Path:
        """Make the temporary folder, of the newest abandoned one where that was begun at ``since`` or later.

        Others of the same digest are abandoned if their builder held the lock that we hold now: only then ``clear``.
        """
        parent = self.root / "work" / kind
        parent.mkdir(parents=True, exist_ok=True)
        folder = parent / f"{digest}.{uuid.uuid4().hex}"
        others = sorted(parent.glob(f"{digest}.*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for abandoned in others if clear else ():
            if not folder.exists() and _begun(abandoned) >= since:
                abandoned.rename(folder)
            else:
                shutil.rmtree(abandoned, ignore_errors=True)
        if not folder.exists():
            folder.mkdir()
            (folder / BEGUN).write_text(str(time.time()))
        return folder

    def _publish(self, folder: Path, entry: Path, *, replace: bool) -> Path:
        entry.parent.mkdir(parents=True, exist_ok=True)
        if entry.exists() and replace:
            replaced = folder.with_name(f"{folder.name}.replaced")
            entry.rename(replaced)
            shutil.rmtree(replaced, ignore_errors=True)
        try:
            folder.rename(entry)
        except OSError:
            # Without a working lock another process may have published the same entry meanwhile.
            if self._fault(entry) is not None:
                raise
            shutil.rmtree(folder, ignore_errors=True)
        flush(entry.parent)
        return entry

    def claimed(self, digest: str) -> AbstractContextManager[bool]:
        """Hold the lock of a digest within the block; gives False, and holds nothing, where somebody builds it.

        On a file system without locks nobody can know, so that it is False there too.
        """
        return locked(self._lock_path(digest), wait=False)

    def _lock_path(self, digest: str) -> Path:
        return self.root / "locks" / f"{digest}.lock"


def differences(ours: Key, theirs: Key) -> dict[str, tuple[Plain, Plain]]:
    """Return the fields in which two keys differ, by dotted path: ``{path: (ours, theirs)}``; absent is None."""
    # Through JSON, in which keys are kept: a tuple and a list are the same there.
    mine, other = (dict(_flat(json.loads(canonical_json(key)))) for key in (ours, theirs))
    return {
        path: (mine.get(path), other.get(path))
        for path in sorted(mine.keys() | other.keys())
        if mine.get(path) != other.get(path)
    }


def _flat(value: Plain, path: str = "") -> Iterator[tuple[str, Plain]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}" if path else name)
    else:
        yield path, value


def _begun(folder: Path) -> float:
    try:
        return float((folder / BEGUN).read_text())
    except (OSError, ValueError):
        return -math.inf  # killed before it was written, or after it was removed: of unknown age
