"""Frozen features of an image set: extracted once, kept in the store, read as a memory-mapped matrix. No torch here."""

from harness.features.cached import features
from harness.features.exchange import export
from harness.features.exchange import import_
from harness.features.matrix import FeatureMatrix
from harness.features.options import Options
from harness.features.options import feature_key

__all__ = ["FeatureMatrix", "Options", "export", "feature_key", "features", "import_"]
