"""Fixtures that build and share what cases need."""

import pytest

from harness.cog.concepts import ConceptLevels
from harness.features.source import FeatureSource
from harness.plugin.options import SESSION
from harness.store import Overwrite


@pytest.fixture(scope="session")
def levels(pytestconfig: pytest.Config) -> ConceptLevels:
    """Cached WordNet levels of the run's universe: concepts, images and labels of each split."""
    return pytestconfig.stash[SESSION].levels


@pytest.fixture(scope="session")
def features(pytestconfig: pytest.Config) -> FeatureSource:
    """Features of any model of the models file on any image set, extracted once and memory-mapped from the store."""
    return pytestconfig.stash[SESSION].features


@pytest.fixture(scope="session")
def overwrite(pytestconfig: pytest.Config) -> Overwrite:
    """What to do where the store already has the result of a case (``--overwrite``)."""
    return pytestconfig.stash[SESSION].settings.overwrite
