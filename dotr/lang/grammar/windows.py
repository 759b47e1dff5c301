"""Names, lengths of time and windows of `.dotr` rules, and where skipping a construct may stop.

Place:   between sparql.py and templates.py; what they share about `.dotr` alone.
Method:  language.md, sec. 2: keywords in any case are not names; a unit is read only behind a number;
         a `?name` in place of a duration or a `k` is a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

from dotr.errors import Diagnostics
from dotr.ir import RelationToStream, Selection
from dotr.lang.grammar.base import NUMBERS, nearest
from dotr.lang.grammar.durations import LONGEST, UNITS, micros
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.grammar.syntax import (
    BetweenSyntax,
    Duration,
    Name,
    ParameterValue,
    Reference,
    WindowSyntax,
    WithinSyntax,
)
from dotr.lang.grammar.tokens import Token
from dotr.lang.operators import BY_WORD
from dotr.rdf.terms import Term, is_literal, literal_parts
from dotr.source import Source

CONJUNCTS: Final = tuple(BY_WORD)
STATEMENTS: Final = (
    *("PREFIX", "BASE", "BACKGROUND", "RULES", "ENTAILMENT", "PARAMETER", "IMPORT"),
    *("QUERY", "RULE"),
)
CONTEXTUAL: Final[Mapping[str, frozenset[str]]] = {
    "PRIVATE": frozenset(("RULE",)),
    "HOLD": frozenset(("*", "A", "iri", "pname")),
    "LARS": frozenset(("iri", "string", "<")),
}
"""Words that begin a statement before one of these tokens (`Token.key`), and are names everywhere else."""
CLAUSES: Final = frozenset((*STATEMENTS, "AND", "WHERE", "WITH", "CONSUMING", "DEFINE", "end"))
KEYWORDS: Final = frozenset(
    (
        *STATEMENTS,
        *CONJUNCTS,
        *("DEFINE", "FROM", "EVERY", "AS", "AND", "OVER", "ON", "WHERE", "WITH", "CONSUMING"),
        *("WITHIN", "BEFORE", "BETWEEN", "DISTINCT", "SELECT"),
    )
)
OPERATORS: Final[Mapping[str, RelationToStream]] = {word.value: word for word in RelationToStream}
"""ISTREAM and DSTREAM: words before a query or a name, and names everywhere else."""

_BEHIND_QUERIES: Final = frozenset(("WITHIN", "BETWEEN", "RULE", "QUERY", "AND", "CONSUMING", "WITH"))
_NO_UNITS: Final[Mapping[str, str]] = {
    "m": "write `min` for minutes, `ms` for milliseconds",
    **dict.fromkeys(("w", "week", "weeks"), "write days"),
    **dict.fromkeys(("mo", "month", "months"), "a month has no fixed length: write days"),
    **dict.fromkeys(("y", "year", "years"), "a year has no fixed length: write days"),
}


class WindowParser(SparqlParser):
    """Owns, besides the cursor, the values of the text's parameters in this reading."""

    def __init__(
        self,
        source: Source,
        found: Diagnostics | None = None,
        values: Mapping[str, ParameterValue] | None = None,
        *,
        symbolic: bool = False,
    ) -> None:
        super().__init__(source, found)
        self.symbolic = symbolic  # parameters are read as names: for printing
        self.durations: dict[str, Duration] = {}
        self.given = frozenset(values or ())
        for name, value in (values or {}).items():
            self.set_parameter(name, value)

    def set_parameter(self, name: str, value: ParameterValue) -> None:
        """Let a parameter stand for a value in the whole text."""
        match value:
            case Duration():
                self.durations[name] = value
                self.not_terms.add(name)
            case Reference():
                raise AssertionError("references are read for printing only")
            case str():
                self.parameters[name] = value
            case _:
                assert_never(value)

    def at_statement(self) -> bool:
        """Whether a statement begins here. Asked only where no name may stand."""
        return self.key in STATEMENTS or self.peek().key in CONTEXTUAL.get(self.key, ())

    def at_clause(self) -> bool:
        """Whether a clause of a rule, or a statement, begins here, or the text ends."""
        return self.key in CLAUSES or self.at_statement()

    def name(self, what: str) -> Name:
        """Take a name that is not a keyword."""
        token = self.token
        if token.kind != "name":
            hint = "names are letters, digits and `_`, without a prefix" if token.kind == "pname" else ""
            if token.kind in ("attribute", "timeof"):
                hint = f"write `{token.text.split('.')[0]}`"
            raise self.fail(what, hint)
        if token.key in KEYWORDS:
            if token.key in CLAUSES and self.source.text[token.start : token.end].isupper():
                raise self.fail(what)
            self._keyword_as_name(token.text)
        return self.word()

    def _keyword_as_name(self, word: str) -> None:
        """Tell of a keyword where a name stands: once, with its other places."""
        message, found = f"`{word}` is a keyword and not a name", self.found.found
        for number, one in enumerate(found):
            if one.message == message:
                found[number] = replace(one, notes=(*one.notes, f"also at {self.span()}")[:2])
                return
        self.error("D1009", message, self.span(), hint="choose another name")

    def operator(self) -> RelationToStream | None:
        """Take ISTREAM or DSTREAM where a query or its name follows; alone they are names."""
        found = OPERATORS.get(self.key)
        following = self.peek()
        if found is None or (following.kind != "name" and following.key != "{"):
            return None
        if following.key in KEYWORDS or self._statement_follows():
            return None
        self.advance()
        return found

    def _statement_follows(self) -> bool:
        at = self.at
        self.jump(at + 1)
        found = self.at_statement()
        self.jump(at)
        return found

    def word(self) -> Name:
        token = self.advance()
        return Name(token.text, self.span(token))

    def variable_here(self) -> Name:
        token = self.token
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        self.advance()
        return Name(self.variable_name(token), self.span(token))

    def close(self, opened: int) -> None:
        """Jump behind the brace that closes the one at `opened`, or to where a rule surely goes on."""
        depth, at = 0, opened
        while at < len(self.tokens) - 1:
            token = self.tokens[at]
            if token.key == "{":
                depth += 1
            elif token.key == "}":
                depth -= 1
                if depth == 0:
                    self.jump(at + 1)
                    return
                if self.tokens[at + 1].key in _BEHIND_QUERIES:
                    self.jump(at + 1)
                    return
            elif token.kind == "name" and at > opened and self.surely_outside(at):
                break
            at += 1
        self.jump(at)

    def surely_outside(self, at: int) -> bool:
        key = self.tokens[at].key
        following = self.tokens[min(at + 1, len(self.tokens) - 1)].key
        second = self.tokens[min(at + 2, len(self.tokens) - 1)].key
        return (
            (key == "RULE" and second == "DEFINE")
            or (key == "QUERY" and second == ":=")
            or (key == "AND" and following in CONJUNCTS)
        )

    def window(self) -> WindowSyntax:
        start = self.token
        if self.accept("BETWEEN"):
            first = self.name("the name of an event")
            self.expect("AND")
            return BetweenSyntax(first, self.name("the name of an event"), self.since(start))
        if not self.accept("WITHIN"):
            hint = nearest(start.text, ("WITHIN", "BETWEEN")) if start.kind == "name" else ""
            if start.key == "ON":
                hint = "the window stands before ON"
            raise self.fail(
                "WITHIN or BETWEEN", hint or "every conjunct has a window: `WITHIN 5 min FROM Event`"
            )
        duration = self.duration()
        before = self.key == "BEFORE"
        if not before and self.key != "FROM":
            hint = "write `WITHIN 5 min FROM Event`: closed at both ends, or `BEFORE Event`"
            raise self.fail("FROM or BEFORE", hint)
        self.advance()
        reference = self.name("the name of an event")
        return WithinSyntax(duration, reference, before, self.since(start))

    def duration(self) -> Duration:
        token = self.token
        if token.kind == "var":
            self.advance()
            name = self.variable_name(token)
            if self.symbolic:
                return Duration(1, self.span(token), name)
            if name in self.durations:
                return Duration(self.durations[name].micros, self.span(token))
            if name in self.parameters:
                self.error("D1113", f"`?{name}` is a term and no duration", self.span(token),
                           hint=f"write `?{name} := 5 min`")  # fmt: skip
            else:
                self.unknown_parameter(name, token)
            return Duration(1, self.span(token))
        if token.key == "-":
            self.advance()
            if self.token.kind in NUMBERS:
                self.advance()
            if self.token.kind == "name" and self.token.text.lower() in UNITS:
                self.advance()
            self.error("D1402", "a duration is never negative", self.since(token),
                       hint="a window always reaches into the past")  # fmt: skip
            return Duration(1, self.since(token))
        if token.kind not in NUMBERS:
            raise self.fail("a duration such as `5 min`")
        self.advance()
        return self._united(token)

    def _united(self, number: Token) -> Duration:
        """The unit behind a number, and both as microseconds."""
        unit = self.token
        if unit.kind != "name" or (unit.key in KEYWORDS and unit.text.lower() not in UNITS):
            self.error("D1401", f"`{number.text}` has no unit", self.span(number),
                       hint=f"write `{number.text} s`, or us, ms, min, h, d")  # fmt: skip
            return Duration(1, self.span(number))
        self.advance()
        span = self.since(number)
        if unit.text.lower() not in UNITS:
            hint = _NO_UNITS.get(unit.text.lower(), "") or nearest(unit.text, UNITS)
            self.error(
                "D1401",
                f"`{unit.text}` is not a unit of time",
                self.span(unit),
                hint=hint or "write us, ms, s, min, h or d",
            )
            return Duration(1, span)
        value = micros(number.text, unit.text) if number.kind != "double" and len(number.text) <= 60 else None
        if value is None or value > LONGEST:
            self.error("D1406", f"`{self.shown_since(number)}` is not a duration", span,
                       hint="write a whole number of microseconds, at most a thousand years")  # fmt: skip
            return Duration(1, span)
        return Duration(value, span)

    def count(self, selection: Selection) -> tuple[int, str]:
        """The `k` of LAST k, 1 when none is written; and the parameter that it was written as."""
        token = self.token
        if token.kind == "var" and self.symbolic:
            return 1, self.variable_name(self.advance())
        return self._number(selection), ""

    def _number(self, selection: Selection) -> int:
        token = self.token
        if token.kind == "var" or token.kind in NUMBERS or token.key in ("-", "+"):
            value = self._k(token)
            if selection is Selection.EACH:
                self.error("D1408", "EACH takes every candidate and no number", self.span(token),
                           hint="write LAST k or FIRST k")  # fmt: skip
                return 1
            if value is None or not 1 <= value <= 10**9:
                self.error(
                    "D1408",
                    f"`{self.shown_since(token)}` is not a number of events",
                    self.since(token),
                    hint="write a whole number from 1 on",
                )
                return 1
            return value
        return 1

    def _k(self, token: Token) -> int | None:
        if token.kind == "var":
            term = self.parameter_term(self.advance())
            if term is None or term.startswith("<urn:dotr:parameter:"):
                return 1
            lexical, datatype, _ = literal_parts(term) if is_literal(term) else ("", "", "")
            whole = datatype.endswith("#integer") and len(lexical) < 12
            return int(lexical) if whole else None
        if token.key in ("-", "+"):
            self.advance()
            self.advance()
            return None
        self.advance()
        return int(token.text) if token.kind == "integer" and len(token.text) < 12 else None

    def parameter_term(self, token: Token) -> Term | None:
        name = self.variable_name(token)
        if name in self.parameters:
            return self.parameters[name]
        self.unknown_parameter(name, token)
        return None

    def unknown_parameter(self, name: str, token: Token) -> None:
        known = {*self.parameters, *self.durations}
        kind = "a duration" if name in self.durations else "no parameter of this file"
        self.error("D1112", f"`?{name}` is {kind}", self.span(token),
                   hint=nearest(name, known - {name}, "?") or f"declare it: `PARAMETER ?{name}`")  # fmt: skip

    def shown_since(self, token: Token) -> str:
        return self.source.text[token.start : self.tokens[self.at - 1].end]
