"""Node ids and the cases they stand for."""

from pathlib import Path

from harness.plugin.nodes import cases_by_node
from harness.session import Session
from harness.settings import Settings

MODELS = """
models:
  {name}:
    group: baseline
    architecture: {{source: torchvision, name: resnet18}}
    weights: {{source: random, seed: 0}}
    feature: {{take: identity, module: fc, dim: 512}}
    training_data: none
    licence: BSD-3-Clause
"""


def test_ids_of_any_file_and_class_find_their_case(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(MODELS.format(name="tiny.random"))
    session = Session(Settings(models_file=tmp_path / "models.yaml"))
    ids = [
        "benchmarks/test_cog.py::test_linear[tiny.random-L1]",
        "sub/a[b]::c/test_mine.py::TestMine::test_fewshot[tiny.random-L2-N004]",
        "benchmarks/test_cog.py::test_linear[tiny.random-L9]",
        "test_other.py::test_other",
        "test_other.py::test_other[1]",
        "README.md",
    ]
    found = cases_by_node(session, ids)
    assert [case and case.id for case in found] == [
        "cog/linear/tiny.random-L1",
        "cog/fewshot/tiny.random-L2-N004",
        None,
        None,
        None,
        None,
    ]


def test_without_a_models_file_there_are_no_cases(tmp_path: Path) -> None:
    session = Session(Settings(models_file=tmp_path / "none.yaml"))
    assert cases_by_node(session, ["test_other.py::test_linear[a-L1]"]) == [None]
