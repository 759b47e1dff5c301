"""Aggregates as code: COUNT, SUM, AVG, MIN, MAX over the candidates of a scope.

Method:  a scope anchored at the trigger whose candidates depend on nothing else has a running total
         (running_aggregates.py). Any other is counted by two bisections if only a count is needed, else
         enumerated. Rules that differ in a threshold have one running total by level, or enumerate the
         candidates once (ranked_totals.py): either gives the values of ranges of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from typing import Any

from dotr.expressions.aggregates import summarise
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Expression
from dotr.ir.rules import Summarise, Within
from dotr.rdf.terms import Term, integer
from dotr.temporal.stages import label
from dotr.tesla.column_spec import Content, FactLog, Ranked, RankedTotal, RunningTotal
from dotr.tesla.conditions import as_own, looks_at_time, names
from dotr.tesla.operators import candidates as at
from dotr.tesla.operators.detected import CodeItem, DetectedOperator, Shares, StepCode
from dotr.tesla.ranked_totals import counted, summed, value_above, values_above
from dotr.tesla.running_aggregates import running
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


def _shares(conjunct: Summarise, content: Content, tested: bool) -> Shares | None:
    if isinstance(content, RunningTotal):
        function, distinct, of, width = content.function, content.distinct, content.argument, content.duration
        return lambda measure: RankedTotal(measure, function, distinct, of, width)
    # what two bisections count is not enumerated for the sake of sharing
    return Ranked if tested or conjunct.argument is not None else None


def _item(conjunct: Summarise, needs: frozenset[str], code: StepCode) -> CodeItem:
    """With thresholds `c<n>` lists (value, from, to): which members have which value."""
    value, several = f"a{code.number}", f"c{code.number}"
    shared = bool(code.limits)
    return CodeItem(
        needs,
        lambda: _write_ranges(conjunct, code) if shared else _write(conjunct, code),
        gives="?" + conjunct.variable,
        local=value,
        loop=several if shared else "",
        what=code.step.title,
        choice=True,
        target=f"{value}, lo_{value}, hi_{value}" if shared else "",
        keeps=(several,) if shared else (value,),
        stage=label(conjunct),
        may_fail=False,
    )


def _write(conjunct: Summarise, code: StepCode) -> None:
    """Bind `a<n>` to the aggregate's term, or None if it has no value."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = at.find(source, scope, step, code.column, number)
    value, several = f"a{number}", f"c{number}"
    nothing, since = source.name("nothing", _nothing(conjunct)), at.oldest(source, scope, step)
    if isinstance(step.column.content, RunningTotal):
        source.line(f"{value} = {nothing} if {bucket} is None else {bucket}.value({since})")
        return
    if isinstance(step.column.content, RankedTotal):
        above, least = source.name("above", value_above), source.name("least", code.least)
        value_ = f"{above}({bucket}, {since}, {least}, {nothing})"
        source.line(f"{value} = {nothing} if {bucket} is None else {value_}")
        return
    source.line(f"{value} = {nothing}")
    with source.block(f"if {bucket} is not None"):
        if conjunct.argument is None and step.residual is None:
            end = at.beyond(scope, step)
            bisect, count = source.name("bisect", bisect_left), source.name("integer", integer)
            upper = f"len({bucket})" if end is None else f"{bisect}({bucket}, ({end},))"
            source.line(f"{value} = {count}(max(0, {upper} - {bisect}({bucket}, ({since},))))")
            return
        at.candidates(code)
        finish = source.name("finish", _finish(conjunct))
        _charge(conjunct, code)
        values = several if conjunct.argument is None else f"[{_of(conjunct, code)} for x in {several}]"
        source.line(f"{value} = {finish}({values})")


def _write_ranges(conjunct: Summarise, code: StepCode) -> None:
    """`c<n>` becomes (value, from, to) of ranges that cover the members in range."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, several = at.find(source, scope, step, code.column, number), f"c{number}"
    content, nothing, (lo, hi) = step.column.content, _nothing(conjunct), scope.range
    with source.block(f"if {bucket} is None"):
        source.line(f"{several} = (({source.name('nothing', nothing)}, {lo}, {hi}),)")
    with source.block("else"):
        if isinstance(content, RankedTotal):
            search = at.stack_search(source, scope, step, partial(values_above, nothing), code.limits)
            source.line(f"{several} = {search(bucket)}")
            return
        assert isinstance(content, Ranked)
        at.candidates(code)
        _charge(conjunct, code)
        cut, size = at.measured(source, content.measure)
        upto = f"(upto := {cut}({source.name('limits', code.limits)}, {size}, {lo}, {hi}))"
        passing = f"for x in {several} if {upto} > {lo}"
        if conjunct.argument is None:
            found = f"{source.name('counted', counted)}([upto {passing}], {lo}, {hi})"
        else:
            make = source.name("make", running(conjunct.function, conjunct.distinct, star=False))
            values = f"[(upto, {_of(conjunct, code)}) {passing}]"
            found = f"{source.name('summed', summed)}({values}, {lo}, {hi}, {make})"
        source.line(f"{several} = {found}")


def _charge(conjunct: Summarise, code: StepCode) -> None:
    """Charge for the candidates `c<n>` and their arguments."""
    if code.scope.work is not None:
        tests = conjunct.argument is not None and computed(conjunct.argument)
        code.scope.work.listed(code.step.title, f"len(c{code.number})", tests)


def _of(conjunct: Summarise, code: StepCode) -> str:
    """Source of the argument of a candidate `x`."""
    scope, name = code.scope, conjunct.position.name
    assert conjunct.argument is not None
    scope.locals[name] = "x"
    value = scope.value(conjunct.argument)
    del scope.locals[name]
    return value


def _nothing(conjunct: Summarise) -> Term | None:
    return summarise(conjunct.function, conjunct.distinct, [], star=conjunct.argument is None)


def _finish(conjunct: Summarise) -> Any:
    function, distinct, star = conjunct.function, conjunct.distinct, conjunct.argument is None
    return lambda terms: summarise(function, distinct, terms, star=star)


AGGREGATE = DetectedOperator(_content, _shares, _item, counts_reference=True)
