"""Names, lengths of time and windows of `.dotr` rules, and where skipping a construct may stop.

Place:   above parameters.py; held by templates.py, clauses.py, dotr.py and lars.py.
Method:  language.md, sec. 2: keywords in any case are not names; a unit is read only behind a number;
         a `?name` in place of a duration or a `k` is a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dotr.ir import RelationToStream, Selection
from dotr.lang.checks.sorts import STAND_IN
from dotr.lang.grammar import syntax
from dotr.lang.grammar.base import NUMBERS, Cursor, nearest
from dotr.lang.grammar.parameters import Parameters
from dotr.lang.grammar.tokens import Token
from dotr.lang.operators import BY_WORD
from dotr.rdf.terms import is_literal, literal_parts
from dotr.temporal.durations import LONGEST, UNITS, micros

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
_AFTER_EVENTS: Final = frozenset(("WITHIN", "BETWEEN", "ON", "FROM", "BEFORE"))
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


class WindowParser:
    """Reads words and windows. `symbolic`: parameters are read as names, for printing."""

    def __init__(self, cursor: Cursor, parameters: Parameters, *, symbolic: bool = False) -> None:
        self.cursor = cursor
        self.parameters = parameters
        self.symbolic = symbolic

    def at_statement(self) -> bool:
        """Whether a statement begins here. Asked only where no name may stand."""
        return self.cursor.key in STATEMENTS or self.cursor.peek().key in CONTEXTUAL.get(self.cursor.key, ())

    def at_clause(self) -> bool:
        """Whether a clause of a rule, or a statement, begins here, or the text ends."""
        return self.cursor.key in CLAUSES or self.at_statement()

    def name(self, what: str) -> syntax.Name:
        """Take a name that is not a keyword."""
        token = self.cursor.token
        if token.kind != "name":
            hint = "names are letters, digits and `_`, without a prefix" if token.kind == "pname" else ""
            if token.kind in ("attribute", "timeof"):
                hint = f"write `{token.text.split('.')[0]}`"
            raise self.cursor.fail(what, hint)
        if token.key in KEYWORDS:
            if token.key in CLAUSES and self.cursor.source.text[token.start : token.end].isupper():
                raise self.cursor.fail(what)
            self._keyword_as_name(token.text)
        return self.word()

    def _keyword_as_name(self, word: str) -> None:
        """Report a keyword where a name stands: once, with its other places."""
        message, found = f"`{word}` is a keyword and not a name", self.cursor.found.found
        for number, one in enumerate(found):
            if one.message == message:
                found[number] = replace(one, notes=(*one.notes, f"also at {self.cursor.span()}")[:2])
                return
        self.cursor.error("D1009", message, self.cursor.span(), hint="choose another name")

    def operator(self) -> RelationToStream | None:
        """Take ISTREAM or DSTREAM where a query or its name follows, or a keyword in the place of a name;
        before what can follow an event they are names.
        """
        found = OPERATORS.get(self.cursor.key)
        following = self.cursor.peek()
        if found is None or (following.kind != "name" and following.key != "{"):
            return None
        if following.key in CLAUSES or following.key in _AFTER_EVENTS or self._statement_follows():
            return None
        self.cursor.advance()
        return found

    def _statement_follows(self) -> bool:
        at = self.cursor.at
        self.cursor.jump(at + 1)
        found = self.at_statement()
        self.cursor.jump(at)
        return found

    def word(self) -> syntax.Name:
        token = self.cursor.advance()
        return syntax.Name(token.text, self.cursor.span(token))

    def variable(self) -> syntax.Name:
        token = self.cursor.variable()
        return syntax.Name(self.cursor.variable_name(token), self.cursor.span(token))

    def close(self, opened: int) -> None:
        """Jump behind the brace that closes the one at `opened`, or to where a rule surely goes on."""
        depth, at = 0, opened
        while at < len(self.cursor.tokens) - 1:
            token = self.cursor.tokens[at]
            if token.key == "{":
                depth += 1
            elif token.key == "}":
                depth -= 1
                if depth == 0:
                    self.cursor.jump(at + 1)
                    return
                if self.cursor.tokens[at + 1].key in _BEHIND_QUERIES:
                    self.cursor.jump(at + 1)
                    return
            elif token.kind == "name" and at > opened and self.surely_outside(at):
                break
            at += 1
        self.cursor.jump(at)

    def surely_outside(self, at: int) -> bool:
        key = self.cursor.tokens[at].key
        following = self.cursor.tokens[min(at + 1, len(self.cursor.tokens) - 1)].key
        second = self.cursor.tokens[min(at + 2, len(self.cursor.tokens) - 1)].key
        return (
            (key == "RULE" and second == "DEFINE")
            or (key == "QUERY" and second == ":=")
            or (key == "AND" and following in CONJUNCTS)
        )

    def window(self) -> syntax.WindowSyntax:
        start = self.cursor.token
        if self.cursor.accept("BETWEEN"):
            first = self.name("the name of an event")
            self.cursor.expect("AND")
            return syntax.BetweenSyntax(first, self.name("the name of an event"), self.cursor.since(start))
        if not self.cursor.accept("WITHIN"):
            hint = nearest(start.text, ("WITHIN", "BETWEEN")) if start.kind == "name" else ""
            if start.key == "ON":
                hint = "the window stands before ON"
            raise self.cursor.fail(
                "WITHIN or BETWEEN", hint or "every conjunct has a window: `WITHIN 5 min FROM Event`"
            )
        duration = self.duration()
        before = self.cursor.key == "BEFORE"
        if not before and self.cursor.key != "FROM":
            hint = "write `WITHIN 5 min FROM Event`: closed at both ends, or `BEFORE Event`"
            raise self.cursor.fail("FROM or BEFORE", hint)
        self.cursor.advance()
        reference = self.name("the name of an event")
        return syntax.WithinSyntax(duration, reference, before, self.cursor.since(start))

    def duration(self) -> syntax.Duration:
        token = self.cursor.token
        if token.kind == "var":
            self.cursor.advance()
            name = self.cursor.variable_name(token)
            if self.symbolic:
                return syntax.Duration(1, self.cursor.span(token), name)
            if name in self.parameters.durations:
                return syntax.Duration(self.parameters.durations[name].micros, self.cursor.span(token))
            if name in self.parameters.terms:
                self.cursor.error("D1113", f"`?{name}` is a term, not a duration", self.cursor.span(token),
                           hint=f"write `?{name} := 5 min`")  # fmt: skip
            else:
                self.parameters.unknown(name, token)
            return syntax.Duration(1, self.cursor.span(token))
        if token.key == "-":
            self.cursor.advance()
            if self.cursor.token.kind in NUMBERS:
                self.cursor.advance()
            if self.cursor.token.kind == "name" and self.cursor.token.text.lower() in UNITS:
                self.cursor.advance()
            self.cursor.error("D1402", "a duration is never negative", self.cursor.since(token),
                       hint="a window always reaches into the past")  # fmt: skip
            return syntax.Duration(1, self.cursor.since(token))
        if token.kind not in NUMBERS:
            raise self.cursor.fail("a duration such as `5 min`")
        self.cursor.advance()
        return self._united(token)

    def _united(self, number: Token) -> syntax.Duration:
        """The unit behind a number, and both as microseconds."""
        unit = self.cursor.token
        if unit.kind != "name" or (unit.key in KEYWORDS and unit.text.lower() not in UNITS):
            self.cursor.error("D1401", f"`{number.text}` has no unit", self.cursor.span(number),
                       hint=f"write `{number.text} s`, or us, ms, min, h, d")  # fmt: skip
            return syntax.Duration(1, self.cursor.span(number))
        self.cursor.advance()
        span = self.cursor.since(number)
        if unit.text.lower() not in UNITS:
            hint = _NO_UNITS.get(unit.text.lower(), "") or nearest(unit.text, UNITS)
            self.cursor.error(
                "D1401",
                f"`{unit.text}` is not a unit of time",
                self.cursor.span(unit),
                hint=hint or "write us, ms, s, min, h or d",
            )
            return syntax.Duration(1, span)
        value = micros(number.text, unit.text) if number.kind != "double" and len(number.text) <= 60 else None
        if value is None or value > LONGEST:
            self.cursor.error("D1406", f"`{self.cursor.shown_since(number)}` is not a duration", span,
                       hint="write a whole number of microseconds, at most a thousand years")  # fmt: skip
            return syntax.Duration(1, span)
        return syntax.Duration(value, span)

    def count(self, selection: Selection) -> tuple[int, str]:
        """The `k` of LAST k, 1 when none is written; and the parameter that it was written as."""
        token = self.cursor.token
        if token.kind == "var" and self.symbolic:
            return 1, self.cursor.variable_name(self.cursor.advance())
        return self._number(selection), ""

    def _number(self, selection: Selection) -> int:
        token = self.cursor.token
        if token.kind == "var" or token.kind in NUMBERS or token.key in ("-", "+"):
            value = self._k(token)
            if selection is Selection.EACH:
                message = "EACH takes every candidate, not a number of them"
                self.cursor.error("D1408", message, self.cursor.span(token), hint="write LAST k or FIRST k")
                return 1
            if value is None or not 1 <= value <= 10**9:
                self.cursor.error(
                    "D1408",
                    f"`{self.cursor.shown_since(token)}` is not a number of events",
                    self.cursor.since(token),
                    hint="write a whole number from 1 on",
                )
                return 1
            return value
        return 1

    def _k(self, token: Token) -> int | None:
        if token.kind == "var":
            name = self.cursor.variable_name(self.cursor.advance())
            term = self.parameters.terms.get(name)
            if term is None:
                self.parameters.unknown(name, token)
                return 1
            if term.startswith(STAND_IN):
                return 1
            lexical, datatype, _ = literal_parts(term) if is_literal(term) else ("", "", "")
            whole = datatype.endswith("#integer") and len(lexical) < 12
            return int(lexical) if whole else None
        if token.key in ("-", "+"):
            self.cursor.advance()
            self.cursor.advance()
            return None
        self.cursor.advance()
        return int(token.text) if token.kind == "integer" and len(token.text) < 12 else None
