"""Levels of ImageNet-21K: from cached arrays, cold with NLTK, and against NLTK's own pairwise calls.

The reference is what one writes with NLTK: for every candidate and every seen concept
``lowest_common_hypernyms(...)[0]``, then Lin from a dictionary of information content made beforehand. It runs on a
sample of candidates and is extrapolated to all; its values are compared with ours.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from harness import data
from harness.cog.level_candidates import find_candidates
from harness.cog.level_options import DEFAULT_OPTIONS
from harness.cog.levels import comparison
from harness.cog.universe import load_universe
from harness.wordnet.cache import load_taxonomy
from harness.wordnet.similarity import most_similar
from harness.wordnet.source import wordnet_reader

ONE_RUN = """
import sys, time
from pathlib import Path
start = time.perf_counter()
from harness.cog.levels import derive_levels
from harness.cog.universe import load_universe
from harness.wordnet.cache import load_taxonomy
imported = time.perf_counter()
levels = derive_levels(load_universe("in21k"), load_taxonomy(Path(sys.argv[1])))
Path(sys.argv[1], "levels.csv").write_text(levels.to_csv())
print(imported - start, time.perf_counter() - imported)
"""


def one_run(cache: Path) -> tuple[float, float]:
    """Derive and write levels in a process of its own; return the seconds for imports and for all that follows."""
    command = [sys.executable, "-c", ONE_RUN, str(cache)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own code
    imports, rest = map(float, output.split())
    return imports, rest


def information(reader: Any, concepts: list[str]) -> dict[str, float]:
    """Return IC by synset name, counted in the closure of the concepts."""
    closure = {above for name in concepts for above in ancestors(reader.synset(name))}
    below = Counter(above.name() for synset in closure for above in ancestors(synset))
    return {name: -math.log(count / len(closure)) for name, count in below.items()}


def ancestors(synset: Any) -> list[Any]:
    """Return a synset and all above it."""
    found: list[Any] = synset.common_hypernyms(synset)
    return found


def reference(reader: Any, candidates: list[str], seen: list[str], ic: dict[str, float]) -> list[float]:
    """Return each candidate's greatest Lin similarity to a seen concept, pair by pair."""
    others = [reader.synset(name) for name in seen]
    best = []
    for name in candidates:
        synset = reader.synset(name)
        values = []
        for other in others:
            shared = synset.lowest_common_hypernyms(other)[0]
            values.append(2 * ic[shared.name()] / (ic[name] + ic[other.name()]))
        best.append(max(values))
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=40, help="candidates that the reference compares")
    parser.add_argument("--repeats", type=int, default=5, help="runs from cached arrays")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        cold = one_run(cache)
        cached = [one_run(cache) for _ in range(arguments.repeats)]
        print(f"cold, NLTK included:           {sum(cold):8.3f} s  (wanted: at most 15)")
        inner = statistics.median(rest for _, rest in cached)
        print(f"cached arrays -> levels written:{inner:7.3f} s  (wanted: at most 1.0)")
        print(f"  with all imports:            {statistics.median(map(sum, cached)):8.3f} s")
        compare_with_nltk(cache, inner, arguments.sample)


def compare_with_nltk(cache: Path, whole: float, sample: int) -> None:
    """Print the rates of both ways and their ratio."""
    universe, taxonomy = load_universe("in21k"), load_taxonomy(cache)
    seen = np.sort(taxonomy.nodes(universe.seen_concepts()))
    candidates = find_candidates(universe, taxonomy, DEFAULT_OPTIONS).nodes
    start = time.perf_counter()
    values, _ = most_similar(comparison(universe, taxonomy, seen, DEFAULT_OPTIONS), candidates)
    ours = time.perf_counter() - start

    chosen = sorted(random.Random(0).sample(range(len(candidates)), sample))  # noqa: S311 - a sample
    names = [taxonomy.names[candidates[place]] for place in chosen]
    seen_names = [taxonomy.names[node] for node in seen]
    members = dict.fromkeys([*universe.image_counts(), *universe.seen_concepts()])
    concepts = [taxonomy.names[node] for node in taxonomy.nodes(members)]
    with wordnet_reader(data.path("wordnet/wordnet-3.0-nouns.zip")) as reader:
        ic = information(reader, concepts)  # NLTK keeps synsets and their ancestors from here on
        start = time.perf_counter()
        expected = reference(reader, names, seen_names, ic)
        taken = time.perf_counter() - start
    np.testing.assert_allclose(values[chosen], expected, rtol=0, atol=1e-12)
    every = taken / sample * len(candidates)
    pairs = len(candidates) * len(seen)
    print(f"NLTK pair by pair:             {every:8.1f} s  extrapolated from {sample} of {len(candidates)} candidates,")
    print(f"                               {pairs / every:8.0f} pairs/s")
    print(f"ours, counts and similarities: {ours:8.3f} s  {pairs / ours:8.0f} pairs/s, equal values on the sample")
    print(f"ratio, similarities alone:     {every / ours:8.0f}    (wanted: at least 100)")
    print(f"ratio, whole derivation:       {every / whole:8.0f}")


if __name__ == "__main__":
    main()
