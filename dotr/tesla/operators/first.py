"""FIRST and FIRST k as code: the start of the window's range; the rest of ON is tested from there."""

from __future__ import annotations

from dotr.ir.rules import Choose
from dotr.tesla.column_spec import Content, Ranked
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, one, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode


def _shares(_conjunct: Choose, _content: Content, _tested: bool) -> Shares:
    return Ranked


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return one(conjunct, needs, code, _write) if conjunct.k == 1 else several(conjunct, needs, code, _write_k)


def _write(_conjunct: Choose, code: StepCode) -> None:
    source, number = code.source, code.number
    bucket = at.find(source, code.scope, code.step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    if code.limits:
        source.line(f"c{number}, taken = [], {code.scope.range[0]}")
        with at.from_oldest(code):
            at.one_each(code)
        source.line(f"if not c{number}: continue")
        return
    source.line(f"f{number} = None")
    with at.from_oldest(code):
        source.line(f"f{number} = {at.taken(code)}")
        source.line("break")
    source.line(f"if f{number} is None: continue")


def _write_k(conjunct: Choose, code: StepCode) -> None:
    """`c<n>`: the k least candidates, in canonical order."""
    source, number = code.source, code.number
    bucket, found = at.find(source, code.scope, code.step, code.column, number), f"c{number}"
    source.line(f"if {bucket} is None: continue")
    source.line(f"{found} = []")
    if code.limits:
        source.line(f"ends, taken = [], {code.scope.range[0]}")
    with at.from_oldest(code):
        if code.limits:
            at.some_each(code, conjunct.k)
        else:
            source.line(f"{found}.append({at.taken(code)})")
            source.line(f"if len({found}) == {source.name('k', conjunct.k)}: break")
    source.line(f"if not {found}: continue")


FIRST = DetectedOperator(all_facts, _shares, _item)
