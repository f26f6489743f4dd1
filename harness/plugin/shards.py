"""``--shard 2/4``: one of several parts of a run, for machines that know nothing of each other, such as jobs of CI."""

import json
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.durations import Durations
from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.files import write_atomic
from harness.plugin.collection import case_of
from harness.plugin.options import RUN
from harness.plugin.options import SESSION
from harness.shards import Plan
from harness.shards import Shard
from harness.shards import deal
from harness.shards import parse_shard

DURATIONS_FILE = "durations.json"
"""Beside the models file: taken without being named."""

_SHARD = pytest.StashKey[Shard]()
_DURATIONS = pytest.StashKey[Durations | None]()
_CUT = pytest.StashKey["Cut"]()


@dataclass(frozen=True)
class Cut:
    """What ``shard.json`` in the folder of the run says, for whoever puts shards together again."""

    shard: int
    of: int
    plan: str
    """Equal for shards that fit together."""
    cases: list[str]
    """Ids of the cases of this shard."""
    selected: int
    """Cases of all shards together."""
    tests: int
    """Tests of this shard, those that are no case among them."""
    all_tests: int
    """Tests of all shards together."""
    seconds: float | None
    """Expected, on one worker; None without recorded durations."""

    def __str__(self) -> str:
        about = "" if self.seconds is None else f", about {_spoken(self.seconds)}"
        counted = f"{len(self.cases)} of {self.selected} cases"
        return f"shard {self.shard}/{self.of} of plan {self.plan}: {counted}{about}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("harness", "generalization harness")
    help_ = "run the I-th of N parts of what is selected, the same on every machine"
    group.addoption("--shard", dest="harness_shard", metavar="I/N", help=help_)
    parser.addini("harness_shard", "ini setting of --shard", type="string", default="")
    help_ = f"durations that balance --shard, of harness plan --durations-out (default: {DURATIONS_FILE} beside models)"
    group.addoption("--shard-durations", dest="harness_shard_durations", metavar="FILE", help=help_)
    parser.addini("harness_shard_durations", "ini setting of --shard-durations", type="string", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Read shard and durations, and refuse what is wrong in them before any worker starts."""
    given = config.getoption("harness_shard")
    text = config.getini("harness_shard") if given is None else given
    if given is None and not text:
        return
    try:
        config.stash[_SHARD] = parse_shard(text)
        config.stash[_DURATIONS] = _durations(config)
    except (ConfigError, CorruptInput) as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)  # of what -k, -m and --select have left; before others that are last, see the list
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what other shards run. Tests that are no case go to the first."""
    shard = config.stash.get(_SHARD, None)
    if shard is None:
        return
    cases = [case_of(item) for item in items]
    durations = config.stash[_DURATIONS]
    known = durations or Durations(())
    plan = deal((case for case in cases if case is not None), shard.count, known.features, known.work)
    own = plan.shards[shard.number - 1]
    mine = [shard.number == 1 if case is None else case.id in own for case in cases]
    others = [item for item, kept in zip(items, mine, strict=True) if not kept]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item, kept in zip(items, mine, strict=True) if kept]
    _note(config, _cut(shard, plan, mine, timed=durations is not None))


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say which shard this is, where this process collects."""
    cut = config.stash.get(_CUT, None)
    return [] if cut is None else [str(cut)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Say which shard this is, once, from what the first worker that has collected left in the folder of the run."""
    config = node.config
    if _SHARD not in config.stash or _CUT in config.stash:
        return
    path = _path(config)
    if path.exists():
        cut = config.stash[_CUT] = Cut(**json.loads(path.read_text()))
        if (reporter := config.pluginmanager.getplugin("terminalreporter")) is not None:
            reporter.write_line(str(cut))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let an empty shard pass: there are more shards than extractions, and nothing is amiss."""
    cut = session.config.stash.get(_CUT, None)
    if cut is not None and cut.tests == 0 < cut.all_tests and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def _durations(config: pytest.Config) -> Durations | None:
    """Return the durations of a file, never those of records: what other machines do not have would part us."""
    given = config.getoption("harness_shard_durations")
    named = given or config.getini("harness_shard_durations")
    path = Path(named).expanduser() if named else config.stash[SESSION].settings.models_file.parent / DURATIONS_FILE
    if named and not given:
        path = config.rootpath / path
    if not path.is_file():
        if named:
            raise ConfigError(f"--shard-durations {named}: no such file; harness plan --durations-out FILE writes one")
        return None
    try:
        return Durations.from_json(path.read_text())
    except (UnicodeDecodeError, CorruptInput) as fault:
        raise CorruptInput(f"{path}: {fault}") from fault


def _cut(shard: Shard, plan: Plan, mine: list[bool], *, timed: bool) -> Cut:
    return Cut(
        shard=shard.number,
        of=shard.count,
        plan=plan.name,
        cases=sorted(plan.shards[shard.number - 1]),
        selected=sum(map(len, plan.shards)),
        tests=sum(mine),
        all_tests=len(mine),
        seconds=plan.seconds[shard.number - 1] if timed else None,
    )


def _note(config: pytest.Config, cut: Cut) -> None:
    config.stash[_CUT] = cut
    if config.option.collectonly:
        return
    with suppress(OSError):  # a cache that is read-only or full: then the shard is not spoken of
        write_atomic(_path(config), json.dumps(asdict(cut), indent=1) + "\n")


def _path(config: pytest.Config) -> Path:
    return config.stash[RUN] / "shard.json"


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
