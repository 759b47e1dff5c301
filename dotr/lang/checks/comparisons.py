"""Comparisons that are decided before there is any data, or that compare a text where a value is meant.

Place:   a static check; no data. What never holds by the sorts of its sides says sorts.py.
Method:  both sides one expression, D1323; both sides constant, D1324 (not where a parameter was put in: a
         library may well ask); a text that looks like a number or a time beside `<`, D1325.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dotr.errors import Diagnostics
from dotr.ir import Call, Const, Expression, FilterAtom, Program, Rule, Summarise, TimeOf
from dotr.lang.checks.sorts import filters_of
from dotr.rdf.terms import XSD_STRING, is_literal, literal_parts
from dotr.regex import regex

_ORDERS: Final = frozenset(("<", ">", "<=", ">="))
_COMPARISONS: Final = _ORDERS | {"=", "!="}
_NUMBER: Final = regex(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_TIME: Final = regex(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}.*)?\s*")


def check_comparisons(program: Program, found: Diagnostics) -> None:
    """Warn about every such comparison in queries, rules and Datalog."""
    reported = {str(d.span) for d in found.found if d.code == "D1219"}
    for condition in conditions(program):
        for comparison in _comparisons(condition):
            if str(comparison.span) not in reported:
                reported.add(str(comparison.span))
                _check(comparison, found)


def conditions(program: Program) -> Iterator[Expression]:
    """Every condition that stands in a program."""
    for select in program.written.values():
        yield from (condition for condition, _ in filters_of(select))
        yield from select.having
    for rule in program.rules:
        yield from rule_expressions(rule)
    for clause in program.datalog:
        yield from (atom.condition for atom in clause.body if isinstance(atom, FilterAtom))


def rule_expressions(rule: Rule) -> Iterator[Expression]:
    """ON, WHERE and WITH of a rule, and what its aggregates are over."""
    for conjunct in rule.conjuncts:
        if isinstance(conjunct, Summarise) and conjunct.argument is not None:
            yield conjunct.argument
        if conjunct.on is not None:
            yield conjunct.on
    if rule.where is not None:
        yield rule.where
    yield from (binding.expression for binding in rule.bindings)


def _comparisons(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        if expression.function in _COMPARISONS and len(expression.arguments) == 2:
            yield expression
        for argument in expression.arguments:
            yield from _comparisons(argument)


def _check(comparison: Call, found: Diagnostics) -> None:
    left, right = comparison.arguments
    operator = comparison.function
    if isinstance(left, Const) and isinstance(right, Const):
        if not _is_parameter(left) and not _is_parameter(right):
            found.warning(
                "D1324",
                "both sides of this comparison are constants",
                comparison.span,
                hint="compare a variable: `?v`, or `Event.?v`",
            )
    elif left == right:
        found.warning(
            "D1323",
            f"both sides of `{operator}` are the same",
            comparison.span,
            hint="compare with the other event's attribute",
        )
    else:
        for text, other in ((left, right), (right, left)):
            if isinstance(text, Const):
                _check_text(comparison, text, other, found)


def _check_text(comparison: Call, text: Const, other: Expression, found: Diagnostics) -> None:
    lexical = _plain_text(text)
    if lexical is None or not (comparison.function in _ORDERS or isinstance(other, TimeOf)):
        return
    if _TIME.fullmatch(lexical):
        kind, meant = "a time", f'"{lexical.strip()}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    elif _NUMBER.fullmatch(lexical):
        kind, meant = "a number", lexical.strip()
    else:
        return
    found.warning(
        "D1325",
        f"`{lexical}` in quotation marks is a text, not {kind}",
        text.span,
        hint=f"write `{meant}`",
        notes=(f"a text is never greater or less than {kind}: the comparison is an error there, so false",),
    )


def _plain_text(constant: Const) -> str | None:
    if not is_literal(constant.term):
        return None
    lexical, datatype, language = literal_parts(constant.term)
    return lexical if datatype == XSD_STRING and not language else None


def _is_parameter(constant: Const) -> bool:
    """Whether the value of a parameter stands there."""
    span = constant.span
    return span is not None and span.source.text[span.start : span.start + 1] in ("?", "$")
