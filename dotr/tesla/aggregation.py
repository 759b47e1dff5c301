"""Aggregates as code: COUNT, SUM, AVG, MIN, MAX over the candidates of a scope.

Place:   compile.py, for `AND aggregate AS ?v OVER`.
Method:  a scope anchored at the trigger whose candidates do not depend on anything else has a running total
         (totals.py). Any other is counted by two bisections where a count is all that is asked, else
         enumerated.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from dotr.codegen import CodeSource
from dotr.expressions.aggregates import summarise
from dotr.ir.rules import Summarise
from dotr.rdf.terms import Term, integer
from dotr.tesla import selection
from dotr.tesla.columns import Column
from dotr.tesla.fact_scope import Scope
from dotr.tesla.plan import PlanStep, RunningTotal
from dotr.tesla.work import computed


def write(
    source: CodeSource, scope: Scope, step: PlanStep, conjunct: Summarise, column: Column[Any], number: int
) -> None:
    """Bind `a<n>` to the aggregate's term, or None where it has no value."""
    bucket = selection.find(source, scope, step, column, number)
    value, several = f"a{number}", f"c{number}"
    nothing = source.name("nothing", _nothing(conjunct))
    if isinstance(step.column.content, RunningTotal):
        since = selection.oldest(source, scope, step)
        source.line(f"{value} = {nothing} if {bucket} is None else {bucket}.value({since})")
        return
    source.line(f"{value} = {nothing}")
    with source.block(f"if {bucket} is not None"):
        if conjunct.argument is None and step.residual is None:
            left, end = selection.oldest(source, scope, step), selection.beyond(scope, step)
            bisect, count = source.name("bisect", bisect_left), source.name("integer", integer)
            upper = f"len({bucket})" if end is None else f"{bisect}({bucket}, ({end},))"
            source.line(f"{value} = {count}(max(0, {upper} - {bisect}({bucket}, ({left},))))")
            return
        selection.candidates(source, scope, step, number)
        finish = source.name("finish", _finish(conjunct))
        if scope.work is not None:
            tests = conjunct.argument is not None and computed(conjunct.argument)
            scope.work.listed(step.title, f"len({several})", tests)
        if conjunct.argument is None:
            source.line(f"{value} = {finish}({several})")
            return
        name = conjunct.position.name
        scope.locals[name] = "x"
        source.line(f"{value} = {finish}([{scope.value(conjunct.argument)} for x in {several}])")
        del scope.locals[name]


def _nothing(conjunct: Summarise) -> Term | None:
    return summarise(conjunct.function, conjunct.distinct, [], star=conjunct.argument is None)


def _finish(conjunct: Summarise) -> Any:
    function, distinct, star = conjunct.function, conjunct.distinct, conjunct.argument is None
    return lambda terms: summarise(function, distinct, terms, star=star)
