"""The solver against a plain loop of torch.optim.SGD over nn.Linear, and against itself in other company."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import nn

from harness.probe import logistic
from harness.probe import primal
from harness.probe import sampling
from harness.probe.chains import side_by_side
from harness.probe.chains import threads
from harness.probe.logistic import prepare
from harness.probe.logistic import top_classes
from harness.probe.logistic import train
from harness.probe.matrix import load_matrix
from harness.probe.settings import learning_rate_factors
from harness.probe.stack import Fit
from harness.probe.stack import Plan
from harness.probe.stack import Stack
from harness.probe.stack import residual_

CPU = torch.device("cpu")
EPOCHS = 12


@dataclass(frozen=True)
class Problem:
    """Random features, and the draws of each seed for the plain loop and the solver alike."""

    n: int
    d: int
    classes: int
    batch_size: int
    dtype: torch.dtype = torch.float32
    scale: float = 1.0

    @property
    def x(self) -> torch.Tensor:
        x = torch.randn(self.n, self.d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        return (self.scale * nn.functional.normalize(x)).to(self.dtype)

    @property
    def y(self) -> torch.Tensor:
        return torch.arange(self.n) % self.classes

    def start(self, seed: int) -> npt.NDArray[np.float32]:
        return sampling.first_weights(sampling.stream(seed, "start"), self.classes, self.d)

    def orders(self, seed: int) -> Iterator[sampling.Rows]:
        return sampling.shuffles(sampling.stream(seed, "order"), self.n, self.batch_size)

    def stack(self, seeds: Sequence[int], storage: torch.dtype | None = None) -> Stack:
        x = load_matrix(self.x, device=CPU, dtype=storage or self.dtype, l2_normalize=False)
        start = torch.zeros(len(seeds), self.classes, x.shape[1], dtype=self.dtype)
        for weights, seed in zip(start, seeds, strict=True):
            weights[:, : self.d + 1] = torch.from_numpy(self.start(seed))
        rows = torch.arange(self.n).repeat(len(seeds), 1)
        return Stack(x, self.y, rows, start, [partial(self.orders, seed) for seed in seeds], self.batch_size)


def plan(lr: Sequence[Sequence[float]], wd: Sequence[Sequence[float]], epochs: int = EPOCHS) -> Plan:
    factors = learning_rate_factors(epochs, "reference")
    return Plan(torch.tensor(lr, dtype=torch.float64), torch.tensor(wd, dtype=torch.float64), factors, 0.9)


def solve(stacks: Sequence[Stack], how: Plan) -> Fit:
    """Train as the protocol does."""
    parts = zip(how.lr[:, None], how.wd[:, None], strict=True)
    plans = [how] if len(stacks) == 1 else [replace(how, lr=lr, wd=wd) for lr, wd in parts]
    fits = side_by_side([train(stack, part) for stack, part in zip(stacks, plans, strict=True)])
    return Fit(torch.cat([fit.weight for fit in fits]), torch.cat([fit.loss for fit in fits], dim=1))


@pytest.fixture(params=["together", "apart"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the problems of a stack trained together, as small ones are, or apart, as large ones are on a CPU."""
    monkeypatch.setattr(logistic, "_SMALL", {"together": 1 << 16, "apart": 0}[request.param])
    return str(request.param)


@threads(1)
def plain_loop(problem: Problem, seed: int, lr: float, wd: float, epochs: int = EPOCHS) -> torch.Tensor:
    """Return [C, d + 1] weights and bias of one run, one batch at a time, by torch's own layers and optimiser."""
    model = nn.Linear(problem.d, problem.classes, dtype=problem.dtype)
    start = torch.from_numpy(problem.start(seed)).to(problem.dtype)
    model.load_state_dict({"weight": start[:, :-1], "bias": start[:, -1]})
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=wd)
    orders, x, y = problem.orders(seed), problem.x, problem.y
    for epoch in range(epochs):
        for rows in torch.from_numpy(next(orders)).split(problem.batch_size):  # type: ignore[no-untyped-call] # torch
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            if not loss.isfinite():
                return torch.cat([model.weight, model.bias[:, None]], 1).detach()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] = lr * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
    return torch.cat([model.weight, model.bias[:, None]], 1).detach()


def assert_near(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * float(expected.abs().max()))


MINIBATCH = Problem(n=70, d=20, classes=5, batch_size=32)
FULL_BATCH = Problem(n=30, d=20, classes=5, batch_size=32)
LR, WD = [[0.5, 10.0], [3.0, 30.0]], [[1e-12, 1e-3], [1e-2, 1e-6]]


@pytest.mark.parametrize("problem", [MINIBATCH, FULL_BATCH, replace(MINIBATCH, n=30, d=10)], ids=repr)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_weights_are_those_of_sgd_on_linear(problem: Problem, dtype: torch.dtype, tolerance: float, size: str) -> None:
    problem = replace(problem, dtype=dtype)
    stacks = prepare(problem.stack([1, 2]))
    assert len(stacks) == {"together": 1, "apart": 2}[size]
    fit = solve(stacks, plan(LR, WD))
    for s, seed in enumerate([1, 2]):
        for r in range(2):
            expected = plain_loop(problem, seed, LR[s][r], WD[s][r])
            found = fit.weight[s, r, :, : problem.d + 1]
            assert_near(found, expected, tolerance)


def test_form_follows_size() -> None:
    assert all(stack.gram is not None for stack in prepare(FULL_BATCH.stack([1])))
    assert all(stack.gram is None for stack in prepare(MINIBATCH.stack([1])))
    assert all(stack.gram is None for stack in prepare(Problem(n=64, d=15, classes=5, batch_size=64).stack([1])))


def test_both_forms_agree() -> None:
    how = plan(LR, WD)
    stacks = prepare(FULL_BATCH.stack([1, 2]))
    dual, direct = solve(stacks, how), solve([replace(stack, gram=None) for stack in stacks], how)
    assert_near(dual.weight, direct.weight, 1e-5)
    torch.testing.assert_close(dual.loss, direct.loss, rtol=1e-4, atol=1e-5)


def test_padding_stays_zero() -> None:
    for problem in (MINIBATCH, FULL_BATCH):
        weight = solve(prepare(problem.stack([1])), plan(LR[:1], WD[:1])).weight
        assert weight.shape[-1] > problem.d + 1
        assert not weight[..., problem.d + 1 :].any()


@pytest.mark.parametrize("problem", [MINIBATCH, FULL_BATCH], ids=["primal", "dual"])
def test_a_run_does_not_feel_its_neighbours(problem: Problem, size: str) -> None:
    full = solve(prepare(problem.stack([1, 2])), plan(LR, WD))
    alone = solve(prepare(problem.stack([2])), plan(LR[1:], WD[1:]))
    assert_near(full.weight[1], alone.weight[0], 1e-5)
    assert size == "together" or torch.equal(full.weight[1], alone.weight[0])
    single = solve(prepare(problem.stack([2])), plan([[LR[1][1]]], [[WD[1][1]]]))
    assert_near(full.weight[1, 1], single.weight[0, 0], 1e-5)


@pytest.mark.parametrize("problem", [MINIBATCH, FULL_BATCH], ids=["primal", "dual"])
def test_threads_do_not_matter(problem: Problem, size: str) -> None:
    two = solve(prepare(problem.stack([1, 2])), plan(LR, WD))
    with threads(1):
        one = solve(prepare(problem.stack([1, 2])), plan(LR, WD))
    assert_near(one.weight, two.weight, 1e-5)
    assert size == "together" or torch.equal(one.weight, two.weight)


@pytest.mark.parametrize("storage", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("numbers", [1, 350])
def test_work_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch, storage: torch.dtype, numbers: int) -> None:
    how = plan([[0.5, 3.0, 10.0]], [[1e-3, 1e-2, 1e-6]])
    whole = solve([MINIBATCH.stack([1], storage)], how)
    monkeypatch.setattr(primal, "_CACHED", numbers)
    parts = solve([MINIBATCH.stack([1], storage)], how)
    assert torch.equal(whole.weight, parts.weight)
    assert torch.equal(whole.loss, parts.loss)


def test_rows_are_the_ones_given() -> None:
    stack = MINIBATCH.stack([1])
    rows = torch.arange(0, 60, 2)[None]
    orders = [partial(sampling.shuffles, np.random.default_rng(5), 30, 16)]
    some = replace(stack, rows=rows, batch_size=16, shuffles=orders)
    copy = replace(
        some,
        x=stack.x[rows[0]],
        labels=stack.labels[rows[0]],
        rows=torch.arange(30)[None],
        shuffles=[partial(sampling.shuffles, np.random.default_rng(5), 30, 16)],
    )
    how = plan([[1.0]], [[1e-4]])
    assert torch.equal(solve([some], how).weight, solve([copy], how).weight)


def test_loss_is_the_mean_cross_entropy_before_each_step() -> None:
    fit = solve(prepare(FULL_BATCH.stack([3])), plan([[2.0]], [[0.0]], epochs=2))
    x, y, start = FULL_BATCH.x, FULL_BATCH.y, torch.from_numpy(FULL_BATCH.start(3))
    expected = nn.functional.cross_entropy(x @ start[:, :-1].T + start[:, -1], y)
    assert float(fit.loss[0, 0, 0]) / 30 == pytest.approx(float(expected), rel=1e-6)
    assert fit.loss.shape == (2, 1, 1)


@pytest.mark.parametrize("problem", [replace(MINIBATCH, scale=1e18), replace(FULL_BATCH, scale=1e18)])
def test_a_diverged_run_keeps_the_weights_of_its_last_finite_step(problem: Problem) -> None:
    lr, wd = [[1e-36, 1e4]], [[0.0, 0.0]]
    fit = solve(prepare(problem.stack([1])), plan(lr, wd))
    finite = fit.loss.isfinite()
    assert finite[:, 0, 0].all()
    steps = int(finite[:, 0, 1].sum())
    assert 0 < steps < len(fit.loss)
    assert finite[:steps, 0, 1].all()
    stopped = plain_loop(problem, 1, 1e4, 0.0)
    assert stopped.isfinite().all()
    assert_near(fit.weight[0, 1, :, : problem.d + 1], stopped, 1e-5)


def test_a_run_that_starts_with_infinite_loss_keeps_its_first_weights() -> None:
    problem = replace(FULL_BATCH, scale=1e38)
    fit = solve([replace(stack, gram=None) for stack in prepare(problem.stack([1]))], plan([[1.0]], [[0.0]]))
    assert not fit.loss.isfinite().any()
    assert torch.equal(fit.weight[0, 0, :, :21], torch.from_numpy(problem.start(1)))


def test_low_precision_follows_float32() -> None:
    problem = Problem(n=300, d=64, classes=4, batch_size=128)
    how = plan([[5.0, 0.5]], [[1e-6, 1e-4]])
    exact = solve(prepare(problem.stack([1])), how).weight
    low = solve(prepare(problem.stack([1], torch.bfloat16)), how).weight
    assert low.dtype == torch.float32
    assert float((low[..., :65] - exact[..., :65]).norm() / exact.norm()) < 0.01


def test_converged_run_agrees_with_sklearn() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 10
    x = (0.35 * rng.normal(size=(10, 24))[y] + rng.normal(size=(2000, 24))).astype(np.float64)
    n, wd = 1000, 1e-2
    # The bias is penalised too, so it is a constant column of sklearn's features and none of its own.
    ones = np.hstack([x, np.ones((2000, 1))])
    oracle = LogisticRegression(C=1 / (wd * n), fit_intercept=False, tol=1e-8, max_iter=2000).fit(ones[:n], y[:n])
    matrix = load_matrix(x, device=CPU, dtype=torch.float64, l2_normalize=False)
    labels = torch.from_numpy(y)
    start = torch.zeros(1, 10, matrix.shape[1], dtype=torch.float64)
    stack = Stack(matrix, labels, torch.arange(n)[None], start, [lambda: iter([np.arange(n)] * 400)], batch_size=n)
    weight = solve(prepare(stack), plan([[0.5]], [[wd]], epochs=400)).weight[0]
    np.testing.assert_allclose(weight[0, :, :25].numpy(), oracle.coef_, atol=1e-3)
    found = top_classes(matrix, torch.arange(n, 2000), weight, 1)[0, 0].numpy()
    assert abs((found == y[n:]).mean() - oracle.score(ones[n:], y[n:])) <= 0.001


@given(st.integers(0, 2**31), st.sampled_from([0.1, 10.0, 1e3]))
@settings(max_examples=25, deadline=None)
def test_residual_is_the_gradient_of_cross_entropy(seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(2, 3, 4, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(4, (2, 6), generator=generator)
    reference = logits.clone().requires_grad_()
    targets = labels[:, None].expand(2, 3, 6).flatten(0, 1)
    loss = nn.functional.cross_entropy(reference.flatten(0, 1), targets, reduction="none").view(2, 3, 6).sum(2)
    loss.sum().backward()  # type: ignore[no-untyped-call] # torch
    assert reference.grad is not None
    torch.testing.assert_close(residual_(logits, labels), loss.detach())
    torch.testing.assert_close(logits, reference.grad, rtol=1e-9, atol=1e-9)


def test_residual_of_infinite_logits_is_a_loss_that_is_not_finite() -> None:
    logits = torch.zeros(1, 2, 3, 4)
    logits[0, 1, 2, 3] = torch.inf
    assert residual_(logits, torch.zeros(1, 4, dtype=torch.int64)).isfinite().tolist() == [[True, False]]


def test_top_classes_are_ordered_by_logit() -> None:
    x = load_matrix(torch.eye(3), device=CPU, dtype=torch.float32, l2_normalize=False)
    weight = torch.zeros(1, 4, x.shape[1])
    weight[0, :, :3] = torch.tensor([[0.0, 5, 1], [1, 4, 2], [2, 3, 3], [9, 0, 4]])
    weight[0, 1, 3] = 2.5
    assert top_classes(x, torch.tensor([0, 1]), weight, 2)[0].T.tolist() == [[3, 1], [1, 0]]
    assert top_classes(x, torch.tensor([2, 1]), weight, 1)[0, 0].tolist() == [1, 1]
