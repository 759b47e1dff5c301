"""What the funnel costs: the same streams with the counting of what is left after each step, and without.

Place:   the scenario `counting` of __main__.py; the figures of a whole run are in BUDGET.md.
Method:  as budget.py; `uncounted` leaves the lines empty in which the functions of rules count. What is left:
         an addition for each query with facts at an instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from dotr.detect.scope import StageWriter

from . import budget, citybench, workloads

MOST = 1.02
"""As many times as long as without counting, at most."""


@contextmanager
def uncounted() -> Iterator[None]:
    """Rules that are compiled meanwhile do not count how far they come."""
    with patch.object(StageWriter, "settle", lambda *_: None):
        yield


def overheads(graphs: int, repeats: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """(row, whether it holds) of each case, end to end."""
    for workload in (
        workloads.default(graphs),
        workloads.sequence(graphs, 3, "EACH"),
        workloads.sequence(graphs, 3, "LAST"),
        citybench.citybench("q1", graphs, 10),
    ):
        yield budget.compared(workload, budget.measured(workload, repeats, uncounted), MOST)
