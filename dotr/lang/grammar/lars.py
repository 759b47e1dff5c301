"""`.lars` files: text → LARS rules with their names as written.

Place:   beside dlog.py and dotr.py; checks/lars.py looks the names up and checks the rules together.
Method:  language.md, "What holds"; plain LARS (Beck, Dao-Tran, Eiter 2018), one syntax for its window
         operators. Recovery at the dot that ends a rule. STEP, FACTS, OF, PER, AT, LEAST, SOMETIME and ALWAYS
         are keywords here and names everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr import program
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.expressions.aggregates import KEYWORDS as AGGREGATE_KEYWORDS
from dotr.lang.grammar.cursor import NUMBERS, Cursor, Parameters, Skip, Token, nearest
from dotr.lang.grammar.dlog import AtomParser
from dotr.lang.grammar.dotr import KEYWORDS, WindowParser
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.syntax import Duration, Name
from dotr.program.rules import COLLECT
from dotr.source import Source, Span, Syntax

MODALITIES: Final[Mapping[str, program.Modality]] = {
    "SOMETIME": program.Modality.SOMETIME,
    "ALWAYS": program.Modality.ALWAYS,
}
RESERVED: Final = frozenset(
    (
        *MODALITIES,
        *AGGREGATE_KEYWORDS,
        *("STEP", "FACTS", "OF", "PER", "AT", "LEAST", "NOT", "FILTER", "BIND", "WITHIN"),
    )
)
"""What is not a name in a .lars file, besides the keywords of .dotr files."""

_MOST: Final = 10**9


class LarsFile(Syntax, frozen=True):
    """One .lars text. `steps`: its STEP lines; `prologue`: where PREFIX (with the prefix), BASE and STEP
    (with None) stand. `unread`: first words of what could not be read: maybe names of heads.
    """

    rules: tuple[program.LarsRule, ...]
    steps: tuple[Duration, ...]
    prefixes: Mapping[str, str]
    prologue: tuple[tuple[str | None, Span], ...] = ()
    unread: frozenset[str] = frozenset()


class LarsParser:
    """Owns one .lars text."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        self.cursor = Cursor(source, found)
        self.cursor.code = "D1601"
        self._windows = WindowParser(self.cursor, Parameters(self.cursor))
        self._atoms = AtomParser(self.cursor, ExpressionParser(self.cursor, Mode.DATALOG))
        self._steps: list[Duration] = []

    def file(self) -> LarsFile:
        """Everything of the text that could be read. Raises nothing: findings are in `found`."""
        rules: list[program.LarsRule] = []
        unread: set[str] = set()
        while self.cursor.token.kind != "end":
            start = self.cursor.at
            try:
                if not self._atoms.prologue_line(self._step):
                    rules.append(self._lars_rule())
            except Skip:
                if self.cursor.tokens[start].kind == "name":
                    unread.add(self.cursor.tokens[start].text)
                self._atoms.recover(start, ("PREFIX", "BASE", "STEP"))
        return LarsFile(
            tuple(rules),
            tuple(self._steps),
            dict(self.cursor.prefixes),
            tuple(self._atoms.prologue),
            frozenset(unread),
        )

    def _step(self) -> None:
        self.cursor.advance()
        self._steps.append(self._duration())

    # -- rules ------------------------------------------------------------

    def _lars_rule(self) -> program.LarsRule:
        start = self.cursor.token
        self._atoms.refuse_turtle()
        head = self._lars_head()
        body: list[program.LarsLiteral] = []
        if self.cursor.accept(":-"):
            if self.cursor.key == ".":
                raise self.cursor.fail("an atom", "what holds at every point is written without `:-`")
            body.append(self._lars_literal())
            while self.cursor.accept(","):
                body.append(self._lars_literal())
        self._end_of_lars_rule(bool(body))
        return program.LarsRule(head, tuple(body), self.cursor.since(start))

    def _end_of_lars_rule(self, body: bool) -> None:
        if self.cursor.accept("."):
            return
        hint = "a rule ends with a dot"
        if self.cursor.key in ("&&", "AND"):
            hint = "literals are separated by `,`"
        elif self.cursor.key in ("<", "<=", "=", ":="):
            hint = "the arrow is written `:-`"
        elif not body and self.cursor.key == ",":
            hint = "a rule has one head: write a rule for each"
        elif not body and self.cursor.key in ("WITHIN", *MODALITIES):
            hint = "a head holds now, or `AT ?t`; windows belong in the body"
        elif self.cursor.key == "PER":
            hint = "write PER after the window of an aggregate"
        failure = self.cursor.fail("`,` or `.`" if body else "`:-` or `.`", hint)
        if self.cursor.token.kind != "end" and not self._at_line():
            raise failure

    def _at_line(self) -> bool:
        """Whether a rule begins here, in a line of its own: then the one before only lacks its dot."""
        between = self.cursor.source.text[
            self.cursor.tokens[self.cursor.at - 1].end : self.cursor.token.start
        ]
        return self.cursor.token.kind == "name" and self.cursor.peek().key == "(" and "\n" in between

    def _lars_head(self) -> program.LarsHead:
        start = self.cursor.token
        if start.key == "NOT":
            raise self.cursor.fail("a head", "a conclusion cannot be negated: negation belongs in the body")
        atom = self._named_atom()
        if not self.cursor.accept("AT"):
            return program.LarsHead(atom, span=self.cursor.since(start))
        variable = self._windows.variable()
        offset = 0
        if self.cursor.key in ("+", "-"):
            sign = -1 if self.cursor.advance().key == "-" else 1
            offset = sign * self._duration().micros
        return program.LarsHead(atom, variable.text, offset, self.cursor.since(start))

    # -- literals ------------------------------------------------------------

    def _lars_literal(self) -> program.LarsLiteral:
        start = self.cursor.token
        negated = self.cursor.accept("NOT") is not None
        match self.cursor.key:
            case "FILTER" | "BIND" if self.cursor.peek().key == "(":
                if negated:
                    raise self.cursor.fail(
                        "an atom", "write `FILTER(! …)`" if self.cursor.key == "FILTER" else ""
                    )
                return self._atoms.filter() if self.cursor.key == "FILTER" else self._atoms.bind()
            case key if key in AGGREGATES and self._at_aggregate():
                if negated:
                    raise self.cursor.fail("an atom", "compare the aggregate's ?v in a FILTER")
                return self._lars_aggregate()
            case _:
                return self._lars_atom(start.start, negated)

    def _at_aggregate(self) -> bool:
        """Whether a word with brackets is an aggregate: one that may also be an atom's name has AS behind."""
        if self.cursor.key in AGGREGATE_KEYWORDS or self.cursor.peek().key != "(":
            return self.cursor.peek().key == "("
        depth = 0
        for token in self.cursor.tokens[self.cursor.at + 1 :]:
            depth += (token.key == "(") - (token.key == ")")
            if not depth:
                break
        else:
            return False
        return self.cursor.tokens[self.cursor.tokens.index(token) + 1].key == "AS"

    def _lars_aggregate(self) -> program.WindowAggregate:
        start = self.cursor.advance()
        function, distinct, argument = self._atoms.aggregate("`)` or an operator")
        if function == COLLECT:
            self._atoms.expressions.forbid(COLLECT, start)
        self.cursor.expect("AS", "`AS ?v`")
        variable = self._atoms.variable()
        self.cursor.expect("OVER", "`OVER` and an atom")
        atom = self._named_atom()
        if self.cursor.key in (*MODALITIES, "AT"):
            raise self.cursor.fail("WITHIN", "an aggregate ranges over every atom and point of its window")
        what = f"`{atom.name}(…) WITHIN …`: an aggregate has a window"
        window = self._lars_window(atom, what, aggregated=True)
        group: tuple[program.Var, ...] = ()
        if self.cursor.accept("PER"):
            group = self._per()
        elif isinstance(window, program.FactWindow):
            group = tuple(one for n in window.per if isinstance(one := atom.arguments[n], program.Var))
        span = self.cursor.since(start)
        return program.WindowAggregate(function, argument, distinct, variable, atom, window, group, span)

    def _per(self) -> tuple[program.Var, ...]:
        if not self.cursor.accept("("):
            found = [self._atoms.variable()]
            while self.cursor.key == "," and self.cursor.peek().kind == "var":
                self.cursor.advance()
                found.append(self._atoms.variable())
            return tuple(found)
        found = [self._atoms.variable()]
        while self.cursor.accept(","):
            found.append(self._atoms.variable())
        self.cursor.expect(")", "`,` or `)`")
        return tuple(found)

    def _lars_atom(self, start: int, negated: bool) -> program.WindowAtom:
        first = self.cursor.token
        modality = MODALITIES.get(self.cursor.key)
        if modality is not None:
            self.cursor.advance()
        atom = self._named_atom()
        at, count = None, 0
        if self.cursor.key in MODALITIES or self.cursor.key == "AT":
            if modality is not None:
                raise self.cursor.fail("WITHIN", f"`{first.text}` already states when the atom must hold")
            modality, at, count = self._when()
        if modality is None and self.cursor.key != "WITHIN":
            return program.WindowAtom(atom, negated=negated, span=self.cursor.since(start))
        if modality is program.Modality.AT and self.cursor.key != "WITHIN":
            self._unbounded(atom, at, start)
            return program.WindowAtom(
                atom, modality, program.TimeWindow(0), at, count, negated, self.cursor.since(start)
            )
        window = self._lars_window(atom)
        if modality is program.Modality.ALWAYS and isinstance(window, program.FactWindow) and window.per:
            self.cursor.error(
                "D1619",
                "ALWAYS is about each point of one window, and each key has its own",
                self.cursor.since(start),
                hint="write `AT LEAST k`, or a window of time",
            )
        return program.WindowAtom(
            atom, modality or program.Modality.SOMETIME, window, at, count, negated, self.cursor.since(start)
        )

    def _when(self) -> tuple[program.Modality, str | None, int]:
        """SOMETIME, ALWAYS, AT ?t or AT LEAST k after an atom."""
        token = self.cursor.advance()
        if token.key != "AT":
            return MODALITIES[token.key], None, 0
        if self.cursor.accept("LEAST"):
            return program.Modality.AT_LEAST, None, self._number_of("time points")
        if self.cursor.token.kind != "var":
            raise self.cursor.fail(
                "`?t` or `LEAST`", "write `AT ?t WITHIN 10 s`, or `AT LEAST 3 WITHIN 10 s`"
            )
        return program.Modality.AT, self._windows.variable().text, 0

    def _unbounded(self, atom: program.NamedAtom, at: str | None, start: int) -> None:
        self.cursor.error(
            "D1602",
            f"`AT ?{at}` without a window reaches back to the beginning of time",
            self.cursor.since(start),
            hint=f"bound it: `{atom.name}(…) AT ?{at} WITHIN 1 min`",
            notes=("an atom that may be read for ever can never be forgotten",),
        )

    def _lars_window(
        self, atom: program.NamedAtom, what: str = "WITHIN", *, aggregated: bool = False
    ) -> program.LarsWindow:
        start = self.cursor.token
        hint = nearest(start.text, ("WITHIN",)) if start.kind == "name" else ""
        self.cursor.expect(
            "WITHIN",
            what,
            hint or "write `WITHIN 10 s`, or `WITHIN 3 FACTS`; `WITHIN 0 s` is the current point only",
        )
        if self.cursor.token.kind in NUMBERS and self.cursor.peek().key in ("FACTS", "FACT"):
            count = self._number_of("facts")
            self.cursor.advance()
            streams = self._counted() if self.cursor.accept("OF") else ()
            streams = () if streams == (atom.name,) else streams
            if self.cursor.key == "PER" and (self.cursor.peek().key == "(" or not aggregated):
                return self._keyed(atom, program.FactWindow(count, streams), start)
            return program.FactWindow(count, streams, self.cursor.since(start))
        return program.TimeWindow(self._duration().micros, self.cursor.since(start))

    def _keyed(self, atom: program.NamedAtom, window: program.FactWindow, start: Token) -> program.FactWindow:
        """A window of facts with `PER (?k, …)` next: an aggregate has brackets there, `PER ?k` groups it."""
        self.cursor.advance()
        key = [variable.name for variable in self._per()]
        span = self.cursor.since(start)
        known: dict[str, int] = {}
        for place, one in enumerate(atom.arguments):
            if isinstance(one, program.Var):
                known.setdefault(one.name, place)
        for name in key:
            if name not in known:
                written = f"{atom.name}(…, ?{name}, …) WITHIN {window.count} FACTS PER (?{name})"
                self.cursor.error(
                    "D1619",
                    f"`?{name}` is no argument of `{atom.name}`",
                    span,
                    hint=nearest(name, known, "?") or f"write `{written}`",
                )
                key = list(known)  # so that nothing else is found of it
        columns = [known[name] for name in dict.fromkeys(key)]
        if window.streams:
            self.cursor.error(
                "D1619",
                "a window of facts PER a key counts those of its own atom",
                span,
                hint=f"write `FACTS PER ({', '.join('?' + name for name in key)})`, without OF",
            )
        return program.FactWindow(window.count, (), span, tuple(columns))

    def _counted(self) -> tuple[str, ...]:
        self.cursor.expect("(", "`(Name, …)`, the queries whose facts are counted")
        found = [self._lars_name("the name of a query or rule").text]
        while self.cursor.accept(","):
            found.append(self._lars_name("the name of a query or rule").text)
        self.cursor.expect(")", "`,` or `)`")
        return tuple(found)

    def _number_of(self, of: str) -> int:
        token = self.cursor.token
        if token.kind not in NUMBERS and token.key not in ("-", "+"):
            raise self.cursor.fail(f"a number of {of}")
        if token.key in ("-", "+"):
            self.cursor.advance()
        digits = self.cursor.advance()
        whole = token.kind == "integer" and len(token.text) < 12
        if not whole or not 1 <= int(digits.text) <= _MOST:
            self.cursor.error(
                "D1603",
                f"`{self.cursor.shown_since(token)}` is not a number of {of}",
                self.cursor.since(token),
                hint="write a whole number from 1 on",
            )
            return 1
        return int(digits.text)

    def _duration(self) -> Duration:
        token = self.cursor.token
        if token.kind == "var":
            raise self.cursor.fail("a duration such as `5 min`", "a .lars file has no parameters")
        return self._windows.duration()

    # -- atoms ------------------------------------------------------------

    def _lars_name(self, what: str) -> Name:
        token = self.cursor.token
        if token.kind != "name":
            hint = ""
            if token.kind in ("pname", "iri"):
                hint = "an atom is named after a query, a rule or a head: a bare name, without a prefix"
            elif token.kind == "var":
                hint = "a variable belongs inside the brackets of an atom"
            elif token.kind in ("attribute", "timeof"):
                hint = f"write arguments in brackets: `{token.text.split('.')[0]}(?v)`"
            raise self.cursor.fail(what, hint)
        if token.key in RESERVED or token.key in KEYWORDS:
            self.cursor.error(
                "D1009",
                f"`{token.text}` is a keyword and not a name",
                self.cursor.span(),
                hint="choose another name",
            )
        return self._windows.word()

    def _named_atom(self) -> program.NamedAtom:
        start = self.cursor.token
        if start.key in RESERVED and self.cursor.peek().key != "(":
            raise self.cursor.fail("an atom such as `alarm(?room)`")
        name = self._lars_name("an atom such as `alarm(?room)`")
        self.cursor.expect("(", "`(`", f"write `{name.text}()`, or `{name.text}(?v)`")
        arguments: list[program.Argument] = []
        with self.cursor.nested():
            if self.cursor.key != ")":
                arguments.append(self._lars_argument())
                while self.cursor.accept(","):
                    arguments.append(self._lars_argument())
            self.cursor.expect(")", "`,` or `)`")
        return program.NamedAtom(name.text, tuple(arguments), self.cursor.since(start))

    def _lars_argument(self) -> program.Argument:
        token = self.cursor.token
        argument = self._atoms.argument()
        if argument is not None:
            return argument
        hint = ""
        if token.kind == "name":
            hint = f"a variable is written `?{token.text}`, an IRI `:{token.text}`"
        elif token.kind == "label" or token.key == "[":
            hint = "a rule cannot have blank nodes: write a variable"
        raise self.cursor.fail("a variable, an IRI or a literal", hint)
