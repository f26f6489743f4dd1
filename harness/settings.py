"""What a run was asked for: the options that pytest and the command line share."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs

from harness.errors import ConfigError
from harness.errors import nearest
from harness.store import Overwrite

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


@dataclass(frozen=True)
class Option:
    """One option: ``--flag`` for pytest and on the command line, ``harness_<name>`` as an ini setting."""

    field: str
    """The field of `Settings` it fills."""
    help: str
    metavar: str | None = None
    repeated: bool = False
    switch: bool = False

    @property
    def name(self) -> str:
        """The name in the user's words: ``models`` for ``models_file``."""
        return self.field.removesuffix("_file")

    @property
    def flag(self) -> str:
        """The spelling on a command line."""
        return "--" + self.name.replace("_", "-")


_WHEN = "|".join(word.value for word in Overwrite)

OPTIONS = (
    Option("suite", "mini (embedded data), paper, or a suite file (default: mini)", "NAME|FILE"),
    Option("models_file", "the models file (default: models.yaml)", "FILE"),
    Option("data_root", "folder with your copies of ImageNet and other data", "DIR"),
    Option("cache_dir", f"cache folder (default: ${CACHE_VARIABLE}, else your cache folder)", "DIR"),
    Option("reports_dir", "folder of records and reports (default: reports)", "DIR"),
    Option("device", "auto, cpu, cuda or cuda:N (default: auto, a GPU where there is one)", "DEVICE"),
    Option("universe", "run CoG on another universe: a shipped name or a file", "NAME|FILE"),
    Option("protocol", "override a protocol option, for example trials=30; repeatable", "KEY=VALUE", repeated=True),
    Option("overwrite", f"results of cases: {_WHEN} (default: only-missing)", "WHEN"),
    Option("overwrite_features", f"features: {_WHEN} (default: only-missing)", "WHEN"),
    Option("download", "fetch missing weights while running, instead of skipping their cases", switch=True),
)


def settings_from(value_of: Callable[[Option], Any], run_started: float = 0.0) -> Settings:
    """Build settings from whatever holds the options.

    Args:
        value_of: Returns the value of an option: text, a list where it is repeated, a bool where it is a switch;
            None or empty where it was not given.
        run_started: See `Settings`.

    Raises:
        ConfigError: a value that the option does not admit.
    """
    values: dict[str, Any] = {}
    for option in OPTIONS:
        value = value_of(option)
        if value in (None, "", [], False):
            continue
        if option.metavar in {"FILE", "DIR"}:
            value = Path(value).expanduser()
        elif option.metavar == "WHEN":
            value = _overwrite(value, option.flag)
        elif option.field == "device" and not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
            raise ConfigError(
                f"--device {value}: expected auto, cpu, cuda or cuda:N.{nearest(value, ['auto', 'cpu', 'cuda'])}"
            )
        values[option.field] = tuple(value) if option.repeated else value
    settings = Settings(**values, run_started=run_started)
    # A test may change the working directory: what it leaves must not move records and cache elsewhere.
    return replace(settings, cache_dir=settings.cache_dir.absolute(), reports_dir=settings.reports_dir.absolute())


def _overwrite(text: str, flag: str) -> Overwrite:
    words = [word.value for word in Overwrite]
    if text not in words:
        raise ConfigError(f"{flag} {text}: expected one of {', '.join(words)}.{nearest(text, words)}")
    return Overwrite(text)
