"""Pre-train a backbone of the mini suite on the drawings of its seen concepts, on one thread of the CPU.

Writes NAME.safetensors, curves/NAME.csv (means over each epoch) and curves/NAME-steps.csv (the first steps).
"""

import argparse
import csv
from collections.abc import Sequence
from itertools import chain
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from harness import data
from harness.zoo.architectures import build_network
from harness.zoo.models import load_models
from harness.zoo.spec import ModelSpec
from tools.pretrain.dino import Dino
from tools.pretrain.drawings import Drawings
from tools.pretrain.drawings import load_drawings
from tools.pretrain.supervised import Supervised
from tools.pretrain.training import Method
from tools.pretrain.training import Recipe
from tools.pretrain.training import by_epoch
from tools.pretrain.training import neighbours_accuracy
from tools.pretrain.training import train

SEED = 0
RECIPES = {"sup-mini": Recipe(epochs=150, lr=2e-3), "s-DINO-mini": Recipe(epochs=140, lr=2e-3, stop=120)}
_FIRST_STEPS = 5
_VALIDATE_EVERY = 10


def entry(name: str) -> ModelSpec:
    """Return the entry of ``models.yaml``, which says what network it is and what it is fed."""
    return load_models(Path(__file__).parents[2] / "models.yaml").find(name)


def make(name: str, drawings: Drawings) -> Method:
    """Return what is trained for a model of this name, at its beginning."""
    spec = entry(name)
    if spec.feature.dim is None:
        raise ValueError(f"{name}: the entry has no feature.dim")
    backbone = build_network(spec.architecture, SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        if name == "sup-mini":
            return Supervised(backbone, spec.feature.dim, int(drawings.labels.max()) + 1)
        return Dino(backbone, spec.feature.dim)


def save(network: nn.Module, path: Path) -> None:
    """Write the weights in half precision, half the size: features move by less than a thousandth of their length."""
    weights = {name: tensor for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
    save_file({name: tensor.half().contiguous() for name, tensor in weights.items()}, path)


def write_table(path: Path, rows: Sequence[dict[str, float]]) -> None:
    """Write figures as CSV with six digits; what a row lacks stays empty."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(dict.fromkeys(chain.from_iterable(rows))), lineterminator="\n")
        table.writeheader()
        table.writerows({name: format(value, ".6g") for name, value in row.items()} for row in rows)


def pretrain(name: str, out: Path, limit: int | None) -> None:
    """Train one model and write it with its curves to ``out``; stop after ``limit`` steps."""
    (out / "curves").mkdir(parents=True, exist_ok=True)
    known, asked = load_drawings()
    method, rule = make(name, known), entry(name).input
    steps = islice(train(method, known, RECIPES[name], SEED), limit)
    first = list(islice(steps, _FIRST_STEPS))
    write_table(out / f"curves/{name}-steps.csv", first)
    rows = []
    for row in by_epoch(chain(first, steps)):
        if row["epoch"] % _VALIDATE_EVERY == 0:
            row["validation_accuracy"] = neighbours_accuracy(method.learnt, rule, known, asked)
            save(method.learnt, out / f"{name}.safetensors")
        rows.append(row)
        write_table(out / f"curves/{name}.csv", rows)
        print(", ".join(f"{figure} {value:.4g}" for figure, value in row.items()), flush=True)
    save(method.learnt, out / f"{name}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pretrain", description=__doc__)
    parser.add_argument("model", choices=RECIPES)
    parser.add_argument("--out", type=Path, default=data.path("backbones"), help="folder for weights and curves")
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pretrain(options.model, options.out, options.steps)


if __name__ == "__main__":
    main()
