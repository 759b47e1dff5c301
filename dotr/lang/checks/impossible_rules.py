"""Rules that can never have an event, and queries that can never have a fact.

Place:   a static check; no data.
Method:  the least fixpoint of "can happen": a query can unless a filter of its outermost group is false for
         every row; a rule can if its trigger and every event it must choose can, and none of its conditions
         is false for all. So rules that wait for each other, or for their own first event, never begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from dotr import ir
from dotr.budget import Overlong
from dotr.errors import Diagnostics
from dotr.events import Clock
from dotr.expressions.evaluate import Getter, compile_condition
from dotr.lang.checks.kinds import Sort
from dotr.lang.checks.sorts import STAND_IN, Leaves, attribute_sorts, mismatch, variable_sorts
from dotr.rdf.values import number
from dotr.source import Span
from dotr.tesla.conditions import names, parts

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


class _Reason(NamedTuple):
    """Why something can never happen; whether another check reports that at its place."""

    text: str
    known: bool = False


def check_possible(program: ir.Program, found: Diagnostics) -> None:
    """Warn about each rule that can never have an event, D1328, unless its reason is reported in the rule."""
    never = {name: why for name, select in program.selects.items() if (why := _never_a_fact(select))}
    sorts = {name: attribute_sorts(select) for name, select in program.selects.items()}
    own = {rule.name: why for rule in program.rules if (why := _false_for_all(rule, sorts))}
    if any(d.code == "D1307" for d in found.errors):  # rules in a circle: reported as that
        return
    possible = _possible(program, never, own)
    for rule in program.rules:
        if rule.name in possible:
            continue
        why = own.get(rule.name) or _missing(rule, never, possible)
        if why is not None and not why.known:
            found.warning(
                "D1328",
                f"`{rule.name}` can never have an event",
                _first_word(rule.span),
                hint="correct what stands in its way, or delete the rule",
                notes=(why.text,),
            )


def _possible(program: ir.Program, never: Mapping[str, _Reason], own: Mapping[str, _Reason]) -> set[str]:
    """The rules that can have an event: the least set that is closed under "all that it needs can come".
    A rule that could not be read may. Linear in the references.
    """
    known = {rule.name for rule in program.rules}
    waiting: dict[str, set[str]] = {}
    readers: dict[str, list[str]] = {}
    for rule in program.rules:
        needs = {position.stream for position in _needed(rule)}
        if rule.name not in own and not needs & never.keys():
            waiting[rule.name] = needs & known
            for stream in needs & known:
                readers.setdefault(stream, []).append(rule.name)
    possible = {position.stream for rule in program.rules for position in rule.positions} - known
    ready = [name for name, needs in waiting.items() if not needs]
    while ready:
        name = ready.pop()
        possible.add(name)
        for reader in readers.get(name, ()):
            waiting[reader].discard(name)
            if not waiting[reader]:
                ready.append(reader)
    return possible


def _needed(rule: ir.Rule) -> Iterator[ir.Position]:
    """The events without which the rule has none: its trigger's, and those it chooses."""
    if isinstance(rule.trigger, ir.Position):
        yield rule.trigger
    yield from (choice.position for choice in rule.chosen)


def _first_word(span: Span | None) -> Span | None:
    """RULE, or PRIVATE: the whole span of a rule may be many lines."""
    if span is None:
        return None
    length = next((n for n, c in enumerate(span.source.text[span.start : span.end]) if not c.isalpha()), 0)
    return Span(span.source, span.start, span.start + length)


def _missing(rule: ir.Rule, never: Mapping[str, _Reason], possible: set[str]) -> _Reason | None:
    """Why an event that the rule needs can never come."""
    for position in _needed(rule):
        stream, name = position.stream, position.name
        if position.chained and stream not in possible:
            if stream == rule.name:
                return _Reason(f"`{name}` is an earlier event of its own, and there is no first one")
            return _Reason(f"it needs an event of `{stream}`, which can never have one before")
        if not position.chained and stream in never:
            inline = stream.startswith(f"{rule.name}.")
            return _Reason(f"`{name}` never has a fact: {never[stream].text}", inline and never[stream].known)
    return None


def _false_for_all(rule: ir.Rule, sorts: Mapping[str, Mapping[str, Sort]]) -> _Reason | None:
    """Why a condition of the rule is false for every match."""
    streams = {position.name: position.stream for position in rule.positions}

    def sort_of(leaf: str) -> Sort | None:
        position, _, variable = leaf.partition(".?")
        return sorts.get(streams.get(position, ""), {}).get(variable)

    for choice in rule.chosen:
        window = choice.window
        if isinstance(window, ir.Within) and window.before and not window.duration:
            return _Reason("its window is empty", known=True)
        if why := _falsehood(parts(choice.on), sort_of, rule=True):
            return _Reason(f"no `{choice.position.name}` matches: {why.text}", why.known)
    why = _falsehood(parts(rule.where), sort_of, rule=True)
    return why and _Reason(f"WHERE is never true: {why.text}", why.known)


def _never_a_fact(select: ir.Select) -> _Reason | None:
    """Why a query has no answer whatever the data. (One that counts has an answer over nothing.)"""
    if select.group_by or select.having or any(_aggregates(p.expression) for p in select.projection):
        return None
    if select.limit == 0:
        return _Reason("LIMIT 0")
    sorts = variable_sorts(select.where)
    filters = [part for e in select.where.elements if isinstance(e, ir.Filter) for part in parts(e.condition)]
    return _falsehood(filters, sorts.get)


def _aggregates(expression: ir.Expression | None) -> bool:
    if isinstance(expression, ir.Call):
        return any(map(_aggregates, expression.arguments))
    return expression is not None and not isinstance(expression, ir.Const | ir.Var | ir.Attribute | ir.TimeOf)


def _falsehood(conditions: Sequence[ir.Expression], leaves: Leaves, *, rule: bool = False) -> _Reason | None:
    """Why conditions are never all true: one is false by itself, or two of them contradict each other."""
    for condition in conditions:
        if isinstance(condition, ir.Call) and mismatch(condition, leaves, rule=rule):
            return _Reason(f"`{_text(condition)}` never holds", known=True)
        if _is_false(condition, rule):
            return _Reason(f"`{_text(condition)}` is false", known=_compares(condition))
    return _contradiction(conditions)


def _compares(condition: ir.Expression) -> bool:
    return isinstance(condition, ir.Call) and condition.function in _MIRRORED


def _is_false(condition: ir.Expression, rule: bool) -> bool:
    """Whether a condition that looks at nothing is false or an error. One with a parameter is let be."""
    if names(condition) or not _constant(condition):
        return False
    try:
        return not compile_condition(condition, _no_leaf, clock=Clock(), seconds=rule)(())
    except Overlong:
        return False  # reported by whoever evaluates it


def _constant(expression: ir.Expression) -> bool:
    match expression:
        case ir.Const(term):
            return not term.startswith(STAND_IN)
        case ir.Call(function, arguments):
            return function != "NOW" and all(map(_constant, arguments))
        case _:
            return False


def _no_leaf(leaf: ir.Var | ir.Attribute | ir.TimeOf) -> Getter:
    raise AssertionError(f"a constant condition looks at {leaf}")


# -- bounds ------------------------------------------------------------------------------------------


def _contradiction(conditions: Sequence[ir.Expression]) -> _Reason | None:
    """Two bounds of one variable between which no number lies."""
    lower: dict[ir.Expression, tuple[Decimal, bool, ir.Expression]] = {}
    upper: dict[ir.Expression, tuple[Decimal, bool, ir.Expression]] = {}
    for condition in conditions:
        for leaf, operator, limit in _bounds(condition):
            strict = operator in ("<", ">")
            if operator in (">", ">=", "="):
                best = lower.get(leaf)
                if best is None or (limit, strict) > best[:2]:
                    lower[leaf] = limit, strict, condition
            if operator in ("<", "<=", "="):
                best = upper.get(leaf)
                if best is None or (limit, not strict) < (best[0], not best[1]):
                    upper[leaf] = limit, strict, condition
    for leaf in lower.keys() & upper.keys():
        (least, above, one), (most, below, two) = lower[leaf], upper[leaf]
        if least > most or (least == most and (above or below)):
            return _Reason(f"`{_text(one)}` and `{_text(two)}` are never both true")
    return None


def _bounds(condition: ir.Expression) -> Iterator[tuple[ir.Expression, str, Decimal]]:
    """(variable, operator, number) of a comparison between them, the variable on the left."""
    if not (isinstance(condition, ir.Call) and condition.function in _MIRRORED):
        return
    left, right = condition.arguments
    for leaf, constant, operator in (
        (left, right, condition.function),
        (right, left, _MIRRORED[condition.function]),
    ):
        if isinstance(leaf, ir.Var | ir.Attribute) and isinstance(constant, ir.Const):
            value = number(constant.term)
            if isinstance(value, int | Decimal) and not isinstance(value, bool):
                yield leaf, operator, Decimal(value)


def _text(expression: ir.Expression) -> str:
    span = expression.span
    return " ".join(span.source.text[span.start : span.end].split()) if span is not None else "a condition"
