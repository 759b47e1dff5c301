"""NOT: no such event in a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dotr.ir import Absent, Expression, Position, Selection, Window
from dotr.lang.grammar.syntax import AbsentSyntax
from dotr.lang.grammar.tokens import Token
from dotr.lang.operators.written import WrittenOperator

if TYPE_CHECKING:
    from dotr.lang.checks.rule_names import RuleResolver
    from dotr.lang.grammar.clauses import ClauseParser

ROLE = "NOT"


def _parse(clauses: ClauseParser, start: Token) -> AbsentSyntax:
    clauses.cursor.advance()
    if clauses.cursor.key in tuple(Selection):
        raise clauses.cursor.fail("the name of an event", "NOT asks for any such event: write its name alone")
    event, window, on = clauses.scope()
    return AbsentSyntax(event, window, on, clauses.cursor.since(start))


def _build(
    names: RuleResolver, written: AbsentSyntax, position: Position | None, window: Window | None
) -> Absent | None:
    names.register(written.event.name, position, ROLE)
    return None if position is None or window is None else Absent(position, window, written.on, written.span)


def _text(_written: AbsentSyntax, _expression: Callable[[Expression], str]) -> str:
    return "NOT"


def _effect(conjunct: Absent) -> str:
    return f"any `{conjunct.position.name}` prevents the event"


ABSENT = WrittenOperator(
    ("NOT",), _parse, _build, _text, _effect, role=ROLE, called="a NOT", hint="a NOT binds nothing"
)
