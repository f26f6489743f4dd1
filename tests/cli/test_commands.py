"""The command line: output, exit statuses, messages. No torch needed."""

import csv
import io
from pathlib import Path

import pytest

from harness.cli import main
from harness.wordnet.cache import load_taxonomy

SEEN = "n02123045\nn02123159\n"
CONCEPTS = "n02084071\nn02121808\nn02958343\nn03001627\nn07739125\nn12992868\n"


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.getbasetemp().parent / "wordnet-for-projects"
    load_taxonomy(folder)
    monkeypatch.setenv("HARNESS_CACHE", str(folder))
    return folder


@pytest.mark.usefixtures("cache")
class TestLevels:
    def test_published_levels(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["levels", "in21k"]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert len(rows) == 5000
        first = min(rows, key=lambda row: row["wnid"] != "n01514752")
        assert first == {
            "level": "1",
            "wnid": "n01514752",
            "name": "gamecock.n.01",
            "similarity": "0.964344941527",
            "nearest_seen": "n01514668",
            "images": "1261",
        }

    def test_derivation_says_how_far_it_agrees(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["levels", "in21k", "--derive"]) == 0
        assert capsys.readouterr().err.splitlines() == [
            "derived from scratch: 4966 of 5000 concepts are in their published level",
            "given the published concepts: 5000 of 5000 concepts are in their published level",
        ]

    def test_levels_of_ones_own(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "seen.txt").write_text(SEEN)
        (tmp_path / "concepts.txt").write_text(CONCEPTS)
        lists = ["--seen", str(tmp_path / "seen.txt"), "--concepts", str(tmp_path / "concepts.txt")]
        assert main(["levels", *lists, "--levels", "2", "--size", "2", "--out", str(tmp_path / "out.csv")]) == 0
        assert capsys.readouterr().out == ""
        rows = list(csv.DictReader((tmp_path / "out.csv").open()))
        assert [row["level"] for row in rows] == ["1", "1", "2", "2"]
        values = [float(row["similarity"]) for row in rows]
        assert values == sorted(values, reverse=True)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["levels", "in21"],
                "universe in21: neither a file nor a shipped one (in21k, mini). Did you mean 'in21k'?",
            ),
            (["levels", "--lcs", "deepst", "--derive"], "Did you mean 'deepest'?"),
            (["levels", "--measure", "path"], "published levels do not follow other readings: add --derive"),
            (["levels", "--seen", "none.txt"], "--seen none.txt: no such file"),
            (["similarity", "dog.n.01"], "expected A B, or A --top N"),
            (["similarity", "dog.n.01", "cta.n.01"], "cta.n.01"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(arguments) == 2
        assert message in capsys.readouterr().err

    def test_similarity(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["similarity", "n01514752", "cock.n.05"]) == 0
        assert capsys.readouterr().out == "0.964344941527\n"
        assert main(["similarity", "gamecock.n.01", "--top", "1"]) == 0
        assert capsys.readouterr().out == "0.964344941527  n01514668  cock.n.05\n"


def test_validate_counts_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="networks are built to be checked")
    models = tmp_path / "models.yaml"
    entry = (
        "  {name}:\n    group: baseline\n    architecture: {{source: torchvision, name: resnet18}}\n"
        "    weights: {{source: file, path: {path}{more}}}\n    feature: {{take: identity, module: fc}}\n"
        "    training_data: none\n    licence: none\n"
    )
    (tmp_path / "w.pth").write_bytes(b"weights")
    wrong = entry.format(name="changed", path=tmp_path / "w.pth", more=", sha256: '0123456789'")
    models.write_text("models:\n" + entry.format(name="absent", path="x.pth", more="") + wrong)
    options = ["--models", str(models), "--cache-dir", str(tmp_path)]
    assert main(["validate", *options]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("absent: not here: no weights at ")
    assert lines[1].startswith(f"changed: WRONG: {tmp_path}/w.pth has sha256 ")
    assert main(["fetch", "absent", *options]) == 1
    assert main(["fetch", "absnt", *options]) == 2
    assert "Did you mean 'absent'?" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--version"], ["--help"], ["levels", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
    assert "exit status" in capsys.readouterr().out
