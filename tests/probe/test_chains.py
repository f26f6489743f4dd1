"""Chains of work on several threads."""

import threading

import pytest
import torch

from harness.probe.chains import Chain
from harness.probe.chains import side_by_side
from harness.probe.chains import threads


def count(steps: int, seen: list[tuple[int, int, bool]] | None = None) -> Chain[int]:
    for _ in range(steps):
        if seen is not None:
            seen.append((threading.get_ident(), torch.get_num_threads(), torch.is_inference_mode_enabled()))
        yield
    return steps


@pytest.mark.parametrize("available", [1, 2, 3])
def test_results_come_in_order(available: int) -> None:
    with threads(available):
        assert side_by_side([count(steps) for steps in (7, 0, 3, 1)]) == [7, 0, 3, 1]
        assert side_by_side([count(4)]) == [4]


def test_threads_are_shared_out_and_given_back() -> None:
    seen: list[tuple[int, int, bool]] = []
    with threads(4):
        side_by_side([count(200, seen), count(200, seen)])
        assert torch.get_num_threads() == 4
    assert {(each, inference) for _, each, inference in seen} == {(2, True)}
    assert threading.get_ident() not in {thread for thread, _, _ in seen}
    assert torch.get_num_threads() == 2
    assert not torch.is_inference_mode_enabled()


def test_one_chain_has_all_threads() -> None:
    seen: list[tuple[int, int, bool]] = []
    side_by_side([count(1, seen)])
    assert seen == [(threading.get_ident(), 2, True)]


@pytest.mark.parametrize("failing_first", [True, False])
def test_an_error_ends_the_others_and_reaches_the_caller(failing_first: bool) -> None:
    def failing() -> Chain[int]:
        yield
        raise IndexError("no good")

    seen: list[tuple[int, int, bool]] = []
    chains = [failing(), count(1_000_000, seen)]
    with pytest.raises(IndexError, match="no good"):
        side_by_side(chains if failing_first else chains[::-1])
    assert len(seen) < 1_000_000
    assert torch.get_num_threads() == 2
