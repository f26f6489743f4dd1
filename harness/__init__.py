"""One harness, three published benchmarks of visual generalization."""

__version__ = "0.1.0"
