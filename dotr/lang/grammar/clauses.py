"""RULE: its clauses, one after the other.

Place:   above sparql.py, windows.py and templates.py; held by dotr.py.
Method:  language.md, sec. 2. A clause that cannot be read is left out and parsing goes on at the next clause;
         the rule is then not `whole`, and names that the lost clause may have bound are `wild`: never
         reported as unknown.
"""

from __future__ import annotations

from dotr.ir import Expression, Select, TemplateTriple
from dotr.lang.grammar import syntax
from dotr.lang.grammar.base import Cursor, Skip, nearest
from dotr.lang.grammar.foreign_words import EMIT, PATTERN, foreign_event, foreign_word
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.grammar.templates import TemplateParser
from dotr.lang.grammar.windows import CLAUSES, CONJUNCTS, KEYWORDS, WindowParser
from dotr.lang.operators import BEFORE_EVENTS, BY_WORD
from dotr.lang.operators.aggregate import AGGREGATE
from dotr.lang.operators.every import parse_every
from dotr.source import Span


class ClauseParser:
    """Owns the names that the current rule's unreadable clauses may have bound."""

    def __init__(self, cursor: Cursor, queries: SparqlParser, windows: WindowParser) -> None:
        self.cursor = cursor
        self.expressions = queries.expressions
        self.windows = windows
        self.wild: set[str] = set()
        self._queries = queries
        self._templates = TemplateParser(cursor, windows)

    def rule(self) -> syntax.RuleSyntax:
        start = self.cursor.token
        private = self.cursor.accept("PRIVATE") is not None
        self.cursor.expect("RULE")
        name = self.windows.name("the name of the rule")
        self.wild = set()
        whole = True
        template: tuple[TemplateTriple, ...] = ()
        names: tuple[syntax.Name, ...] = ()
        trigger: syntax.EventSyntax | syntax.EverySyntax | None = None
        conjuncts: list[syntax.ConjunctSyntax] = []
        where: Expression | None = None
        bindings: list[syntax.BindingSyntax] = []
        consuming: list[syntax.Name] = []
        clauses: list[Span] = []
        try:
            self.cursor.expect("DEFINE", hint=self._for_define())
            template, names, clean = self._templates.template()
            whole = clean
            clauses.append(self.cursor.since(start))
            before = self.cursor.token
            if self.cursor.key != "FROM":
                raise self.cursor.fail("FROM")
            self.cursor.advance()
            trigger = self._trigger()
            clauses.append(self.cursor.since(before))
            self._end_of_clause()
        except Skip:
            whole = False
            self.to_clause()
        while self.cursor.key == "AND":
            try:
                conjuncts.append(self._conjunct())
                clauses.append(conjuncts[-1].span)
                self._end_of_clause(conditions=True)
            except Skip:
                whole = False
                self.to_clause()
        for key in ("WHERE", "WITH", "CONSUMING"):
            if self.cursor.key != key:
                continue
            before = self.cursor.advance()
            try:
                if key == "WHERE":
                    where = self.expressions.expression()
                elif key == "WITH":
                    self._bindings(bindings)
                else:
                    self._names(consuming)
                clauses.append(self.cursor.since(before))
                self._end_of_clause(conditions=key != "CONSUMING")
            except Skip:
                whole = False
                self.to_clause()
        self._misplaced()
        return syntax.RuleSyntax(
            name, template, trigger, tuple(conjuncts), where, tuple(bindings), tuple(consuming), names,
            frozenset(self.wild), whole, self.cursor.since(start), tuple(clauses), private,
        )  # fmt: skip

    def _for_define(self) -> str:
        if self.cursor.key == "{":
            return "write `DEFINE { … }`"
        if self.cursor.key == "SELECT":
            return EMIT
        return foreign_word(self.cursor.token) or nearest(self.cursor.token.text, ("DEFINE",))

    def _trigger(self) -> syntax.EventSyntax | syntax.EverySyntax:
        if (tick := parse_every(self)) is not None:
            return tick
        if self.cursor.key in BEFORE_EVENTS and self.cursor.peek().kind == "name":
            raise self.cursor.fail("an event", "the trigger is every fact of its query: write its name alone")
        return self.event()

    def event(self) -> syntax.EventSyntax:
        changes = self.windows.operator()
        if changes is not None and self.cursor.key != "{":
            name = self.windows.name("the name of a query or of what holds")
            return syntax.EventSyntax(name, alias=name, operator=changes, short=True)
        if changes is not None:
            raise self.cursor.fail("a name", f"name the event: `Name := {changes} {{ SELECT … }}`")
        hint = foreign_event(self.cursor.token, self.cursor.peek(), CLAUSES | {"WITHIN", "BETWEEN"})
        if hint:
            raise self.cursor.fail("the name of an event", hint)
        name = self.windows.name("the name of an event")
        self.wild.add(name.text)
        if not self.cursor.accept(":="):
            if self.cursor.key == "{" or (self.cursor.key == "=" and self.cursor.peek().key == "{"):
                raise self.cursor.fail("`:=`", f"write `{name.text} := {{ SELECT … }}`")
            self.wild.discard(name.text)
            return syntax.EventSyntax(name)
        operator = self.windows.operator()
        if self.cursor.key == "{":
            query = self.embedded()
            if query is not None:
                self.wild.discard(name.text)
            return syntax.EventSyntax(name, query, broken=query is None, operator=operator)
        alias = self.windows.name("`{ SELECT … }`, or the name of a query or rule")
        self.wild.discard(name.text)
        return syntax.EventSyntax(name, alias=alias, operator=operator)

    def embedded(self) -> Select | None:
        """Take `{ SELECT … }`. None when it cannot be read; the cursor then stands behind its last brace."""
        opened = self.cursor.at
        if self.cursor.key != "{":
            raise self.cursor.fail("`{ SELECT … }`")
        self.cursor.advance()
        try:
            with self.cursor.nested():
                select = self._queries.query(ask=False)
                if self.cursor.key != "}":
                    self.cursor.code, code = "D1201", self.cursor.code
                    try:
                        raise self.cursor.fail(
                            "`}`",
                            "a `}` is missing"
                            if self.cursor.key in (*CLAUSES, *CONJUNCTS)
                            else "the query ends here",
                        )
                    finally:
                        self.cursor.code = code
            self.cursor.advance()
        except Skip:
            self.windows.close(opened)
            return None
        return select

    def _conjunct(self) -> syntax.ConjunctSyntax:
        start = self.cursor.expect("AND")
        if (operator := BY_WORD.get(self.cursor.key)) is not None:
            return operator.parse(self, start)
        if self.cursor.token.kind == "name" and self.cursor.peek().key == "(":
            self.cursor.error(
                "D1004",
                f"there is no aggregate `{self.cursor.token.text}`",
                self.cursor.span(self.cursor.token),
                hint=f"the aggregates are {', '.join(AGGREGATE.words)}",
            )
            return AGGREGATE.parse(self, start)
        hint = ""
        if self.cursor.token.kind == "name" and self.cursor.key not in KEYWORDS:
            near = "" if self._names_event() else nearest(self.cursor.token.text, CONJUNCTS)
            hint = near or self._unselected()
        elif self.cursor.token.kind in ("attribute", "timeof"):
            hint = "conditions are joined with &&"
        raise self.cursor.fail("EACH, LAST, FIRST, NOT or an aggregate", hint)

    def scope(self) -> tuple[syntax.EventSyntax, syntax.WindowSyntax, Expression | None]:
        """An event, its window, the condition behind ON. Its name is wild where the rest cannot be read."""
        event = self.event()
        known = event.name.text in self.wild
        self.wild.add(event.name.text)
        window = self.windows.window()
        on = self.expressions.expression() if self.cursor.accept("ON") else None
        if not known:
            self.wild.discard(event.name.text)
        return event, window, on

    def _names_event(self) -> bool:
        return self.cursor.peek().key in (":=", "WITHIN", "BETWEEN")

    def _unselected(self) -> str:
        """The hint for an event without the word that says how it is chosen."""
        name = self.cursor.token.text
        return f"say which: `AND EACH {name}`, `AND LAST {name}`, or that there is none: `AND NOT {name}`"

    def _bindings(self, found: list[syntax.BindingSyntax]) -> None:
        while True:
            token = self.cursor.token
            if token.kind != "var":
                raise self.cursor.fail(
                    "`?v := expression`", f"write `?{token.text} := …`" if token.kind == "name" else ""
                )
            name = self.windows.variable()
            if not self.cursor.accept(":="):
                raise self.cursor.fail(
                    "`:=`", "a binding is written `?v := expression`" if self.cursor.key == "=" else ""
                )
            found.append(syntax.BindingSyntax(name, self.expressions.expression()))
            if not self.cursor.accept(","):
                if self.cursor.token.kind == "var":
                    raise self.cursor.fail("`,` or the next clause", "bindings are separated by commas")
                return

    def _names(self, found: list[syntax.Name]) -> None:
        found.append(self.windows.name("the name of an event"))
        while self.cursor.accept(","):
            found.append(self.windows.name("the name of an event"))

    def _misplaced(self) -> None:
        """A clause of this rule that stands too late: said, and skipped."""
        while self.cursor.key in ("AND", "WHERE", "WITH", "CONSUMING", "DEFINE"):
            token = self.cursor.advance()
            self.cursor.error(
                "D1004",
                f"`{token.text}` stands too late or twice",
                self.cursor.span(token),
                hint="the order is DEFINE FROM AND… WHERE WITH CONSUMING, each but AND once",
            )
            self.to_clause()

    def _end_of_clause(self, *, conditions: bool = False) -> None:
        """Complain when a clause goes on with something that is not the next clause."""
        if self.windows.at_clause():
            if conditions and self.cursor.key == "AND" and not self._at_conjunct():
                self._and_for_both()
            return
        token = self.cursor.token
        hint = (
            nearest(token.text, ("WITHIN", *(c for c in CLAUSES if c != "end")))
            if token.kind == "name"
            else ""
        )
        if token.key in BEFORE_EVENTS:
            hint = f"write `AND {token.text}`"
        elif token.key == "-" and self.cursor.peek().key == ">":
            hint = PATTERN
        elif token.key == "PRIVATE":
            hint = "write `PRIVATE RULE Name`"
        elif token.key == ".":
            hint = "no dot ends a rule here"
        elif token.key == ";":
            hint = "no semicolon ends a clause here"
        elif token.key in ("WITHIN", "BETWEEN") and not conditions:
            hint = "the trigger has no window: it is the latest event"
        elif token.key == "ON":
            hint = (
                "the trigger has no ON: write the condition into its query, or as WHERE"
                if not conditions
                else ""
            )
        hint = foreign_word(token) or hint
        raise self.cursor.fail("AND, WHERE, WITH, CONSUMING or the next rule", hint)

    def _at_conjunct(self) -> bool:
        """Whether `AND` begins a conjunct, if one that does not say how its event is chosen."""
        event = self.cursor.peek().kind == "name" and self.cursor.peek(2).key in (":=", "WITHIN", "BETWEEN")
        return event or self.cursor.peek().key in CONJUNCTS

    def _and_for_both(self) -> None:
        self.cursor.error(
            "D1010",
            "`AND` joins events, not conditions",
            self.cursor.span(),
            hint="write &&",
        )
        self.cursor.advance()
        self.to_clause()

    def to_clause(self) -> None:
        """Skip to the next clause or statement; braces are skipped as a whole. Names that are passed over may
        have been those of events.
        """
        while not self.windows.at_clause():
            if self.cursor.key == "{":
                self.windows.close(self.cursor.at)
            else:
                token = self.cursor.advance()
                if token.kind == "name" and token.key not in KEYWORDS:
                    self.wild.add(token.text)
