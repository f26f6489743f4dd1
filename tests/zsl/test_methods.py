"""What holds for all fourteen methods: a planted linear problem is solved, labels and classes mean what they say."""

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.zsl.methods.options import Options
from harness.zsl.methods.registry import METHODS
from harness.zsl.methods.registry import make_method
from harness.zsl.methods.sync import Sync
from harness.zsl.methods.sync import SyncModel
from harness.zsl.metrics import Generalized
from harness.zsl.metrics import class_accuracy
from harness.zsl.metrics import predict
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.problem import TrainSet
from harness.zsl.tuning import points_of
from tests.zsl.conftest import embeddings_of

if TYPE_CHECKING:
    from tests.zsl.conftest import MakeSet

POINTS: dict[str, Point] = {
    "DAP": {"C": 100.0},
    "IAP": {"C": 16.0},
    "CONSE": {"C": 16.0, "T": 5},
    "CMT": {"hidden": 50, "lambda": 1e-5},
    "CMT-nd": {"hidden": 50, "lambda": 1e-5, "quantile": 0.2},
    "SSE": {"gamma": 0.1, "points": "all", "rounds": 2},
    "LATEM": {"eta": 0.1, "K": 2, "epochs": 20},
    "ALE": {"eta": 0.1, "epochs": 20},
    "DEVISE": {"eta": 0.01, "epochs": 20},
    "SJE": {"eta": 0.1, "epochs": 20},
    "ESZSL": {"gamma": 1.0, "lambda": 1.0},
    "SYNC": {"lambda": 2.0**-16, "scale": 1.0},
    "SAE": {"lambda": 100.0, "direction": "F2S"},
    "GFZSL": {"l1": 0.1, "l2": 1e8, "reg": 0.05},
}
COMPATIBILITY = ("LATEM", "ALE", "DEVISE", "SJE", "ESZSL", "SAE")
UNSEEN = np.array([2, 5, 11, 17, 23])


def planted() -> tuple[TrainSet, Floats, Labels]:
    """Return training images of 25 of 30 classes, and images of the other 5: features are attributes times a matrix."""
    rng = np.random.default_rng(3)
    attributes = rng.integers(0, 2, (30, 16)).astype(float)
    embeddings = embeddings_of(attributes + 1e-3, attributes)
    matrix = rng.random((16, 48))

    def images(labels: Labels) -> Floats:
        noise = 0.1 * rng.normal(size=(len(labels), 48))
        return np.asarray(np.maximum(0, 3 * embeddings.values[labels] @ matrix + noise))

    seen = np.setdiff1d(np.arange(30), UNSEEN)
    labels = rng.permutation(np.repeat(seen, 12))
    test = rng.permutation(np.repeat(UNSEEN, 15))
    return TrainSet(images(labels), labels, seen, embeddings), images(test), test


@pytest.fixture(scope="module")
def task() -> tuple[TrainSet, Floats, Labels]:
    return planted()


@pytest.fixture(scope="module")
def fitted(task: tuple[TrainSet, Floats, Labels]) -> dict[str, Model]:
    return {name: make_method(name).fit([task[0]], [POINTS[name]], 0)[0][0] for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_planted_problem_is_solved(name: str, task: tuple[TrainSet, Floats, Labels], fitted: dict[str, Model]) -> None:
    train, features, labels = task
    accuracy = class_accuracy(predict(fitted[name], features, UNSEEN), labels).mean
    assert accuracy > (90 if name in COMPATIBILITY else 50), f"chance is 20, {accuracy}"
    everything = np.arange(30)
    result = Generalized(
        class_accuracy(predict(fitted[name], features, everything), labels).mean,
        class_accuracy(predict(fitted[name], train.features, everything), train.labels).mean,
    )
    assert result.ts <= accuracy
    assert result.tr > 20


@pytest.mark.parametrize("name", METHODS)
def test_a_class_has_one_score_whatever_else_is_asked(
    name: str, task: tuple[TrainSet, Floats, Labels], fitted: dict[str, Model]
) -> None:
    """One function serves both protocols (CMT-nd alone looks at which classes compete)."""
    _, features, _ = task
    shuffled = np.random.default_rng(0).permutation(30)
    scores = fitted[name].scores(features, np.arange(30))
    assert scores.shape == (75, 30)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(np.isneginf(scores), np.isneginf(fitted[name].scores(features, np.arange(30))))
    np.testing.assert_allclose(fitted[name].scores(features, shuffled), scores[:, shuffled], atol=1e-9)
    if name != "CMT-nd":
        np.testing.assert_allclose(fitted[name].scores(features, UNSEEN[::-1]), scores[:, UNSEEN[::-1]], atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_one_image_is_scored_as_among_others(
    name: str, task: tuple[TrainSet, Floats, Labels], fitted: dict[str, Model]
) -> None:
    """No test image has a part in how another is normalised."""
    _, features, _ = task
    alone = fitted[name].scores(features[7:8], UNSEEN)
    np.testing.assert_allclose(fitted[name].scores(features, UNSEEN)[7:8], alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("ALE", "LATEM")])
def test_names_of_labels_do_not_matter(name: str, make_set: "MakeSet") -> None:
    """The class table in another order gives the same scores, class by class; but for draws, which are by position."""
    train = make_set(images=60)
    order = np.random.default_rng(1).permutation(10)
    place = np.argsort(order)
    table = train.embeddings
    moved = embeddings_of(table.values[order])
    other = TrainSet(train.features, place[train.labels], np.sort(place[train.classes]), moved)
    point = {**POINTS[name], "epochs": 2}
    # far from its start the path of a network is chaotic
    method = make_method(name, {"iterations": 10} if name.startswith("CMT") else {})
    [[one]], [[two]] = (method.fit([some], [point], 0) for some in (train, other))
    unseen = np.setdiff1d(np.arange(10), train.classes)
    first, second = one.scores(train.features, unseen), two.scores(train.features, place[unseen])
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-3 * np.abs(first).max())


@pytest.mark.parametrize("name", METHODS)
def test_models_do_not_depend_on_company(name: str, make_set: "MakeSet") -> None:
    method, sets = make_method(name), [make_set(seed, images=40) for seed in (1, 2)]
    grid = {key: values[-2:] for key, values in method.grid("CUB").items()}
    if "epochs" in grid:
        grid["epochs"] = (2,)
    points = [{key: values[end] for key, values in grid.items()} for end in (0, -1)]
    together = method.fit(sets, points, 4)
    for train, models in zip(sets, together, strict=True):
        for point, model in zip(points, models, strict=True):
            [[alone]] = method.fit([train], [point], 4)
            expected = alone.scores(train.features, np.arange(10))
            found = model.scores(train.features, np.arange(10))
            largest = np.abs(expected[np.isfinite(expected)]).max()
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("name", METHODS)
def test_models_scored_together_score_as_alone(name: str, make_set: "MakeSet") -> None:
    train, method = make_set(images=40), make_method(name)
    grid = {key: values[:2] for key, values in method.grid("CUB").items()}
    points = [{**point, "epochs": 1} for point in points_of(grid)]
    [models] = method.fit([train], points, 0)
    together = list(method.scores(models, train.features, np.arange(10)))
    assert len(together) == len(points)
    for scores, model in zip(together, models, strict=True):
        np.testing.assert_allclose(scores, model.scores(train.features, np.arange(10)), rtol=1e-9, atol=1e-12)


def test_methods_say_what_they_are() -> None:
    for name in METHODS:
        method = make_method(name)
        assert method.name == name
        assert method.needs in ("numpy", "torch")
        assert set(method.generalized) <= set(method.grid("AWA1"))
        assert isinstance(method, Options)
        for option, value in method.options.items():
            assert make_method(name, {option: value}) == method
            assert make_method(name, {option: str(value)}) == method


def test_grids_are_those_of_the_sources() -> None:
    sizes = {name: [len(values) for values in make_method(name).grid("CUB").values()] for name in METHODS}
    assert sizes["ESZSL"] == [7, 7]
    assert sizes["SYNC"] == [12, 11]
    assert sizes["CONSE"] == [9, 5]
    assert sizes["GFZSL"] == [4, 4, 3]
    assert sizes["SAE"] == [9, 2]
    assert make_method("SYNC").grid("SUN")["lambda"][0] == 2.0**-30
    assert [make_method("LATEM").grid(name)["epochs"] for name in ("AWA1", "APY", "CUB", "SUN")] == [
        (150,),
        (150,),
        (10,),
        (10,),
    ]
    assert make_method("SJE").grid("AWA1")["epochs"] == (15,)


def test_unknown_names_and_values_are_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"no zero-shot method 'EZSL'.*Did you mean 'ESZSL'\?"):
        make_method("EZSL")
    with pytest.raises(ConfigError, match=r"ALE has no option 'samplng'; it has .*Did you mean 'sampling'\?"):
        make_method("ALE", {"samplng": "rank"})
    with pytest.raises(ConfigError, match=r"sampling is 'ranks', expected one of author, wsabie, rank.*'rank'\?"):
        make_method("ALE", {"sampling": "ranks"})
    with pytest.raises(ConfigError, match="option margin is 'wide', expected a number"):
        make_method("SJE", {"margin": "wide"})
    assert make_method("ALE", {"sampling": "rank"}).options["sampling"] == "rank"


def test_a_model_knows_all_classes_it_was_trained_on(task: tuple[TrainSet, Floats, Labels]) -> None:
    """Retraining on train and validation classes gives a model of them all, not one of the training classes."""
    train, _, _ = task
    some = train.labels < 20
    part = TrainSet(train.features[some], train.labels[some], train.classes[train.classes < 20], train.embeddings)
    method, point = Sync(), POINTS["SYNC"]
    for given in (part, train):
        [[model]] = method.fit([given], [point], 0)
        assert isinstance(model, SyncModel)
        assert model.weights.shape[1] == len(np.unique(given.labels))


def test_names_grids_and_selection_need_no_torch() -> None:
    code = (
        "import sys, harness.zsl.tuning, harness.zsl.methods.registry; "
        "sys.exit(bool({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
