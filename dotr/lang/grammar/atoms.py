"""What the rules of .dlog and .lars files have in common: prologue, recovery, FILTER, BIND, arguments.

Place:   above expressions.py; held by dlog.py and lars.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dotr.ir import BindAtom, Expression, FilterAtom, Var
from dotr.lang.grammar.base import Cursor
from dotr.lang.grammar.expressions import ExpressionParser
from dotr.rdf.terms import Term
from dotr.source import Span


class AtomParser:
    """Owns the places of PREFIX (with the prefix) and other lines of the prologue (with None)."""

    def __init__(self, cursor: Cursor, expressions: ExpressionParser) -> None:
        self.cursor = cursor
        self.expressions = expressions
        self.prologue: list[tuple[str | None, Span]] = []

    def prologue_line(self, step: Callable[[], None] | None = None) -> bool:
        """Take PREFIX, BASE or, by `step`, STEP; False where something else stands."""
        first = self.cursor.token
        prefix: str | None = None
        if first.key == "PREFIX":
            prefix = self.cursor.peek().text[:-1]
            self.cursor.declare_prefix(self.cursor.declared)
        elif first.key == "BASE":
            self.cursor.declare_base()
        elif first.key == "STEP" and step is not None:
            step()
        else:
            return False
        self.cursor.accept(".")
        self.prologue.append((prefix, self.cursor.since(first)))
        return True

    def recover(self, start: int, prologue: Collection[str]) -> None:
        """Go on behind the next dot, or at the next line that begins with a word of `prologue`."""
        if self.cursor.at == start:
            self.cursor.advance()
        while self.cursor.token.kind != "end" and self.cursor.key not in prologue:
            if self.cursor.advance().key == ".":
                return

    def refuse_turtle(self) -> None:
        """Raises Skip at `@prefix` and `@base`."""
        token = self.cursor.token
        if token.kind == "language" and token.text in ("@prefix", "@base"):
            raise self.cursor.fail(
                "a rule", f"write `{token.text[1:].upper()}`, without `@` and without a dot at the end"
            )

    def filter(self) -> FilterAtom:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.cursor.nested():
            condition = self.expressions.expression()
            self.cursor.expect(")", "`)` or an operator")
        return FilterAtom(condition, self.cursor.since(start))

    def bind(self) -> BindAtom:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.cursor.nested():
            expression = self.expressions.expression()
            self.cursor.expect("AS", "`AS` or an operator")
            variable = self.variable()
            self.cursor.expect(")")
        return BindAtom(expression, variable, self.cursor.since(start))

    def aggregate(self, close: str = "") -> tuple[bool, Expression | None]:
        """Take `(DISTINCT e)` or `(*)` behind the word: whether DISTINCT, and what of; None for `*`."""
        counts = self.cursor.tokens[self.cursor.at - 1].key == "COUNT"
        argument: Expression | None = None
        self.cursor.expect("(")
        with self.cursor.nested():
            distinct = self.cursor.accept("DISTINCT") is not None
            if not (counts and self.cursor.accept("*")):
                argument = self.expressions.expression()
            self.cursor.expect(")", close)
        return distinct, argument

    def variable(self) -> Var:
        token = self.cursor.variable()
        return Var(self.cursor.variable_name(token), self.cursor.span(token))

    def argument(self) -> Var | Term | None:
        """Take a variable or a constant; None where something else stands."""
        return self.variable() if self.cursor.token.kind == "var" else self.cursor.constant()
