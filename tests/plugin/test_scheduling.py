"""Scheduling by real workers: cases that sleep, in a project that needs no torch, and the trace that they write."""

import json
import os
import random
from collections import defaultdict
from dataclasses import dataclass
from dataclasses import field
from itertools import pairwise
from pathlib import Path

import pytest

from harness.case import Case
from harness.records.book import RecordBook
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Provenance
from harness.records.record import Record

ROOT = Path(__file__).resolve().parents[2]

MODELS = """
models:
  tiny:
    group: baseline
    architecture: {source: torchvision, name: resnet18}
    weights: {source: random, seed: 0}
    feature: {take: identity, module: fc, dim: 512}
    training_data: none
    licence: BSD-3-Clause
"""

SHOTS = range(1, 14)
SUITE = f"""
name: lengths
title: cases of many lengths
cog: {{universe: mini, shots: {list(SHOTS)}}}
"""

CONFTEST = """
import json
from pathlib import Path

pytest_plugins = ["harness.plugin"]


def pytest_collection_modifyitems(items):
    lengths = json.loads(Path("lengths.json").read_text())
    items[:] = [item for item in items if "[" not in item.name or item.name.partition("[")[2][:-1] in lengths]
"""

INI = """[pytest]
harness_suite = suite.yaml
addopts = -p no:harness.plugin.summary -p no:cacheprovider -p no:hypothesispytest
"""

CASES = """
import json
import os
import time
from pathlib import Path

import pytest

from harness.progress import report

pytestmark = pytest.mark.cog
LENGTHS = json.loads(Path("lengths.json").read_text())


def trace(event, case):
    line = json.dumps([time.time(), event, case.name, os.environ.get("PYTEST_XDIST_WORKER", "main")])
    with open("trace.jsonl", "a") as file:
        file.write(line + "\\n")


def run(case):
    trace("begin", case)
    features, work = LENGTHS[case.name]
    split = case.tokens["split"]
    report("features")
    if not Path(split).exists():
        trace("extracts", case)
        time.sleep(features)
        Path(split).touch()
        trace("extracted", case)
    report("probe")
    time.sleep(work)
    trace("end", case)


def test_linear(case, record):
    run(case)
    record("top1", 1.0)


def test_fewshot(case, record):
    run(case)
    record("top1", 1.0)
"""


@dataclass
class Span:
    """When a case ran, seconds since the epoch."""

    case: str
    worker: str
    begin: float
    end: float = 0.0
    extracted: float | None = None
    """When it had extracted, if it did."""

    @property
    def split(self) -> str:
        return self.case.split("-")[1]


@dataclass
class Lengths:
    """The project: its cases and how long each takes."""

    pytester: pytest.Pytester
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Extraction and work of each case."""

    def fill(self, splits: dict[str, float], works: list[float]) -> None:
        """Choose cases: of each split the first ones, in turn. Their lengths are recorded, as of an earlier run."""
        book = RecordBook(self.pytester.path / "reports")
        cases = {
            split: [
                Case("cog", "linear", "tiny", "lengths", {"split": split}),
                *(Case("cog", "fewshot", "tiny", "lengths", {"split": split, "shots": f"N{n:03d}"}) for n in SHOTS),
            ]
            for split in splits
        }
        for number, work in enumerate(works):
            split = list(splits)[number % len(splits)]
            case = cases[split].pop(0)
            self.seconds[case.name] = splits[split], work
            provenance = Provenance(
                measured="2026-11-01T00:00:00+00:00", seconds={"features": splits[split], "probe": work}
            )
            identity = CaseIdentity.of(case)
            metrics = {"top1": Metric(value=1.0)}
            book.write(Record(case=identity, status="passed", metrics=metrics, provenance=provenance))
        (self.pytester.path / "lengths.json").write_text(json.dumps(self.seconds))

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run the cases in a process of its own."""
        return self.pytester.runpytest_subprocess(*arguments, timeout=120)

    def spans(self) -> list[Span]:
        """Return what ran when, in the order of the beginnings."""
        found: dict[str, Span] = {}
        for line in (self.pytester.path / "trace.jsonl").read_text().splitlines():
            when, event, case, worker = json.loads(line)
            if event == "begin":
                assert case not in found, f"{case} ran twice"
                found[case] = Span(case, worker, when)
            elif event == "end":
                found[case].end = when
            elif event == "extracted":
                found[case].extracted = when
        return sorted(found.values(), key=lambda span: span.begin)


@pytest.fixture
def lengths(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Lengths:
    monkeypatch.setenv("HARNESS_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    files = {
        "conftest.py": CONFTEST,
        "models.yaml": MODELS,
        "suite.yaml": SUITE,
        "test_cog.py": CASES,
        "pytest.ini": INI,
    }
    for name, content in files.items():
        (pytester.path / name).write_text(content)
    return Lengths(pytester)


SLACK = 0.6
"""Seconds a worker may take to get what may run: a look at heartbeats is 0.2, the rest is for a busy machine."""


def longest_idle(spans: list[Span], workers: int) -> float:
    """Return the longest time that a worker did nothing while one and the same case could have run."""
    began, ended = min(span.begin for span in spans), max(span.end for span in spans)
    may_run = {span.case: began for span in spans}
    for span in spans:
        (extracted,) = [other.extracted for other in spans if other.split == span.split and other.extracted]
        if span.extracted is None:
            may_run[span.case] = extracted
    by_worker: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_worker[span.worker].append(span)
    assert len(by_worker) == workers
    gaps = [
        gap
        for own in by_worker.values()
        for gap in zip([began, *(span.end for span in own)], [*(span.begin for span in own), ended], strict=True)
    ]
    return max(min(end, span.begin) - max(begin, may_run[span.case]) for begin, end in gaps for span in spans)


def best_possible(seconds: dict[str, tuple[float, float]], workers: int) -> float:
    """Return a time that no schedule can beat: the longest chain, or all work with what must idle at first."""
    extractions = {name.split("-")[1]: features for name, (features, _) in seconds.items()}
    chain = max(features + work for features, work in seconds.values())
    total = sum(extractions.values()) + sum(work for _, work in seconds.values())
    # Until the first extraction ends, no more workers are busy than there are extractions.
    idle = max(0, workers - len(extractions)) * min(extractions.values())
    return max(chain, (total + idle) / workers)


def test_eight_workers_are_busy_with_40_cases_of_3_extractions(lengths: Lengths) -> None:
    stream = random.Random(3)  # noqa: S311 - lengths, not secrets
    works = [round(min(5.0, stream.lognormvariate(0.0, 1.1)), 3) for _ in range(40)]
    lengths.fill({"L1": 0.8, "L3": 1.4, "seen": 2.2}, works)
    lengths.run("-n8").assert_outcomes(passed=40)
    spans = lengths.spans()
    assert len(spans) == 40
    assert sum(span.extracted is not None for span in spans) == 3
    took, best = max(span.end for span in spans) - spans[0].begin, best_possible(lengths.seconds, 8)
    idle = longest_idle(spans, 8)
    print(f"{took:.2f} s, no schedule beats {best:.2f} s; longest idle {idle:.2f} s")  # noqa: T201 - for -rP
    assert idle < SLACK
    assert took < 1.15 * best


@pytest.mark.parametrize("arguments", [["-n0"], ["-p", "no:xdist"], ["-n1"]], ids=" ".join)
def test_one_process_runs_each_unit_as_a_whole_and_extracts_it_once(lengths: Lengths, arguments: list[str]) -> None:
    lengths.fill({"L1": 0.02, "L3": 0.03, "seen": 0.04}, [0.001 * n for n in range(12)])
    lengths.run(*arguments).assert_outcomes(passed=12)
    spans = lengths.spans()
    assert [span.extracted is not None for span in spans].count(True) == 3
    if arguments != ["-n1"]:
        assert [span.case for span in spans if span.split == "L1"] == [span.case for span in spans[4:8]]
    assert all(one.end <= other.begin for one, other in pairwise(spans))
