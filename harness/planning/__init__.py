"""What a run would do, said before it does it."""

from harness.planning.key import cache_key

__all__ = ["cache_key"]
