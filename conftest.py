"""Registers the harness with pytest."""

pytest_plugins = ["harness.plugin"]
