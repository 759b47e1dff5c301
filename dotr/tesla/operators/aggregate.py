"""Aggregates as code: COUNT, SUM, AVG, MIN, MAX over the candidates of a scope.

Method:  a scope anchored at the trigger whose candidates depend on nothing else has a running total
         (running_aggregates.py). Any other is counted by two bisections if only a count is needed, else
         enumerated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from dotr.expressions.aggregates import summarise
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Expression
from dotr.ir.rules import Summarise, Within
from dotr.rdf.terms import Term, integer
from dotr.temporal.stages import label
from dotr.tesla.column_spec import Content, FactLog, RunningTotal
from dotr.tesla.conditions import as_own, looks_at_time, names
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, StepCode, nothing_shared
from dotr.tesla.work import computed

_SUMMED = ("COUNT", "SUM", "AVG")
_EXTREME = ("MIN", "MAX")


def _content(conjunct: Summarise, variables: Mapping[str, int]) -> Content:
    """A running total, if the window is anchored at the trigger and the argument reads only the own fact."""
    bare, own = conjunct.position.bare, conjunct.position.name
    window, argument, function = conjunct.window, conjunct.argument, conjunct.function
    if not isinstance(window, Within) or not (argument is None or _is_own(argument, own, bare)):
        return FactLog(held=bare)
    # one point of a stretch decides DISTINCT, MIN and MAX; other aggregates have no running form there
    counted = bare and not conjunct.distinct and function not in _EXTREME
    if counted and function not in _SUMMED:
        return FactLog(held=True)
    of = None if argument is None else as_own(argument, own, variables)
    return RunningTotal(function, conjunct.distinct, of, window.duration, held=counted)


def _is_own(argument: Expression, own: str, bare: bool) -> bool:
    looks = bare and looks_at_time(argument, own)
    return names(argument) <= {own} and not makes_text(argument) and not looks


def _item(conjunct: Summarise, needs: frozenset[str], code: StepCode) -> CodeItem:
    value = f"a{code.number}"
    return CodeItem(
        needs,
        lambda: _write(conjunct, code),
        gives="?" + conjunct.variable,
        local=value,
        keeps=(value,),
        stage=label(conjunct),
        may_fail=False,
    )


def _write(conjunct: Summarise, code: StepCode) -> None:
    """Bind `a<n>` to the aggregate's term, or None if it has no value."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    value, several = f"a{number}", f"c{number}"
    nothing = source.name("nothing", _nothing(conjunct))
    if isinstance(step.column.content, RunningTotal):
        since = at.oldest(source, scope, step)
        source.line(f"{value} = {nothing} if {bucket} is None else {bucket}.value({since})")
        return
    source.line(f"{value} = {nothing}")
    with source.block(f"if {bucket} is not None"):
        if conjunct.argument is None and step.residual is None:
            left, end = at.oldest(source, scope, step), at.beyond(scope, step)
            bisect, count = source.name("bisect", bisect_left), source.name("integer", integer)
            upper = f"len({bucket})" if end is None else f"{bisect}({bucket}, ({end},))"
            source.line(f"{value} = {count}(max(0, {upper} - {bisect}({bucket}, ({left},))))")
            return
        at.candidates(code)
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


AGGREGATE = DetectedOperator(_content, nothing_shared, _item, counts_reference=True)
