"""YAML files and the messages about them."""

from pathlib import Path
from typing import Annotated
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import Field
from pydantic import field_validator
from pydantic import model_validator

from harness.errors import ConfigError
from harness.yamlfile import load_yaml
from harness.yamlfile import validate


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Url(Strict):
    kind: Literal["url"]
    url: str
    sha256: str


class Seeded(Strict):
    kind: Literal["random"]
    seed: int


class Entry(Strict):
    name: str
    group: Literal["baseline", "self-supervised"] = "baseline"
    weights: Annotated[Url | Seeded, Field(discriminator="kind")]
    size: int | None = None

    @field_validator("name")
    @classmethod
    def _no_space(cls, name: str) -> str:
        if " " in name:
            raise ValueError("a name has no spaces")
        return name


class Zoo(Strict):
    models: list[Entry]
    by_name: dict[str, Entry] = {}
    rate: float = 1.0

    @model_validator(mode="after")
    def _consistent(self) -> "Zoo":
        if self.rate > 1 and not self.models:
            raise ValueError("a rate above 1 needs models")
        return self


GOOD = """models:
  - name: s-DINO
    weights:
      kind: url
      url: https://example.org/a.pth
      sha256: abc
  - {name: r18, weights: {kind: random, seed: 1}}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "zoo.yaml"
    path.write_text(text)
    return path


def test_a_valid_file_becomes_the_model(tmp_path: Path) -> None:
    zoo = validate(Zoo, write(tmp_path, GOOD + "rate: 1e-4\n"))
    assert [entry.name for entry in zoo.models] == ["s-DINO", "r18"]
    assert zoo.rate == 1e-4


@pytest.mark.parametrize(
    ("text", "value"), [("1e-12", 1e-12), ("1.5E+3", 1500.0), ("1E2", 100.0), ("12e", "12e"), ("1e-4x", "1e-4x")]
)
def test_numbers_in_scientific_notation_are_numbers(tmp_path: Path, text: str, value: object) -> None:
    assert load_yaml(write(tmp_path, f"a: {text}")).content == {"a": value}


def test_lines_of_keys_and_items(tmp_path: Path) -> None:
    document = load_yaml(write(tmp_path, GOOD))
    assert document.lines["models",] == 1
    assert document.lines["models", 0, "weights", "sha256"] == 6
    assert document.lines["models", 1] == document.lines["models", 1, "weights", "seed"] == 7
    assert document.where(("models", 0, "weights", "absent")) == f"{document.path}:3"


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("sha256: abc", "sha257: abc"), 6, "unknown field 'models[0].weights.sha257'. Did you mean 'sha256'?"),
        (("sha256: abc", "sha257: abc"), 3, "required field 'sha256' of models[0].weights is missing"),
        (("seed: 1", "url: 1"), 7, "unknown field 'models[1].weights.url'. Expected one of: kind, seed."),
        (("kind: url", "kind: ulr"), 4, "found 'ulr'. Did you mean 'url'?"),
        (("kind: url", "kind: ulr"), 4, "field 'models[0].weights.kind': expected one of url, random;"),
        (("kind: url", "knid: url"), 3, "required field 'kind' of models[0].weights is missing"),
        (("seed: 1", "seed: one"), 7, "field 'models[1].weights.seed': Input should be a valid integer"),
        (("s-DINO", "s DINO"), 2, "field 'models[0].name': a name has no spaces; found 's DINO'."),
        (
            ("- name: s-DINO", "- {name: x, group: self-supervise}\n  - name: s-DINO"),
            2,
            "Did you mean 'self-supervised'?",
        ),
        (("models:", "model:"), 1, "unknown field 'model'. Did you mean 'models'?"),
        (
            ("models:", "by_name: {a: {name: a, wieghts: {}}}\nmodels:"),
            1,
            "'by_name.a.wieghts'. Did you mean 'weights'?",
        ),
        (("{name: r18", "{name: r18, size: big"), 7, "field 'models[1].size'"),
    ],
)
def test_each_fault_is_told_with_line_field_and_nearest(
    tmp_path: Path, change: tuple[str, str], line: int, says: str
) -> None:
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(ConfigError) as raised:
        validate(Zoo, path)
    told = [text for text in str(raised.value).splitlines() if says in text]
    assert told, raised.value
    assert told[0].startswith(f"{path}:{line}: ")


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "models: []\nrate: fast\nrat: 1\n")
    with pytest.raises(ConfigError) as raised:
        validate(Zoo, path)
    assert [line.split(": ")[0] for line in str(raised.value).splitlines()] == [f"{path}:2", f"{path}:3"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: key 'a' stands twice; first in line 1"),
        ("models:\n  - {name: x,\n     name: y}\n", ":3: key 'name' stands twice; first in line 2"),
        ("a: [1, 2\nb: 3\n", ":2: not valid YAML"),
        ("a: 1\n--- \nb: 2\n", ":2: not valid YAML"),
        ("? [a, b]\n: 1\n", ":1: a key has to be a plain name or number"),
        ("a: &a [*a]\n", ":1: a YAML alias contains itself"),
        ("a: !!python/object:os.system 1\n", ":1: not valid YAML"),
        ("a: \x00\n", ": not valid YAML: unacceptable character"),
    ],
)
def test_faulty_yaml_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=r"zoo\.yaml") as raised:
        load_yaml(path)
    assert f"{path}{says}" in str(raised.value)


def test_merged_keys_are_no_duplicates(tmp_path: Path) -> None:
    document = load_yaml(write(tmp_path, "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n"))
    assert document.content == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}}


def test_a_missing_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read"):
        load_yaml(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match=r"zoo\.yaml: expected fields, each 'name: value'; found nothing\.$"):
        validate(Zoo, write(tmp_path, ""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "zoo.yaml: expected fields, each 'name: value'; found ['a']."),
        ("models: 3", "zoo.yaml:1: field 'models': expected a list; found 3."),
        ("models: [a]", "zoo.yaml:1: field 'models[0]': expected fields, each 'name: value'; found 'a'."),
        ("models: []\nby_name: x", "zoo.yaml:2: field 'by_name': expected fields, each 'name: value'; found 'x'."),
        (
            "models: [{name: a, weights: 3}]",
            "zoo.yaml:1: field 'models[0].weights': expected fields, each 'name: value'; found 3.",
        ),
    ],
)
def test_a_wrong_shape_is_told_without_words_of_python(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Zoo, write(tmp_path, text))
    assert str(caught.value).replace(f"{tmp_path}/", "") == message


def test_plain_values_are_named_by_the_caller() -> None:
    with pytest.raises(ConfigError, match=r"^--protocol: unknown field 'rats'\. Did you mean 'rate'\?$"):
        validate(Zoo, {"models": [], "rats": 1}, name="--protocol")


def test_a_fault_of_the_whole_does_not_repeat_it() -> None:
    with pytest.raises(ConfigError, match=r"^--protocol: a rate above 1 needs models\.$"):
        validate(Zoo, {"models": [], "rate": 2.0}, name="--protocol")
