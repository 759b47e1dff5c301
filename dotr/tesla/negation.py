"""NOT as code: a match dies if there is a candidate.

Place:   compile.py, for `AND NOT`.
Method:  where the window ends at the trigger and ON is keys and filters, the latest fact of the key tells;
         elsewhere the search for the greatest candidate, stopped at the first one found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dotr.codegen import CodeSource
from dotr.tesla import selection
from dotr.tesla.columns import Column
from dotr.tesla.fact_scope import Scope
from dotr.tesla.plan import LastValue, MonotonicStack, PlanStep
from dotr.tesla.thresholds import none_above


def write(
    source: CodeSource, scope: Scope, step: PlanStep, column: Column[Any], limits: Sequence[int], number: int
) -> None:
    """`continue` where there is a candidate; with `limits`, narrow the range to members without one."""
    bucket = selection.find(source, scope, step, column, number)
    if isinstance(step.column.content, MonotonicStack):
        lo, hi = scope.range
        search = selection.stack_search(source, scope, step, none_above, limits)
        source.line(f"lo{number} = {lo} if {bucket} is None else {search(bucket)}")
        source.line(f"if lo{number} == {hi}: continue")
        scope.range = f"lo{number}", hi
        return
    if isinstance(step.column.content, LastValue):
        source.line(
            f"if {bucket} is not None and {bucket}[0] >= {selection.oldest(source, scope, step)}: continue"
        )
        return
    found = f"f{number}"
    source.line(f"{found} = None")
    with source.block(f"if {bucket} is not None"):
        selection.newest_one(source, scope, step, number)
    source.line(f"if {found} is not None: continue")
