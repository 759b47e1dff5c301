"""EACH as code: all candidates, in canonical order."""

from __future__ import annotations

from collections.abc import Sequence

from dotr.codegen import CodeSource
from dotr.ir.rules import Choose
from dotr.tesla.column_spec import Content, Ranked
from dotr.tesla.fact_scope import Scope
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.thresholds import Measure


def _shares(_conjunct: Choose, _content: Content) -> Shares:
    return Ranked


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return several(conjunct, needs, code, _write)


def _write(_conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, listed = at.find(source, scope, step, code.column, number), f"c{number}"
    source.line(f"if {bucket} is None: continue")
    at.candidates(source, scope, step, number)
    if isinstance(step.column.content, Ranked):
        at.listed(scope, step, f"len({listed})")
        _who_takes(source, scope, step.column.content.measure, code.limits, listed)
    source.line(f"if not {listed}: continue")


def _who_takes(
    source: CodeSource, scope: Scope, measure: Measure, limits: Sequence[int], several: str
) -> None:
    """The facts in `c<n>` become (fact, from, to): the members in range whose threshold they pass."""
    lo, hi = scope.range
    rising = source.name("limits", limits)
    cut, fact, size = at.measured(source, measure)
    source.line(
        f"{several} = [({fact}, {lo}, upto) for x in {several} "
        f"if (upto := {cut}({rising}, {size}, {lo}, {hi})) > {lo}]"
    )


EACH = DetectedOperator(all_facts, _shares, _item)
