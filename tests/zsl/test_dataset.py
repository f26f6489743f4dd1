"""What fitting and selection are given, and that test images are out of their reach."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.store import Store
from harness.zsl.dataset import Dataset
from harness.zsl.methods.eszsl import Eszsl
from harness.zsl.metrics import class_accuracy
from harness.zsl.metrics import predict
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Model
from harness.zsl.problem import Point
from harness.zsl.rows import FeatureRows
from harness.zsl.rows import file_rows
from harness.zsl.task import Task
from harness.zsl.task import draw_class_splits
from harness.zsl.task import with_embeddings
from harness.zsl.xlsa17 import find_folders
from harness.zsl.xlsa17 import load_task
from tests.zsl.xlsa17_files import write_xlsa17

POINTS: list[Point] = [{"gamma": gamma, "lambda": 1.0} for gamma in (1e-3, 1.0, 1e3)]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, FeatureRows]:
    root = tmp_path_factory.mktemp("planted")
    write_xlsa17(root, "AWA1", images=6)
    folders = find_folders(root, "AWA1")
    return load_task(folders, "AWA1"), file_rows(Store(root / "store"), folders.res101)


def held_back(task: Task) -> np.ndarray:
    return np.concatenate([task.test_seen, task.test_unseen])


def run(dataset: Dataset) -> tuple[list[list[float]], Model]:
    """Select a point on the class splits, then fit it on all training images: what a case does before its test."""
    accuracies = []
    for number in range(1, dataset.validations + 1):
        train, features, labels, classes = dataset.validation(number)
        models = Eszsl(features="official").fit([train], POINTS, 0)[0]
        accuracies.append([class_accuracy(predict(model, features, classes), labels).mean for model in models])
    best = int(np.argmax(np.mean(accuracies, axis=0)))
    return accuracies, Eszsl(features="official").fit([dataset.trainval()], [POINTS[best]], 0)[0][0]


def test_poisoned_test_images_change_nothing_before_the_final_call(planted: tuple[Task, FeatureRows]) -> None:
    """Pitfall 8: with test images that are NaN, selection and fitting give the same to the last bit."""
    task, rows = planted
    values = np.array(rows.values)
    values[held_back(task)] = np.nan
    clean, poisoned = Dataset(task, rows), Dataset(task, replace(rows, values=values))
    found, model = run(clean)
    found_poisoned, model_poisoned = run(poisoned)
    assert found == found_poisoned
    probe = np.eye(values.shape[1])
    np.testing.assert_array_equal(model.scores(probe, task.unseen), model_poisoned.scores(probe, task.unseen))
    assert (clean.finals, poisoned.finals) == (0, 0)
    with pytest.raises(CorruptInput, match="NaN or infinite"):
        poisoned.final()
    clean.final()
    assert (clean.finals, poisoned.finals) == (1, 1)


def test_what_fitting_gets_holds_no_test_image(planted: tuple[Task, FeatureRows]) -> None:
    task, rows = planted
    values = np.zeros((task.labels.size, 1))
    values[held_back(task)] = 1
    dataset = Dataset(task, replace(rows, values=values))
    for number in (1, 2, 3):
        train, features, _, _ = dataset.validation(number)
        assert not train.features.any()
        assert not features.any()
        assert train.features.base is None or train.features.base is not values
    assert not dataset.trainval().features.any()


def test_a_prediction_does_not_depend_on_the_other_test_images(planted: tuple[Task, FeatureRows]) -> None:
    """Pitfalls 4 and 5: normalisation is fitted on training images, and the test images pass through the same one."""
    task, rows = planted
    dataset = Dataset(task, rows)
    _, model = run(dataset)
    final = dataset.final()
    scores = model.scores(final.unseen.features, final.classes)
    order = np.random.default_rng(0).permutation(len(scores))
    np.testing.assert_allclose(model.scores(final.unseen.features[order], final.classes), scores[order], rtol=1e-9)
    np.testing.assert_allclose(model.scores(final.unseen.features[:1], final.classes), scores[:1], rtol=1e-9)
    # Were the test images not scaled as the training images are, an affine change of all features would show.
    moved = Dataset(task, replace(rows, values=7 * np.array(rows.values) + 3))
    moved_model = Eszsl(features="official").fit([moved.trainval()], [POINTS[1]], 0)[0][0]
    plain_model = Eszsl(features="official").fit([dataset.trainval()], [POINTS[1]], 0)[0][0]
    np.testing.assert_allclose(
        moved_model.scores(moved.final().unseen.features, final.classes),
        plain_model.scores(final.unseen.features, final.classes),
        rtol=1e-7,
        atol=1e-9,
    )


def test_a_planted_problem_is_solved(planted: tuple[Task, FeatureRows]) -> None:
    dataset = Dataset(*planted)
    accuracies, model = run(dataset)
    final = dataset.final()
    assert np.max(accuracies) > 90
    assert class_accuracy(predict(model, final.unseen.features, final.unseen_classes), final.unseen.labels).mean > 90


def test_records_name_features_embedding_and_dimensions(planted: tuple[Task, FeatureRows]) -> None:
    """Pitfalls 10 and 11: what side information it was, of which dimension, and how it was normalised."""
    task, rows = planted
    sentences = ClassEmbeddings(task.names, np.eye(50, 1024), None, "sentences")
    own, other = (Dataset(each, rows).describe() for each in (task, with_embeddings(task, sentences)))
    assert (own["embedding"], own["embedding_dim"], own["embedding_rows"]) == ("att", 85, "unit L2 norm")
    assert (other["embedding"], other["embedding_dim"]) == ("sentences", 1024)
    assert own["embedding_digest"] != other["embedding_digest"]
    assert (own["features"], own["feature_dim"]) == ("res101", 16)
    assert own["unseen_classes"] == [task.names[row] for row in task.unseen]


def test_embeddings_of_other_classes_are_refused(planted: tuple[Task, FeatureRows]) -> None:
    task, _ = planted
    turned = ClassEmbeddings(task.names[::-1], np.eye(50), None, "own")
    with pytest.raises(ConfigError, match="AWA1: embeddings own are not of its classes in their order"):
        with_embeddings(task, turned)


def test_embeddings_of_another_length_are_refused(planted: tuple[Task, FeatureRows]) -> None:
    task, rows = planted
    with pytest.raises(CorruptInput, match=r"embeddings att: class 1 .* is not of unit length"):
        Dataset(replace(task, embeddings=replace(task.embeddings, values=2 * task.embeddings.values)), rows)


def test_class_splits_count_from_one(planted: tuple[Task, FeatureRows]) -> None:
    dataset = Dataset(*planted)
    for number in (0, 4):
        with pytest.raises(ConfigError, match=f"class split {number} of 3, counted from 1"):
            dataset.validation(number)


def test_a_task_without_images_to_test_on(planted: tuple[Task, FeatureRows]) -> None:
    task, rows = planted
    with pytest.raises(CorruptInput, match="no images to train on, or none of unseen classes"):
        Dataset(replace(task, test_unseen=task.test_unseen[:0]), rows)


def test_classes_trained_on_and_tested_as_unseen(planted: tuple[Task, FeatureRows]) -> None:
    task, rows = planted
    moved = replace(task, test_unseen=np.append(task.test_unseen, task.trainval[-1]), trainval=task.trainval[:-1])
    with pytest.raises(CorruptInput, match=r"trained on and tested as unseen: awa1\+class\d+$"):
        Dataset(moved, rows)


def test_held_out_images_of_classes_that_are_not_trained_on(planted: tuple[Task, FeatureRows]) -> None:
    task, rows = planted
    moved = replace(task, test_seen=np.append(task.test_seen, task.test_unseen[-1]), test_unseen=task.test_unseen[:-1])
    with pytest.raises(CorruptInput, match="test_seen_loc has classes without training images"):
        Dataset(moved, rows)


def test_drawn_class_splits_are_reproducible() -> None:
    seen = np.array([2, 3, 5, 7, 11, 13])
    first, second = (draw_class_splits(seen, [2, 2, 3], 1) for _ in range(2))
    assert [split.val.tolist() for split in first] == [split.val.tolist() for split in second]
    assert [split.val.size for split in first] == [2, 2, 3]
    assert all(np.array_equal(np.union1d(split.train, split.val), seen) for split in first)
    with pytest.raises(ConfigError, match="class split 1: 6 of 6 seen classes cannot validate"):
        draw_class_splits(seen, [6], 1)


def test_features_of_npy_files(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "own.npy", values)
    rows = file_rows(Store(tmp_path / "store"), tmp_path / "own.npy")
    assert rows.name == "own"
    taken = rows.take(np.array([2, 0]))
    assert taken.dtype == np.float64
    assert taken.tolist() == values[[2, 0]].tolist()
    rows.require(4)
    with pytest.raises(CorruptInput, match=r"own\.npy: 4 x 3 .* but there are 3 images.*turned by 90 degrees"):
        rows.require(3)


def test_files_that_are_no_features(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(MissingInput, match="no such file of features"):
        file_rows(store, tmp_path / "own.npy")
    (tmp_path / "own.txt").write_text("1 2 3")
    with pytest.raises(ConfigError, match=r"expected a \.mat or \.npy file"):
        file_rows(store, tmp_path / "own.txt")
    (tmp_path / "own.npy").write_text("1 2 3")
    with pytest.raises(CorruptInput, match="cannot be read"):
        file_rows(store, tmp_path / "own.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(CorruptInput, match="holds <U1, expected numbers"):
        file_rows(store, tmp_path / "text.npy")
