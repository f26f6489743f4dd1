"""The pytest plugin: the only code that knows pytest. Each module is a plugin of its own, for one concern."""

pytest_plugins = [
    "harness.plugin.threads",
    "harness.plugin.options",
    "harness.plugin.launcher",
    "harness.plugin.preflight",
    "harness.plugin.pulse",
    "harness.plugin.scheduling",
    "harness.plugin.scheduler_worker",
    "harness.plugin.leases",
    "harness.plugin.tally",
    "harness.plugin.crashes",
    "harness.plugin.reconciliation",
    "harness.plugin.progress",
    "harness.plugin.shards",
    "harness.plugin.collection",
    "harness.plugin.selection",
    "harness.plugin.fixtures",
    "harness.plugin.recording",
    "harness.plugin.summary",
]
