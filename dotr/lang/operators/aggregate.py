"""COUNT, SUM and their like over the events of a window, as expressions/aggregates.py has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.ir import Expression, Position, Program, Rule, Summarise, Window
from dotr.lang.checks.comparisons import rule_expressions
from dotr.lang.grammar.syntax import SummariseSyntax
from dotr.lang.grammar.tokens import Token
from dotr.lang.operators.written import WrittenOperator
from dotr.tesla.conditions import names as names_of

if TYPE_CHECKING:
    from dotr.lang.checks.rule_names import RuleResolver
    from dotr.lang.grammar.clauses import ClauseParser

ROLE = "aggregate"


def _parse(clauses: ClauseParser, start: Token) -> SummariseSyntax:
    cursor = clauses.cursor
    word = cursor.advance().key
    function = word if word in AGGREGATES else "MAX"  # one that there is not has been reported
    cursor.expect("(", hint=f"write `{word}(…)`")
    argument: Expression | None = None
    distinct = cursor.accept("DISTINCT") is not None
    if cursor.key == "*":
        star = cursor.span(cursor.advance())
        if function != "COUNT":
            cursor.error("D1004", f"{word}(*) has no meaning", star, hint="name a value: Event.?x")
        if distinct:
            cursor.error("D1004", "COUNT(DISTINCT *) has no meaning", star, hint="name a value: Event.?x")
    else:
        with cursor.nested():
            argument = clauses.expressions.expression()
    cursor.expect(")", "`)` or an operator")
    cursor.expect("AS", hint="an aggregate has a name: `AS ?v`")
    variable = clauses.windows.variable()
    clauses.wild.add("?" + variable.text)
    clauses.expressions.parameters.refuse_binding(variable.text, variable.span, "aggregate")
    cursor.expect("OVER")
    event, window, on = clauses.scope()
    clauses.wild.discard("?" + variable.text)
    return SummariseSyntax(function, argument, distinct, variable, event, window, on, cursor.since(start))


def _build(
    names: RuleResolver, written: SummariseSyntax, position: Position | None, window: Window | None
) -> Summarise | None:
    if written.argument is not None:
        names.check(written.argument, written.event.name.text)
    names.register(written.event.name, position, ROLE)
    names.total(written.variable)
    if position is None or window is None:
        return None
    return Summarise(
        written.function,
        written.argument,
        written.distinct,
        written.variable.text,
        position,
        window,
        written.on,
        written.span,
    )


def _text(written: SummariseSyntax, expression: Callable[[Expression], str]) -> str:
    argument = "*" if written.argument is None else expression(written.argument)
    distinct = "DISTINCT " if written.distinct else ""
    return f"{written.function}({distinct}{argument}) AS ?{written.variable.text} OVER"


def _effect(conjunct: Summarise) -> str:
    return f"every `{conjunct.position.name}` is counted"


AGGREGATE = WrittenOperator(
    tuple(AGGREGATES),
    _parse,
    _build,
    _text,
    _effect,
    role=ROLE,
    called="an aggregate",
    hint="use its ?v",
    before_event=False,
)


def check_aggregates(program: Program, found: Diagnostics) -> None:
    """Warn about every aggregate variable that no condition, aggregate or binding of its rule uses, D1326."""
    for rule in program.rules:
        for conjunct in _unused(rule):
            found.warning(
                "D1326",
                f"nothing reads `?{conjunct.variable}`",
                conjunct.span,
                hint=f"use it, as in `WHERE ?{conjunct.variable} > 5`, or delete the conjunct",
                notes=("an aggregate alone prevents no event, not even one over nothing",),
            )


def _unused(rule: Rule) -> Iterator[Summarise]:
    read = frozenset[str]().union(*map(names_of, rule_expressions(rule)))
    for conjunct in rule.conjuncts:
        if isinstance(conjunct, Summarise) and f"?{conjunct.variable}" not in read:
            yield conjunct
