"""Schedules by hand, and settings that cannot be."""

import math
import subprocess
import sys
from typing import Any

import pytest

from harness.errors import ConfigError
from harness.probe.settings import ProbeSettings
from harness.probe.settings import learning_rate_factors


def test_reference_schedule_is_one_epoch_late() -> None:
    half = math.sqrt(0.5)
    expected = [1, 1, (1 + half) / 2, 0.5, (1 - half) / 2]
    assert learning_rate_factors(4, "reference") == pytest.approx(expected[:4])
    assert learning_rate_factors(100, "reference")[:2] == [1, 1]
    assert learning_rate_factors(100, "reference")[-1] == pytest.approx(0.000987, abs=5e-7)


def test_exact_schedule() -> None:
    half = math.sqrt(0.5)
    assert learning_rate_factors(4, "exact") == pytest.approx([1, (1 + half) / 2, 0.5, (1 - half) / 2])
    assert learning_rate_factors(100, "exact")[-1] == pytest.approx(0.000247, abs=5e-7)


def test_defaults_are_the_published_protocol() -> None:
    settings = ProbeSettings()
    assert (settings.epochs, settings.batch_size, settings.momentum, settings.trials) == (100, 1024, 0.9, 30)
    assert (settings.lr_range, settings.wd_range, settings.val_fraction) == ((0.1, 100), (1e-12, 1e-4), 0.2)
    assert (settings.schedule, settings.tpe, settings.fewshot_val) == ("reference", "sequential", "full")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"trials": 0}, "trials is 0"),
        ({"lr_range": (1.0, 0.1)}, "lr_range"),
        ({"wd_range": (0.0, 0.1)}, "wd_range"),
        ({"val_fraction": 1.0}, "val_fraction"),
        ({"momentum": 1.0}, "momentum"),
        ({"schedule": "referense"}, "Did you mean 'reference'"),
        ({"tpe": "parallel"}, "expected one of sequential, batched"),
        ({"precision": "bfloat"}, "Did you mean 'bfloat16'"),
        ({"fewshot_val": "none"}, "expected one of full, matched"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ProbeSettings(**wrong)


def test_settings_scores_and_journal_import_no_torch() -> None:
    modules = "harness.probe.settings, harness.probe.score, harness.probe.journal, harness.probe.search"
    code = f"import sys, {modules}; assert not {{'torch', 'optuna'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
