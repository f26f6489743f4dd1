"""WordNet as NLTK reads it, and as arrays."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness import data
from harness.wordnet.source import read_taxonomy
from harness.wordnet.source import wordnet_reader
from harness.wordnet.taxonomy import Taxonomy


@pytest.fixture(scope="session")
def reader() -> Iterator[Any]:
    with wordnet_reader(data.path("wordnet/wordnet-3.0-nouns.zip")) as found:
        yield found


@pytest.fixture(scope="session")
def taxonomy(reader: Any) -> Taxonomy:
    return read_taxonomy(reader)
