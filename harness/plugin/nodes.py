"""Which case a node id stands for: what the controller of xdist knows of an item is its id alone."""

from collections.abc import Sequence

from harness.case import Case
from harness.session import BENCHMARKS
from harness.session import Session


def cases_by_node(session: Session, ids: Sequence[str]) -> list[Case | None]:
    """Return the case of each node id, None for a test that is none of ours.

    Args:
        session: Whose cases are meant.
        ids: Node ids; those of cases end in ``::test_<protocol>[<name of the case>]``.
    """
    if not session.settings.models_file.exists():  # then no test takes a case: its collection would have failed
        return [None] * len(ids)
    known = {
        f"test_{case.protocol}[{case.name}]": case for benchmark in BENCHMARKS for case in session.cases(benchmark)
    }
    return [known.get(node.rpartition("::")[2]) for node in ids]
