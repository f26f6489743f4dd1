"""Collection: cases from the models file, skips with reasons, usage errors before anything runs. No torch needed."""

import sys
from pathlib import Path

import pytest

from tests.plugin.conftest import Project

NO_TORCH = """
import sys
def pytest_collection_finish(session):
    heavy = sorted({"torch", "timm", "nltk", "optuna", "matplotlib", "sklearn"} & set(sys.modules))
    print("heavy imports:", heavy)
"""


def test_cases_are_listed_by_model_split_and_protocol_without_torch(project: Project) -> None:
    with (project.path / "conftest.py").open("a") as file:
        file.write(NO_TORCH)
    result = project.run("benchmarks", "--collect-only", "-q", "-p", "no:xdist")
    names = [line.partition("::")[2] for line in result.outlines if "::" in line]
    splits = ("seen", "L1", "L2")
    assert names == [
        *(f"test_linear[{model}-{split}]" for model in ("tiny-random", "tiny-absent") for split in splits),
        *(f"test_fewshot[{model}-{split}-N002]" for model in ("tiny-random", "tiny-absent") for split in splits),
    ]
    result.stdout.fnmatch_lines("heavy imports: []")


@pytest.mark.parametrize("workers", [["-n0"], ["-n2"], ["-p", "no:xdist"]], ids=["n0", "n2", "no-xdist"])
def test_missing_weights_are_skipped_in_one_line_that_names_the_file(project: Project, workers: list[str]) -> None:
    result = project.run("benchmarks", "-k", "absent", *workers)
    result.assert_outcomes(skipped=6, deselected=6)
    weights = project.path / "cache" / "weights" / "absent.pth"
    folded = [line for line in result.outlines if line.startswith("skipped ")]
    advice = "Put the file there, or correct weights.path of the entry"
    assert folded == [f"skipped 6 cases: tiny-absent: no weights at {weights}. {advice}"]
    assert {record.status for record in project.records().values()} == {"skipped"}
    assert result.ret == pytest.ExitCode.OK


def test_missing_images_are_skipped_with_the_place_wanted(project: Project) -> None:
    result = project.run("benchmarks", "-k", "random and L1", "--data-root", "elsewhere")
    result.assert_outcomes(skipped=2, deselected=10)
    result.stdout.fnmatch_lines("skipped 2 cases: no images at elsewhere*pictures: put them there*")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "minni"], "*--suite minni*Did you mean 'mini'*"),
        (["--models", "none.yaml"], "*none.yaml*"),
        (["--protocol", "trails=3"], "*--protocol trails*Did you mean 'trials'*"),
        (["--overwrite", "alwais"], "*--overwrite alwais*Did you mean 'always'*"),
        (["--device", "gpu"], "*--device gpu*"),
        (["--universe", "minii"], "*minii*Did you mean 'mini'*"),
        (["--protocol", "levels=derived", "--protocol", "measure=lni"], "*measure=lni*Did you mean 'lin'*"),
        (["--protocol", "levels=derived", "--protocol", "seen=mien"], "*seen=mien*Did you mean 'mine'*"),
        (["--protocol", "shots=0,4"], "*shots*at least 1*"),
        (["--protocol", "seeds=22,22"], "*seeds*different*"),
        (["--select", "split=L9"], "*--select 'split=L9': no case has split 'L9': expected one of seen, L1, L2.*"),
    ],
)
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_wrong_options_are_usage_errors(project: Project, arguments: list[str], message: str, workers: str) -> None:
    result = project.run("benchmarks", workers, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("group: baseline", "gruop: baseline", "*models.yaml:4: unknown field *gruop*Did you mean 'group'*"),
        ("  tiny-absent:", "  tiny-random:", "*models.yaml:11: key 'tiny-random' stands twice; first in line 3*"),
        ("name: resnet18}", "nam: resnet18}", "*models.yaml:5*"),
        ("tiny-absent", "tiny-L1", "*'tiny-L1' contains 'L1'*"),
        ("tiny-absent", "linear-tiny", "*'linear-tiny' contains 'linear'*"),
        ("tiny-absent", "zsl-tiny", "*'zsl-tiny' contains 'zsl'*"),
        ("tiny-absent", "test", "*'test' is part of 'test_cog.py'*"),
        ("size: 32", "size: small", "*models.yaml:8*size*"),
    ],
)
def test_a_wrong_models_file_is_a_usage_error(project: Project, old: str, new: str, message: str) -> None:
    path = project.path / "models.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    result = project.run("benchmarks", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(message)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--select", "model=TINY-random split=L1"], ["linear[tiny-random-L1]", "fewshot[tiny-random-L1-N002]"]),
        (["--select", "model=*-random shots=2 split=1", "-m", "cog"], ["fewshot[tiny-random-L1-N002]"]),
        (
            [
                "--select",
                "protocol=linear model=tiny-absent split=L2",
                "--select",
                "model=tiny-random split=L1 shots=2",
            ],
            ["linear[tiny-absent-L2]", "fewshot[tiny-random-L1-N002]"],
        ),
        (["--select", "split=L1", "-k", "L2"], []),
    ],
)
def test_select_and_the_other_selections_all_hold(project: Project, arguments: list[str], names: list[str]) -> None:
    (project.path / "benchmarks" / "test_mine.py").write_text("def test_random_L1_N002(): pass\n")
    result = project.run("benchmarks", "--collect-only", "-q", "-p", "no:xdist", *arguments)
    assert [line.partition("::test_")[2] for line in result.outlines if "::" in line] == names
    result.stdout.fnmatch_lines(f"*({13 - len(names)} deselected)*" if names else "no tests collected (13 deselected)*")
    assert result.ret == (pytest.ExitCode.OK if names else pytest.ExitCode.NO_TESTS_COLLECTED)


def test_select_on_workers(project: Project) -> None:
    result = project.run("benchmarks", "-n2", "--select", "model=tiny-absent protocol=linear")
    result.assert_outcomes(skipped=3)
    assert {record.case.protocol for record in project.records().values()} == {"linear"}


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_linear(case): pass", "*fixture 'case' not found*"),
        (
            "import pytest\n@pytest.mark.cog\ndef test_liner(case): pass",
            "*that cog does not have: expected test_ and one of fewshot, linear. Did you mean 'linear'?*",
        ),
    ],
)
def test_a_test_that_takes_case_needs_its_benchmark_and_protocol(project: Project, test: str, message: str) -> None:
    (project.path / "test_mine.py").write_text(test)
    result = project.run("test_mine.py")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(message)


def test_a_case_that_is_the_users_own_is_left_alone(project: Project) -> None:
    (project.path / "test_mine.py").write_text("""
import pytest

@pytest.fixture(params=[1, 2])
def case(request):
    return request.param

def test_fixture(case):
    assert case in {1, 2}

@pytest.mark.parametrize("case", ["a", "b", "c"])
def test_parameter(case):
    assert case in "abc"
""")
    project.run("test_mine.py").assert_outcomes(passed=5)


def test_garbage_is_collected_again_after_collection(project: Project) -> None:
    (project.path / "test_mine.py").write_text("import gc\ndef test_collector(): assert gc.isenabled()\n")
    project.run("test_mine.py").assert_outcomes(passed=1)


def test_fixtures_and_markers_are_documented(project: Project) -> None:
    fixtures = project.run("--fixtures", "-p", "no:xdist")
    fixtures.stdout.fnmatch_lines(["levels *", "*Cached WordNet levels*"])
    project.run("--markers").stdout.fnmatch_lines("@pytest.mark.cog: ImageNet-CoG*")


def test_the_suite_of_this_repository_is_collected_without_torch(pytester: pytest.Pytester) -> None:
    root = Path(__file__).resolve().parents[2]
    code = "import sys, pytest; pytest.main(['-q', '--collect-only', '--suite', 'paper', 'benchmarks']); "
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'timm', 'nltk', 'optuna', 'matplotlib')))"
    result = pytester.run(sys.executable, "-c", f"import os; os.chdir({str(root)!r}); {code}")
    assert result.ret == 0
