"""``harness init``: a folder of a user's own, in which everything works as in this repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness import data
from harness.cli import main
from harness.cli.init import pytest_configuration
from harness.cli.init import templates
from harness.records.book import RecordBook
from harness.wordnet.cache import load_taxonomy
from harness.zoo.models import load_models

ROOT = Path(__file__).resolve().parents[2]
FILES = ["benchmarks/test_cog.py", "conftest.py", "models.yaml", "pytest.ini"]

FIRST, NEXT = "  # --- Small models for the mini suite", "  # --- ImageNet-CoG, Table 1"
OWN = "  # --- Your own"


def small_models() -> str:
    """Return the beginning of this repository's models file: what needs no download."""
    text = (ROOT / "models.yaml").read_text()
    assert text.index(FIRST) < text.index(NEXT)
    return text[: text.index(NEXT)]


def written(folder: Path) -> dict[str, str]:
    """Return the content of every file of a folder by its path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def init(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main(["init", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


def test_templates_are_the_files_of_this_repository() -> None:
    folder = data.path("init")
    own = (folder / "models.yaml.template").read_text().partition(OWN)
    expected = {
        "benchmarks/test_cog.py": (ROOT / "benchmarks" / "test_cog.py").read_text(),
        "conftest.py": (ROOT / "conftest.py").read_text(),
        "models.yaml": small_models() + "".join(own[1:]),
    }
    if os.environ.get("HARNESS_REGENERATE"):
        for name, content in expected.items():
            (folder / f"{name}.template").write_text(content)
    found = templates()
    assert sorted(found) == FILES
    assert {name: found[name] for name in expected} == expected


def test_the_example_of_ones_own_model_is_a_valid_entry(tmp_path: Path) -> None:
    text = templates()["models.yaml"]
    own = text.partition(OWN)[2].partition("\n")[2].replace("\n  # ", "\n  ")
    assert own.split() == readme_entry().split()
    (tmp_path / "models.yaml").write_text(text.partition(OWN)[0] + own)
    shipped = load_models(ROOT / "models.yaml")
    models = load_models(tmp_path / "models.yaml")
    assert list(models) == [*yaml.safe_load(text)["models"], "my-resnet50"]
    assert all(models[name] == shipped[name] for name in models if name != "my-resnet50")


def readme_entry() -> str:
    """Return the entry that the README shows."""
    readme = (ROOT / "README.md").read_text()
    return readme.partition("models:\n")[2].partition("```")[0]


def test_what_is_written_is_said_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my repository"
    lines = init(capsys, folder)
    assert lines[:4] == [f"written  {folder / name}" for name in FILES]
    assert f"  cd '{folder}'" in lines
    assert sorted(written(folder)) == FILES
    assert init(capsys, folder)[:4] == [f"same     {folder / name}" for name in FILES]

    (folder / "conftest.py").write_text("import pytest\n")
    (folder / "models.yaml").write_text("models: {}\n")
    mine = written(folder)
    lines = init(capsys, folder)
    assert lines[1] == (
        f"kept     {folder}/conftest.py, which differs (--force overwrites it); "
        'add to it: pytest_plugins = ["harness.plugin"]'
    )
    assert lines[2] == f"kept     {folder}/models.yaml, which differs (--force overwrites it)"
    assert written(folder) == mine
    assert init(capsys, folder, "--force")[1:3] == [
        f"written  {folder / name}" for name in ("conftest.py", "models.yaml")
    ]
    assert written(folder) == templates()


@pytest.mark.parametrize(
    ("name", "content", "configures"),
    [
        ("pyproject.toml", "[tool.pytest]\nminversion = '9.0'\n", True),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", True),
        ("pyproject.toml", "[tool.ruff]\n", False),
        ("pyproject.toml", "[project]\nname = 'mine'\n", False),
        ("tox.ini", "[pytest]\n", True),
        ("tox.ini", "[tox]\ncommands = {posargs} 100%\n", False),
        ("setup.cfg", "[tool:pytest]\n", True),
        ("setup.cfg", "[metadata]\nname = mine\n", False),
        ("pytest.toml", "", True),
        (".pytest.ini", "[pytest]\n", True),
        ("pytest.ini", "[pytest]\nharness_suite = paper\n", True),
    ],
)
def test_a_pytest_configuration_of_ones_own_stays(
    tmp_path: Path, name: str, content: str, configures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(content)
    assert pytest_configuration(tmp_path) == (tmp_path / name if configures else None)
    lines = init(capsys, tmp_path, "--force")
    said = (
        f"kept     {tmp_path / name}, which configures pytest already"
        if configures
        else f"written  {tmp_path}/pytest.ini"
    )
    assert lines[3] == said
    assert (tmp_path / name).read_text() == content
    assert (tmp_path / "pytest.ini").exists() == (not configures or name == "pytest.ini")


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file")]) == 2
    assert "is a file: expected a folder" in capsys.readouterr().err
    (tmp_path / "pyproject.toml").write_text("[tool\n")
    assert main(["init", str(tmp_path)]) == 2
    assert "pyproject.toml: cannot be read" in capsys.readouterr().err


def test_a_case_runs_from_an_empty_folder_to_its_report(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("torchvision", reason="a case is run")
    wordnet = tmp_path_factory.getbasetemp().parent / "wordnet-for-projects"
    load_taxonomy(wordnet)
    folder = tmp_path / "mine"
    shutil.copytree(wordnet / "wordnet", folder / "cache" / "wordnet")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_CACHE": str(folder / "cache")}
    harness = "import sys; from harness.cli import main; sys.exit(main())"

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-c", harness, "init", ".")
    selected = ("--select", "model=random-resnet18 split=L1 shots=1")
    quick = ("--protocol", "trials=1", "--protocol", "epochs=2", "--protocol", "seeds=22")
    output = run("-m", "pytest", "-p", "no:hypothesispytest", *selected, *quick)
    assert "1 passed" in output
    assert "report: reports/cog.md" in output
    (record,) = RecordBook(folder / "reports").records()
    assert record.case.id == "cog/fewshot/random-resnet18-L1-N001?epochs=2&seeds=22&trials=1"
    assert record.measured
    assert run("-c", harness, "ls", "cases", *selected, *quick).split() == [record.case.id, "passed"]
    report = (folder / "reports" / "cog.md").read_bytes()
    run("-c", harness, "report")
    assert (folder / "reports" / "cog.md").read_bytes() == report
