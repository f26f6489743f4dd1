"""A name for everything that a whole run leaves in the cache."""

from pathlib import Path

from harness.cog.run import probe_key
from harness.digest import Plain
from harness.digest import digest_of
from harness.errors import MissingInput
from harness.features.source import FeatureSource
from harness.session import BENCHMARKS
from harness.session import Session
from harness.zoo.sources import FileWeights
from harness.zoo.sources import UrlWeights
from harness.zoo.weights import weights_digest


class _Named(FeatureSource):
    """Names the weights that lie in the cache by their entry: the key is asked for before the cache is brought back."""

    def weights(self, model: str) -> str:
        """Return the digest of weights that lie elsewhere, and of what the entry says of those in the cache."""
        spec = self.spec(model)
        cached = isinstance(spec.weights, UrlWeights)
        if isinstance(spec.weights, FileWeights):
            cached = not Path(spec.weights.path).expanduser().is_absolute()
        return digest_of(spec.weights.model_dump(mode="json")) if cached else weights_digest(spec, self.weights_dir)


def cache_key(session: Session) -> str:
    """Return ``harness-<suite>-<24 hex digits>``, a key for the caches of CI.

    It is made of the keys of all results (which those of features are part of) of all cases: suite, protocol, entries
    and weights of the models file, images, versions of libraries and of the computations. Weights in the cache folder
    count by what their entry says (its ``sha256``, its URL), so that the key is the same before and after the cache is
    there. Under an equal key a cache that a whole run has left holds every result; under any other it may hold a part.
    """
    source = session.features
    named = _Named(source.models, source.store, source.weights_dir, source.options)
    found: dict[str, Plain] = {}
    for case in (case for benchmark in BENCHMARKS for case in session.cases(benchmark)):
        try:
            found[case.id] = digest_of(probe_key(case, session.levels, named))
        except MissingInput:
            found[case.id] = None  # such a case is skipped and leaves nothing
    return f"harness-{session.suite.name}-{digest_of(found)[:24]}"
