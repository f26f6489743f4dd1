"""ImageNet-CoG: concept generalization by WordNet distance (Sariyildiz et al., ICCV 2021)."""

import pytest

from harness.case import Case
from harness.cog.concepts import ConceptLevels
from harness.cog.run import evaluate
from harness.features.source import FeatureSource
from harness.plugin.recording import Recorder
from harness.store import Overwrite

pytestmark = pytest.mark.cog


def test_linear(
    case: Case, levels: ConceptLevels, features: FeatureSource, overwrite: Overwrite, record: Recorder
) -> None:
    """Linear probe on all training images of a split."""
    record(evaluate(case, levels, features, overwrite))


def test_fewshot(
    case: Case, levels: ConceptLevels, features: FeatureSource, overwrite: Overwrite, record: Recorder
) -> None:
    """Linear probe on a few training images of each class, tuned on the whole validation part."""
    record(evaluate(case, levels, features, overwrite))
