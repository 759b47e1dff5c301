"""NOT as code: a match is dropped if there is a candidate.

Method:  if the window ends at the trigger and ON is keys and filters, the latest fact of the key decides;
         otherwise a search for the greatest candidate.
"""

from __future__ import annotations

from collections.abc import Mapping

from dotr.ir.rules import Absent
from dotr.temporal.stages import label
from dotr.tesla.column_spec import Content, FactLog, LastValue, MonotonicStack, Ranked
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.thresholds import any_of, none_above


def _content(_conjunct: Absent, _variables: Mapping[str, int]) -> Content:
    return LastValue()


def _shares(_conjunct: Absent, content: Content, _tested: bool) -> Shares:
    return Ranked if isinstance(content, FactLog) else MonotonicStack


def _item(conjunct: Absent, needs: frozenset[str], code: StepCode) -> CodeItem:
    keeps = (f"left{code.number}",) if code.limits else ()
    return CodeItem(needs, lambda: _write(code), keeps=keeps, stage=label(conjunct))


def _write(code: StepCode) -> None:
    """`continue` if there is a candidate; with thresholds, narrow the range to members without one."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    content = step.column.content
    if isinstance(content, LastValue):
        source.line(f"if {bucket} is not None and {bucket}[0] >= {at.oldest(source, scope, step)}: continue")
    elif code.limits:
        lo, hi = scope.range
        left = f"left{number}"
        if isinstance(content, MonotonicStack):
            search = at.stack_search(source, scope, step, none_above, code.limits)
            source.line(f"{left} = {lo} if {bucket} is None else {search(bucket)}")
        else:
            source.line(f"{left} = {lo}")
            with source.block(f"if {bucket} is not None"):
                _first_without(code, left)
        source.line(f"if {left} == {hi}: continue")
        scope.range = left, hi
    elif isinstance(content, MonotonicStack):
        any_, least = source.name("search", any_of), source.name("least", code.least)
        since = at.oldest(source, scope, step)
        source.line(f"if {bucket} is not None and {any_}({bucket}, {since}, {least}): continue")
    else:
        found = f"f{number}"
        source.line(f"{found} = None")
        with source.block(f"if {bucket} is not None"):
            at.newest_one(code)
        source.line(f"if {found} is not None: continue")


def _first_without(code: StepCode, left: str) -> None:
    """`left` becomes the first member in range without a candidate: those before it have one."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    source.line(f"lo{number} = {at.oldest(source, scope, step)}")
    at.newest_end(source, scope, step, number)
    with at.from_newest(code, at.refusals(code)), at.upto(code, left):
        source.line(f"{left} = upto")
        source.line(f"if {left} == {scope.range[1]}: break")


ABSENT = DetectedOperator(_content, _shares, _item)
