"""EACH as code: all candidates, in canonical order."""

from __future__ import annotations

from dotr.ir.rules import Choose
from dotr.tesla.column_spec import Content, Ranked
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode


def _shares(_conjunct: Choose, _content: Content, _tested: bool) -> Shares:
    return Ranked


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return several(conjunct, needs, code, _write)


def _write(_conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, listed = at.find(source, scope, step, code.column, number), f"c{number}"
    source.line(f"if {bucket} is None: continue")
    at.candidates(code)
    if code.limits:
        at.listed(scope, step, f"len({listed})")
        _who_takes(code, listed)
    source.line(f"if not {listed}: continue")


def _who_takes(code: StepCode, several: str) -> None:
    """The facts in `c<n>` become (fact, from, to): the members in range whose threshold they pass."""
    content = code.step.column.content
    assert isinstance(content, Ranked)
    lo, hi = code.scope.range
    rising = code.source.name("limits", code.limits)
    cut, size = at.measured(code.source, content.measure)
    code.source.line(
        f"{several} = [({at.taken(code)}, {lo}, upto) for x in {several} "
        f"if (upto := {cut}({rising}, {size}, {lo}, {hi})) > {lo}]"
    )


EACH = DetectedOperator(all_facts, _shares, _item)
