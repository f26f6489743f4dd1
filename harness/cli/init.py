"""``harness init``: the files with which pytest runs the benchmarks in a repository of one's own."""

import argparse
import configparser
import shlex
import tomllib
from collections.abc import Container
from pathlib import Path

from harness import data
from harness.cli.common import Commands
from harness.cli.common import add_command
from harness.errors import ConfigError
from harness.files import write_atomic

_SUFFIX = ".template"
_PLUGIN = '"harness.plugin"'


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    description = "write conftest.py, benchmarks, models.yaml and, where there is none, a pytest configuration"
    parser = add_command(commands, "init", _init, description)
    parser.add_argument("folder", type=Path, metavar="DIR", help="your repository, or a new folder")
    parser.add_argument("--force", action="store_true", help="overwrite files that are there and differ")


def _init(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file: expected a folder, which may be a new one")
    for name, content in templates().items():
        print(_put(folder, name, content, force=options.force))
    print(_next_steps(folder))
    return 0


def templates() -> dict[str, str]:
    """Return the content of each file that is written, by its path below the folder."""
    root = data.path("init")
    return {
        path.relative_to(root).as_posix().removesuffix(_SUFFIX): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob(f"*{_SUFFIX}"))
    }


def _put(folder: Path, name: str, content: str, *, force: bool) -> str:
    """Write one file where that overwrites nothing, or is forced to; return what was done."""
    path = folder / name
    here = path.read_text(encoding="utf-8") if path.exists() else None
    if here == content:
        return f"same     {path}"
    if name == "pytest.ini" and (other := pytest_configuration(folder)):
        return f"kept     {other}, which configures pytest already"
    if here is not None and not force:
        wanted = f"; add to it: {content.splitlines()[-1]}" if name == "conftest.py" and _PLUGIN not in here else ""
        return f"kept     {path}, which differs (--force overwrites it){wanted}"
    write_atomic(path, content)
    return f"written  {path}"


def pytest_configuration(folder: Path) -> Path | None:
    """Return the file of a folder that configures pytest, None where there is none.

    Raises:
        ConfigError: a file that may do so cannot be read.
    """
    for name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if (folder / name).exists():
            return folder / name
    for name, section in (("pyproject.toml", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        path = folder / name
        try:
            if path.exists() and section in _sections(path):
                return path
        except (ValueError, configparser.Error) as error:
            raise ConfigError(f"{path}: cannot be read: {error}") from error
    return None


def _sections(path: Path) -> Container[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        tools: dict[str, object] = tomllib.loads(text).get("tool", {})
        return tools
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser


def _next_steps(folder: Path) -> str:
    steps = [
        "harness validate                  # models.yaml, and the weights that are here",
        "pytest benchmarks -k random -n 2  # one model of the mini suite, without data or weights of your own",
        "harness report",
    ]
    if folder.resolve() != Path.cwd():
        steps.insert(0, f"cd {shlex.quote(str(folder))}")
    return "\n".join(["", "next:", *(f"  {step}" for step in steps)])
