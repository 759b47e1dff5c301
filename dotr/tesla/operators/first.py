"""FIRST and FIRST k as code: the start of the window's range; what is left of ON is tested from there on."""

from __future__ import annotations

from dotr.codegen import CodeSource
from dotr.ir.rules import Choose
from dotr.tesla.fact_scope import Scope
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.choosing import all_facts, one, several
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, StepCode, nothing_shared
from dotr.tesla.plan_step import PlanStep


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return one(conjunct, needs, code, _write) if conjunct.k == 1 else several(conjunct, needs, code, _write_k)


def _write(_conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    _oldest_one(source, scope, step, number)
    source.line(f"if f{number} is None: continue")


def _write_k(conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    _oldest_k(source, scope, step, number, conjunct.k)
    source.line(f"if not c{number}: continue")


def _oldest_one(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`f<n>`: the least candidate, or None."""
    fact = f"f{number}"
    source.line(f"{fact} = None")
    with at.from_oldest(source, scope, step, number):
        source.line(f"{fact} = x")
        source.line("break")


def _oldest_k(source: CodeSource, scope: Scope, step: PlanStep, number: int, k: int) -> None:
    """`c<n>`: the k least candidates, in canonical order."""
    several = f"c{number}"
    source.line(f"{several} = []")
    with at.from_oldest(source, scope, step, number):
        source.line(f"{several}.append(x)")
        source.line(f"if len({several}) == {source.name('k', k)}: break")


FIRST = DetectedOperator(all_facts, nothing_shared, _item)
