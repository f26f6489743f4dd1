"""``harness plan``: what is there, what is missing, what it takes. No torch needed."""

import csv
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.case import Case
from harness.cli import main
from harness.cog.run import feature_keys
from harness.cog.run import probe_key
from harness.durations import Durations
from harness.errors import CorruptInput
from harness.images import ImageSet
from harness.planning.measure import measure
from harness.planning.needs import needs
from harness.planning.rates import Rates
from harness.records.provenance import measured_here
from harness.records.record import CaseIdentity
from harness.records.record import Record
from harness.session import Session
from harness.settings import Settings

ENTRY = """
  {name}:
    group: baseline
    architecture: {{source: torchvision, name: resnet18}}
    weights: {weights}
    feature: {{take: identity, module: fc{dim}}}
    input: {{size: {size}}}
    parameters: {parameters}
    training_data: none
    licence: none
"""
SPLIT = 477 + 171
"""Training and test images of L3 of the mini universe."""


def entry(name: str, seed: int = 0, *, dim: int | None = 512, size: int = 64, parameters: float = 10.0) -> str:
    weights = f"{{source: random, seed: {seed}}}"
    return ENTRY.format(
        name=name, weights=weights, dim=f", dim: {dim}" if dim else "", size=size, parameters=parameters
    )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Three random networks, the last of which does not say its features' length, and one whose weights are absent."""
    absent = entry("absent-net").replace("{source: random, seed: 0}", "{source: file, path: absent.pth}")
    models = [entry("net-a"), entry("net-b", 1, size=128, parameters=20.0), entry("net-c", 2, dim=None), absent]
    (tmp_path / "models.yaml").write_text("models:" + "".join(models))
    return Session(
        Settings(
            models_file=tmp_path / "models.yaml",
            cache_dir=tmp_path / "cache",
            reports_dir=tmp_path / "reports",
            device="cpu",
        )
    )


def extracted(session: Session, case: Case, rate: float) -> None:
    """Put features of a case into the store, as if they had been extracted at some rate."""
    split = session.levels.split(case.tokens["split"])
    for part, key in feature_keys(case, session.levels, session.features).items():
        images = len(split.train if part == "train" else split.test)

        def build(folder: Path, images: int = images) -> None:
            np.save(folder / "features.npy", np.zeros((images, 512), np.float32))
            about = {"backbone": case.model, "images": images, "resumed_at": 0, "images_per_second": rate}
            (folder / "extraction.json").write_text(json.dumps(about))

        session.store.get("features", key, build)


def recorded(session: Session, case: Case, seconds: float) -> None:
    provenance = measured_here(seconds={"features": 0.0, "probe": seconds})
    session.book.write(Record(case=CaseIdentity.of(case), status="passed", provenance=provenance))


def planned(session: Session, capsys: pytest.CaptureFixture[str], *arguments: str, form: str = "json") -> Any:
    settings = session.settings
    places = ["--models", str(settings.models_file), "--cache-dir", str(settings.cache_dir), "--device", "cpu"]
    arguments = ("--select", "split=L3", "--format", form, *arguments)
    assert main(["plan", *places, "--reports-dir", str(settings.reports_dir), *arguments]) == 0
    printed = capsys.readouterr().out
    return json.loads(printed) if form == "json" else printed


def by_model(plan: Any) -> dict[str, Any]:
    return {part["model"]: part for part in plan["models"]}


def test_without_any_record_everything_is_to_do_and_times_are_unknown(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(session, capsys)
    part = by_model(plan)["net-a"]
    assert (part["cases"], part["cached"], part["missing"], part["to_do"]) == (3, 0, 0, 3)
    assert (part["features"], part["features_cached"], part["disk"]) == (2, 0, SPLIT * 512 * 4)
    assert (part["extraction_seconds"], part["probe_seconds"]) == (None, None)
    assert by_model(plan)["net-c"]["disk"] is None
    assert plan["unknown"] == ["net-a", "net-b", "net-c"]
    assert set(plan["states"].values()) == {"to do", "missing"}
    assert plan["disk_free"] > 0


def test_missing_weights_are_folded_with_the_file_wanted(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(session, capsys)
    wanted = session.settings.weights_dir / "absent.pth"
    assert plan["missing"] == {
        f"absent-net: no weights at {wanted}. Put the file there, or correct weights.path of the entry": 3
    }
    assert by_model(plan)["absent-net"]["missing"] == plan["total"]["missing"] == 3


def test_weights_that_the_run_will_fetch_are_not_missing(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    part = by_model(planned(session, capsys, "--download"))["absent-net"]
    assert (part["missing"], part["to_do"], part["disk"]) == (0, 3, SPLIT * 512 * 4)


def test_what_is_in_the_store_is_not_counted_again(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    linear, few = session.case("cog/linear/net-a-L3"), session.case("cog/fewshot/net-a-L3-N004")
    extracted(session, linear, 100.0)
    session.store.get("probe", probe_key(few, session.levels, session.features), lambda _: None)
    plan = planned(session, capsys)
    part = by_model(plan)["net-a"]
    assert (part["cached"], part["to_do"], part["features_cached"], part["disk"]) == (1, 2, 2, 0)
    assert part["extraction_seconds"] == 0
    assert plan["states"][few.id] == "cached"
    assert plan["states"][linear.id] == "to do"


def test_rates_come_from_the_store_or_are_scaled_from_other_models(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """Net-a made other features at 100 images a second; net-b has twice the parameters and four times the pixels."""
    extracted(session, session.case("cog/linear/net-a-L1"), 100.0)
    parts = by_model(planned(session, capsys))
    assert parts["net-a"]["extraction_seconds"] == pytest.approx(SPLIT / 100)
    assert not parts["net-a"]["scaled"]
    assert parts["net-b"]["extraction_seconds"] == pytest.approx(SPLIT / 100 * 8)
    assert parts["net-b"]["scaled"]


def test_wall_time_is_that_of_the_longest_chain_or_of_all_workers(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    extracted(session, session.case("cog/linear/net-a-L1"), SPLIT / 10)
    for case in session.cases("cog"):
        if case.tokens["split"] == "L3":
            recorded(session, case, 50.0 if case.protocol == "linear" else 20.0)
    arguments = ("--select", "model=net-a split=L3")
    alone = planned(session, capsys, *arguments)["total"]
    assert (alone["extraction_seconds"], alone["probe_seconds"]) == pytest.approx((10 + 80 + 10, 3 * 90))
    walls = [planned(session, capsys, "--workers", n)["wall_seconds"] for n in ("1", "2", "8")]
    assert walls == pytest.approx([370, 185, 80 + 50])


def test_absent_images_are_said_and_nothing_is_guessed(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(session, capsys, "--suite", "paper")
    assert plan["total"]["missing"] == plan["total"]["cases"]
    assert any("say with --data-root" in reason for reason in plan["missing"])
    said = planned(session, capsys, "--suite", "paper", form="plain")
    assert f"nothing can be computed: all {plan['total']['cases']} cases lack data or weights" in said


def test_plain_and_csv_say_the_same(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    extracted(session, session.case("cog/linear/net-a-L1"), 1.0)
    lines = planned(session, capsys, form="plain").splitlines()
    header, first, second = (line.split() for line in lines[:3])
    assert header[:4] == ["model", "cases", "cached", "missing"]
    assert first == ["net-a", "3", "-", "-", "3", "0", "of", "2", "11", "min", "?", "1.3", "MB"]
    assert second[8:10] == ["~86", "min"]
    assert any(line.startswith("? unknown, and not in the totals: net-a, net-b, net-c") for line in lines)
    assert any(line.startswith("disk    2.7 MB for features") for line in lines)
    rows = list(csv.DictReader(io.StringIO(planned(session, capsys, form="csv"))))
    assert [row["model"] for row in rows] == ["net-a", "net-b", "net-c", "absent-net", "total"]
    assert rows[0]["disk"] == str(SPLIT * 512 * 4)


def test_durations_are_written_for_shards(session: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = session.case("cog/linear/net-a-L3")
    recorded(session, case, 50.0)
    planned(session, capsys, "--durations-out", str(tmp_path / "durations.json"))
    assert Durations.from_json((tmp_path / "durations.json").read_text()).work(case) == 50.0


def test_wrong_usage(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["--models", str(session.settings.models_file)]
    assert main(["plan", *models, "--workers", "0"]) == 2
    assert "--workers 0" in capsys.readouterr().err
    assert main(["plan", *models, "--select", "model=net-d"]) == 2
    assert "net-d" in capsys.readouterr().err


def test_several_extractions_count_by_their_images_and_damaged_ones_do_not(session: Session) -> None:
    for split, rate in (("L1", 10.0), ("L2", 90.0)):
        extracted(session, session.case(f"cog/linear/net-a-{split}"), rate)
    sizes = {name: len(s.train) + len(s.test) for name in ("L1", "L2") for s in [session.levels.split(name)]}
    expected = sum(sizes.values()) / (sizes["L1"] / 10 + sizes["L2"] / 90)
    found = Rates(session.store, session.features.options, session.models).of(session.models["net-a"])
    assert found is not None
    assert found.images_per_second == pytest.approx(expected)
    assert found.measured
    for path in session.store.entries():
        (path / "extraction.json").write_text("{")
    assert Rates(session.store, session.features.options, session.models).of(session.models["net-a"]) is None


def test_measuring_takes_few_images_of_slow_models_and_none_of_known_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = session.case("cog/linear/net-a-L3")
    extracted(session, session.case("cog/linear/net-a-L1"), 100.0)
    cases = [case, *(session.case(f"cog/linear/{model}-L3") for model in ("net-b", "net-c", "absent-net"))]
    found = list(needs(session, cases))
    rates = Rates(session.store, session.features.options, session.models)
    asked: list[tuple[str, int]] = []

    def features(model: str, images: ImageSet, **_: object) -> SimpleNamespace:
        asked.append((model, len(images)))
        if model == "net-c" and len(images) > 32:
            raise CorruptInput("picture 40 is damaged")
        return SimpleNamespace(about={"images_per_second": 5.0 if model == "net-b" else 500.0})

    monkeypatch.setattr(session, "features", features)
    lines = list(measure(session, found, rates))
    assert asked == [("net-b", 32), ("net-c", 32), ("net-c", 477)]
    assert lines == ["net-b: 5 images a second", "net-c: not measured: picture 40 is damaged"]


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any import of torch fails."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("no_torch")
def test_a_plan_needs_no_torch(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    extracted(session, session.case("cog/linear/net-a-L1"), 1.0)
    assert planned(session, capsys)["total"]["to_do"] == 9
