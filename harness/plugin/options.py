"""Options on pytest's command line and in its ini file."""

import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigError
from harness.runs import run_name
from harness.runs import runs_dir
from harness.session import BENCHMARKS
from harness.session import Session
from harness.settings import OPTIONS
from harness.settings import Option
from harness.settings import settings_from

SESSION = pytest.StashKey[Session]()

RUN = pytest.StashKey[Path]()
"""The folder of this run (`harness.runs`): the same on the controller and its workers, who share a file system."""

_STARTED, _RUN = "harness_run_started", "harness_run"
_FROM_ROOT = {"models_file": "models.yaml", "reports_dir": "reports"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare every option of the harness, and an ini setting for each."""
    group = parser.getgroup("harness", "generalization harness")
    for option in OPTIONS:
        destination = f"harness_{option.name}"
        if option.switch:
            group.addoption(option.flag, action="store_true", dest=destination, help=option.help)
        else:
            action = "append" if option.repeated else "store"
            group.addoption(option.flag, action=action, dest=destination, metavar=option.metavar, help=option.help)
        kind = "bool" if option.switch else "args" if option.repeated else "string"
        parser.addini(destination, f"ini setting of {option.flag}", type=kind, default=None)  # type: ignore[arg-type]  # one of pytest's literals


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read options, suite and models file, and refuse what is wrong in them before any worker starts."""
    for marker, meaning in BENCHMARKS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")
    workerinput: dict[str, Any] = getattr(config, "workerinput", {})
    started = workerinput.get(_STARTED, time.time())
    try:
        session = Session(settings_from(lambda option: _value(config, option), run_started=started))
        if config.getoption("harness_models") or session.settings.models_file.exists():
            session.check()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[SESSION] = session
    config.stash[RUN] = runs_dir(session.settings.cache_dir) / workerinput.get(_RUN, run_name(started))


@pytest.hookimpl(optionalhook=True)  # without xdist, pytest does not know this hook
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which run it is part of, and when that began."""
    node.workerinput[_STARTED] = node.config.stash[SESSION].settings.run_started
    node.workerinput[_RUN] = node.config.stash[RUN].name


def _value(config: pytest.Config, option: Option) -> Any:
    """Return what the command line says, else the ini file, else our default; paths of these two from the root."""
    destination = f"harness_{option.name}"
    if given := config.getoption(destination):
        return given
    value = config.getini(destination) or _FROM_ROOT.get(option.field)
    if isinstance(value, str) and (option.metavar in {"FILE", "DIR"} or (config.rootpath / value).is_file()):
        return str(config.rootpath / Path(value).expanduser())
    return value
