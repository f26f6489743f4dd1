"""``harness cache``: output and exit statuses. No torch needed."""

import json
import os
import time
from pathlib import Path

import pytest

from harness.cli import main
from harness.store import Key
from harness.store import Store

ENTRY = """
  {name}:
    group: baseline
    architecture: {{source: torchvision, name: resnet18}}
    weights: {weights}
    feature: {{take: identity, module: fc, dim: 512}}
    input: {{size: {size}}}
    training_data: none
    licence: none
"""
URL = "{source: url, url: 'https://example.org/w.pth'}"
RANDOM = "{source: random, seed: 0}"


def models_file(folder: Path, weights: str = URL, size: int = 64) -> str:
    path = folder / "models.yaml"
    entries = [("random-net", RANDOM), ("fetched-net", weights)]
    path.write_text("models:" + "".join(ENTRY.format(name=name, weights=w, size=size) for name, w in entries))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache folder with an entry of each of two models, the first built long ago."""
    store = Store(tmp_path / "store")
    for name in ("old", "new"):

        def build(folder: Path, name: str = name) -> None:
            (folder / "extraction.json").write_text(f'{{"backbone": "{name}"}}')

        key: Key = {"backbone": {"architecture": name, "input": {}}, "weights": name}
        entry = store.get("features", key, build)
        if name == "old":
            path = entry / "manifest.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "built": 1e9}))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    status = main(["cache", *arguments])
    printed = capsys.readouterr()
    return status, printed.out.splitlines(), printed.err


def test_size(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines, _ = run(capsys, "size", "--cache-dir", str(folder))
    assert status == 0
    assert lines[0].split() == ["kind", "models", "entries", "size"]
    assert [line.split()[:3] for line in lines[1:3]] == [["features", "new", "1"], ["features", "old", "1"]]
    assert lines[-1].startswith("total")


def test_verify_says_what_is_damaged_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", "--cache-dir", str(folder))[0] == 0
    entry = Store(folder / "store").entries()[0]
    (entry / "extraction.json").write_text("{}")
    status, lines, _ = run(capsys, "verify", "--cache-dir", str(folder))
    assert status == 1
    assert lines[0].startswith(f"features/{entry.name}: extraction.json does not have the digest")
    assert lines[-1].endswith("1 damaged")
    assert run(capsys, "verify", "--cache-dir", str(folder))[0] == 0
    assert run(capsys, "prune", "--quarantine", "--cache-dir", str(folder))[1][-1].startswith("removed: 1 of 1")


@pytest.mark.parametrize(("choice", "left"), [(["--older", "30d"], "new"), (["--model", "NEW"], "old")])
def test_prune_removes_what_is_chosen(
    folder: Path, choice: list[str], left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(folder / "store")
    status, lines, _ = run(capsys, "prune", *choice, "--dry-run", "--cache-dir", str(folder))
    assert (status, len(store.entries())) == (0, 2)
    assert lines[-1].startswith("would be removed: 1 of 1")
    assert run(capsys, "prune", *choice, "--cache-dir", str(folder))[0] == 0
    assert [left in (entry / "extraction.json").read_text() for entry in store.entries()] == [True]


def test_prune_of_unfinished_work_leaves_entries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = folder / "store" / "work" / "features" / f"{'1' * 64}.abc"
    work.mkdir(parents=True)
    hour_ago = time.time() - 3600
    os.utime(work, (hour_ago, hour_ago))
    run(capsys, "prune", "--work", "--older", "2h", "--cache-dir", str(folder))
    assert work.exists()
    run(capsys, "prune", "--work", "--cache-dir", str(folder))
    assert not work.exists()
    assert len(Store(folder / "store").entries()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what"),
        (["--older", "3 days"], "--older 3 days: expected"),
        (["--model", "olt"], "Did you mean 'old'?"),
        (["--kind", "feature"], "Did you mean 'features'?"),
        (["--work", "--model", "old"], "--model does not go with"),
    ],
)
def test_prune_without_a_clear_choice_removes_nothing(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(capsys, "prune", *arguments, "--cache-dir", str(folder))
    assert status == 2
    assert message in error
    assert len(Store(folder / "store").entries()) == 2


def test_a_key_names_all_that_moves_results_and_not_what_is_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def key(*options: str, **models: str | int) -> str:
        models_yaml = models_file(tmp_path, **models)  # type: ignore[arg-type]  # text and a number, as it takes them
        return run(capsys, "key", "--models", models_yaml, "--cache-dir", str(tmp_path), *options)[1][0]

    first = key()
    assert first.startswith("harness-mini-")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.pth").write_bytes(b"restored with the cache")
    assert key() == first
    others = [key("--protocol", "trials=3"), key(size=32), key(weights=URL.replace("w.pth", "v.pth"))]
    others.append(key(weights=URL.replace("'}", "', sha256: '01234567'}")))
    assert len({first, *others}) == 5
