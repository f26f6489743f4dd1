"""One entry of the store as it lies on disk: files, a key, and a manifest that vouches for them."""

import json
import time
from pathlib import Path
from typing import Any

from harness.digest import Plain
from harness.digest import canonical_json
from harness.digest import read_digest
from harness.files import flush

KEY = "key.json"
MANIFEST = "manifest.json"

BEGUN = ".begun"
"""In a folder that is being filled: when that began."""

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading a damaged entry may raise."""


def describe(folder: Path, key: Plain, seconds: float) -> None:
    """Write key and manifest, the manifest last, and flush every file of the folder to disk.

    Args:
        folder: Filled by a builder.
        key: Everything that can move what it holds.
        seconds: How long building took.
    """
    for left in (MANIFEST, BEGUN):  # the first is of a builder that was killed between here and the rename
        (folder / left).unlink(missing_ok=True)
    (folder / KEY).write_text(canonical_json(key))
    files = {
        path.relative_to(folder).as_posix(): read_digest(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }
    manifest = {"files": files, "built": time.time(), "seconds": seconds}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    for name in [*files, MANIFEST]:
        flush(folder / name)
    flush(folder)


def read_manifest(entry: Path) -> dict[str, Any]:
    """Return the manifest: digest of each file by name (``files``), time ``built`` and ``seconds`` it took.

    Raises:
        OSError, ValueError, KeyError, TypeError, AttributeError: it is not there, or is not complete.
    """
    manifest: dict[str, Any] = json.loads((entry / MANIFEST).read_text())
    if KEY not in manifest["files"] or not float(manifest["built"]) >= float(manifest["seconds"]) >= 0:
        raise ValueError(f"{MANIFEST} is not complete")
    return manifest


def state_of(entry: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and modification time of every file: while these stay, so does what was verified.

    Raises:
        OSError, ValueError, KeyError, TypeError, AttributeError: see `UNREADABLE`.
    """
    names = sorted([*read_manifest(entry)["files"], MANIFEST])
    statuses = [(entry / name).stat() for name in names]
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in zip(names, statuses, strict=True))


def fault_of(entry: Path) -> str | None:
    """Say what is wrong with an entry, every digest read anew; None where it is whole."""
    try:
        for name, expected in read_manifest(entry)["files"].items():
            if read_digest(entry / name) != expected:
                return f"{name} does not have the digest it was written with"
    except UNREADABLE as error:
        return f"{type(error).__name__}: {error}"
    return None
