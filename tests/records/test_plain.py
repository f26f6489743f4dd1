"""Values given to record: converted, null with a reason, or a clear error."""

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from harness.records.plain import NotRecordable
from harness.records.plain import is_number
from harness.records.plain import metric_reason
from harness.records.plain import to_plain
from harness.records.record import Metric


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.float32(0.5), 0.5),
        (np.int16(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1, 2]]), [[1, 2]]),
        ((1, "a", None), [1, "a", None]),
        ({"a": np.float32(2)}, {"a": 2.0}),
        (math.nan, None),
        (np.float32("inf"), None),
        (np.array([1.0, np.nan]), [1.0, None]),
    ],
)
def test_numpy_becomes_plain(value: object, plain: object) -> None:
    found = to_plain(value)
    assert found == plain
    assert type(found) is type(plain)


def test_torch_becomes_plain() -> None:
    torch = pytest.importorskip("torch")
    assert to_plain(torch.tensor(2.5)) == 2.5
    assert to_plain(torch.tensor([1, 2])) == [1, 2]
    assert to_plain(torch.nn.Parameter(torch.tensor(1.0))) == 1.0
    assert metric_reason(torch.tensor(math.nan)) == "not a number"


@pytest.mark.parametrize(
    "value", [Path("x"), {1, 2}, Decimal(1), object(), b"x", {1: "a"}, np.zeros(1001), np.array(Path("x"))]
)
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(NotRecordable, match="accuracy"):
        to_plain(value, "accuracy")


def test_a_nested_fault_is_located() -> None:
    with pytest.raises(NotRecordable, match=r"x\['a'\]\[1\] is a pathlib"):
        to_plain({"a": [1, Path("b")]}, "x")


def test_numbers_and_reasons() -> None:
    assert metric_reason(1) is None
    assert metric_reason(np.float64("nan")) == "not a number"
    assert metric_reason(np.array(-math.inf)) == "infinite"
    assert all(is_number(value) for value in (1, 0.5, np.float32(1), np.array(2), math.nan))
    assert not any(is_number(value) for value in ("1", True, np.bool_(True), [1.0], None, Path("x"), np.zeros(2)))


def test_a_metric_takes_numpy_and_says_why_a_number_is_missing() -> None:
    metric = Metric(value=np.float32(0.5), std=np.float64("nan"), per_seed=[np.float64(1), math.inf])
    assert metric == Metric(value=0.5, std=None, per_seed=[1.0, None])
    assert Metric(value=math.nan).reason == "not a number"
    assert Metric(value=math.inf, reason="diverged").reason == "diverged"
    assert Metric.model_validate_json(metric.model_dump_json()) == metric
