"""The pytest plugin: the only code that knows pytest. Each module is a plugin of its own, for one concern."""

pytest_plugins = [
    "harness.plugin.options",
    "harness.plugin.pulse",
    "harness.plugin.collection",
    "harness.plugin.selection",
    "harness.plugin.fixtures",
    "harness.plugin.recording",
    "harness.plugin.summary",
]
