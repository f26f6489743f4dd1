"""What a worker of xdist does between two items: it waits in a filler, until the controller knows what comes next."""

from collections.abc import Callable
from typing import Any

import pytest

FILLERS = "harness_fillers"
"""Set in ``workerinput`` where the controller schedules by `harness.plugin.scheduler_xdist`."""


_LAST = pytest.StashKey[pytest.Item]()
"""The item that this process ran last."""


class Filler(pytest.Item):
    """Follows an item of the same class or module, so that what these share is not torn down.

    Never reported but for a fault in that teardown, which goes by the name of the item before it, as without xdist.
    """

    @property
    def nodeid(self) -> str:
        """That of the item before it."""
        last = self.config.stash.get(_LAST, None)
        return super().nodeid if last is None else last.nodeid

    def runtest(self) -> None:
        """Do nothing."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Add a filler for each item, at its position plus the number of items; after xdist told the controller of them."""
    if not getattr(session.config, "workerinput", {}).get(FILLERS):
        return
    parents = [item.parent or session for item in session.items]
    fillers = {parent: Filler.from_parent(parent, name="between items") for parent in set(parents)}
    session.items.extend(fillers[parent] for parent in parents)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run nothing for a filler, but tear down what the next item does not share; a fault in that is reported."""
    if not isinstance(item, Filler):
        item.config.stash[_LAST] = item
        return None
    call = pytest.CallInfo.from_call(
        lambda: _tear_down(item.config.pluginmanager)(item=item, nextitem=nextitem),
        when="teardown",
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        last = item.config.stash[_LAST]
        report.nodeid, report.location = last.nodeid, last.location
        item.ihook.pytest_runtest_logreport(report=report)
    return True


def _tear_down(manager: pytest.PytestPluginManager) -> Callable[..., Any]:
    """Return pytest's own teardown, without that of other plugins: for them a filler is no item."""
    runner = manager.get_plugin("runner")
    return manager.subset_hook_caller(
        "pytest_runtest_teardown", [plugin for plugin in manager.get_plugins() if plugin is not runner]
    )
