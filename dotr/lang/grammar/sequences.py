"""SEQUENCE of .dotr files: tokens → syntax.

Place:   called by dotr.py at `SEQUENCE Name :=`; sources, words and expressions are read by its parsers.
         checks/sequences.py makes the checked sequence of it.
Method:  language.md, "Sequences". Its clauses are read in any order, and one that comes too late is reported,
         so that one mistake is reported once. A quantifier on what the empty word satisfies is reported with
         the pattern that says the same. What SQL's MATCH_RECOGNIZE has and a sequence has not, or has in
         other words, is reported with what to write instead, and passed over (D1017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, permutations
from typing import TYPE_CHECKING, Final

from dotr.expressions.aggregates import AGGREGATES, WITH_SHARE
from dotr.lang.grammar.cursor import NUMBERS, Skip, Token, nearest
from dotr.lang.grammar.syntax import (
    BindingSyntax,
    Duration,
    ElementSyntax,
    EventSyntax,
    Name,
    SequenceSyntax,
)
from dotr.program.queries import Aggregate, Attribute, Expression, TimeOf
from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Repeated,
    elements_of,
    pattern_text,
    satisfied_by_nothing,
    without_nothing,
)
from dotr.source import Span

if TYPE_CHECKING:
    from dotr.lang.grammar.dotr import ClauseParser

SEQUENCE: Final = "SEQUENCE"
SKIPPING: Final = "SKIPPING"
PREV: Final = "PREV"
WORDS: Final = ("OF", "PER", "AND", "WITHIN", "GAP", "OVERLAPPING", "SKIP", "WITH")
"""Words that begin a clause of a sequence, in order."""
OWN_WORDS: Final = (SEQUENCE, SKIPPING, "OF", "PER", "GAP", "OVERLAPPING", "SKIP", "TO", PREV)
"""Those that are names elsewhere."""
_RESERVED: Final = frozenset(OWN_WORDS) - {SEQUENCE, "TO"}
_BEHIND: Final = ("PER", "GAP", "OVERLAPPING", "SKIP")
_ORDER: Final = "the order is OF PER AND… WITHIN GAP OVERLAPPING (or SKIP TO LAST) WITH, each but AND once"
_SHOWN, _LONGEST = 8, 30
"""Elements, and places of elements, of a pattern that a hint writes."""
_MOST: Final = 1_000
"""The greatest number of a quantifier."""

_INSTEAD: Final[Mapping[str, str]] = {
    "PARTITION": "write `PER ?key` after OF",
    "ORDER": "rows are in the order of time: leave it out",
    "MEASURES": "write `WITH ?v := …` at the end",
    "DEFINE": "write `AND Name ON condition` for each element",
    "PATTERN": "write the pattern after `:=`, without brackets: `SEQUENCE Name := A B+ OF …`",
    "SUBSET": "write the alternation's elements, or `*` for all of them",
    "ALL": "write `?list := COLLECT(X.?v)`, or a rule over the rows: "
    "`FROM Visit AND EACH Click WITHIN 1 h FROM Visit ON Click.time >= Visit.?began`",
    "ONE": "a match is one fact: leave it out",
    "MATCH_RECOGNIZE": "write `SEQUENCE Name := pattern OF … WITHIN …`",
    "WHERE": "a condition belongs to an element: `AND Name ON condition`",
    "CONSUMING": "matches do not overlap, unless OVERLAPPING says so: leave it out",
    "FROM": "the sources follow OF: `OF Name := Query`",
    "ON": "a condition belongs to an element: `AND Name ON condition`",
    "UNTIL": "it is the condition of the element that repeats: `AND Name ON condition`",
    "INTERVAL": "WITHIN limits a match, GAP the time between its rows: write one of them",
}

_OF_PATTERNS: Final[Mapping[str, str]] = {
    "NOT": "name an element for what may come, and exclude the rest by its condition",
    "EVERY": "leave it out: matches follow one another, or begin at every row with OVERLAPPING",
}
"""Words that stand before elements in Esper and Siddhi."""
_BEFORE: Final[Mapping[str, str]] = {
    "AFTER": "MATCH",
    "ONE": "ROW",
    "ALL": "ROWS",
    "ORDER": "BY",
    "PARTITION": "BY",
    "PATTERN": "(",
    "MATCH_RECOGNIZE": "(",
}
"""Words of MATCH_RECOGNIZE, and what follows them there; elsewhere they are names."""
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "PER": ("var", "("),
    "GAP": ("var", *NUMBERS),
    "SKIP": ("TO", "PAST"),
}
"""Words, and what follows them where they begin a clause."""
_CLAUSES: Final = ("MEASURES", "SUBSET")
"""Words of MATCH_RECOGNIZE that begin a clause there, whatever follows."""
_NO_ELEMENTS: Final = ("WHERE", "CONSUMING", "FROM", "ON", "DEFINE")


class SequenceParser:
    """Owns the sequence that is being read. `clauses` reads what rules have, too."""

    def __init__(self, clauses: ClauseParser) -> None:
        self.clauses = clauses
        self.windows = clauses.windows
        self.cursor = clauses.cursor
        self._named: list[Name] = []
        self._whole = True

    def sequence(self) -> SequenceSyntax:
        """From `SEQUENCE` to its end. Raises Skip where not even its name can be read."""
        start = self.cursor.expect(SEQUENCE)
        name = self.windows.name("the name of the sequence")
        self.clauses.unresolved = set()
        self._named, self._whole = [], True
        pattern, skipping, places = self._head(start)
        read = _Clauses()
        last = -1
        while not self._ends():
            word = self.cursor.token
            rank = WORDS.index(word.key) if word.key in WORDS else -1
            if rank >= 0 and (rank < last or (rank == last and word.key != "AND")):
                self._report(word, f"`{word.text}` comes too late or twice", _ORDER)
            last = max(last, rank)
            try:
                self._clause(word, read)
                place = self.cursor.since(word)
                if word.key in _BEHIND and places:  # one line with what is before it
                    places[-1] = places[-1]._replace(end=place.end)
                else:
                    places.append(place)
                self._end_of_clause()
            except Skip:
                self._whole = False
                self._to_clause()
        span = self.cursor.since(start)
        self._missing(read, span)
        return SequenceSyntax(
            name, pattern, tuple(self._named), skipping, tuple(read.sources), tuple(read.per),
            tuple(read.elements), read.within, read.gap, read.overlapping, read.skip_to,
            tuple(read.bindings), frozenset(self.clauses.unresolved), self._whole, span, tuple(places),
        )  # fmt: skip

    def _head(self, start: Token) -> tuple[Pattern | None, Name | None, list[Span]]:
        """`:= pattern [SKIPPING]`, with its place."""
        pattern: Pattern | None = None
        skipping: Name | None = None
        try:
            hint = "write `SEQUENCE Name := pattern OF …`"
            self.cursor.expect(":=", hint=hint)
            if self.cursor.key == "MATCH_RECOGNIZE":
                self._foreign(self.cursor.advance(), _INSTEAD["MATCH_RECOGNIZE"])
                raise Skip
            pattern = self._alternatives()
            if self.cursor.key == SKIPPING:
                skipping = self.windows.word()
            places = [self.cursor.since(start)]
            if self.cursor.key != "OF":
                raise self._not_of()
        except Skip:
            self._whole = False
            self._to_clause()
            places = [self.cursor.since(start)]
        return pattern, skipping, places

    def _not_of(self) -> Skip:
        token, hint = self.cursor.token, "the facts that are its rows follow OF: `OF Name := Query`"
        if token.key == ",":
            hint = "elements stand one after another, without commas"
        elif token.key in ("-", "->", ">"):
            hint = "elements stand one after another, without arrows; between them `SKIPPING` lets rows pass"
        elif token.key == "||":
            hint = "write `|`"
        elif token.key == ".":
            hint = "elements stand one after another: `A B+`; between them `SKIPPING` lets rows pass"
        elif token.key == "=":
            hint = f"sources follow OF: `OF {self.cursor.tokens[self.cursor.at - 1].text} := Query`"
        elif token.key == "!":
            hint = _OF_PATTERNS["NOT"]
        elif token.kind == "iri" and ":" in token.text:
            hint = f"write `{{{token.text[1:-1].replace(':', ',')}}}`"
        elif token.key in ("^", "$"):
            self._foreign(token, "a sequence has no anchors: a match begins at the first row that has one")
            return Skip()
        elif token.kind == "var":
            hint = f"write a blank after `?`: `? {token.text[1:]}`"
        elif token.key in _INSTEAD or token.key == "AFTER":
            return Skip()  # reported as a clause
        return self.cursor.fail("an element, a quantifier, `|` or OF", hint)

    # -- patterns ------------------------------------------------------------------------------------------

    def _alternatives(self) -> Pattern:
        branches: list[Pattern] = []
        while not branches or self.cursor.accept("|"):
            branch = self._branch()
            branches += branch.branches if isinstance(branch, Either) else (branch,)
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _branch(self) -> Pattern:
        factors: list[Pattern] = []
        while self._at_factor():
            factor = self._factor()
            factors += factor.parts if isinstance(factor, InOrder) else (factor,)
        if not factors:
            if self.cursor.key in ("{", "^", "$"):
                self._factor()
            word = self.cursor.key in _RESERVED
            raise self.cursor.fail("an element of the pattern", "elements have names" if word else "")
        return factors[0] if len(factors) == 1 else InOrder(tuple(factors))

    def _at_factor(self) -> bool:
        token = self.cursor.token
        if token.key in ("(", "{", "^"):
            return True
        if token.kind != "name" or token.key in (SKIPPING, "OF"):
            return token.kind in ("attribute", "timeof", "pname")
        if token.key == "ON" and not self.cursor.source.text[token.start : token.end].isupper():
            return True  # `On` as a name: likewise reported where it is taken
        following = self.cursor.peek()
        if token.key in _VALUES and following.key not in _VALUES[token.key]:
            return True  # as a name: reported where it is taken
        return not self._at_word()

    def _at_word(self) -> bool:
        """Whether the word that begins something else than an element stands here."""
        key, following = self.cursor.key, self.cursor.peek().key
        if key in _BEFORE:
            return following == _BEFORE[key]
        return key in WORDS or key in _NO_ELEMENTS or self.windows.at_statement()

    def _factor(self) -> Pattern:
        start = self.cursor.token
        if start.key == "{":
            self._foreign(start, "every row of a match is in it: leave out `{-` and `-}`")
            raise Skip
        if start.key == "^":
            self._foreign(start, "a sequence has no anchors: a match begins at the first row that has one")
            raise Skip
        if start.key in _OF_PATTERNS and self.cursor.peek().kind == "name":
            self._foreign(self.cursor.advance(), _OF_PATTERNS[start.key])
            return self._factor()
        if start.key == "PERMUTE" and self.cursor.peek().key == "(":
            self._permute(start)
        if self.cursor.accept("("):
            with self.cursor.nested():
                part = self._alternatives()
                self.cursor.expect(")", "an element, `|` or `)`")
        else:
            name = self._element_name()
            part = Element(name.text)
        return self._quantified(part, start)

    def _element_name(self) -> Name:
        if self.cursor.key in _RESERVED:
            name = self.windows.word()
            self._keyword(name)
            return name
        name = self.windows.name("an element of the pattern")
        self._named.append(name)
        return name

    def _permute(self, start: Token) -> None:
        """Report PERMUTE with the alternation that says it."""
        names: list[str] = []
        at = self.cursor.at + 2
        while self.cursor.tokens[at].kind == "name":
            names.append(self.cursor.tokens[at].text)
            at += 2 if self.cursor.tokens[at + 1].key == "," else 1
        ways = " | ".join(" ".join(way) for way in permutations(names)) if 1 < len(names) < 4 else ""
        self._foreign(start, f"write the orders: `({ways or 'A B | B A'})`")
        raise Skip

    def _quantified(self, part: Pattern, start: Token) -> Pattern:
        """A part with the quantifiers behind it."""
        counts = self._quantifier()
        if counts is None:
            return part
        reluctant = self.cursor.accept("?") is not None
        span = self.cursor.since(start)
        least, most = counts
        if satisfied_by_nothing(part):
            rest, hint = without_nothing_or_hint(part, lambda rest: Repeated(rest, 0, most, reluctant))
            self._wrong(
                "D1652",
                "a quantifier on what no row satisfies: how often is not defined",
                span,
                hint,
            )
            part = rest
        if self._quantifier() is not None:
            one = pattern_text(Repeated(part, least, most, reluctant))
            self._wrong("D1653", "two quantifiers", self.cursor.since(start), f"write brackets: `({one})…`")
        return Repeated(part, least, most, reluctant)

    def _quantifier(self) -> tuple[int, int | None] | None:
        """(least, most) of a quantifier; None where there is none."""
        match self.cursor.key:
            case "+":
                self.cursor.advance()
                return 1, None
            case "*":
                self.cursor.advance()
                return 0, None
            case "?":
                self.cursor.advance()
                return 0, 1
            case "{" if self.cursor.peek().kind == "integer" or self.cursor.peek().key == ",":
                return self._counts()
            case "{" if self.cursor.peek().kind in ("decimal", "double", "var"):
                raise self.cursor.fail("a whole number", token=self.cursor.peek())
        return None

    def _counts(self) -> tuple[int, int | None]:
        """`{n}`, `{n,}`, `{n,m}`, `{,m}`."""
        start = self.cursor.expect("{")
        least = self._count()
        most = least
        if self.cursor.accept(","):
            most = self._count()
        self.cursor.expect("}", "`,` or `}`" if most == least else "`}`")
        span = self.cursor.since(start)
        if least is None and most is None:
            self._wrong("D1653", "`{,}` has no number", span, "write `*`")
        if most == 0 or max(least or 0, most or 0) > _MOST or (most is not None and (least or 0) > most):
            hint = f"the number is from 1 to {_MOST:,}"
            if most == 0:
                hint = "leave it out"
            elif most is not None and (least or 0) > most:
                hint = f"write `{{{most},{least}}}`"
            self._wrong("D1653", f"`{self.cursor.shown_since(start)}` is not a number of times", span, hint)
            return 1, 1
        return least or 0, most

    def _count(self) -> int | None:
        if self.cursor.token.kind != "integer":
            return None
        text = self.cursor.advance().text
        return int(text) if len(text) < 12 else 10**12

    # -- clauses -------------------------------------------------------------------------------------------

    def _clause(self, word: Token, read: _Clauses) -> None:
        """One clause, at whose first word the cursor stands."""
        match word.key:
            case "OF":
                self.cursor.advance()
                read.sources.append(self._source())
                while self.cursor.accept(","):
                    read.sources.append(self._source())
            case "PER":
                read.per += self.clauses.per()
                while self.cursor.accept(","):
                    read.per.append(self.windows.variable())
            case "AND":
                read.elements.append(self._element())
            case "WITHIN":
                self.cursor.advance()
                if self.cursor.key == "INTERVAL":
                    raise self.cursor.fail("a duration such as `5 min`", "write a number and its unit: `1 h`")
                read.within = self.windows.duration()
                if self.cursor.key in ("FROM", "BEFORE"):
                    instead = "WITHIN is measured from a match's first row: write the duration alone"
                    self._foreign(self.cursor.advance(), instead)
                    raise Skip
            case "GAP":
                self.cursor.advance()
                read.gap = self.windows.duration()
            case "OVERLAPPING":
                self.cursor.advance()
                read.overlapping = True
            case "SKIP":
                self.cursor.advance()
                read.skip_to = self._skip_to(word)
            case "WITH":
                self.cursor.advance()
                with self._rows():
                    self.clauses.read_bindings(read.bindings)
            case _:
                self._not_a_clause(word)
        if word.key == "SKIP" and read.overlapping:
            self._report(word, "OVERLAPPING and SKIP TO LAST exclude each other", "keep one of them")

    def _source(self) -> EventSyntax:
        event = self.clauses.event()
        if event.name.text.upper() in _RESERVED:
            self._keyword(event.name)
        if self.cursor.key == "AS":
            raise self.cursor.fail("`,` or the next clause", f"write `Name := {event.name.text}`")
        return event

    def _element(self) -> ElementSyntax:
        start = self.cursor.expect("AND")
        if self.cursor.token.kind in ("attribute", "timeof", "var") or self.cursor.key in ("(", "!"):
            self.cursor.error(
                "D1010", "`AND` joins elements, not conditions", self.cursor.span(start), hint="write &&"
            )
            raise Skip
        if self.cursor.key in ("NOT", "EACH", "LAST", "FIRST"):
            instead = "name the element alone: `AND Name ON condition`"
            if self.cursor.key == "NOT":
                instead = "write what may come, `Other*`, or `AND NOT …` in the rule that reads the sequence"
            self._foreign(self.cursor.token, instead)
            raise Skip
        name = self.windows.name("an element of the pattern")
        sources: list[Name] = []
        if self.cursor.accept("OF"):
            sources.append(self.windows.name("the name of a source"))
            while self.cursor.accept(","):
                sources.append(self.windows.name("the name of a source"))
        on: Expression | None = None
        if self.cursor.accept("ON"):
            known = name.text in self.clauses.unresolved
            self.clauses.unresolved.add(name.text)
            with self._rows():
                on = self.clauses.expressions.expression()
            if not known:
                self.clauses.unresolved.discard(name.text)
        return ElementSyntax(name, tuple(sources), on, self.cursor.since(start))

    def _skip_to(self, start: Token) -> Name:
        """`TO LAST Name`, or what SQL has there."""
        if self.cursor.key == "PAST":
            self._skip_words(start, "that is so without a word: leave it out")
        self.cursor.expect("TO", "`TO LAST`, and an element")
        if self.cursor.key == "NEXT":
            self._skip_words(start, "write `OVERLAPPING`")
        if self.cursor.key == "FIRST":
            self._skip_words(start, "write `OVERLAPPING`, or `SKIP TO LAST` with an element")
        if not self.cursor.accept("LAST"):
            name = self.cursor.token.text if self.cursor.token.kind == "name" else "X"
            raise self.cursor.fail("LAST", f"write `SKIP TO LAST {name}`")
        return self.windows.name("an element of the pattern")

    def _skip_words(self, start: Token, instead: str) -> None:
        while self.cursor.key in ("PAST", "TO", "NEXT", "FIRST", "LAST", "ROW"):
            self.cursor.advance()
        if self.cursor.token.kind == "name" and not self._ends() and not self._at_word():
            self.cursor.advance()
        shown = self.cursor.shown_since(start)
        self._wrong("D1017", f"`{shown}` is not how it is written here", self.cursor.since(start), instead)
        raise Skip

    def _not_a_clause(self, word: Token) -> None:
        """What is no clause of a sequence."""
        if word.key == "AFTER" and self.cursor.peek().key == "MATCH":
            self.cursor.advance()
            self.cursor.advance()
            if self.cursor.accept("SKIP"):
                name = self._skip_to(word)
                self._foreign(word, f"write `SKIP TO LAST {name.text}` after WITHIN")
            raise Skip
        if word.key in _INSTEAD:
            self._foreign(word, _INSTEAD[word.key])
            self.cursor.advance()
            if word.key in ("ONE", "ALL", "PARTITION", "ORDER"):
                self._foreign_rest()
            raise Skip
        hint = "conditions are joined with &&" if word.key in ("&&", "||") else ""
        if word.kind == "name":
            hint = self.clauses.seconds_hint() or nearest(word.text, (*WORDS, SKIPPING))
            if word.key == SKIPPING:
                hint = "SKIPPING follows the pattern, before OF"
        elif word.key in (".", ";"):
            hint = "nothing ends a clause here"
        failed = self.cursor.fail("AND, WITHIN, GAP, OVERLAPPING, SKIP TO LAST, WITH or the next line", hint)
        self.cursor.advance()
        raise failed

    def _foreign_rest(self) -> None:
        """Pass over `ROW PER MATCH`, or `BY` and what follows it."""
        if not self.cursor.accept("BY"):
            while self.cursor.key in ("ROW", "ROWS", "PER", "MATCH"):
                self.cursor.advance()
            return
        while self.cursor.token.kind in ("name", "var", "attribute", "timeof") and not self._at_word():
            self.cursor.advance()
            if self.cursor.key in ("ASC", "DESC"):
                self.cursor.advance()
            if not self.cursor.accept(","):
                return

    def _ends(self) -> bool:
        return self.cursor.token.kind == "end" or self.windows.at_statement()

    def _end_of_clause(self) -> None:
        if not self._ends() and self.cursor.key not in WORDS and not self._at_word():
            self._not_a_clause(self.cursor.token)

    def _to_clause(self) -> None:
        """Skip to the next clause or statement; names that are passed over may be those of elements."""
        while not self._ends() and self.cursor.key not in (*WORDS, *_CLAUSES) and not self._at_word():
            if self.cursor.key == "{" and self.cursor.peek().key == "SELECT":
                self.windows.close(self.cursor.at)
                continue
            token = self.cursor.advance()
            if token.kind == "name":
                self.clauses.unresolved.add(token.text)

    def _missing(self, read: _Clauses, span: Span) -> None:
        """Report what every sequence has, once everything else could be read."""
        if not self._whole:
            return
        if not read.sources:
            self._wrong("D1004", "the sequence has no OF", span, "write `OF Name := Query` after the pattern")
        if read.within is None:
            self._wrong("D1651", "the sequence has no WITHIN", span,
                        "write `WITHIN 1 h`: how long after its first row a match may end")  # fmt: skip

    # -- rows in expressions -------------------------------------------------------------------------------

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """Expressions have rows inside."""
        self.clauses.expressions.rows = self._row_value
        try:
            yield
        finally:
            self.clauses.expressions.rows = None

    def _row_value(self, token: Token) -> Expression | None:
        """A row's value or an aggregate, where a name begins an expression; None for anything else."""
        following = self.cursor.peek()
        if token.key in ("FINAL", "RUNNING") and following.kind in ("name", "attribute", "timeof"):
            self._foreign(token, "in ON rows are those so far, in WITH all of the match: leave it out")
            raise Skip
        if following.key != "(":
            return None
        match token.key:
            case "FIRST" | "LAST":
                self.cursor.advance()
                return self._edge(token)
            case "PREV":
                self.cursor.advance()
                self.cursor.expect("(")
                if self.cursor.token.kind in ("attribute", "timeof"):
                    value = self.cursor.token.text.partition(".")[2]
                    instead = f"write `PREV.{value}`, of the row before that `PREV(2).{value}`"
                    raise self.cursor.fail("a whole number", instead)
                text = f"PREV({self._row_number(1)})"
                self.cursor.expect(")")
                return self._value_of(text, token)
            case "NEXT":
                self._foreign(token, "write the condition in the element of the later row, with PREV")
                raise Skip
            case "CLASSIFIER" | "MATCH_NUMBER":
                self._foreign(token, "`dotr explain` shows the element of each row; there is no function")
                raise Skip
            case _:
                return self._total(token) if token.key in AGGREGATES else None

    def _edge(self, token: Token) -> Expression:
        """`FIRST(X).?v`, `LAST(X, 2).time`."""
        self.cursor.expect("(")
        if self.cursor.token.kind in ("attribute", "timeof"):
            inner = self.cursor.token.text
            element, _, value = inner.partition(".")
            raise self.cursor.fail("an element", f"write `{token.key}({element}).{value}`")
        element = "*" if self.cursor.accept("*") else self.windows.name("an element, or `*`").text
        number = f",{self._row_number(0)}" if self.cursor.accept(",") else ""
        self.cursor.expect(")", "`,` or `)`")
        return self._value_of(f"{token.key}({element}{number})", token)

    def _row_number(self, least: int) -> int:
        token = self.cursor.token
        if token.kind != "integer" or not least <= int(token.text[:12]) <= _MOST:
            raise self.cursor.fail(f"a whole number from {least} to {_MOST:,}")
        self.cursor.advance()
        return int(token.text)

    def _value_of(self, row: str, start: Token) -> Expression:
        """`.?v` or `.time` behind a row."""
        end = self.cursor.tokens[self.cursor.at - 1].end
        dot, value = self.cursor.token, self.cursor.peek()
        if dot.key != "." or value.kind not in ("var", "name"):
            raise self.cursor.fail("`.?v` or `.time`", "a row is no value: write which of its attributes")
        if dot.start != end or value.start != dot.end:
            raise self.cursor.fail("`.?v` or `.time`", "write no blanks around the dot")
        self.cursor.advance()
        if value.kind == "var":
            return Attribute(row, self.cursor.variable_name(self.cursor.advance()), self.cursor.since(start))
        if value.key != "TIME":
            raise self.cursor.fail("`?v` or `time`", f"write `.?{value.text}`")
        self.cursor.advance()
        return TimeOf(row, self.cursor.since(start))

    def _total(self, token: Token) -> Expression:
        """An aggregate over the rows of an element."""
        self.cursor.advance()
        key = token.key
        argument: Expression | None = None
        with self.cursor.nested():
            self.cursor.expect("(")
            distinct = self.cursor.accept("DISTINCT") is not None
            star = self.cursor.token
            named = star.kind == "name" and self.cursor.peek().key == ")"
            if (star.key == "*" or named) and (key != "COUNT" or distinct):
                row = "X" if star.key == "*" else star.text
                raise self.cursor.fail("an expression", f"write `{key}({'DISTINCT ' * distinct}{row}.?v)`")
            if not self.cursor.accept("*"):
                if named:
                    element = self.windows.name("an element")
                    argument = Attribute(element.text, "", element.span)
                else:
                    argument = self.clauses.expressions.expression()
                    key = self.clauses.expressions.with_share(key) if key == WITH_SHARE else key
            self.cursor.expect(")")
        return Aggregate(key, argument, distinct, None, self.cursor.since(token))

    # -- findings ------------------------------------------------------------------------------------------

    def _wrong(self, code: str, message: str, span: Span, hint: str) -> None:
        self._whole = False
        self.cursor.error(code, message, span, hint=hint)

    def _keyword(self, name: Name) -> None:
        self._wrong("D1009", f"`{name.text}` is a keyword and not a name", name.span, "choose another name")

    def _report(self, token: Token, message: str, hint: str) -> None:
        self._wrong("D1004", message, self.cursor.span(token), hint)

    def _foreign(self, token: Token, instead: str) -> None:
        """Report what a sequence has in other words, or not at all."""
        shown = "{-" if token.key == "{" else token.text
        self._wrong("D1017", f"`{shown}` is not how it is written here", self.cursor.span(token), instead)


def without_nothing_or_hint(part: Pattern, as_whole: Callable[[Pattern], Pattern]) -> tuple[Pattern, str]:
    """A pattern without the empty word, which satisfies it, and a hint; `as_whole`: what is to be written.

    A long one, which would be written with the square of its parts, becomes its elements in order.
    """
    names = list(dict.fromkeys(islice(elements_of(part), _LONGEST)))
    if len(names) > _SHOWN or sum(1 for _ in elements_of(part)) > _LONGEST:
        every = tuple(map(Element, dict.fromkeys(elements_of(part))))
        return InOrder(every), "let one of its parts be without `?` or `*`, or write alternatives"
    rest = without_nothing(part)
    return rest, f"write `{pattern_text(as_whole(rest))}`"


class _Clauses:
    """What was read of the clauses."""

    def __init__(self) -> None:
        self.sources: list[EventSyntax] = []
        self.per: list[Name] = []
        self.elements: list[ElementSyntax] = []
        self.within: Duration | None = None
        self.gap: Duration | None = None
        self.overlapping = False
        self.skip_to: Name | None = None
        self.bindings: list[BindingSyntax] = []
