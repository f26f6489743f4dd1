"""Speed of zero-shot methods beside plain loops, and what one validation split of each takes at AWA1's size.

    python perf/zsl.py [sgd] [eszsl] [splits] [--methods=ALE,SJE] [--tiny]

All sections where none is named. ``--tiny`` tries the script out with small numbers.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from harness.zsl.methods.ale import Ale
from harness.zsl.methods.ale import Devise
from harness.zsl.methods.eszsl import Eszsl
from harness.zsl.methods.latem import Latem
from harness.zsl.methods.ranking import Ranking
from harness.zsl.methods.registry import METHODS
from harness.zsl.methods.registry import make_method
from harness.zsl.methods.scaling import fit_scaling
from harness.zsl.methods.sje import Sje
from harness.zsl.metrics import best_classes
from harness.zsl.metrics import class_accuracy
from harness.zsl.metrics import predict
from harness.zsl.problem import ClassEmbeddings
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import TrainSet
from harness.zsl.problem import Validation
from harness.zsl.tuning import points_of
from harness.zsl.tuning import select
from tests.zsl import plain

TINY = "--tiny" in sys.argv
D = 64 if TINY else 2048
PLAIN_STEPS = 20 if TINY else 500
SHAPES = {"AWA1": (85, 50, 27), "CUB": (312, 200, 100)}
"""Attributes, all classes, training classes of a split."""
RULES: tuple[tuple[Ranking, Callable[[float], plain.Rule], bool], ...] = (
    (Sje(), plain.sje, False),
    (Devise(), plain.devise, False),
    (Ale(), plain.ale_author, True),
    (Ale(sampling="rank"), plain.ale_rank, False),
    (Latem(), plain.latem, True),
)


def main() -> None:
    """Print the sections named on the command line, or all."""
    sections = {"sgd": sgd, "eszsl": eszsl, "splits": splits}
    print(f"torch {torch.__version__}, numpy {np.__version__}, {torch.get_num_threads()} threads, d = {D}")
    for name in [word for word in sys.argv[1:] if not word.startswith("--")] or sections:
        sections[name]()


def sgd() -> None:
    """Time block-exact SGD per image of three splits and all points against the plain loop; compare selections."""
    for shape, wanted in (("AWA1", 5), ("CUB", 10)):
        attributes, classes, seen = SHAPES[shape]
        sets = [synthetic(classes, seen, attributes, 256 if TINY else 2048, seed)[0] for seed in range(3)]
        for method, rule, draws in RULES:
            points = [{**point, "epochs": 1} for point in points_of(method.grid(shape))]
            block = timed(partial(method.fit, sets, points, 0)) / len(sets[0].labels)
            loop = sum(plain_seconds(rule, sets[0], int(point.get("K", 1)), draws) for point in points) * len(sets)
            print(
                f"sgd {shape} {variant(method)}, {len(points)} points x 3 splits: {1e3 * block:.2f} ms per image, "
                f"plain loop {1e3 * loop:.1f} ms; {loop / block:.1f} times as fast (wanted {wanted})",
                flush=True,
            )
        same = [equal_selection(method, rule, draws, shape) for method, rule, draws in RULES]
        print(f"sgd {shape}: selections equal on a subset: block and plain {same}, float32 {single_selections(shape)}")


def plain_seconds(rule: Callable[[float], plain.Rule], train: TrainSet, planes: int, draws: bool) -> float:
    """Return seconds per image of the plain loop, measured over some steps."""
    steps = max(PLAIN_STEPS // planes, 10)
    x = fit_scaling("official", train.features).apply(train.features[:steps])
    w = np.random.default_rng(0).normal(size=(planes, D, train.seen.shape[1])) / np.sqrt(D)
    number = (1 if planes > 1 else len(train.classes)) if draws else 0
    seconds = timed(
        lambda: plain.plain_sgd(rule(0.01), w, x, train.seen.T, train.targets[:steps], draws=number, epochs=1, seed=0)
    )
    return seconds / steps


def equal_selection(method: Ranking, rule: Callable[[float], plain.Rule], draws: bool, shape: str) -> bool:
    """Say whether plain loop and blocks choose the same point, for a small set and one epoch."""
    split = subset(shape)
    points = [{**point, "epochs": 1} for point in points_of(method.grid(shape)) if int(point.get("K", 2)) == 2]
    number = (1 if method.name == "LATEM" else len(split.train.classes)) if draws else 0
    x = fit_scaling("official", split.train.features)
    accuracies = []
    for model, point in zip(method.fit([split.train], points, 0)[0], points, strict=True):
        start = model.starts[list(model.planes)]  # type: ignore[attr-defined] # a bilinear model
        w = plain.plain_sgd(
            rule(float(point["eta"])), start, x.apply(split.train.features), split.train.seen.T, split.train.targets,
            draws=number, epochs=1, seed=0,
        )  # fmt: skip
        scores = (x.apply(split.features) @ w @ split.train.embeddings.values[split.classes].T).max(0)
        found = class_accuracy(split.classes[scores.argmax(1)], split.labels).mean
        accuracies.append((found, class_accuracy(predict(model, split.features, split.classes), split.labels).mean))
    ours, theirs = np.array(accuracies).T
    return bool(ours.argmax() == theirs.argmax())


def single_selections(shape: str) -> list[bool]:
    """Say of each ranking method whether float32 chooses what float64 chooses."""
    split, same = subset(shape), []
    for kind in (Sje, Devise, Ale, Latem):
        grid = {**kind().grid(shape), "epochs": (2,)}
        double, single = (
            select(kind(precision=precision), [split], [(0,)], grid, 0)[0] for precision in ("float64", "float32")
        )
        same.append(double.point == single.point)
    return same


def eszsl() -> None:
    """Time the grid of ESZSL, fitting and scoring, against solving each point by itself."""
    split = awa1_split()
    method = Eszsl()
    points = list(points_of(method.grid("AWA1")))

    def whole() -> None:
        [models] = method.fit([split.train], points, 0)
        for scores in method.scores(models, split.features, split.classes):
            best_classes(scores, split.classes)

    seconds = timed(whole)
    few = points[:: len(points) // 3]
    alone = timed(lambda: [solve_point(split, float(p["gamma"]), float(p["lambda"])) for p in few]) / len(few)
    print(
        f"eszsl, {split.train.features.shape[0]:,} x {D}, {len(points)} points: {seconds:.1f} s; one point by itself "
        f"{alone:.2f} s; {len(points) * alone / seconds:.1f} times as fast (wanted 20)"
    )


def solve_point(split: Validation, gamma: float, penalty: float) -> Labels:
    """Solve and score one point as written in the paper, nothing kept from other points."""
    x, s = split.train.features, split.train.seen.T
    left = np.linalg.solve(x.T @ x + gamma * np.eye(D), x.T @ np.eye(s.shape[1])[split.train.targets] @ s.T)
    w = left @ np.linalg.inv(s @ s.T + penalty * np.eye(len(s)))
    best: Labels = (split.features @ w @ split.train.embeddings.values[split.classes].T).argmax(1)
    return best


def splits() -> None:
    """Run one validation split of each method at AWA1's size with its whole grid, each in a process of its own."""
    named = [word.removeprefix("--methods=").split(",") for word in sys.argv if word.startswith("--methods=")]
    total = 0.0
    for name in named[0] if named else METHODS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            selection, final, memory = pool.apply(split_of, (name,))
        whole = 3 * selection + 4 * final
        total += whole
        print(
            f"split {name}: selection {selection:.0f} s, one fit on train and validation {final:.0f} s, three splits "
            f"and four fits {whole / 60:.1f} min, peak memory {memory:.1f} GiB (wanted under 6)",
            flush=True,
        )
    print(f"splits: the whole protocol of these methods on AWA1 {total / 3600:.1f} h")


def split_of(name: str) -> tuple[float, float, float]:
    """Return seconds of a selection, of a fit with what was selected, and peak memory in GiB."""
    split = awa1_split()
    method = make_method(name)
    chosen = []
    grid = method.grid("AWA1")
    if TINY:
        grid = {key: values[:1] if key == "epochs" else values[:2] for key, values in grid.items()}
    seconds = timed(lambda: chosen.extend(select(method, [split], [(0,)], grid, 0)))
    more = 1 + len(split.train.labels) // 2
    rows = np.concatenate([np.arange(len(split.train.labels)), np.arange(more)])
    larger = TrainSet(split.train.features[rows], split.train.labels[rows], split.train.classes, split.train.embeddings)
    final = timed(lambda: method.fit([larger], [chosen[0].point], 0))
    return seconds, final, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def awa1_split() -> Validation:
    """Return a split of AWA1's size: 13,460 images of 27 classes to train on, 6,372 of 13 to select on."""
    attributes, classes, seen = SHAPES["AWA1"]
    n, images = (300, 100) if TINY else (13_460, 6372)
    train, split = synthetic(classes, seen, attributes, n, 0, val=13, images=images)
    return Validation(train, *split)


def subset(shape: str) -> Validation:
    """Return a small split of the classes and attributes of a data set."""
    attributes, classes, seen = SHAPES[shape]
    train, split = synthetic(classes, seen, attributes, 300, 1, val=classes // 4, images=300)
    return Validation(train, *split)


def synthetic(
    classes: int, seen: int, attributes: int, n: int, seed: int, *, val: int = 2, images: int = 10
) -> tuple[TrainSet, tuple[Floats, Labels, Labels]]:
    """Return images whose features are non-negative and depend on the attributes of their class, and some of others."""
    rng = np.random.default_rng(seed)
    values = rng.random((classes, attributes))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    order = rng.permutation(classes)
    table = ClassEmbeddings(tuple(map(str, range(classes))), values, None, "att")
    matrix = rng.normal(size=(attributes, D))

    def draw(some: Labels, count: int) -> tuple[Floats, Labels]:
        labels = rng.permutation(np.concatenate([some, rng.choice(some, count - len(some))]))
        features = values[labels] @ matrix
        features += 0.5 * rng.standard_normal(features.shape)
        return np.maximum(features, 0, out=features), labels

    known, others = np.sort(order[:seen]), np.sort(order[seen : seen + val])
    return TrainSet(*draw(known, n), known, table), (*draw(others, max(images, val)), others)


def variant(method: Ranking) -> str:
    """Return the name of a method with its sampling where it is not the default."""
    sampling = method.options.get("sampling", "author")
    return f"{method.name}-rank" if sampling == "rank" else method.name


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
