"""``models.yaml``: what is refused and how it is told, look-up, identity, names that ``-k`` could confuse."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING
from typing import Any

import pytest

from harness.errors import ConfigError
from harness.zoo.models import RESERVED
from harness.zoo.models import load_models
from harness.zoo.models import reserved_token_problems
from harness.zoo.spec import identity
from harness.zoo.spec import with_resize

if TYPE_CHECKING:
    from tests.zoo.conftest import MakeSpec

ROOT = Path(__file__).parents[2]
ENTRY = """\
models:
  s-DINO:
    group: self-supervised
    architecture: {source: torchvision, name: resnet50}
    weights:
      source: url
      url: https://example.org/dino.pth
    feature: {take: identity, module: fc, dim: 2048}
    training_data: ImageNet-1K
    licence: Apache-2.0
"""


def refused(folder: Path, text: str) -> str:
    path = folder / "models.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_models(path)
    return str(caught.value).replace(str(path), "models.yaml")


FAULTS = {
    "unknown field": (
        ("training_data:", "trainig_data:"),
        (
            "models.yaml:2: required field 'training_data' of models.s-DINO is missing\n"
            "models.yaml:9: unknown field 'models.s-DINO.trainig_data'. Did you mean 'training_data'?"
        ),
    ),
    "unknown field of a source": (
        ("url: https://example.org/dino.pth", "url: https://example.org/dino.pth\n      sha265: 0123456789"),
        "models.yaml:8: unknown field 'models.s-DINO.weights.sha265'. Did you mean 'sha256'?",
    ),
    "duplicate key": (
        ("    licence:", "    group: baseline\n    licence:"),
        "models.yaml:10: key 'group' stands twice; first in line 3",
    ),
    "unknown group": (
        ("group: self-supervised", "group: self-supervized"),
        (
            "models.yaml:3: field 'models.s-DINO.group': expected one of baseline, architecture, self-supervised, "
            "regularization, web-data; found 'self-supervized'. Did you mean 'self-supervised'?"
        ),
    ),
    "unknown source": (
        ("source: torchvision", "source: torchvison"),
        (
            "models.yaml:4: field 'models.s-DINO.architecture.source': expected one of torchvision, timm, torch-hub, "
            "hugging-face, import; found 'torchvison'. Did you mean 'torchvision'?"
        ),
    ),
    "no address": (
        ("url: https", "url: file"),
        (
            "models.yaml:7: field 'models.s-DINO.weights.url': expected an http:// or https:// address of a file; "
            "found 'file://example.org/dino.pth'."
        ),
    ),
    "wrong type": (
        ("dim: 2048", "dim: '2048'"),
        "models.yaml:8: field 'models.s-DINO.feature.dim': Input should be a valid integer; found '2048'.",
    ),
    "no regular expression": (
        ("    licence:", "    surgery: {drop: ['^fc[']}\n    licence:"),
        (
            "models.yaml:10: field 'models.s-DINO.surgery.drop[0]': not a regular expression: unterminated character "
            "set at position 3; found '^fc['."
        ),
    ),
    "resize below the crop": (
        ("    licence:", "    input: {size: 224, resize: 128}\n    licence:"),
        (
            "models.yaml:10: field 'models.s-DINO.input': 'resize' must be at least 'size' and goes with crop "
            "'center'; found {'size': 224, 'resize': 128}."
        ),
    ),
    "bad name": (
        ("  s-DINO:", "  s DINO:"),
        "models.yaml:2: model name 's DINO': expected at most 80 letters and digits, joined by single '-', '_' or '.'",
    ),
}


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_are_told_with_line_field_and_nearest_name(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in ENTRY
    assert refused(tmp_path, ENTRY.replace(*change)) == message


def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path) -> None:
    text = ENTRY + ENTRY.removeprefix("models:\n").replace("s-DINO", "s-Dino").replace("dino.pth", "other.pth")
    assert refused(tmp_path, text) == "models.yaml:11: model name 's-Dino' differs from 's-DINO' by case alone"


def test_two_sources_must_not_share_a_file(tmp_path: Path) -> None:
    text = ENTRY + ENTRY.removeprefix("models:\n").replace("s-DINO", "other").replace("example", "elsewhere")
    assert refused(tmp_path, text) == (
        "models.yaml:16: other and s-DINO keep different weights as 'dino.pth': name a 'file' apart"
    )


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = ENTRY.replace("licence:", "license:").replace("dim:", "dimension:")
    assert len(refused(tmp_path, text).splitlines()) == 3


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"models\.yaml: cannot be read"):
        load_models(tmp_path / "models.yaml")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "models:\n", "models: {}\n"])
def test_a_file_without_models(tmp_path: Path, text: str) -> None:
    message = "models.yaml: no model in it: expected 'models:' and below it an entry for each (docs/models.md)"
    assert refused(tmp_path, text) == message


def test_names_are_found_whatever_their_case(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(ENTRY)
    models = load_models(tmp_path / "models.yaml")
    assert list(models) == ["s-DINO"]
    assert models["S-dino"].name == models.find("s-DINO").name == "s-DINO"
    assert "s-dino" in models
    assert models.get("s-BYOL") is None
    with pytest.raises(ConfigError, match=r"models\.yaml: no model is called 's-DNIO'\. Did you mean 's-DINO'\?"):
        models.find("s-DNIO")


@pytest.mark.parametrize(
    ("weights", "target"),
    [
        ({"url": "https://example.org/a/b%20c.pth?dl=1"}, "b c.pth"),
        ({"url": "https://example.org/a.zip", "member": "folder/net.pth.tar"}, "net.pth.tar"),
        ({"url": "https://example.org/a.zip", "file": "own/name.pth"}, "own/name.pth"),
    ],
)
def test_where_fetched_weights_are_kept(make_spec: "MakeSpec", weights: dict[str, Any], target: str) -> None:
    spec = make_spec(weights={"source": "url", **weights})
    assert getattr(spec.weights, "target", None) == target


@pytest.mark.parametrize("file", ["/etc/passwd", "../up.pth", "a/../../b", "~/x", "a\\b"])
def test_fetched_weights_stay_in_their_folder(make_spec: "MakeSpec", file: str) -> None:
    with pytest.raises(ValueError, match="expected a relative path"):
        make_spec(weights={"source": "url", "url": "https://example.org/a.pth", "file": file})


def test_hub_code_is_pinned_to_a_commit(make_spec: "MakeSpec") -> None:
    hub = {"source": "torch-hub", "repo": "owner/repo", "name": "net", "commit": "main"}
    with pytest.raises(ValueError, match="expected the 40 hex digits of a commit"):
        make_spec(architecture=hub)


def test_identity_holds_what_moves_features_and_nothing_else(make_spec: "MakeSpec") -> None:
    base = identity(make_spec())
    same: list[dict[str, Any]] = [
        {"name": "other", "group": "web-data", "notes": "n", "licence": "l", "training_data": "t", "parameters": 1.0},
        {"weights": {"source": "file", "path": "w.pth"}},
        {"surgery": {"missing": ["fc.bias"], "unexpected": ["x"], "inert": ["a.B"]}},
        {"feature": {"take": "identity", "module": "fc", "dim": 512}},
        {"input": {"size": 32, "resize": 32}},
    ]
    assert all(identity(make_spec(**fields)) == base for fields in same)
    different: list[dict[str, Any]] = [
        {"architecture": {"source": "torchvision", "name": "resnet34"}},
        {"architecture": {"source": "torchvision", "name": "resnet18", "kwargs": {"num_classes": 2}}},
        {"surgery": {"drop": ["fc"]}},
        {"surgery": {"rename": [["a", "b"], ["c", "d"]]}},
        {"surgery": {"rename": [["c", "d"], ["a", "b"]]}},
        {"feature": {"take": "module", "module": "fc"}},
        {"input": {"size": 32, "resize": 36}},
        {"input": {"size": 32, "channels": "BGR"}},
        {"input": {"size": 32, "interpolation": "bilinear"}},
    ]
    identities = [base, *(identity(make_spec(**fields)) for fields in different)]
    assert len({str(plain) for plain in identities}) == len(identities)


def test_another_resize(make_spec: "MakeSpec") -> None:
    spec = make_spec(input={"size": 32, "mean": [0, 0, 0]})
    assert with_resize(spec, None) is spec
    changed = with_resize(spec, 40)
    assert (changed.input.resize, changed.input.size, changed.input.mean) == (40, 32, (0, 0, 0))
    with pytest.raises(ConfigError, match="resize of tiny: 'resize' must be at least 'size'"):
        with_resize(spec, 31)


def test_names_that_would_make_k_ambiguous() -> None:
    tokens = ["L1", "seen", "IN1K", "N001"]
    assert reserved_token_problems(["s-DINO", "ResNet50", "a-NAT-M4"], tokens) == []
    assert reserved_token_problems(["vit-l16", "UnSeen", "in1"], tokens) == [
        "model name 'vit-l16' contains 'L1': -k L1 would select it",
        "model name 'UnSeen' contains 'seen': -k seen would select it",
        "model name 'in1' is part of 'IN1K': -k in1 would select that too",
    ]
    # Folders, files and functions are parts of every node id, but nobody selects cases by these.
    assert reserved_token_problems(["fastest", "test", "Bench"], tokens) == [
        "model name 'test' is part of 'test_cog.py': -k test would select that too",
        "model name 'Bench' is part of 'benchmarks': -k Bench would select that too",
    ]


def test_the_shipped_models_are_valid_and_their_names_clear() -> None:
    models = load_models(ROOT / "models.yaml")
    assert {"efficientnet-lite0", "random-resnet18", "ResNet50", "s-DINO"} <= set(models)
    assert reserved_token_problems(models, [*RESERVED, "L1", "L2", "L3", "L4", "L5", "N001", "N004", "N128"]) == []


def test_torch_is_not_imported_to_know_the_models(tmp_path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        import harness.zoo.contents, harness.zoo.download
        from harness.errors import MissingInput
        from harness.zoo.models import load_models
        from harness.zoo.spec import identity
        from harness.zoo.weights import locate, weights_digest
        models = load_models(Path({str(ROOT / "models.yaml")!r}))
        print(weights_digest(models["random-resnet18"], Path("none")))
        for spec in models.values():
            identity(spec)
            try:
                locate(spec, Path({str(tmp_path)!r}))
            except MissingInput as missing:
                print(missing)
        heavy = {{"torch", "torchvision", "timm", "numpy", "PIL", "safetensors", "transformers"}}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "random:0" in done.stdout
    assert f"s-DINO: no weights at {tmp_path}/dino_resnet50_pretrain.pth. Run: harness fetch s-DINO" in done.stdout
