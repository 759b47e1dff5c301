"""LAST and LAST k as code: the end of the window's range; what is left of ON is tested from that end on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dotr.codegen import CodeSource
from dotr.ir.rules import Choose
from dotr.tesla.column_spec import Content, FactLog, LastValue, MonotonicStack, Ranked
from dotr.tesla.fact_scope import Scope
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, one, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.plan_step import PlanStep
from dotr.tesla.thresholds import Measure, latest_above


def _content(conjunct: Choose, variables: Mapping[str, int]) -> Content:
    return LastValue() if conjunct.k == 1 else all_facts(conjunct, variables)


def _shares(conjunct: Choose, content: Content) -> Shares | None:
    if conjunct.k != 1:
        return None
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
    if isinstance(content, MonotonicStack):
        at.listed(scope, step, f"len({bucket}.facts)")
        source.line(f"{listed} = {at.stack_search(source, scope, step, latest_above, code.limits)(bucket)}")
        source.line(f"if not {listed}: continue")
    elif isinstance(content, Ranked):
        _newest_above(source, scope, step, content.measure, code.limits, number)
        source.line(f"if not {listed}: continue")
    else:
        at.newest_one(source, scope, step, number)
        source.line(f"if {fact} is None: continue")


def _write_k(conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    _newest_k(source, scope, step, number, conjunct.k)
    source.line(f"if not c{number}: continue")


def _newest_above(
    source: CodeSource, scope: Scope, step: PlanStep, measure: Measure, limits: Sequence[int], number: int
) -> None:
    """`c<n>`: the greatest candidate of each member in range, as (fact, from, to).

    From the newest on, each candidate is that of the members whose threshold it passes and no newer one did.
    """
    lo, hi = scope.range
    several = f"c{number}"
    cut, fact, size = at.measured(source, measure)
    rising = source.name("limits", limits)
    source.line(f"{several}, taken, lo{number} = [], {lo}, {at.oldest(source, scope, step)}")
    at.newest_end(source, scope, step, number)
    with at.from_newest(source, scope, step, number, at.refusals(scope, step)):
        source.line(f"upto = {cut}({rising}, {size}, taken, {hi})")
        with source.block("if upto > taken"):
            source.line(f"{several}.append(({fact}, taken, upto))")
            source.line("taken = upto")
            source.line(f"if taken == {hi}: break")


def _newest_k(source: CodeSource, scope: Scope, step: PlanStep, number: int, k: int) -> None:
    """`c<n>`: the k greatest candidates, in canonical order."""
    several, bucket, left = f"c{number}", f"q{number}", f"lo{number}"
    tests = at.refusals(scope, step)
    count = source.name("k", k)
    source.line(f"{left} = {at.oldest(source, scope, step)}")
    at.newest_end(source, scope, step, number)
    if not tests:
        source.line(f"{several} = {bucket}[max(0, i - {count}):i]")
        source.line(
            f"if {several} and {several}[0][0] < {left}: "
            f"del {several}[:{at.bisecting(source)}({several}, ({left},))]"
        )
        return
    source.line(f"{several} = []")
    with at.from_newest(source, scope, step, number, tests):
        source.line(f"{several}.append(x)")
        source.line(f"if len({several}) == {count}: break")
    source.line(f"{several}.reverse()")


LAST = DetectedOperator(_content, _shares, _item)
