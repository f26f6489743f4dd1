"""Speed of the probe beside a plain loop and beside the machine's own matrix product, measured in one run.

    python perf/probe.py [level] [bound] [accuracy] [tpe]

All sections where none is named. What is compared runs in turn, several times over, and medians are printed, so that
a neighbour's load falls on both sides.
"""

import statistics
import sys
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from harness.probe.chains import side_by_side
from harness.probe.data import Labelled
from harness.probe.data import ProbeData
from harness.probe.data import load_data
from harness.probe.draws import final_rows
from harness.probe.draws import stack_seeds
from harness.probe.draws import trial_rows
from harness.probe.logistic import top_classes
from harness.probe.logistic import train
from harness.probe.protocol import linear_probe
from harness.probe.settings import Precision
from harness.probe.settings import ProbeSettings
from harness.probe.settings import Tpe
from harness.probe.settings import learning_rate_factors
from harness.probe.stack import Plan
from harness.probe.stack import Stack

SEEDS = (22, 37, 45, 77, 93)
PUBLISHED = ProbeSettings()
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")


def main() -> None:
    """Print the sections named on the command line, or all."""
    sections = {"level": level, "bound": bound, "accuracy": accuracy, "tpe": tpe}
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    for name in sys.argv[1:] or sections:
        sections[name]()


def level() -> None:
    """Time the whole protocol at the size of a mini level against plain training, classifier for classifier."""
    learn, test = clusters(55, 1280, 8, 5, spread=4.0)
    data = load_data(learn, test, PUBLISHED, torch.device("cpu"))
    rows = torch.from_numpy(trial_rows(data.labels, SEEDS[0], PUBLISHED, None)[0])
    x, y = data.x[rows, : data.d].contiguous(), data.y[rows]
    seconds = in_turn(
        {
            "probe": lambda: linear_probe(learn, test, seeds=SEEDS),
            "plain": lambda: [plain_fit(x, y, lr, 1e-6) for lr in (0.1, 1.0, 10.0, 100.0)],
        },
        4,
    )
    probe, plain = seconds["probe"] / (len(SEEDS) * (PUBLISHED.trials + 1)), seconds["plain"] / 4
    print(
        f"level, 440 x 1,280, 55 classes: {1e3 * probe:.1f} ms per classifier in 5 seeds x (30 trials + 1), all "
        f"included; torch.optim.SGD one at a time {1e3 * plain:.1f} ms; {plain / probe:.1f} times as fast (wanted 1.5)"
    )


def bound() -> None:
    """Set training at a compute-bound size, 5 seeds, against a large square product and against plain training.

    ``single`` is a round of one trial per seed, ``start-up`` one of ten; of the 31 classifiers of a seed 10 are trained
    in the latter way.
    """
    product, work = square_products(4), {}
    for precision in PRECISIONS:
        data = bound_data(precision)
        rows = [final_rows(data.labels, seed, None) for seed in SEEDS]
        stacks = stack_seeds(data, rows, SEEDS, "final", PUBLISHED.batch_size)
        work[f"{precision} single"] = training(stacks, runs=1, epochs=4)
        work[f"{precision} start-up"] = training(stacks, runs=10, epochs=2)
    data = bound_data("float32")
    x, y = data.x[:, : data.d].contiguous(), data.y
    seconds = in_turn({"product": product, "plain": lambda: plain_fit(x, y, 5.0, 1e-6, epochs=2), **work}, 5)
    epoch = 4 * 20_000 * 1280 * 200
    peak, plain = 4 * 2 * 4096**3 / seconds["product"], 2 * epoch / seconds["plain"]
    print(
        f"bound, 20,000 x 1,280, 200 classes, 5 seeds: torch.mm of 4,096 squared {peak / 1e9:.0f} GFLOP/s; "
        f"torch.optim.SGD one at a time {plain / 1e9:.0f}"
    )
    print("  wanted: float32 at 80% of torch.mm, bfloat16 at 3 times float32")
    rates = {}
    for precision in PRECISIONS:
        single, startup = 20 * epoch / seconds[f"{precision} single"], 100 * epoch / seconds[f"{precision} start-up"]
        rates[precision] = single, startup, 31 / (21 / single + 10 / startup)
        for name, rate, full in zip(("single", "start-up", "all 31"), rates[precision], rates["float32"], strict=True):
            print(
                f"  {precision} {name}: {rate / 1e9:.0f} GFLOP/s, {rate / peak:.0%} of torch.mm, "
                f"{rate / full:.2f} times float32, {rate / plain:.1f} times plain"
            )


def accuracy() -> None:
    """Compare both precisions in the chosen trial of 3 seeds: chosen in float32, trained in both."""
    seeds, lrs = SEEDS[:3], (0.5, 5.0, 50.0)
    points: list[tuple[float, ...]] = [lrs] * len(seeds)
    val, test = top1_of_trials(bound_data("float32"), seeds, points)
    picks = [max(range(len(lrs)), key=row.__getitem__) for row in val]
    full = [[row[pick] for row, pick in zip(rows, picks, strict=True)] for rows in (val, test)]
    low = top1_of_trials(bound_data("bfloat16"), seeds, [(lrs[pick],) for pick in picks])
    for name, one, other in zip(("validation", "test"), full, low, strict=True):
        means = statistics.mean(one), statistics.mean(row[0] for row in other)
        print(
            f"accuracy, chosen trials of 3 seeds, {name} top-1: float32 {means[0]:.3f}, bfloat16 {means[1]:.3f}, "
            f"{means[1] - means[0]:+.3f} points (wanted within 0.05)"
        )


def tpe() -> None:
    """Compare sequential and batched TPE in time and in what they find, 10 seeds."""
    learn, test = clusters(55, 1280, 8, 20, spread=7.0)
    kinds: tuple[Tpe, ...] = ("sequential", "batched")
    for kind in kinds:
        start = time.perf_counter()
        score = linear_probe(learn, test, seeds=range(10), settings=replace(PUBLISHED, tpe=kind))
        seconds = time.perf_counter() - start
        val = statistics.mean(one.best.val_top1 for one in score.seeds)
        print(
            f"tpe {kind}, level size, 10 seeds: {seconds:.2f} s, best validation top-1 {val:.2f}, "
            f"test top-1 {score.mean:.2f} +- {score.std:.2f}"
        )


def clusters(classes: int, d: int, n_train: int, n_test: int, spread: float) -> tuple[Labelled, Labelled]:
    """Return training and test sets of Gaussian clusters, numbers per class."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(classes, d)).astype(np.float32)

    def sample(n: int) -> Labelled:
        y = np.repeat(np.arange(classes), n)
        return means[y] + spread * rng.normal(size=(len(y), d)).astype(np.float32), y

    return sample(n_train), sample(n_test)


def bound_data(precision: Precision) -> ProbeData:
    """Return 200 classes of 100 training and 50 test images, stored in the given precision."""
    learn, test = clusters(200, 1280, 100, 50, spread=9.0)
    return load_data(learn, test, replace(PUBLISHED, precision=precision), torch.device("cpu"))


def plain_fit(x: torch.Tensor, y: torch.Tensor, lr: float, wd: float, epochs: int = PUBLISHED.epochs) -> nn.Linear:
    """Train one classifier as the reference code does, without its evaluation after each epoch."""
    model = nn.Linear(x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=PUBLISHED.momentum, weight_decay=wd)
    for factor in learning_rate_factors(PUBLISHED.epochs, PUBLISHED.schedule)[:epochs]:
        for group in optimizer.param_groups:
            group["lr"] = lr * factor
        order = torch.randperm(len(x))
        for start in range(0, len(x), PUBLISHED.batch_size):
            rows = order[start : start + PUBLISHED.batch_size]
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
    return model


def square_products(count: int) -> Callable[[], object]:
    """Return the work of some products of 4,096 squared."""
    square = torch.randn(4096, 4096)
    return lambda: [square @ square for _ in range(count)]


def training(stacks: Sequence[Stack], runs: int, epochs: int) -> Callable[[], object]:
    """Return the work of the first epochs of some runs of every problem."""
    factors = learning_rate_factors(PUBLISHED.epochs, PUBLISHED.schedule)[:epochs]
    lr, wd = torch.full((1, runs), 5.0), torch.full((1, runs), 1e-6)
    plan = Plan(lr, wd, factors, PUBLISHED.momentum)
    return lambda: side_by_side([train(stack, plan) for stack in stacks])


def top1_of_trials(
    data: ProbeData, seeds: Sequence[int], points: Sequence[tuple[float, ...]]
) -> tuple[list[list[float]], list[list[float]]]:
    """Return validation and test top-1 in percent of each seed's trials at the given learning rates."""
    draws = [trial_rows(data.labels, seed, PUBLISHED, None) for seed in seeds]
    stacks = stack_seeds(data, [rows for rows, _ in draws], seeds, "trials", PUBLISHED.batch_size)
    factors = learning_rate_factors(PUBLISHED.epochs, PUBLISHED.schedule)
    plans = [Plan(torch.tensor([lrs]), torch.full((1, len(lrs)), 1e-7), factors, PUBLISHED.momentum) for lrs in points]
    fits = side_by_side([train(stack, plan) for stack, plan in zip(stacks, plans, strict=True)])
    val, test = [], []
    everything = torch.arange(len(data.test_x))
    for fit, (_, rows) in zip(fits, draws, strict=True):
        weight = fit.weight[0]
        hits = top_classes(data.x, torch.from_numpy(rows), weight, 1)[:, 0] == data.y[torch.from_numpy(rows)]
        val.append((100 * hits.double().mean(1)).tolist())
        hits = top_classes(data.test_x, everything, weight, 1)[:, 0] == torch.from_numpy(data.test_labels)
        test.append((100 * hits.double().mean(1)).tolist())
    return val, test


def in_turn(work: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each piece of work, all run in turn, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, piece in work.items():
            start = time.perf_counter()
            piece()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


if __name__ == "__main__":
    main()
