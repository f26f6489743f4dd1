"""What must hold after every kill, found out without the code that is tested where that is possible."""

import json
from collections.abc import Mapping
from pathlib import Path

from harness.digest import read_digest
from harness.records.record import Record


class Violated(AssertionError):
    """Something that must hold did not."""


def read_numbers(folder: Path) -> dict[str, tuple[float | None, ...]]:
    """Return what has been measured, by case id. Every record must be whole and lie in no other's place.

    Raises:
        Violated: a record is damaged.
    """
    found: dict[str, tuple[float | None, ...]] = {}
    for path in sorted((folder / "reports" / "records").rglob("*.json")):
        if path.name.startswith("."):  # of a writer that was killed, and read by nobody
            continue
        try:
            record = Record.model_validate_json(path.read_text())
        except ValueError as error:
            raise Violated(f"damaged record {path}: {error}") from error
        if record.measured:
            if record.case.id in found:
                raise Violated(f"two records of {record.case.id}, one of them {path}")
            found[record.case.id] = tuple(record.metrics["top1"].per_seed)
    return found


def check_entries(folder: Path) -> int:
    """Check every entry of the store against its manifest, and return how many there are.

    Raises:
        Violated: an entry is damaged, or one was and has been set aside.
    """
    store = folder / "cache" / "store"
    entries = sorted((store / "entries").glob("*/*"))
    for entry in entries:
        try:
            files: dict[str, str] = json.loads((entry / "manifest.json").read_text())["files"]
            wrong = [name for name, digest in files.items() if read_digest(entry / name) != digest]
        except (OSError, ValueError, KeyError) as error:
            raise Violated(f"damaged entry {entry}: {error!r}") from error
        if wrong or "key.json" not in files:
            raise Violated(f"damaged entry {entry}: {wrong or 'it has no key'}")
    if aside := list((store / "quarantine").glob("*")):
        raise Violated(f"damaged entries were set aside: {aside}")
    return len(entries)


def check_numbers(folder: Path, reference: Mapping[str, tuple[float | None, ...]], *, complete: bool) -> int:
    """Check what has been measured against the reference, and return how many cases that is.

    Raises:
        Violated: a number differs, or some are missing where the run was ``complete``.
    """
    numbers = read_numbers(folder)
    if wrong := [case for case, values in numbers.items() if reference.get(case) != values]:
        raise Violated(f"other numbers than in an undisturbed run: {wrong}")
    if complete and (missing := reference.keys() - numbers.keys()):
        raise Violated(f"the run ended with status 0, and these are not measured: {sorted(missing)}")
    return len(numbers)


def check_exit(status: int, log: Path, cases: int, *, undisturbed: bool) -> None:
    """Check an exit status against the reports that the controller was sent: 0 means that all of them passed.

    Raises:
        Violated: it says otherwise.
    """
    lines = log.read_text().splitlines() if log.exists() else []
    outcomes = {node: outcome for outcome, _, node in (line.partition(" ") for line in lines)}
    failed = [line for line in lines if not line.startswith("passed ")]
    if status == 0 and (len(outcomes) != cases or failed):
        raise Violated(f"exit status 0 with {len(outcomes)} of {cases} cases reported, and {failed}")
    if status != 0 and undisturbed:
        raise Violated(f"exit status {status} of an undisturbed run")
