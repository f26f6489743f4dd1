"""The embedded mini backbones: what they have learnt from, that they load, and that their curves can be had again."""

import csv
import math
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import nn

from harness import data
from harness.digest import read_digest
from harness.zoo.backbone import load_backbone
from harness.zoo.sources import FileWeights
from harness.zoo.sources import PackageWeights
from tools.pretrain.__main__ import RECIPES
from tools.pretrain.__main__ import SEED
from tools.pretrain.__main__ import entry
from tools.pretrain.__main__ import make
from tools.pretrain.__main__ import save
from tools.pretrain.__main__ import write_table
from tools.pretrain.drawings import VALIDATION_FAMILY
from tools.pretrain.drawings import Drawings
from tools.pretrain.drawings import artist_of
from tools.pretrain.training import train

NAMES = sorted(RECIPES)
NOWHERE = Path("none")


def rows(name: str) -> list[dict[str, str]]:
    with data.path(f"backbones/curves/{name}.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def listed(file: str) -> set[str]:
    return set(re.findall(r"^n\d{8}\b", data.path(file).read_text(), re.MULTILINE))


def test_nothing_is_learnt_from_test_families_or_unseen_concepts(drawings: tuple[Drawings, Drawings]) -> None:
    known, asked = drawings
    learnt = {identity.partition("/")[0] for identity in known.ids}
    seen = listed("universes/mini_seen.txt")
    with data.path("universes/mini_levels.csv").open(encoding="utf-8") as stream:
        unseen = {row["wnid"] for row in csv.DictReader(stream)}
    assert len(unseen) == 277
    assert learnt == seen
    assert not learnt & unseen
    artists = Counter(artist_of(identity) for identity in known.ids + asked.ids)
    assert not set(artists) & {"twemoji", "openmoji", "openmoji-black"}
    assert {artist_of(identity) for identity in asked.ids} == {"emojione-v2"}
    assert VALIDATION_FAMILY == "emojione"
    assert not set(known.ids) & set(asked.ids)


def test_every_drawing_that_may_be_used_is(drawings: tuple[Drawings, Drawings]) -> None:
    """Counted in the list of all images, past the code that makes the split."""
    seen = listed("universes/mini_seen.txt")
    with data.path("mini/images.tsv").open(encoding="utf-8") as stream:
        allowed = [
            f"{row['wnid']}/{row['file']}"
            for row in csv.DictReader(stream, delimiter="\t")
            if row["wnid"] in seen and row["artist"] not in {"twemoji", "openmoji", "openmoji-black"}
        ]
    known, asked = drawings
    assert sorted(known.ids + asked.ids) == sorted(allowed)
    assert known.pixels.shape == (len(known), 3, 80, 80)
    assert known.pixels.dtype == torch.uint8
    assert sorted(set(known.labels.tolist())) == list(range(228))


@pytest.mark.parametrize("name", NAMES)
def test_the_embedded_weights_are_those_of_the_entry(name: str) -> None:
    spec = entry(name)
    assert isinstance(spec.weights, PackageWeights)
    path = data.path(f"backbones/{name}.safetensors")
    assert path == Path(data.__file__).parents[1] / spec.weights.file
    assert read_digest(path) == spec.weights.sha256
    assert path.stat().st_size <= 6_000_000
    assert not spec.may_have_seen


@pytest.mark.parametrize("name", NAMES)
def test_features_are_finite_and_differ(name: str, drawings: tuple[Drawings, Drawings]) -> None:
    backbone = load_backbone(entry(name), NOWHERE)
    _, asked = drawings
    size = backbone.spec.input.size
    found = backbone(nn.functional.interpolate(asked.pixels[:32], size=(size, size)))
    assert found.shape == (32, 384)
    assert found.dtype == torch.float32
    assert found.isfinite().all()
    cosines = nn.functional.normalize(found, dim=1) @ nn.functional.normalize(found, dim=1).T
    assert cosines.fill_diagonal_(0).max() < 0.999


def test_both_have_the_same_network() -> None:
    first, second = (entry(name) for name in NAMES)
    assert first.architecture == second.architecture
    assert first.input == second.input
    assert first.feature == second.feature


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_moves_features_by_less_than_a_thousandth(
    name: str, drawings: tuple[Drawings, Drawings], tmp_path: Path
) -> None:
    known, _ = drawings
    method = make(name, known)
    for _ in islice(train(method, known, RECIPES[name], SEED), 2):
        pass
    save(method.learnt, tmp_path / "weights.safetensors")
    weights = FileWeights(source="file", path=str(tmp_path / "weights.safetensors"))
    backbone = load_backbone(entry(name).model_copy(update={"weights": weights}), NOWHERE)
    batch = nn.functional.interpolate(known.pixels[:16], size=(64, 64))
    with torch.no_grad():
        full = method.learnt.eval()(backbone.normalize(batch))
    assert (backbone(batch) - full).norm(dim=1).max() < 1e-3 * full.norm(dim=1).min()


@pytest.mark.parametrize("name", NAMES)
def test_the_first_steps_repeat(name: str, drawings: tuple[Drawings, Drawings]) -> None:
    """On another processor sums are in another order: a thousandth is allowed, steps differ by more."""
    known, _ = drawings
    written = rows(f"{name}-steps")
    found = list(islice(train(make(name, known), known, RECIPES[name], SEED), len(written)))
    assert len(written) == 5
    for row, again in zip(written, found, strict=True):
        assert again == pytest.approx({figure: float(value) for figure, value in row.items()}, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_curves_are_whole_and_fall(name: str) -> None:
    curve, epochs = rows(name), RECIPES[name].stop or RECIPES[name].epochs
    assert [int(row["epoch"]) for row in curve] == list(range(1, epochs + 1))
    losses = [float(row["loss"]) for row in curve]
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]
    accuracies = [float(row["validation_accuracy"]) for row in curve[9::10]]
    assert len(accuracies) == epochs // 10
    assert accuracies[-1] > accuracies[0]


def test_student_and_teacher_did_not_collapse() -> None:
    """One answer to all drawings has a loss of ln 512; a teacher that does not choose has that entropy."""
    last = rows("s-DINO-mini")[-1]
    assert float(last["loss"]) < math.log(512) - 1
    assert 0.1 < float(last["teacher_entropy"]) < math.log(512) - 1


def test_a_table_leaves_empty_what_a_row_lacks(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"epoch": 1, "loss": 1 / 3}, {"epoch": 2, "loss": 0.25, "accuracy": 50.0}])
    assert (tmp_path / "t.csv").read_text() == "epoch,loss,accuracy\n1,0.333333,\n2,0.25,50\n"
