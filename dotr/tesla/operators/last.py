"""LAST and LAST k as code: the end of the window's range; the rest of ON is tested from that end."""

from __future__ import annotations

from collections.abc import Mapping

from dotr.ir.rules import Choose
from dotr.tesla.column_spec import Content, FactLog, LastValue, MonotonicStack, Ranked
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, one, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.thresholds import latest_above, latest_of


def _content(conjunct: Choose, variables: Mapping[str, int]) -> Content:
    return LastValue() if conjunct.k == 1 else all_facts(conjunct, variables)


def _shares(_conjunct: Choose, content: Content, _tested: bool) -> Shares:
    return Ranked if isinstance(content, FactLog) else MonotonicStack


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return one(conjunct, needs, code, _write) if conjunct.k == 1 else several(conjunct, needs, code, _write_k)


def _write(_conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    fact, listed = f"f{number}", f"c{number}"
    content = step.column.content
    if isinstance(content, LastValue):
        source.line(f"{fact} = {bucket}")
        source.line(f"if {fact} is None or {fact}[0] < {at.oldest(source, scope, step)}: continue")
        return
    source.line(f"if {bucket} is None: continue")
    if isinstance(content, MonotonicStack) and not code.limits:
        least = source.name("least", code.least)
        source.line(f"{fact} = {bucket}.facts[-1]")
        with source.block(f"if {bucket}.measures[-1] < {least}"):
            source.line(f"{fact} = {source.name('search', latest_of)}({bucket}, {least})")
            source.line(f"if {fact} is None: continue")
        source.line(f"if {fact}[0] < {at.oldest(source, scope, step)}: continue")
    elif isinstance(content, MonotonicStack):
        at.listed(scope, step, f"len({bucket}.facts)")
        lo, hi = scope.range
        search = at.stack_search(source, scope, step, latest_above, code.limits)(bucket)
        passes = ">=" if content.measure.inclusive else ">"
        rising = source.name("limits", code.limits)
        with source.block(f"if {bucket}.measures[-1] {passes} {rising}[{hi} - 1]"):  # the common case
            source.line(f"{fact} = {bucket}.facts[-1]")
            source.line(f"if {fact}[0] < {at.oldest(source, scope, step)}: continue")
            source.line(f"{listed} = (({fact}, {lo}, {hi}),)")
        with source.block("else"):
            source.line(f"{listed} = {search}")
            source.line(f"if not {listed}: continue")
    elif code.limits:
        left = at.oldest(source, scope, step)
        source.line(f"{listed}, taken, lo{number} = [], {scope.range[0]}, {left}")
        at.newest_end(source, scope, step, number)
        with at.from_newest(code, at.refusals(code)):
            at.one_each(code)
        source.line(f"if not {listed}: continue")
    else:
        at.newest_one(code)
        source.line(f"if {fact} is None: continue")


def _write_k(conjunct: Choose, code: StepCode) -> None:
    """`c<n>`: the k greatest candidates, in canonical order."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, several, left = at.find(source, scope, step, code.column, number), f"c{number}", f"lo{number}"
    tests = at.refusals(code)
    count = source.name("k", conjunct.k)
    source.line(f"if {bucket} is None: continue")
    source.line(f"{left} = {at.oldest(source, scope, step)}")
    at.newest_end(source, scope, step, number)
    if not (tests or code.limits):
        source.line(f"{several} = {bucket}[max(0, i - {count}):i]")
        source.line(
            f"if {several} and {several}[0][0] < {left}: "
            f"del {several}[:{at.bisecting(source)}({several}, ({left},))]"
        )
        if step.column.carries:
            source.line(f"{several} = [{at.taken(code)} for x in {several}]")
    else:
        source.line(f"{several} = []")
        if code.limits:
            source.line(f"ends, taken = [], {scope.range[0]}")
        with at.from_newest(code, tests):
            if code.limits:
                at.some_each(code, conjunct.k)
            else:
                source.line(f"{several}.append({at.taken(code)})")
                source.line(f"if len({several}) == {count}: break")
        source.line(f"{several}.reverse()")
    source.line(f"if not {several}: continue")


LAST = DetectedOperator(_content, _shares, _item)
