"""A short version of ``python -m tools.chaos``: kills at random instants damage nothing and lose nothing."""

import json
import random
import sys
from pathlib import Path

import pytest

from tools.chaos.checks import Violated
from tools.chaos.checks import check_entries
from tools.chaos.checks import check_exit
from tools.chaos.checks import check_numbers
from tools.chaos.kills import Chaos
from tools.chaos.project import make

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")


def test_six_kills(tmp_path: Path) -> None:
    make(tmp_path, models=1)
    said: list[str] = []
    chaos = Chaos(tmp_path, random.Random(3), ["benchmarks", "-n", "2"], said.append)  # noqa: S311 - instants
    chaos.run(6)
    assert sum(chaos.tally.kills.values()) == 6, said
    assert said[-1] == "two controllers at once: both ended with the reference's numbers"


def test_the_checks_find_what_they_look_for(tmp_path: Path) -> None:
    record = tmp_path / "reports" / "records" / "L1.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"schema_version": 1, "case"')
    with pytest.raises(Violated, match="damaged record"):
        check_numbers(tmp_path, {}, complete=False)
    entry = tmp_path / "cache" / "store" / "entries" / "probe" / "ab"
    entry.mkdir(parents=True)
    (entry / "key.json").write_text("{}")
    (entry / "manifest.json").write_text(json.dumps({"files": {"key.json": "0" * 64}}))
    with pytest.raises(Violated, match=r"damaged entry .*key.json"):
        check_entries(tmp_path)
    log = tmp_path / "log"
    log.write_text("passed a::b[1]\nfailed a::b[2]\n")
    check_exit(1, log, 2, undisturbed=False)
    with pytest.raises(Violated, match=r"exit status 0 with 2 of 2 .*failed a::b\[2\]"):
        check_exit(0, log, 2, undisturbed=False)
    with pytest.raises(Violated, match="exit status 0 with 2 of 3"):
        check_exit(0, log, 3, undisturbed=False)
