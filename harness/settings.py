"""What a run was asked for: the options that pytest and the command line share."""

import os
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path

import platformdirs

from harness.errors import ConfigError
from harness.errors import nearest
from harness.store import Overwrite
from harness.store import Store

CACHE_VARIABLE = "HARNESS_CACHE"


def default_cache_dir() -> Path:
    """Return the cache folder: ``$HARNESS_CACHE``, else the user's cache folder of this platform."""
    override = os.environ.get(CACHE_VARIABLE)
    return Path(override).expanduser() if override else platformdirs.user_cache_path("generalization-harness")


@dataclass(frozen=True)
class Settings:
    """The options of one run, all with the defaults of the command line."""

    suite: str = "mini"
    """Name of a shipped suite, or the path of a suite file."""
    models_file: Path = Path("models.yaml")
    data_root: Path | None = None
    """Where the user's copies of ImageNet and the like lie."""
    cache_dir: Path = field(default_factory=default_cache_dir)
    reports_dir: Path = Path("reports")
    device: str = "auto"
    """``auto`` takes a GPU where there is one; else ``cpu``, ``cuda`` or ``cuda:1``."""
    universe: str | None = None
    """A universe by name or file in place of the suite's own."""
    protocol: tuple[str, ...] = ()
    """``KEY=VALUE`` overrides of the suite's protocol."""
    overwrite: Overwrite = Overwrite.ONLY_MISSING
    """For cases: probes, trainings and their records."""
    overwrite_features: Overwrite = Overwrite.ONLY_MISSING
    download: bool = False
    """Fetch missing weights while running, rather than skip their cases."""
    run_started: float = 0.0

    @property
    def weights_dir(self) -> Path:
        """Where fetched weights lie."""
        return self.cache_dir / "weights"

    def store(self) -> Store:
        """Open the store of this run."""
        return Store(self.cache_dir / "store", run_started=self.run_started)


def parse_overwrite(text: str, option: str) -> Overwrite:
    """Read the value of an overwrite option.

    Raises:
        ConfigError: not one of the four words.
    """
    try:
        return Overwrite(text)
    except ValueError:
        words = [word.value for word in Overwrite]
        raise ConfigError(f"{option}={text}: expected one of {', '.join(words)}.{nearest(text, words)}") from None
