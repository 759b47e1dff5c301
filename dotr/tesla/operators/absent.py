"""NOT as code: a match dies if there is a candidate.

Method:  where the window ends at the trigger and ON is keys and filters, the latest fact of the key tells;
         elsewhere the search for the greatest candidate, stopped at the first one found.
"""

from __future__ import annotations

from collections.abc import Mapping

from dotr.ir.rules import Absent
from dotr.tesla.column_spec import Content, LastValue, MonotonicStack
from dotr.tesla.detection_stages import label
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.thresholds import none_above


def _content(_conjunct: Absent, _variables: Mapping[str, int]) -> Content:
    return LastValue()


def _shares(_conjunct: Absent, content: Content) -> Shares | None:
    return MonotonicStack if isinstance(content, LastValue) else None


def _item(conjunct: Absent, needs: frozenset[str], code: StepCode) -> CodeItem:
    shared = isinstance(code.step.column.content, MonotonicStack)
    return CodeItem(
        needs, lambda: _write(code), keeps=(f"lo{code.number}",) if shared else (), stage=label(conjunct)
    )


def _write(code: StepCode) -> None:
    """`continue` where there is a candidate; with thresholds, narrow the range to members without one."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    if isinstance(step.column.content, MonotonicStack):
        lo, hi = scope.range
        search = at.stack_search(source, scope, step, none_above, code.limits)
        source.line(f"lo{number} = {lo} if {bucket} is None else {search(bucket)}")
        source.line(f"if lo{number} == {hi}: continue")
        scope.range = f"lo{number}", hi
        return
    if isinstance(step.column.content, LastValue):
        source.line(f"if {bucket} is not None and {bucket}[0] >= {at.oldest(source, scope, step)}: continue")
        return
    found = f"f{number}"
    source.line(f"{found} = None")
    with source.block(f"if {bucket} is not None"):
        at.newest_one(source, scope, step, number)
    source.line(f"if {found} is not None: continue")


ABSENT = DetectedOperator(_content, _shares, _item)
