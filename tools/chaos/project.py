"""A user's project whose cases need no torch: real store, records, heartbeats and scheduling, and cheap work."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = '''
import os

pytest_plugins = ["harness.plugin"]


def pytest_runtest_logreport(report):
    """Keep what this process was told, apart from what the harness makes of it."""
    log = os.environ.get("CHAOS_LOG")
    if log and "PYTEST_XDIST_WORKER" not in os.environ and (report.when in ("call", "???") or not report.passed):
        with open(log, "a") as file:
            file.write(f"{report.outcome} {report.nodeid}\\n")
'''

INI = """[pytest]
addopts = -p no:harness.plugin.summary -p no:cacheprovider -p no:hypothesispytest
"""

MODEL = """
  model-{letter}:
    group: architecture
    architecture: {{source: torchvision, name: resnet18}}
    weights: {{source: random, seed: 0}}
    feature: {{take: identity, module: fc}}
    training_data: none
    licence: none
"""

BENCHMARK = '''
"""Cases that take time, keep what they have done after each step, and go on from there."""

import hashlib
import json
import os
import time

import pytest

from harness.plugin.options import SESSION
from harness.progress import report
from harness.records.record import Metric
from harness.records.record import Outcome

pytestmark = pytest.mark.cog
STEPS, PAUSE = 6, float(os.environ.get("CHAOS_PAUSE", "0.02"))


def test_linear(case, record, pytestconfig):
    record(evaluate(case, pytestconfig.stash[SESSION].store))


def test_fewshot(case, record, pytestconfig):
    record(evaluate(case, pytestconfig.stash[SESSION].store))


def evaluate(case, store):
    source = f"{case.model} {case.tokens['split']}"
    report("features")
    features = store.get("features", {"of": source}, lambda folder: work(folder, source, "features"), resumable=True)
    text = f"{case.id} {(features / 'journal').read_text()}"
    report("probe")
    entry = store.get("probe", {"of": case.id}, lambda folder: work(folder, text, "probe"), resumable=True)
    seeds = [int(line[:6], 16) / 167772.15 for line in (entry / "journal").read_text().split()]
    return Outcome(metrics={"top1": Metric(value=sum(seeds) / len(seeds), per_seed=seeds)})


def work(folder, text, stage):
    """Append a line a step, each from all before it. The last may have been cut off."""
    journal = folder / "journal"
    known = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    lines = [line for line in known if len(line) == 65 and line.endswith("\\n")]
    journal.write_text("".join(lines))
    with journal.open("a") as file:
        for step in range(len(lines), STEPS):
            time.sleep(PAUSE)
            lines.append(hashlib.sha256((text + "".join(lines)).encode()).hexdigest() + "\\n")
            file.write(lines[-1])
            file.flush()
            report(stage, step + 1, STEPS)
    (folder / "steps.json").write_text(json.dumps(len(lines)))
'''


def make(path: Path, models: int = 2) -> None:
    """Fill a folder with the project; each model has 18 cases in 6 units of extraction."""
    (path / "benchmarks").mkdir(parents=True)
    (path / "conftest.py").write_text(CONFTEST)
    (path / "pytest.ini").write_text(INI)
    letters = [chr(ord("a") + number) for number in range(models)]
    (path / "models.yaml").write_text("models:" + "".join(MODEL.format(letter=letter) for letter in letters))
    (path / "benchmarks" / "test_cog.py").write_text(BENCHMARK)
