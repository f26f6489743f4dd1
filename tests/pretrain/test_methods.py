"""The parts of the pre-training against plain calculations."""

import math
from itertools import islice

import pytest
import torch
from torch import Generator
from torch import Tensor
from torch import nn

from harness.zoo.spec import Input
from tools.pretrain import augment
from tools.pretrain import dino
from tools.pretrain.augment import View
from tools.pretrain.augment import view
from tools.pretrain.drawings import Drawings
from tools.pretrain.supervised import Supervised
from tools.pretrain.training import Method
from tools.pretrain.training import Recipe
from tools.pretrain.training import by_epoch
from tools.pretrain.training import neighbours_accuracy
from tools.pretrain.training import train


class Means(nn.Module):
    """Mean of each channel."""

    dtype = torch.float32

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3), dtype=self.dtype)


class Doubles(Means):
    dtype = torch.float64


def plain(n: int, seed: int = 0) -> Drawings:
    pixels = torch.randint(0, 256, (n, 3, 80, 80), dtype=torch.uint8, generator=Generator().manual_seed(seed))
    return Drawings(tuple(map(str, range(n))), pixels, torch.arange(n) % 3)


def test_a_turn_of_the_hue_by_a_third_swaps_the_channels() -> None:
    turned = augment._hue(torch.tensor([0.0, 2 * math.pi / 3]))
    assert torch.allclose(turned[0], torch.eye(3), atol=1e-6)
    assert torch.allclose(turned[1] @ torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), atol=1e-6)


def test_white_stays_without_borders_whatever_the_view() -> None:
    white = torch.full((200, 3, 80, 80), 255, dtype=torch.uint8)
    seen = view(white, View(24, (0.2, 2.0)), Generator().manual_seed(0))
    assert seen.shape == (200, 3, 24, 24)
    assert (seen.amax((2, 3)) - seen.amin((2, 3))).max() < 1e-4


def test_views_differ_and_repeat() -> None:
    pixels = plain(4).pixels
    kind = View(32, (0.3, 1.0))
    first, again, other = (view(pixels, kind, Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert (first - other).abs().mean() > 0.1


def test_the_dino_loss_is_that_of_its_paper() -> None:
    """Against the pseudo-code of the paper (algorithm 1, with multi-crop), pair by pair, on the same views."""
    torch.manual_seed(0)
    method = dino.Dino(Means(), 3).double()
    method.student, method.teacher = (nn.Sequential(Doubles(), nn.Linear(3, 512)).double() for _ in range(2))
    drawings, draw = plain(5), Generator().manual_seed(3)
    views = [view(drawings.pixels, dino._WIDE, draw) for _ in range(2)]
    views += [view(drawings.pixels, dino._NARROW, draw) for _ in range(2)]
    with torch.no_grad():
        targets = dino.centred(torch.cat([method.teacher(one) for one in views[:2]]))
        answers = [torch.softmax(method.student(one) / 0.1, dim=1) for one in views]
    distances = [
        float(-(target * answer.log()).sum(1).mean())
        for t, target in enumerate(torch.split(targets, 5))
        for s, answer in enumerate(answers)
        if s != t
    ]
    loss, figures = method.loss(drawings, Generator().manual_seed(3))
    assert len(distances) == 6
    assert loss.item() == pytest.approx(sum(distances) / 6)
    assert figures["teacher_entropy"] == pytest.approx(float(-(targets * targets.log()).sum(1).mean()))


def test_centring_balances_prototypes_and_keeps_what_tells_drawings_apart() -> None:
    """Scores that all drawings share, and their level, cancel: unlike a softmax, which would choose prototype 0."""
    scores = torch.zeros(6, 3)
    scores[:, 0] += 0.5
    scores[torch.arange(6), torch.arange(6) // 2] += 0.1
    targets = dino.centred(scores)
    assert torch.allclose(targets.sum(1), torch.ones(6))
    assert torch.allclose(targets.sum(0), torch.full((3,), 2.0), atol=1e-3)
    assert targets.argmax(1).tolist() == [0, 0, 1, 1, 2, 2]
    assert torch.allclose(dino.centred(scores + 0.7), targets, atol=1e-5)
    assert dino.centred(torch.tensor([[1.0, -1.0], [-1.0, 1.0]])).isfinite().all()


def test_only_the_student_learns_and_the_teacher_follows() -> None:
    method = dino.Dino(nn.Sequential(Means(), nn.Linear(3, 4)), 4)
    before = [weight.clone() for weight in method.teacher.parameters()]
    for weight in method.student.parameters():
        weight.data += 1
    torch.autograd.backward(method.loss(plain(4), Generator().manual_seed(0))[0])
    assert all(weight.grad is None for weight in method.teacher.parameters())
    assert all(weight.grad is not None for weight in method.student.parameters())
    method.after_step(0.0)
    assert all(
        torch.allclose(w, old + 0.01, atol=1e-6) for w, old in zip(method.teacher.parameters(), before, strict=True)
    )
    moved = [weight.clone() for weight in method.teacher.parameters()]
    method.after_step(1.0)
    assert all(torch.equal(w, old) for w, old in zip(method.teacher.parameters(), moved, strict=True))


def test_the_supervised_loss_smooths_labels() -> None:
    """With equal scores for C classes the loss is ln C, whatever the labels."""
    method = Supervised(Means(), 3, 3)
    nn.init.zeros_(method.classifier.weight)
    nn.init.zeros_(method.classifier.bias)
    assert method.loss(plain(6), Generator())[0].item() == pytest.approx(math.log(3))


def test_the_learning_rate_rises_then_falls_and_epochs_are_averaged() -> None:
    method = Supervised(Means(), 3, 3)
    steps = list(train(method, plain(40), Recipe(epochs=10, lr=0.1, batch=10), seed=0))
    assert [row["epoch"] for row in steps] == [1 + step // 4 for step in range(40)]
    rates = [row["lr"] for row in steps]
    assert rates[1] == pytest.approx(0.1)  # after 5 % of 40 steps
    assert rates[0] == pytest.approx(0.05)
    assert rates[1:] == sorted(rates[1:], reverse=True)
    assert rates[-1] == pytest.approx(0, abs=1e-9)
    first = next(by_epoch(steps))
    assert first == pytest.approx(
        {"epoch": 1, "loss": sum(row["loss"] for row in steps[:4]) / 4, "lr": sum(rates[:4]) / 4}
    )


def test_training_learns_what_can_be_learnt() -> None:
    """Three colours for three concepts, told apart by their means."""
    labels = torch.arange(96) % 3
    pixels = (nn.functional.one_hot(labels, 3)[:, :, None, None] * 200).expand(-1, -1, 80, 80).to(torch.uint8)
    drawings = Drawings(tuple(map(str, range(96))), pixels.contiguous(), labels)
    losses = [row["loss"] for row in train(Supervised(Means(), 3, 3), drawings, Recipe(10, 0.3, 32), seed=0)]
    assert losses[-1] < 0.75 * losses[0]


def test_the_order_of_drawings_and_views_hangs_on_the_seed_alone() -> None:
    def losses(seed: int) -> list[float]:
        torch.manual_seed(0)
        method: Method = Supervised(Means(), 3, 3)
        return [row["loss"] for row in islice(train(method, plain(20), Recipe(2, 0.1, 8), seed), 3)]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_neighbours_vote() -> None:
    colours = torch.tensor([[255, 0, 0]] * 5 + [[0, 255, 0]] * 5 + [[0, 0, 255]] * 5)
    pixels = colours[:, :, None, None].expand(-1, -1, 80, 80).to(torch.uint8)
    known = Drawings(tuple(map(str, range(15))), pixels, torch.arange(15) // 5)
    wrong = Drawings(known.ids, known.pixels, torch.tensor([0] * 5 + [2] * 5 + [1] * 5))
    assert neighbours_accuracy(Means(), Input(size=64), known, known) == 100
    assert neighbours_accuracy(Means(), Input(size=64), known, wrong) == pytest.approx(100 / 3)
