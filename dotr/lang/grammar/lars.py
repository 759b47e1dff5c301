"""`.lars` files: text → LARS rules with their names as written.

Place:   beside dlog.py and dotr.py; checks/lars.py looks the names up and says what the rules mean together.
Method:  language.md, "What holds"; plain LARS (Beck, Dao-Tran, Eiter 2018), one syntax for its window
         operators. Recovery at the dot that ends a rule. STEP, FACTS, OF, PER, AT, LEAST, SOMETIME and ALWAYS
         are keywords here and names everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.ir import (
    Argument,
    BindAtom,
    Expression,
    FactWindow,
    FilterAtom,
    LarsHead,
    LarsLiteral,
    LarsRule,
    LarsWindow,
    Modality,
    NamedAtom,
    TimeWindow,
    Var,
    WindowAggregate,
    WindowAtom,
)
from dotr.lang.grammar.base import NUMBERS, Skip, nearest
from dotr.lang.grammar.expressions import Mode
from dotr.lang.grammar.syntax import Duration, Name
from dotr.lang.grammar.windows import KEYWORDS, WindowParser
from dotr.late import dataclass
from dotr.source import Source, Span

MODALITIES: Final[Mapping[str, Modality]] = {
    "SOMETIME": Modality.SOMETIME,
    "ALWAYS": Modality.ALWAYS,
}
RESERVED: Final = frozenset(
    (
        *MODALITIES,
        *AGGREGATES,
        *("STEP", "FACTS", "OF", "PER", "AT", "LEAST", "NOT", "FILTER", "BIND", "WITHIN"),
    )
)
"""What is not a name in a .lars file, besides the keywords of .dotr files."""

_PROLOGUE: Final = ("PREFIX", "BASE", "STEP")
_MOST: Final = 10**9


@dataclass(frozen=True, slots=True)
class LarsFile:
    """One .lars text. `steps`: its STEP lines; `prologue`: where PREFIX (with the prefix), BASE and STEP
    (with None) stand. `unread`: first words of what could not be read: maybe names of heads.
    """

    rules: tuple[LarsRule, ...]
    steps: tuple[Duration, ...]
    prefixes: Mapping[str, str]
    prologue: tuple[tuple[str | None, Span], ...] = field(default=(), compare=False, repr=False)
    unread: frozenset[str] = frozenset()


class LarsParser(WindowParser):
    """Owns one .lars text."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        super().__init__(source, found)
        self._lars_steps: list[Duration] = []
        self._places: list[tuple[str | None, Span]] = []

    def file(self) -> LarsFile:
        """Everything of the text that could be read. Raises nothing: findings are in `found`."""
        self.mode, self.code, self.deployed = Mode.DATALOG, "D1601", True
        rules: list[LarsRule] = []
        unread: set[str] = set()
        while self.token.kind != "end":
            start = self.at
            try:
                if self.key in _PROLOGUE:
                    self._lars_prologue()
                else:
                    rules.append(self._lars_rule())
            except Skip:
                if self.tokens[start].kind == "name":
                    unread.add(self.tokens[start].text)
                self._to_rule(start)
        return LarsFile(
            tuple(rules), tuple(self._lars_steps), dict(self.prefixes), tuple(self._places), frozenset(unread)
        )

    def _lars_prologue(self) -> None:
        first = self.token
        prefix: str | None = None
        if first.key == "PREFIX":
            prefix = self.peek().text[:-1]
            self.declare_prefix(self.declared)
        elif first.key == "BASE":
            self.declare_base()
        else:
            self.advance()
            self._lars_steps.append(self.duration())
        self.accept(".")
        self._places.append((prefix, self.since(first)))

    def _to_rule(self, start: int) -> None:
        """Go on behind the next dot, or at the next line of the prologue."""
        if self.at == start:
            self.advance()
        while self.token.kind != "end" and self.key not in _PROLOGUE:
            if self.advance().key == ".":
                return

    # -- rules ------------------------------------------------------------

    def _lars_rule(self) -> LarsRule:
        start = self.token
        if start.kind == "language" and start.text in ("@prefix", "@base"):
            raise self.fail(
                "a rule", f"write `{start.text[1:].upper()}`, without `@` and without a dot at the end"
            )
        head = self._lars_head()
        body: list[LarsLiteral] = []
        if self.accept(":-"):
            if self.key == ".":
                raise self.fail("an atom", "what holds at every point is written without `:-`")
            body.append(self._lars_literal())
            while self.accept(","):
                body.append(self._lars_literal())
        self._end_of_lars_rule(bool(body))
        return LarsRule(head, tuple(body), self.since(start))

    def _end_of_lars_rule(self, body: bool) -> None:
        if self.accept("."):
            return
        hint = "a rule ends with a dot"
        if self.key in ("&&", "AND"):
            hint = "literals are separated by `,`"
        elif self.key in ("<", "<=", "=", ":="):
            hint = "the arrow is written `:-`"
        elif not body and self.key == ",":
            hint = "a rule has one head: write a rule for each"
        elif not body and self.key in ("WITHIN", *MODALITIES):
            hint = "a head holds now, or `AT ?t`; windows stand in the body"
        elif self.key == "PER":
            hint = "PER stands behind the window of an aggregate"
        failure = self.fail("`,` or `.`" if body else "`:-` or `.`", hint)
        if self.token.kind != "end" and not self._at_line():
            raise failure

    def _at_line(self) -> bool:
        """Whether a rule begins here, in a line of its own: then the one before only lacks its dot."""
        between = self.source.text[self.tokens[self.at - 1].end : self.token.start]
        return self.token.kind == "name" and self.peek().key == "(" and "\n" in between

    def _lars_head(self) -> LarsHead:
        start = self.token
        if start.key == "NOT":
            raise self.fail("a head", "nothing can be concluded to be false: negation stands in the body")
        atom = self._named_atom()
        if not self.accept("AT"):
            return LarsHead(atom, span=self.since(start))
        variable = self.variable_here()
        offset = 0
        if self.key in ("+", "-"):
            sign = -1 if self.advance().key == "-" else 1
            offset = sign * self.duration().micros
        return LarsHead(atom, variable.text, offset, self.since(start))

    # -- literals ------------------------------------------------------------

    def _lars_literal(self) -> LarsLiteral:
        start = self.token
        negated = self.accept("NOT") is not None
        match self.key:
            case "FILTER" | "BIND" if self.peek().key == "(":
                if negated:
                    raise self.fail("an atom", "write `FILTER(! …)`" if self.key == "FILTER" else "")
                return self._lars_filter() if self.key == "FILTER" else self._lars_bind()
            case key if key in AGGREGATES and self.peek().key == "(":
                if negated:
                    raise self.fail("an atom", "compare the aggregate's ?v in a FILTER")
                return self._lars_aggregate()
            case _:
                return self._lars_atom(start.start, negated)

    def _lars_filter(self) -> FilterAtom:
        start = self.advance()
        self.expect("(")
        with self.nested():
            condition = self.expression()
            self.expect(")", "`)` or an operator")
        return FilterAtom(condition, self.since(start))

    def _lars_bind(self) -> BindAtom:
        start = self.advance()
        self.expect("(")
        with self.nested():
            expression = self.expression()
            self.expect("AS", "`AS` or an operator")
            variable = self._lars_variable()
            self.expect(")")
        return BindAtom(expression, variable, self.since(start))

    def _lars_aggregate(self) -> WindowAggregate:
        start = self.advance()
        argument: Expression | None = None
        self.expect("(")
        with self.nested():
            distinct = self.accept("DISTINCT") is not None
            if self.key == "*" and start.key == "COUNT":
                self.advance()
            else:
                argument = self.expression()
            self.expect(")", "`)` or an operator")
        self.expect("AS", "`AS ?v`")
        variable = self._lars_variable()
        self.expect("OVER", "`OVER` and an atom")
        atom = self._named_atom()
        if self.key in (*MODALITIES, "AT"):
            raise self.fail("WITHIN", "an aggregate ranges over every atom and point of its window")
        window = self._lars_window(atom, f"`{atom.name}(…) WITHIN …`: an aggregate has a window")
        group = self._per() if self.accept("PER") else ()
        span = self.since(start)
        return WindowAggregate(start.key, argument, distinct, variable, atom, window, group, span)

    def _per(self) -> tuple[Var, ...]:
        if not self.accept("("):
            return (self._lars_variable(),)
        found = [self._lars_variable()]
        while self.accept(","):
            found.append(self._lars_variable())
        self.expect(")", "`,` or `)`")
        return tuple(found)

    def _lars_atom(self, start: int, negated: bool) -> WindowAtom:
        first = self.token
        modality = MODALITIES.get(self.key)
        if modality is not None:
            self.advance()
        atom = self._named_atom()
        at, count = None, 0
        if self.key in MODALITIES or self.key == "AT":
            if modality is not None:
                raise self.fail("WITHIN", f"`{first.text}` says already when the atom must hold")
            modality, at, count = self._when()
        if modality is None and self.key != "WITHIN":
            return WindowAtom(atom, negated=negated, span=self.since(start))
        if modality is Modality.AT and self.key != "WITHIN":
            self._unbounded(atom, at, start)
            return WindowAtom(atom, modality, TimeWindow(0), at, count, negated, self.since(start))
        window = self._lars_window(atom)
        return WindowAtom(atom, modality or Modality.SOMETIME, window, at, count, negated, self.since(start))

    def _when(self) -> tuple[Modality, str | None, int]:
        """SOMETIME, ALWAYS, AT ?t or AT LEAST k behind an atom."""
        token = self.advance()
        if token.key != "AT":
            return MODALITIES[token.key], None, 0
        if self.accept("LEAST"):
            return Modality.AT_LEAST, None, self._number_of("time points")
        if self.token.kind != "var":
            raise self.fail("`?t` or `LEAST`", "write `AT ?t WITHIN 10 s`, or `AT LEAST 3 WITHIN 10 s`")
        return Modality.AT, self.variable_here().text, 0

    def _unbounded(self, atom: NamedAtom, at: str | None, start: int) -> None:
        self.error(
            "D1602",
            f"`AT ?{at}` without a window reaches back to the beginning of time",
            self.since(start),
            hint=f"bound it: `{atom.name}(…) AT ?{at} WITHIN 1 min`",
            notes=("what may be looked at for ever can never be forgotten",),
        )

    def _lars_window(self, atom: NamedAtom, what: str = "WITHIN") -> LarsWindow:
        start = self.token
        hint = nearest(start.text, ("WITHIN",)) if start.kind == "name" else ""
        self.expect(
            "WITHIN", what, hint or "write `WITHIN 10 s`, or `WITHIN 3 FACTS`; `WITHIN 0 s` is now alone"
        )
        if self.token.kind in NUMBERS and self.peek().key in ("FACTS", "FACT"):
            count = self._number_of("facts")
            self.advance()
            streams = self._counted() if self.accept("OF") else ()
            streams = () if streams == (atom.name,) else streams
            return FactWindow(count, streams, self.since(start))
        return TimeWindow(self.duration().micros, self.since(start))

    def _counted(self) -> tuple[str, ...]:
        self.expect("(", "`(Name, …)`, the queries whose facts are counted")
        found = [self._lars_name("the name of a query or rule").text]
        while self.accept(","):
            found.append(self._lars_name("the name of a query or rule").text)
        self.expect(")", "`,` or `)`")
        return tuple(found)

    def _number_of(self, of: str) -> int:
        token = self.token
        if token.kind not in NUMBERS and token.key not in ("-", "+"):
            raise self.fail(f"a number of {of}")
        if token.key in ("-", "+"):
            self.advance()
        digits = self.advance()
        whole = token.kind == "integer" and len(token.text) < 12
        if not whole or not 1 <= int(digits.text) <= _MOST:
            self.error(
                "D1603",
                f"`{self.shown_since(token)}` is not a number of {of}",
                self.since(token),
                hint="write a whole number from 1 on",
            )
            return 1
        return int(digits.text)

    def duration(self) -> Duration:
        token = self.token
        if token.kind == "var":
            raise self.fail("a duration such as `5 min`", "a .lars file has no parameters")
        return super().duration()

    # -- atoms ------------------------------------------------------------

    def _lars_name(self, what: str) -> Name:
        token = self.token
        if token.kind != "name":
            hint = ""
            if token.kind in ("pname", "iri"):
                hint = "an atom is named after a query, a rule or a head: a bare name, without a prefix"
            elif token.kind == "var":
                hint = "a variable stands inside the brackets of an atom"
            elif token.kind in ("attribute", "timeof"):
                hint = f"arguments stand in brackets: `{token.text.split('.')[0]}(?v)`"
            raise self.fail(what, hint)
        if token.key in RESERVED or token.key in KEYWORDS:
            self.error(
                "D1009",
                f"`{token.text}` is a keyword and not a name",
                self.span(),
                hint="choose another name",
            )
        return self.word()

    def _named_atom(self) -> NamedAtom:
        start = self.token
        if start.key in RESERVED and self.peek().key != "(":
            raise self.fail("an atom such as `alarm(?room)`")
        name = self._lars_name("an atom such as `alarm(?room)`")
        self.expect("(", "`(`", f"write `{name.text}()`, or `{name.text}(?v)`")
        arguments: list[Argument] = []
        with self.nested():
            if self.key != ")":
                arguments.append(self._lars_argument())
                while self.accept(","):
                    arguments.append(self._lars_argument())
            self.expect(")", "`,` or `)`")
        return NamedAtom(name.text, tuple(arguments), self.since(start))

    def _lars_variable(self) -> Var:
        token = self.token
        name = self.variable_here()
        return Var(name.text, self.span(token))

    def _lars_argument(self) -> Argument:
        token = self.token
        if token.kind == "var":
            return self._lars_variable()
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_literal():
            return self.literal_term()
        hint = ""
        if token.kind == "name":
            hint = f"a variable is written `?{token.text}`, an IRI `:{token.text}`"
        elif token.kind == "label" or token.key == "[":
            hint = "a rule knows no blank nodes: write a variable"
        raise self.fail("a variable, an IRI or a literal", hint)
