"""WordNet, read once for all tests of levels."""

from pathlib import Path

import pytest

from harness.wordnet.cache import load_taxonomy
from harness.wordnet.taxonomy import Taxonomy


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that keeps the arrays of WordNet."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def taxonomy(cache: Path) -> Taxonomy:
    """Return the nouns of WordNet."""
    return load_taxonomy(cache)
