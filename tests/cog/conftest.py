"""WordNet, read once for all tests of levels."""

import pytest

from harness.wordnet.cache import load_taxonomy
from harness.wordnet.taxonomy import Taxonomy


@pytest.fixture(scope="session")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    return load_taxonomy(tmp_path_factory.mktemp("wordnet"))
