"""Selection means what it says: no example in the docs selects a foreign case, and no token contains another.

Cases are those of both suites with every model of the models file and of the paper, and, by the words they are to have,
those of the benchmarks to come.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import TypeAlias

import pytest

from harness import data
from harness.case import Case
from harness.cli import build_parser
from harness.cli import main
from harness.cog.cases import cases as cog_cases
from harness.cog.cases import shot_tokens
from harness.cog.universe import load_universe
from harness.cog.universe import universe_names
from harness.selection import select
from harness.suite import load_suite
from harness.suite import suite_names
from harness.zoo.models import BENCHMARKS
from harness.zoo.models import PROTOCOLS
from harness.zoo.models import RESERVED
from harness.zoo.models import load_models
from harness.zoo.models import reserved_token_problems

ROOT = Path(__file__).resolve().parents[1]

Words: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""What each case has that an example means: its benchmark, protocol, model or a token, spelled as the case has it."""

DINO = ("s-DINO", "s-DINO-mini")
EXAMPLES: dict[str, Words] = {
    "-k L1": {"split": "L1"},
    "-k dino": {"model": DINO},
    "-k lite0 and L3": {"model": "efficientnet-lite0", "split": "L3"},
    "-k my-resnet50": {"model": "my-resnet50"},
    "-k random": {"model": "random-resnet18"},
    "-k resnet50": {"model": ("ResNet50", "my-resnet50")},
    "--select model=s-dino split=L3": {"model": "s-DINO", "split": "L3"},
    "--select model=s-dino split=L3 shots=4": {"model": "s-DINO", "split": "L3", "shots": "N004"},
}
"""What every example of the docs means. A new one needs its line here, from its words and not from what it selects."""

METHODS = (
    "DAP", "IAP", "CONSE", "CMT", "CMT-nd", "SSE", "LATEM", "ALE", "DEVISE", "SJE", "ESZSL", "SYNC", "SAE", "GFZSL"
)  # fmt: skip
DATA = ("SUN", "CUB", "AWA1", "AWA2", "APY")
STUDIES = ("ZSO", "ZGO", "CGO-1", "CGO-2", "CGO-3", "FGO-5", "FGO-10", "FGO-20", "CHGO")
FACTORS = ("hue", "lightness", "position", "scale", "shape", "texture")
VALIDATION = ("cv1", "cv2", "cv3")

CONTAINED = {
    ("CMT", "CMT-nd"): "--select method=CMT tells them apart",
    ("zsl", "ESZSL"): "a method of that benchmark, whose every case is selected by zsl anyway",
    ("zsl", "GFZSL"): "a method of that benchmark, whose every case is selected by zsl anyway",
    ("ALE", "scale"): "-m zsl or --select method=ALE leaves out DiagViB's cases with this factor",
}
"""Pairs of which -k of the first selects the second too, and why that can be lived with."""


def sources(folder: Path) -> Iterator[str]:
    """Yield every text in which a user finds examples."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    templates = [path for path in data.path("init").rglob("*") if path.is_file()]
    for path in [*documents, *templates]:
        yield path.read_text()
    for parser in parsers(build_parser()):
        yield f"{parser.description}\n{parser.epilog}"
    assert main(["init", str(folder)]) == 0


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of a command line and of each of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def examples(text: str) -> set[str]:
    """Return each selection in a text, without quotes; ``python -m`` and placeholders are none."""
    found = re.findall(r"""(?<![\w-])(?<!python )(-k|-m|--select)[ =]("[^"]+"|'[^']+'|[\w.*:-]+)""", text)
    return {f"{option} {value.strip(chr(34) + chr(39))}" for option, value in found if "VALUE" not in value}


def paper_models() -> list[str]:
    """Return the names of Table 1, by the lists of keys of their checkpoints."""
    names = [path.stem for path in data.path("models").glob("*.json")]
    found = sorted(name for name in names if re.match("ResNet50$|[asrd]-", name))
    assert len(found) == 31
    return found


def every_model() -> list[str]:
    return list(dict.fromkeys([*load_models(ROOT / "models.yaml"), *DINO, *paper_models(), "my-resnet50"]))


def to_come(suite: str) -> Iterator[Case]:
    """Yield cases of the benchmarks to come, as their papers and ours name what they vary."""
    for model in (*DINO, "ResNet50", "random-resnet18", "efficientnet-lite0", "my-resnet50", "res101"):
        for number, method in enumerate(METHODS):
            tokens = {"data": DATA[number % len(DATA)], "method": method, "validation": VALIDATION[number % 3]}
            yield Case("zsl", "zsl", model, suite, tokens)
            yield Case("zsl", "gzsl", model, suite, tokens)
        for number, (predicted, cue) in enumerate(permutations(FACTORS, 2)):
            tokens = {"study": STUDIES[number % len(STUDIES)], "predicted": predicted, "by": "by", "cue": cue}
            yield Case("diagvib", "study", model, suite, tokens)


def every_case(name: str) -> list[Case]:
    """Return the cases of a suite with every model, and cases of the benchmarks to come."""
    suite = load_suite(name)
    return [*cog_cases(suite, {}, every_model(), load_universe(suite.cog.universe).splits), *to_come(name)]


def meant(words: Words, case: Case) -> bool:
    """Say whether a case has all words: the plainest reading, independent of what is tested."""
    values = {"benchmark": case.benchmark, "protocol": case.protocol, "model": case.model, **case.tokens}
    return all(values.get(key) in ((word,) if isinstance(word, str) else word) for key, word in words.items())


COLLECT = """
import json, sys, pytest
class Collected:
    def pytest_collection_finish(self, session):
        self.nodes = [item.nodeid for item in session.items]
found = []
for option, value in json.load(sys.stdin):
    collected = Collected()
    pytest.main(["benchmarks", "--collect-only", "-qqq", "-p", "no:hypothesispytest", option, value], [collected])
    found.append(collected.nodes)
json.dump(found, sys.stderr)
"""


def selected_by_pytest(folder: Path, options: list[tuple[str, str]]) -> list[list[str]]:
    """Return the node ids that pytest selects by each option, in a process whose modules are its own."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=folder,
        input=json.dumps(options),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = json.loads(done.stderr)
    return found


def node_of(case: Case) -> str:
    return f"benchmarks/test_{case.benchmark}.py::test_{case.protocol}[{case.name}]"


def write_benchmarks(folder: Path, cases: Iterable[Case]) -> None:
    """Write test files with the cases, marked and named as a benchmark's are."""
    names: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        names.setdefault((case.benchmark, case.protocol), []).append(case.name)
    (folder / "benchmarks").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n" + "".join(f"    {name}\n" for name in BENCHMARKS))
    for benchmark in BENCHMARKS:
        text = f"import pytest\npytestmark = pytest.mark.{benchmark}\n"
        for (owner, protocol), ids in names.items():
            if owner == benchmark:
                text += f"@pytest.mark.parametrize('case', {ids!r})\ndef test_{protocol}(case): pass\n"
        (folder / "benchmarks" / f"test_{benchmark}.py").write_text(text)


def test_every_example_has_its_meaning_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [*sources(tmp_path), capsys.readouterr().out]
    assert set().union(*map(examples, texts)) == set(EXAMPLES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pytest benchmarks -k lite0  # and", {"-k lite0"}),
        ("""-k "a or b" -m cog --select='split=L1 shots=1'""", {"-k a or b", "-m cog", "--select split=L1 shots=1"}),
        ("`-k` matches, python -m pytest, --select 'KEY=VALUE ...'", set()),
    ],
)  # fmt: skip
def test_examples_are_found(text: str, found: set[str]) -> None:
    assert examples(text) == found


@pytest.mark.parametrize("suite", suite_names())
def test_no_example_selects_a_foreign_case(suite: str, tmp_path: Path) -> None:
    cases = every_case(suite)
    write_benchmarks(tmp_path, cases)
    parts = {example: (option, value) for example in EXAMPLES for option, _, value in [example.partition(" ")]}
    by_pytest = {example: part for example, part in parts.items() if part[0] != "--select"}
    found = dict(zip(by_pytest, selected_by_pytest(tmp_path, [*by_pytest.values()]), strict=True))
    for example in parts.keys() - by_pytest.keys():
        found[example] = [node_of(case) for case in select([parts[example][1]], cases)]
    for example, words in EXAMPLES.items():
        expected = [node_of(case) for case in cases if meant(words, case)]
        assert sorted(found[example]) == sorted(expected), example
        assert expected, example


def tokens() -> list[str]:
    """Return every word that a case has beside its model."""
    suites = [load_suite(name) for name in suite_names()]
    splits = [split for name in universe_names() for split in load_universe(name).splits]
    shots = [token for suite in suites for token in shot_tokens(suite.cog.shots)]
    to_come = [*METHODS, *DATA, *STUDIES, *FACTORS, *VALIDATION]
    return list(dict.fromkeys([*BENCHMARKS, *PROTOCOLS, *splits, *shots, *to_come]))


def test_no_token_contains_another() -> None:
    found = {(a, b) for a, b in permutations(tokens(), 2) if a.casefold() in b.casefold()}
    assert found == set(CONTAINED)


@pytest.mark.parametrize("levels", [1, 5, 9, 10, 100])
def test_no_level_contains_another(levels: int) -> None:
    universe = load_universe("mini")
    rule = universe.levels.model_copy(update={"number": levels})
    splits = universe.model_copy(update={"levels": rule}).splits
    assert len(splits) == levels + 1
    assert not [(a, b) for a, b in permutations(splits, 2) if a.casefold() in b.casefold()]


def test_no_model_of_the_paper_is_mistaken_for_a_token() -> None:
    assert reserved_token_problems(every_model(), [*RESERVED, *tokens()]) == []
