"""What the parameters of a .dotr text stand for while it is read.

Place:   held by the parsers of one text together; dotr.py fills it, expressions, queries and windows ask it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from dotr.lang.checks.sorts import STAND_IN
from dotr.lang.grammar.base import Cursor, nearest
from dotr.lang.grammar.syntax import Duration, Name, ParameterValue, Reference
from dotr.lang.grammar.tokens import Token
from dotr.rdf.terms import Term
from dotr.source import Span


class Parameters:
    """Owns the terms and durations of the parameters, by name; one without a value stands for either."""

    def __init__(self, cursor: Cursor, values: Mapping[str, ParameterValue] | None = None) -> None:
        self._cursor = cursor
        self.terms: dict[str, Term] = {}
        self.durations: dict[str, Duration] = {}
        for name, value in (values or {}).items():
            self.set(name, value)

    def set(self, name: str, value: ParameterValue) -> None:
        """Let a parameter stand for a value in the whole text."""
        match value:
            case Duration():
                self.durations[name] = value
            case Reference():
                raise AssertionError("references are read for printing only")
            case str():
                self.terms[name] = value
            case _:
                assert_never(value)

    def stand_in(self, name: Name) -> None:
        """A parameter without a value: a file of patterns is checked with a stand-in for it."""
        self.terms[name.text] = f"{STAND_IN}{name.text}>"
        self.durations[name.text] = Duration(1_000_000, name.span)

    def __contains__(self, name: str) -> bool:
        return name in self.terms or name in self.durations

    def term(self, name: str, token: Token) -> Term | None:
        """The term that a variable stands for; None for one that is not a parameter. Reports durations."""
        term = self.terms.get(name)
        if term is None and name in self.durations:
            self._cursor.error("D1113", f"`?{name}` is a duration, not a term", self._cursor.span(token),
                               hint="durations stand behind WITHIN and EVERY")  # fmt: skip
        return term

    def refuse_binding(self, name: str, span: Span, what: str) -> None:
        """Report a parameter where `what` is bound."""
        if name in self:
            self._cursor.error(
                "D1114",
                f"`?{name}` is a parameter and cannot be bound",
                span,
                hint=f"give the {what} another name",
            )

    def unknown(self, name: str, token: Token) -> None:
        """Report a name that stands for nothing of the kind that was looked for."""
        known = {*self.terms, *self.durations}
        kind = "a duration" if name in self.durations else "not a parameter of this file"
        hint = nearest(name, known - {name}, "?") or f"declare it: `PARAMETER ?{name}`"
        self._cursor.error("D1112", f"`?{name}` is {kind}", self._cursor.span(token), hint=hint)
