"""``harness ls``: cases, models and splits, for people and for pipes. No torch needed."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.case import Case
from harness.cli import main
from harness.records.book import RecordBook
from harness.records.record import CaseIdentity
from harness.records.record import Metric
from harness.records.record import Record
from harness.wordnet.cache import load_taxonomy

MODELS = """
models:
  tiny-random:
    group: baseline
    architecture: {source: torchvision, name: resnet18}
    weights: {source: random, seed: 0}
    feature: {take: identity, module: fc}
    parameters: 11.2
    training_data: none
    licence: BSD-3-Clause
  tiny-absent:
    group: web-data
    architecture: {source: torchvision, name: resnet18}
    weights: {source: file, path: absent.pth}
    feature: {take: identity, module: fc}
    training_data: none
    licence: mine, and only mine
"""

List = Callable[..., str]


@pytest.fixture
def ls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> List:
    """Run ``harness ls`` in a folder with two models; returns what it prints."""
    (tmp_path / "models.yaml").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> str:
        status = main(["ls", *arguments])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return captured.out

    return run


def test_cases_with_the_state_of_their_records(ls: List, tmp_path: Path) -> None:
    book = RecordBook(tmp_path / "reports")
    for split, status in (("L1", "passed"), ("L2", "failed"), ("L3", "skipped")):
        case = Case("cog", "linear", "tiny-random", "mini", {"split": split})
        record = {"case": CaseIdentity.of(case), "status": status, "metrics": {"top1": Metric(value=1.0)}}
        book.write(Record.model_validate(record))
    assert ls("cases", "--select", "model=tiny-random protocol=linear").splitlines() == [
        "cog/linear/tiny-random-seen  not run",
        "cog/linear/tiny-random-L1    passed",
        "cog/linear/tiny-random-L2    failed",
        "cog/linear/tiny-random-L3    skipped",
        "cog/linear/tiny-random-L4    not run",
        "cog/linear/tiny-random-L5    not run",
    ]
    assert len(ls("cases").splitlines()) == 36
    only = ls("cases", "--select", "split=L1", "--protocol", "epochs=5").splitlines()
    assert only[0].split() == ["cog/linear/tiny-random-L1?epochs=5", "not", "run"], "another reading is another case"


def test_cases_for_programs(ls: List) -> None:
    select = ("--select", "model=*absent split=L1")
    rows = list(csv.DictReader(io.StringIO(ls("cases", "--format", "csv", *select))))
    assert [(row["protocol"], row["shots"]) for row in rows] == [
        ("linear", ""),
        ("fewshot", "N001"),
        ("fewshot", "N004"),
    ]
    assert json.loads(ls("cases", "--format", "json", *select))[0] == {
        "id": "cog/linear/tiny-absent-L1",
        "state": "never",
        "suite": "mini",
        "benchmark": "cog",
        "protocol": "linear",
        "model": "tiny-absent",
        "split": "L1",
        "shots": None,
    }


def test_models(ls: List, tmp_path: Path) -> None:
    header, *lines = ls("models").splitlines()
    assert header.split() == ["name", "group", "parameters", "licence", "weights"]
    assert lines[0].split() == ["tiny-random", "baseline", "11.2", "BSD-3-Clause", "random"]
    assert lines[1].split("  ")[-1] == "missing"
    absent = json.loads(ls("models", "--format", "json"))[1]
    missing = (
        f"no weights at {tmp_path}/cache/weights/absent.pth. Put the file there, or correct weights.path of the entry"
    )
    assert absent == {
        "name": "tiny-absent",
        "group": "web-data",
        "parameters": None,
        "licence": "mine, and only mine",
        "weights": missing,
    }
    (tmp_path / "cache" / "weights").mkdir(parents=True)
    (tmp_path / "cache" / "weights" / "absent.pth").write_bytes(b"weights")
    assert list(csv.reader(io.StringIO(ls("models", "--format", "csv"))))[2][-1] == "here"


def test_splits(ls: List, tmp_path_factory: pytest.TempPathFactory) -> None:
    wordnet = tmp_path_factory.getbasetemp().parent / "wordnet-for-projects"
    load_taxonomy(wordnet)
    lines = ls("splits", "--cache-dir", str(wordnet)).splitlines()
    assert lines[0].split() == ["split", "concepts", "images", "similarity", "data"]
    assert lines[1].split() == ["seen", "55", "652", "here"]
    assert lines[2].split() == ["L1", "55", "678", "0.801", "here"]
    rows = json.loads(ls("splits", "--suite", "paper", "--format", "json", "--cache-dir", str(wordnet)))
    assert [(row["split"], row["concepts"]) for row in rows][:2] == [("IN1K", 1000), ("L1", 1000)]
    assert rows[0]["images"] is None, "the list of ImageNet-21K says nothing of ImageNet-1K's images"
    assert rows[1]["images"] == 1202783
    similarities = [row["similarity"] for row in rows[1:]]
    assert similarities == sorted(similarities, reverse=True)
    assert rows[1]["data"] == "images imagenet21k: say with --data-root in which folder they lie"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cases", "--select", "split=L9"], "no case has split 'L9'"),
        (["cases", "--models", "none.yaml"], "no models file at none.yaml"),
        (["models", "--suite", "minni"], "Did you mean 'mini'?"),
    ],
)
@pytest.mark.usefixtures("ls")
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("ls")
def test_a_reader_that_has_enough_ends_it_quietly_and_torch_is_not_imported() -> None:
    code = (
        "import sys; from harness.cli import main; status = main(); "
        "heavy = {'torch', 'timm', 'nltk', 'optuna', 'matplotlib', 'sklearn'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else status)"
    )
    listing = [sys.executable, "-c", code, "ls", "cases", "--suite", "paper", "--format", "json"]
    process = subprocess.Popen(listing, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == b"[\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
