"""EACH, LAST and FIRST: they put one event of a window, or several in turn, into a match.

checks/single_choices.py warns of LAST and FIRST where EACH is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dotr.ir import Choose, Expression, Position, Selection, Window, Within
from dotr.lang.grammar.base import Skip
from dotr.lang.grammar.syntax import ChooseSyntax, WithinSyntax
from dotr.lang.grammar.tokens import Token
from dotr.lang.operators.written import WrittenOperator

if TYPE_CHECKING:
    from dotr.lang.checks.rule_names import RuleResolver
    from dotr.lang.grammar.clauses import ClauseParser

ROLE = "chosen"


def _choosing(selection: Selection) -> WrittenOperator:
    """`selection [k] event WITHIN … [ON condition]`."""

    def parse(clauses: ClauseParser, start: Token) -> ChooseSyntax:
        clauses.cursor.advance()
        k, k_name = clauses.windows.count(selection)
        event, window, on = clauses.scope()
        if not isinstance(window, WithinSyntax):
            clauses.cursor.error(
                "D1411",
                f"{selection} has no BETWEEN",
                window.span,
                hint="write `WITHIN … FROM`; BETWEEN is for NOT and aggregates",
            )
            raise Skip
        return ChooseSyntax(selection, k, k_name, event, window, on, clauses.cursor.since(start))

    return WrittenOperator((selection.value,), parse, _build, _text, _effect, role=ROLE)


def _build(
    names: RuleResolver, written: ChooseSyntax, position: Position | None, window: Window | None
) -> Choose | None:
    names.register(written.event.name, position, ROLE)
    if position is None or not isinstance(window, Within):
        return None
    return Choose(written.selection, position, window, written.on, written.k, written.span)


def _effect(conjunct: Choose) -> str:
    name = conjunct.position.name
    if conjunct.selection is Selection.EACH:
        return f"every `{name}` matches"
    return f"{conjunct.selection} chooses among all `{name}`"


def _text(written: ChooseSyntax, _expression: Callable[[Expression], str]) -> str:
    k = f" ?{written.k_name}" if written.k_name else f" {written.k}" if written.k != 1 else ""
    return f"{written.selection}{k}"


EACH = _choosing(Selection.EACH)
LAST = _choosing(Selection.LAST)
FIRST = _choosing(Selection.FIRST)
