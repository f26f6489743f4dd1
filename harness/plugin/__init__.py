"""The pytest plugin: the only code that knows pytest."""

from harness.plugin.collection import pytest_collection_modifyitems
from harness.plugin.collection import pytest_generate_tests
from harness.plugin.fixtures import features
from harness.plugin.fixtures import levels
from harness.plugin.fixtures import overwrite
from harness.plugin.options import pytest_addoption
from harness.plugin.options import pytest_configure
from harness.plugin.recording import pytest_runtest_call
from harness.plugin.recording import pytest_runtest_makereport
from harness.plugin.recording import pytest_runtest_setup
from harness.plugin.recording import record
from harness.plugin.summary import pytest_terminal_summary

__all__ = [
    "features",
    "levels",
    "overwrite",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "record",
]
