"""Suites, settings and cases: the shared words."""

from pathlib import Path

import pytest

from harness.case import Case
from harness.errors import ConfigError
from harness.errors import nearest
from harness.settings import Option
from harness.settings import default_cache_dir
from harness.settings import settings_from
from harness.store import Overwrite
from harness.suite import load_suite
from harness.suite import suite_names
from harness.suite import with_options


def test_the_paper_suite_is_the_published_protocol() -> None:
    """Values of the paper's protocol box and of the reference code's defaults."""
    protocol = load_suite("paper").cog
    assert protocol.seeds == (22, 37, 45, 77, 93)
    assert (protocol.trials, protocol.epochs, protocol.batch_size, protocol.momentum) == (30, 100, 1024, 0.9)
    assert (protocol.lr_min, protocol.lr_max, protocol.wd_min, protocol.wd_max) == (0.1, 100, 1e-12, 1e-4)
    assert protocol.shots == (1, 2, 4, 8, 16, 32, 64, 128)


def test_the_mini_suite_changes_only_what_it_says() -> None:
    mini, paper = load_suite("mini").cog.model_dump(), load_suite("paper").cog.model_dump()
    assert {key for key in mini if mini[key] != paper[key]} == {"universe", "seeds", "trials", "shots"}
    assert suite_names() == ["mini", "paper"]


def test_options_are_named_where_they_differ() -> None:
    suite, options = with_options(
        load_suite("mini"), ("trials=30", "cog.seeds=22,37", "wd_min=1e-9", "schedule=reference")
    )
    assert suite.cog.trials == 30
    assert suite.cog.seeds == (22, 37)
    assert options == {"cog": {"seeds": "22,37", "trials": "30", "wd_min": "1e-09"}}


def test_protocol_options_reach_the_published_protocol() -> None:
    suite, _ = with_options(
        load_suite("mini"), ("seeds=22,37,45,77,93", "trials=30", "shots=1,2,4,8,16,32,64,128", "universe=in21k")
    )
    assert suite.cog == load_suite("paper").cog


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("trial=3", "no such option. Did you mean 'trials'"),
        ("cog.trails=3", "Did you mean 'cog.trials'"),
        ("trials=abc", "trials"),
        ("trials=0", "greater than or equal to 1"),
        ("schedule=exat", "Did you mean 'exact'"),
        ("lr_min=1000", "lr_min must not exceed lr_max"),
        ("trials", "expected KEY=VALUE"),
        ("seeds=", "at least 1 item"),
        ("seeds={", "seeds"),
        ("seeds=-1", "seeds"),
    ],
)
def test_wrong_options_are_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_options(load_suite("mini"), (assignment,))


def test_lists_may_be_written_as_in_a_suite_file() -> None:
    assert with_options(load_suite("mini"), ("seeds=[1, 2]",))[0].cog.seeds == (1, 2)


@pytest.mark.parametrize("name", ["paper", "../up", "a/b", "''"])
def test_a_suite_of_ones_own_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"name: {name}\ntitle: my suite\n")
    with pytest.raises(ConfigError, match="name"):
        load_suite(str(tmp_path / "mine.yaml"))


def test_a_suite_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ntitle: my suite\ncog:\n  trials: 2\n")
    assert load_suite(str(path)).cog.trials == 2
    path.write_text("name: mine\ntitle: my suite\ncog:\n  trails: 2\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:4: unknown field 'cog\.trails'\. Did you mean 'trials'"):
        load_suite(str(path))
    with pytest.raises(ConfigError, match="Did you mean 'mini'"):
        load_suite("minni")


def case(**changes: object) -> Case:
    values = {
        "benchmark": "cog",
        "protocol": "fewshot",
        "model": "s-DINO",
        "suite": "mini",
        "tokens": {"split": "L3", "shots": "N004"},
    }
    return Case(**{**values, **changes})  # type: ignore[arg-type]  # a table of plain values


def test_the_id_of_a_case() -> None:
    assert case().name == "s-DINO-L3-N004"
    assert case().id == "cog/fewshot/s-DINO-L3-N004"
    assert case(options={"trials": "30", "epochs": "5"}).id == "cog/fewshot/s-DINO-L3-N004?epochs=5&trials=30"


def test_two_readings_never_share_a_file() -> None:
    names = {case(options=options).file_name for options in ({}, {"trials": "30"}, {"trials": "3"}, {"epochs": "30"})}
    assert len(names) == 4


def given(**values: object) -> object:
    def value_of(option: Option) -> object:
        return values.get(option.field)

    return value_of


def test_settings_read_options_and_default_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    settings = settings_from(
        given(suite="paper", data_root="~/data", protocol=["a=1"], overwrite="only-cache", download=True)  # type: ignore[arg-type]
    )
    assert settings.suite == "paper"
    assert settings.data_root == Path.home() / "data"
    assert settings.protocol == ("a=1",)
    assert settings.overwrite is Overwrite.ONLY_CACHE
    assert settings.overwrite_features is Overwrite.ONLY_MISSING
    assert settings.download
    assert settings.cache_dir == default_cache_dir() == tmp_path


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"overwrite": "allways"}, "--overwrite allways: expected one of .* Did you mean 'always'"),
        ({"overwrite_features": "x"}, "--overwrite-features x"),
        ({"device": "gpu"}, "--device gpu"),
        ({"device": "cuda:x"}, "--device cuda:x"),
    ],
)
def test_wrong_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(given(**values))  # type: ignore[arg-type]


def test_nearest_is_blind_to_case_and_silent_where_nothing_is_close() -> None:
    assert nearest("S-DINOO", ["s-DINO", "ResNet50"]) == " Did you mean 's-DINO'?"
    assert nearest("zzz", ["s-DINO"]) == ""
