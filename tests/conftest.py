"""What all tests share."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_HEAVY = re.compile(r"^(import|from) (torch|timm|optuna|sklearn|harness\.zsl\.methods)\b", re.MULTILINE)
_WITHOUT_TORCH = importlib.util.find_spec("torch") is None
_left_out: list[str] = []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what needs torch where it is not installed, as in the matrix of bare environments."""
    module = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    if _WITHOUT_TORCH and module.suffix == ".py" and module.exists() and _HEAVY.search(module.read_text()):
        _left_out.append(collection_path.name)
        return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out: nothing is skipped silently."""
    if _left_out:
        terminalreporter.write_line(f"left out, since torch is not installed: {', '.join(sorted(_left_out))}")
