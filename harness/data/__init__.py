"""Data that travels with the package: WordNet nouns, published lists, small image sets."""

from pathlib import Path

_ROOT = Path(__file__).parent


def path(name: str) -> Path:
    """Return the path of an embedded file, for example ``path("cog/levels.csv")``.

    Raises:
        FileNotFoundError: no such file is embedded; the installation is incomplete.
    """
    found = _ROOT / name
    if not found.exists():
        raise FileNotFoundError(f"{name} is not among the embedded data of this installation ({_ROOT})")
    return found
