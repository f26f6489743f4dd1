"""CONSE, DAP, IAP and SYNC: the solver against scikit-learn, the rules against numbers computed by hand."""

from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from harness.zsl.methods.attributes import AttributeModel
from harness.zsl.methods.attributes import Dap
from harness.zsl.methods.attributes import Iap
from harness.zsl.methods.attributes import binary
from harness.zsl.methods.classifier import Classifier
from harness.zsl.methods.classifier import class_signs
from harness.zsl.methods.classifier import fit_classifiers
from harness.zsl.methods.conse import Conse
from harness.zsl.methods.conse import ConseModel
from harness.zsl.methods.linear import fit_path
from harness.zsl.methods.linear import logistic
from harness.zsl.methods.linear import softmax
from harness.zsl.methods.scaling import Scaling
from harness.zsl.methods.sync import Sync
from harness.zsl.methods.sync import SyncModel
from harness.zsl.methods.sync import signature_distances
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import TrainSet

if TYPE_CHECKING:
    from tests.zsl.conftest import MakeSet

LN2, LN3 = np.log(2), np.log(3)


@pytest.mark.parametrize("cost", [2.0**-4, 1.0, 100.0])
def test_logistic_regressions_are_those_of_liblinear(make_set: "MakeSet", cost: float) -> None:
    train = make_set(images=80)
    signs = class_signs(train)
    path = fit_path(train.features, logistic(signs), 7, [1 / cost, 0.5 / cost], curvature=0.25, tolerance=1e-11)
    for k, label in enumerate(train.classes):
        reference = LogisticRegression(C=cost, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=1000)
        reference.fit(train.features, train.labels == label)
        np.testing.assert_allclose(path[1 / cost][:, k], reference.coef_[0], rtol=1e-5, atol=1e-5)


def test_softmax_regression_has_no_gradient_at_its_solution(make_set: "MakeSet") -> None:
    train = make_set(flat=True)
    x, targets = train.features, np.eye(7)[train.targets]
    w = fit_path(x, softmax(targets), 7, [1e-2], curvature=0.5 / len(x), tolerance=1e-9)[1e-2]
    p = np.exp(x @ w)
    gradient = x.T @ (p / p.sum(1, keepdims=True) - targets) / len(x) + 1e-2 * w
    assert np.abs(gradient).max() < 1e-8


def two_seen() -> Classifier:
    """Probabilities of two classes: 1/2 and 1/4 before they are renormalised to 2/3 and 1/3."""
    return Classifier(Scaling(), np.array([[0.0, -LN3]]))


def test_conse_by_hand() -> None:
    table = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]])
    both = ConseModel(two_seen(), 2, table[:2], table)
    # f = (2/3, 1/3), of length sqrt(5)/3
    expected = np.array([[2.0, 1.0, 2 * 0.6 + 0.8, 2 * 0.8 + 0.6]]) / np.sqrt(5)
    np.testing.assert_allclose(both.scores(np.ones((1, 1)), np.arange(4)), expected)
    likeliest = ConseModel(two_seen(), 1, table[:2], table)
    np.testing.assert_allclose(likeliest.scores(np.ones((1, 1)), np.array([3, 2, 0])), [[0.8, 0.6, 1.0]])


def test_conse_takes_all_classes_or_fewer(make_set: "MakeSet") -> None:
    points = [{"C": 1.0, "T": top} for top in ("all", 7, 99, 2)]
    [models] = Conse().fit([make_set()], points, 0)
    one, two, three, few = (model.scores(np.eye(9), np.arange(10)) for model in models)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    assert not np.allclose(one, few)


def test_attribute_rule_by_hand() -> None:
    table = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    prior = np.array([0.5, 0.25])
    model = AttributeModel(lambda features: np.tile([0.8, 0.4], (len(features), 1)), table, prior, 1e-6)
    odds = [0.8 / 0.5 * 0.6 / 0.75, 0.2 / 0.5 * 0.4 / 0.25, 0.8 / 0.5 * 0.4 / 0.25, 0.2 / 0.5 * 0.6 / 0.75]
    np.testing.assert_allclose(model.scores(np.zeros((1, 3)), np.arange(4)), np.log([odds]))


def toy(original: "np.ndarray") -> TrainSet:
    """Two seen classes at x = 1 and x = -1, of four."""
    values = np.eye(4)[:, : original.shape[1]] + 1
    embeddings = ClassEmbeddings(tuple("abcd"), values / np.linalg.norm(values, axis=1, keepdims=True), original, "att")
    return TrainSet(np.array([[1.0], [-1.0]]), np.array([0, 1]), np.array([0, 1]), embeddings)


def test_dap_and_iap_by_hand() -> None:
    # mean of the matrix 0.5; the last attribute is one of all seen classes and drops out
    original = np.array([[0.9, 0.0, 0.8], [0.1, 1.0, 0.7], [0.9, 1.0, 0.0], [0.2, 0.0, 0.4]])
    train = toy(original)
    assert binary(train.embeddings).tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]]
    [[dap]], [[iap]] = Dap().fit([train], [{"C": 4.0}], 0), Iap().fit([train], [{"C": 4.0}], 0)
    # one weight w solves w = 2 C sigmoid(-w), and both attributes mirror each other
    w = fit_classifiers(train, "l2", class_signs(train), [4.0])[4.0].weights[0, 0]
    assert w == pytest.approx(8 / (1 + np.exp(w)), rel=1e-4)
    p = 1 / (1 + np.exp(-w))
    expected = np.log([[4 * p * p, 4 * (1 - p) ** 2, 4 * p * (1 - p), 4 * p * (1 - p)]])
    np.testing.assert_allclose(dap.scores(np.array([[3.0]]), np.arange(4)), expected, rtol=1e-4)
    np.testing.assert_allclose(iap.scores(np.array([[3.0]]), np.arange(4)), expected, rtol=1e-4)


def test_iap_sums_class_probabilities(make_set: "MakeSet") -> None:
    train = make_set()
    [[iap]] = Iap(clip=1e-3).fit([train], [{"C": 1.0}], 0)
    assert isinstance(iap, AttributeModel)
    p = fit_classifiers(train, "l2", class_signs(train), [1.0])[1.0].probabilities(train.features)
    table = binary(train.embeddings)[train.classes]
    mixed = (table.mean(0) > 0) & (table.mean(0) < 1)
    found = iap.probabilities(train.features)
    np.testing.assert_allclose(found[:, mixed], (p @ table)[:, mixed])
    assert (found[:, ~mixed] == 0.5).all()


@pytest.mark.parametrize("penalty", [2.0**-9, 2.0**-6])
def test_sync_ovo_is_a_linear_svm_per_class(make_set: "MakeSet", penalty: float) -> None:
    train = make_set(images=90, flat=True)
    [[model]] = Sync(tolerance=1e-12).fit([train], [{"lambda": penalty, "scale": 1.0}], 0)
    assert isinstance(model, SyncModel)
    x = train.features / np.linalg.norm(train.features, axis=1, keepdims=True)
    for k, label in enumerate(train.classes):
        svm = LinearSVC(dual=True, fit_intercept=False, C=1 / (penalty * len(x) * 7), tol=1e-11, max_iter=100_000)
        svm.fit(x, np.where(train.labels == label, 1, -1))
        np.testing.assert_allclose(model.weights[:, k], svm.coef_[0], atol=1e-8 * np.abs(svm.coef_).max())


def test_sync_cs_comes_close_to_the_optimum_of_liblinear(make_set: "MakeSet") -> None:
    train, penalty = make_set(images=90, flat=True), 2.0**-8
    [[model]] = Sync(loss="cs").fit([train], [{"lambda": penalty, "scale": 1.0}], 0)
    assert isinstance(model, SyncModel)
    x = train.features / np.linalg.norm(train.features, axis=1, keepdims=True)
    svm = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=1 / (penalty * len(x)), tol=1e-8, max_iter=10**6
    )
    svm.fit(x, train.targets)

    def objective(w: "np.ndarray") -> float:
        scores, rows = x @ w, np.arange(len(x))
        margins = scores + 1.0
        margins[rows, train.targets] -= 1
        return float((margins.max(1) - scores[rows, train.targets]).mean() + penalty / 2 * (w**2).sum())

    assert objective(model.weights) < 1.01 * objective(svm.coef_.T)


def test_sync_struct_has_distances_as_margins(make_set: "MakeSet") -> None:
    train = make_set(images=90)
    structured, plain = (
        Sync(loss=loss).fit([train], [{"lambda": 2.0**-8, "scale": 1.0}], 0)[0][0] for loss in ("struct", "cs")
    )
    assert isinstance(structured, SyncModel)
    assert isinstance(plain, SyncModel)
    assert not np.allclose(structured.weights, plain.weights, rtol=1e-2)


def test_sync_mixes_classifiers_by_similarity(make_set: "MakeSet") -> None:
    train, scale = make_set(images=90), 4.0
    [[model]] = Sync().fit([train], [{"lambda": 2.0**-8, "scale": scale}], 0)
    assert isinstance(model, SyncModel)
    y = train.embeddings.values
    pairs = [np.linalg.norm(y[i] - y[j]) for i in range(10) for j in range(i)]
    distances = signature_distances(y)
    assert distances[2, 5] == pytest.approx(np.linalg.norm(y[2] - y[5]) / np.median(pairs))
    unseen = np.setdiff1d(np.arange(10), train.classes)
    kernel = np.exp(-scale * distances[:, train.classes] ** 2)
    kernel /= kernel.sum(1, keepdims=True)
    phantom = np.linalg.pinv(kernel[train.classes]) @ model.weights.T
    x = train.features[:4] / np.linalg.norm(train.features[:4], axis=1, keepdims=True)
    np.testing.assert_allclose(model.scores(train.features[:4], unseen), x @ (kernel[unseen] @ phantom).T, rtol=1e-7)
    np.testing.assert_allclose(model.scores(train.features[:4], train.classes), x @ model.weights)
