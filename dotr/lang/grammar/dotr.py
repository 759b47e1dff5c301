"""Rule files (.dotr): string → syntax.

Place:   above the other parsers; checks/names.py resolves the names in the result. lars.py shares the
         windows.
Method:  language.md, sec. 2. PREFIX and PARAMETER hold in the whole file, so they are read beforehand; a
         statement that cannot be read is left out and parsing continues at the next.
         Clauses of RULE: a clause that cannot be read is left out and parsing continues at the next; the rule
         is then not `whole`, and names that the lost clause may have bound are `unresolved`: never
         reported as unknown.
         Windows: keywords in any case are not names; a unit is read only after a number; a `?name` in place
         of a duration or a `k` is a parameter.
         DEFINE: the triples of a composite event, as Turtle's triples over constants, WITH variables and
         fresh names `dotr_x`. What Turtle would name at random (`[ ]`, `( )`, `_:b`) is refused: a replay
         must give the same names again.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.expressions.aggregates import KEYWORDS as AGGREGATE_KEYWORDS
from dotr.lang.checks.comparisons import STAND_IN
from dotr.lang.grammar import syntax
from dotr.lang.grammar.cursor import (
    EMIT,
    NUMBERS,
    PATTERN,
    TYPE,
    Cursor,
    Parameters,
    Skip,
    Token,
    foreign_event,
    foreign_word,
    nearest,
    string_value,
)
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.sequences import OWN_WORDS, SEQUENCE, SequenceParser
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.grammar.syntax import Name
from dotr.lang.operators import AGGREGATE, BEFORE_EVENTS, BY_WORD, OPTIONAL, PER, parse_after, parse_every
from dotr.program import (
    Expression,
    Fresh,
    RelationToStream,
    Select,
    Selection,
    TemplateNode,
    TemplateTriple,
    TemplateVar,
)
from dotr.program.names import LONGEST, UNITS, duration_text, micros
from dotr.rdf.terms import is_iri, is_literal, literal_parts
from dotr.source import Source, Span

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
EFFECTS: Final = ("INSERT", "DELETE")
"""Words that begin a clause before `{`, and are names everywhere else."""
CLAUSES: Final = frozenset((*STATEMENTS, "AND", "WHERE", "WITH", "CONSUMING", "DEFINE", "end"))
_BEHIND_EVENTS: Final = CLAUSES | {"WITHIN", "BETWEEN", "AFTER", *OWN_WORDS}
_AFTER_EVENTS: Final = frozenset(("WITHIN", "BETWEEN", "ON", "FROM", "BEFORE"))
KEYWORDS: Final = frozenset(
    (
        *STATEMENTS,
        *(word for word in CONJUNCTS if BY_WORD[word] is not AGGREGATE or word in AGGREGATE_KEYWORDS),
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
        """Whether a statement begins here. Called only where no name is allowed."""
        if self.cursor.key == SEQUENCE:
            return self.at_sequence()
        return self.cursor.key in STATEMENTS or self.cursor.peek().key in CONTEXTUAL.get(self.cursor.key, ())

    def at_sequence(self) -> bool:
        """Whether a sequence begins here; elsewhere its keyword is a name."""
        named = self.cursor.peek().kind == "name" and self.cursor.peek(2).key in (":=", "=")
        return self.cursor.key == SEQUENCE and named

    def at_clause(self) -> bool:
        """Whether a clause of a rule, or a statement, begins here, or the text ends."""
        return self.cursor.key in CLAUSES or self.at_effect() or self.at_statement()

    def at_effect(self) -> bool:
        """Whether an INSERT or a DELETE begins here."""
        return self.cursor.key in EFFECTS and self.cursor.peek().key == "{"

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
                found[number] = one._replace(notes=(*one.notes, f"also at {self.cursor.span()}")[:2])
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
        """Jump to after the brace that closes the one at `opened`, or to where a rule surely goes on."""
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
            or (key in ("QUERY", SEQUENCE) and second == ":=")
            or (key == "AND" and following in (*CONJUNCTS, OPTIONAL))
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
                hint = "write the window before ON"
            elif start.key == PER:
                hint = "PER follows the event of EACH: `AND EACH Group := Event PER (?key) WITHIN …`"
            raise self.cursor.fail(
                "WITHIN or BETWEEN", hint or "every conjunct has a window: `WITHIN 5 min FROM Event`"
            )
        duration = self.duration()
        before = self.cursor.key == "BEFORE"
        if not before and self.cursor.key != "FROM":
            hint = "write `WITHIN 5 min FROM Event`: closed at both ends, or `BEFORE Event`"
            if self.cursor.key == "AFTER":
                hint = (
                    "windows look back: begin with `FROM Event AFTER 5 min AS Due`, and write `FROM Due` here"
                )
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
            self.cursor.error("D1402", "a duration cannot be negative", self.cursor.since(token),
                       hint="a window always reaches into the past")  # fmt: skip
            return syntax.Duration(1, self.cursor.since(token))
        if token.kind not in NUMBERS:
            raise self.cursor.fail("a duration such as `5 min`")
        self.cursor.advance()
        return self._united(token)

    def _united(self, number: Token) -> syntax.Duration:
        """The unit after a number, and both as microseconds."""
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


class TemplateParser:
    """Reads templates; words and the ends of broken ones are read by `windows`."""

    def __init__(self, cursor: Cursor, windows: WindowParser) -> None:
        self.cursor = cursor
        self.windows = windows
        self._deletes = False

    def template(self, deletes: bool = False) -> tuple[tuple[TemplateTriple, ...], tuple[Name, ...], bool]:
        """`{ triples }`: the triples, the variables they name, and whether all could be read. `deletes`: of a
        DELETE.
        """
        opened = self.cursor.at
        self._deletes = deletes
        self.cursor.expect("{")
        found: list[TemplateTriple] = []
        names: list[Name] = []
        try:
            while not self.cursor.accept("}"):
                self._template_subject(found, names)
                if not self.cursor.accept(".") and self.cursor.key != "}":
                    raise self.cursor.fail("`.`, `;`, `,` or `}`")
        except Skip:
            self.windows.close(opened)
            return tuple(found), tuple(names), False
        return tuple(found), tuple(names), True

    def _template_subject(self, found: list[TemplateTriple], names: list[Name]) -> None:
        token = self.cursor.token
        subject = self._template_node(names)
        if isinstance(subject, str) and is_literal(subject):
            self.cursor.error("D1012", "a literal cannot be a subject", self.cursor.span(token))
        while True:
            verb_token = self.cursor.token
            predicate = self._template_verb(names)
            while True:
                object_ = self._template_node(names)
                found.append(TemplateTriple(subject, predicate, object_, self.cursor.since(verb_token)))
                if not self.cursor.accept(","):
                    break
            if not self.cursor.accept(";"):
                return
            while self.cursor.accept(";"):
                pass
            if self.cursor.key in (".", "}"):
                return

    def _template_verb(self, names: list[Name]) -> TemplateNode:
        token = self.cursor.token
        if token.key == "A" and token.text == "a":
            self.cursor.advance()
            return TYPE
        if token.kind == "name" and token.text.startswith("dotr_"):
            self.cursor.error(
                "D1012", "a fresh name cannot be a predicate", self.cursor.span(), hint="write an IRI"
            )
            self.cursor.advance()
            return TYPE
        if token.kind == "var" or self.cursor.at_iri():
            node = self._template_node(names)
            if isinstance(node, str) and not is_iri(node):
                self.cursor.error("D1012", "a predicate is an IRI", self.cursor.span(token))
            return node
        hint = ""
        if token.key in ("^", "!", "("):
            hint = "a template has no property paths"
        elif token.kind == "name":
            hint = f"write `:{token.text}`"
        raise self.cursor.fail("a predicate", hint)

    def _template_node(self, names: list[Name]) -> TemplateNode:
        token = self.cursor.token
        if token.kind == "var":
            name = self.windows.variable()
            names.append(name)
            return TemplateVar(name.text)
        if token.kind == "name" and token.key not in ("TRUE", "FALSE"):
            return self._fresh(token)
        if token.kind == "label" or token.key in ("[", "("):
            what = {"[": "`[ ]`", "(": "`( )`"}.get(token.key, f"`{token.text}`")
            self.cursor.error(
                "D1011",
                f"{what} would have another name in every run",
                self.cursor.span(),
                hint="write a variable that WITH does not bind: any term" if self._deletes else "use dotr_x",
                notes=()
                if self._deletes
                else ("a fresh name `dotr_x` becomes an IRI made from what matched",),
            )
            raise Skip
        if token.kind in ("attribute", "timeof"):
            self.cursor.error("D1012", f"`{token.text}` is not allowed in a template", self.cursor.span(),
                       hint=f"bind it: WITH ?x := {token.text}, and write ?x")  # fmt: skip
            raise Skip
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        raise self.cursor.fail("a term, a WITH variable or a fresh name")

    def _fresh(self, token: Token) -> Fresh:
        if token.text.startswith("dotr_") and len(token.text) > 5:
            self.cursor.advance()
            return Fresh(token.text)
        hint = "a fresh name begins with dotr_ : `dotr_id1`"
        if token.text == "a":
            hint = "a subject is missing before `a`"
        elif not token.key.startswith("DOTR"):
            hint = f"write `?{token.text}`, `:{token.text}` or `dotr_{token.text}`"
        self.cursor.error("D1012", f"`{token.text}` is not a term", self.cursor.span(), hint=hint)
        raise Skip


class ClauseParser:
    """Owns the names that the current rule's unreadable clauses may have bound."""

    def __init__(self, cursor: Cursor, queries: SparqlParser, windows: WindowParser) -> None:
        self.cursor = cursor
        self.expressions = queries.expressions
        self.windows = windows
        self.unresolved: set[str] = set()
        self._queries = queries
        self._templates = TemplateParser(cursor, windows)

    def rule(self) -> syntax.RuleSyntax:
        start = self.cursor.token
        private = self.cursor.accept("PRIVATE") is not None
        self.cursor.expect("RULE")
        name = self.windows.name("the name of the rule")
        self.unresolved = set()
        whole = True
        template: tuple[TemplateTriple, ...] = ()
        names: tuple[syntax.Name, ...] = ()
        trigger: syntax.TriggerSyntax | None = None
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
                    self.read_bindings(bindings)
                else:
                    self._names(consuming)
                clauses.append(self.cursor.since(before))
                self._end_of_clause(conditions=key != "CONSUMING")
            except Skip:
                whole = False
                self.to_clause()
        effects: dict[str, syntax.EffectSyntax] = {}
        while self.windows.at_effect() and self.cursor.key not in effects:
            before = self.cursor.advance()
            triples, variables, clean = self._templates.template(before.key == "DELETE")
            whole = whole and clean
            effects[before.key] = syntax.EffectSyntax(triples, variables, self.cursor.since(before))
            clauses.append(effects[before.key].span)
            try:
                self._end_of_clause()
            except Skip:
                whole = False
                self.to_clause()
        self._misplaced()
        return syntax.RuleSyntax(
            name, template, trigger, tuple(conjuncts), where, tuple(bindings), tuple(consuming), names,
            frozenset(self.unresolved), whole, self.cursor.since(start), tuple(clauses), private,
            effects.get("INSERT"), effects.get("DELETE"),
        )  # fmt: skip

    def _for_define(self) -> str:
        if self.cursor.key == "{":
            return "write `DEFINE { … }`"
        if self.cursor.key == "SELECT":
            return EMIT
        return foreign_word(self.cursor.token) or nearest(self.cursor.token.text, ("DEFINE",))

    def _trigger(self) -> syntax.TriggerSyntax:
        if (tick := parse_every(self)) is not None:
            return tick
        if self.cursor.key in BEFORE_EVENTS and self.cursor.peek().kind == "name":
            raise self.cursor.fail("an event", "the trigger is every fact of its query: write its name alone")
        start = self.cursor.token
        event = self.event()
        return parse_after(self, event, start) or event

    def event(self) -> syntax.EventSyntax:
        changes = self.windows.operator()
        if changes is not None and self.cursor.key != "{":
            name = self.windows.name("the name of a query or of what holds")
            return syntax.EventSyntax(name, alias=name, operator=changes, short=True)
        if changes is not None:
            raise self.cursor.fail("a name", f"name the event: `Name := {changes} {{ SELECT … }}`")
        hint = foreign_event(self.cursor.token, self.cursor.peek(), _BEHIND_EVENTS)
        if hint:
            raise self.cursor.fail("the name of an event", hint)
        name = self.windows.name("the name of an event")
        self.unresolved.add(name.text)
        if not self.cursor.accept(":="):
            if self.cursor.key == "{" or (self.cursor.key == "=" and self.cursor.peek().key == "{"):
                raise self.cursor.fail("`:=`", f"write `{name.text} := {{ SELECT … }}`")
            self.unresolved.discard(name.text)
            return syntax.EventSyntax(name)
        operator = self.windows.operator()
        if self.cursor.key == "{":
            query = self.embedded()
            if query is not None:
                self.unresolved.discard(name.text)
            return syntax.EventSyntax(name, query, broken=query is None, operator=operator)
        alias = self.windows.name("`{ SELECT … }`, or the name of a query or rule")
        self.unresolved.discard(name.text)
        return syntax.EventSyntax(name, alias=alias, operator=operator)

    def embedded(self) -> Select | None:
        """Take `{ SELECT … }`. None when it cannot be read; the cursor is then after its last brace."""
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
        word = self.cursor.peek() if self._at_optional() else self.cursor.token
        operator = BY_WORD.get(word.key)
        if self.cursor.key in AGGREGATES and self.cursor.peek().key == "(":
            operator = AGGREGATE
        if operator is not None:
            return operator.parse(self, start)
        if self.cursor.token.kind == "name" and self.cursor.peek().key == "(":
            self.cursor.error(
                "D1004",
                f"there is no aggregate `{self.cursor.token.text}`",
                self.cursor.span(self.cursor.token),
                hint=f"the aggregates are {', '.join(AGGREGATES)}",
            )
            return AGGREGATE.parse(self, start)
        hint = ""
        if self.cursor.token.kind == "name" and self.cursor.key not in KEYWORDS:
            near = "" if self._names_event() else nearest(self.cursor.token.text, CONJUNCTS)
            hint = near or self._unselected()
        elif self.cursor.token.kind in ("attribute", "timeof"):
            hint = "conditions are joined with &&"
        if self.cursor.key == OPTIONAL:
            hint = "write OPTIONAL LAST or OPTIONAL FIRST, and the event"
        raise self.cursor.fail("EACH, LAST, FIRST, NOT or an aggregate", hint)

    def _at_optional(self) -> bool:
        """Whether OPTIONAL stands before the word that chooses."""
        return self.cursor.key == OPTIONAL and self.cursor.peek().key in tuple(Selection)

    def scope(
        self, groups: list[syntax.Name] | None = None
    ) -> tuple[syntax.EventSyntax, syntax.WindowSyntax, Expression | None]:
        """An event, its window, ON. Where the rest cannot be read its name is unresolved. `groups` takes the
        attributes of PER, where it may stand behind the event.
        """
        event = self.event()
        known = event.name.text in self.unresolved
        self.unresolved.add(event.name.text)
        if groups is not None:
            groups += self.per()
        window = self.windows.window()
        on = self.expressions.expression() if self.cursor.accept("ON") else None
        if not known:
            self.unresolved.discard(event.name.text)
        return event, window, on

    def per(self) -> tuple[syntax.Name, ...]:
        """`PER (?a, ?b)`, or `PER ?a`; nothing at anything else."""
        if not self.cursor.accept(PER):
            return ()
        if not self.cursor.accept("("):
            return (self.windows.variable(),)
        found = [self.windows.variable()]
        while self.cursor.accept(","):
            found.append(self.windows.variable())
        self.cursor.expect(")", "`,` or `)`")
        return tuple(found)

    def _names_event(self) -> bool:
        return self.cursor.peek().key in (":=", "WITHIN", "BETWEEN")

    def _unselected(self) -> str:
        """The hint for an event without the word that says how it is chosen."""
        name = self.cursor.token.text
        return f"choose one: `AND EACH {name}` or `AND LAST {name}`; if there must be none: `AND NOT {name}`"

    def read_bindings(self, found: list[syntax.BindingSyntax]) -> None:
        """`?v := expression, …`, behind WITH."""
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
        clauses = ("AND", "WHERE", "WITH", "CONSUMING", "DEFINE")
        while self.cursor.key in clauses or self.windows.at_effect():
            token = self.cursor.advance()
            self.cursor.error(
                "D1004",
                f"`{token.text}` comes too late or twice",
                self.cursor.span(token),
                hint="the order is DEFINE FROM AND… WHERE WITH CONSUMING INSERT DELETE, each but AND once",
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
            hint = (
                "the trigger has no window: it is the latest event; some time later is `AFTER 5 min AS Due`"
            )
        elif token.key == "ON":
            hint = (
                "the trigger has no ON: write the condition into its query, or as WHERE"
                if not conditions
                else ""
            )
        elif conditions:
            hint = self.seconds_hint() or hint
        hint = foreign_word(token) or hint
        raise self.cursor.fail("AND, WHERE, WITH, CONSUMING or the next rule", hint)

    def seconds_hint(self) -> str:
        """What to write for the number before a unit of time in a condition; "" where the token is none."""
        number, unit = self.cursor.tokens[self.cursor.at - 1], self.cursor.token
        if number.kind not in ("integer", "decimal") or unit.kind != "name" or unit.text.lower() not in UNITS:
            return ""
        seconds = Decimal(number.text) * UNITS[unit.text.lower()] / 1_000_000
        return f"in a condition a duration is a number of seconds: {seconds:f}"

    def _at_conjunct(self) -> bool:
        """Whether `AND` begins a conjunct, if one that does not say how its event is chosen."""
        event = self.cursor.peek().kind == "name" and self.cursor.peek(2).key in (":=", "WITHIN", "BETWEEN")
        return event or self.cursor.peek().key in (*CONJUNCTS, OPTIONAL)

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
                    self.unresolved.add(token.text)


HOLDING: Final = ("LATEST", "FROM", "UNTIL", "FOR")
"""Keywords after the predicates of a HOLD; names everywhere else."""


class DotrParser:
    """Owns one .dotr text, and the values of its parameters in this import; `symbolic`: they stay names."""

    def __init__(
        self,
        source: Source,
        found: Diagnostics | None = None,
        values: Mapping[str, syntax.ParameterValue] | None = None,
        *,
        symbolic: bool = False,
    ) -> None:
        self.cursor = cursor = Cursor(source, found)
        self._given = frozenset(values or ())
        self._parameters = Parameters(cursor, values)
        self._parameters.symbolic = symbolic
        self._windows = WindowParser(cursor, self._parameters, symbolic=symbolic)
        queries = SparqlParser(cursor, ExpressionParser(cursor, Mode.RULE, self._parameters))
        self._clauses = ClauseParser(cursor, queries, self._windows)

    def file(self) -> syntax.FileSyntax:
        """Every statement that could be read. Raises nothing: findings are in `found`."""
        statements: list[syntax.Statement] = []
        places: list[Span] = []
        prologue: list[tuple[str | None, Span]] = []
        self._declarations()
        while self.cursor.token.kind != "end":
            start = self.cursor.at
            first = self.cursor.token
            try:
                statement = self._statement()
                if statement is not None:
                    statements.append(statement)
                    places.append(self.cursor.since(first))
                else:
                    name = self.cursor.tokens[start + 1].text[:-1] if first.key == "PREFIX" else None
                    prologue.append((name, self.cursor.since(first)))
            except Skip:
                if self.cursor.at == start:
                    self.cursor.advance()
                self._to_statement()
        return syntax.FileSyntax(
            tuple(statements), dict(self.cursor.prefixes), tuple(places), tuple(prologue)
        )

    def _declarations(self) -> None:
        """Read every PREFIX and PARAMETER beforehand: they hold in the whole file."""
        silent = self.cursor.found
        for keys in (("PREFIX", "BASE"), ("BASE", "PARAMETER")):
            self.cursor.found = (
                Diagnostics()
            )  # what is wrong is reported when the statement is read in its turn
            depth = 0
            for at, token in enumerate(self.cursor.tokens):
                key = token.key
                if key == "{":
                    depth += 1
                elif key == "}":
                    depth = max(0, depth - 1)
                elif key in ("RULE", "QUERY", SEQUENCE):
                    self.cursor.jump(at)
                    depth = 0 if self._at_definition() else depth
                elif depth == 0 and key in keys:
                    self.cursor.jump(at)
                    self._declaration(key)
            self.cursor.base = None
            self.cursor.undeclared.clear()
            self.cursor.jump(0)
        self.cursor.used.clear()
        self.cursor.found = silent

    def _declaration(self, key: str) -> None:
        try:
            if key == "PREFIX":
                if (
                    self.cursor.peek().text[:-1] not in self.cursor.prefixes
                ):  # the first one counts; a second is reported later
                    self.cursor.declare_prefix()
            elif key == "BASE":
                self.cursor.declare_base()
            else:
                parameter = self._parameter()
                if self._windows.symbolic:
                    return
                if isinstance(parameter, syntax.ValueParameter) and parameter.name.text not in self._given:
                    if parameter.default is not None:
                        self._parameters.set(parameter.name.text, parameter.default)
                    else:
                        self._parameters.stand_in(parameter.name)
        except Skip:
            pass

    def _at_definition(self) -> bool:
        """At `RULE Name DEFINE`, `QUERY Name :=` or `SEQUENCE Name :=`: enough to end whatever was open."""
        return (self.cursor.key == "RULE" and self.cursor.peek(2).key == "DEFINE") or (
            self.cursor.key in ("QUERY", SEQUENCE) and self.cursor.peek(2).key == ":="
        )

    def _to_statement(self) -> None:
        while self.cursor.token.kind != "end" and not self._windows.at_statement():
            self.cursor.advance()

    def _statement(self) -> syntax.Statement | None:
        match self.cursor.key:
            case "PREFIX":
                self.cursor.declare_prefix(self.cursor.declared)
            case "BASE":
                self.cursor.declare_base()
            case "BACKGROUND":
                self.cursor.advance()
                return syntax.BackgroundSyntax(self._paths())
            case "RULES":
                self.cursor.advance()
                return syntax.RulesSyntax(self._paths())
            case "LARS" if self._windows.at_statement():
                self.cursor.advance()
                return syntax.LarsSyntax(self._paths())
            case "ENTAILMENT":
                self.cursor.advance()
                if self.cursor.token.kind != "name":
                    raise self.cursor.fail("none, rdfs or owl2rl")
                return syntax.EntailmentSyntax(self._windows.word())
            case "PARAMETER":
                parameter = self._parameter()
                if isinstance(parameter, syntax.ValueParameter):
                    self._check_most(parameter)
                return parameter
            case "IMPORT":
                return self._import()
            case "QUERY":
                return self._query_definition()
            case "RULE":
                return self._clauses.rule()
            case "PRIVATE" if self._windows.at_statement():
                return self._clauses.rule()
            case "SEQUENCE" if self.cursor.peek().kind == "name":
                return SequenceParser(self._clauses).sequence()
            case "HOLD":
                return self._hold()
            case _:
                self._no_statement()
        return None

    def _no_statement(self) -> None:
        token = self.cursor.token
        hint = ""
        if token.kind == "language" and token.text in ("@prefix", "@base"):
            hint = f"write `{token.text[1:].upper()}`, without `@` and without a dot at the end"
        elif token.kind == "name":
            hint = nearest(token.text, (*STATEMENTS, *CONTEXTUAL, SEQUENCE))
            if token.key == "PRIVATE":
                hint = "write `PRIVATE RULE Name`"
            hint = foreign_word(token) or hint
        elif token.key in ("[",) or token.kind in ("pname", "iri"):
            hint = "put Datalog in a separate file: `RULES <file.dlog>`"
        elif token.key == "STEP" or token.key == ":-":
            hint = "put LARS rules in a separate file: `LARS <file.lars>`"
        elif token.key == ".":
            hint = "no dot ends a line here"
        failed = self.cursor.fail("a rule, a query or a prologue line", hint)
        self.cursor.advance()
        if foreign_word(token) and self.cursor.key in ("QUERY", "RULE") and not self._at_definition():
            self.cursor.advance()  # what follows is of the other language, too: `REGISTER QUERY Foo AS …`
        raise failed

    def _paths(self) -> tuple[syntax.PathSyntax, ...]:
        found = [self._path_text()]
        while self.cursor.accept(","):
            found.append(self._path_text())
        return tuple(found)

    def _path_text(self) -> syntax.PathSyntax:
        token = self.cursor.token
        if token.kind == "iri":
            self.cursor.advance()
            return syntax.PathSyntax(self.cursor.iri_text(token), self.cursor.span(token))
        if token.kind == "string":
            self.cursor.advance()
            return syntax.PathSyntax(
                string_value(token, self.cursor.source, self.cursor.found), self.cursor.span(token)
            )
        hint = 'put a path with blanks in quotation marks: "…"' if token.key == "<" else "write `<file>`"
        raise self.cursor.fail("a path", hint)

    def _parameter(self) -> syntax.QueryParameter | syntax.ValueParameter:
        start = self.cursor.expect("PARAMETER")
        if self.cursor.accept("QUERY"):
            name = self._windows.name("the name of the query")
            variables: list[syntax.Name] = []
            self.cursor.expect("(", "`(?v, …)`, the variables that the query must select")
            while self.cursor.token.kind == "var":
                variables.append(self._windows.variable())
                self.cursor.accept(",")
            self.cursor.expect(")", "a variable or `)`")
            return syntax.QueryParameter(name, tuple(variables), self.cursor.since(start))
        if self.cursor.token.kind != "var":
            raise self.cursor.fail("`QUERY Name(…)` or `?name`")
        name = self._windows.variable()
        default = self._value() if self.cursor.accept(":=") else None
        most = None
        if self.cursor.accept("AT"):
            self.cursor.expect("MOST", "`MOST`, and a duration")
            token = self.cursor.token
            most = self._windows.duration()
            if token.kind == "var":
                most = replace(most, name=self.cursor.variable_name(token))
        return syntax.ValueParameter(name, default, most, self.cursor.since(start))

    def _check_most(self, parameter: syntax.ValueParameter) -> None:
        """Warn where a value is longer than its declaration allows."""
        name, most, known = parameter.name.text, parameter.most, self._parameters
        value = known.durations.get(name)
        if most is None or value is None or self._windows.symbolic:
            return
        if name in known.terms or most.name in known.terms or value.micros <= most.micros:
            return  # also without a value
        limit = duration_text(most.micros)
        other = known.durations.get(most.name)
        span = value.span
        if other is not None and (span is None or span.source is self.cursor.source):
            span = other.span  # which was given, where the value is that of this file
        self.cursor.found.warning(
            "D1119",
            f"`?{name}` is {duration_text(value.micros)}, longer than "
            + (f"`?{most.name}`, {limit}" if most.name else limit),
            span,
            hint=f"`?{name}` is at most {limit}",
            notes=(f"the limit is declared at {parameter.span}; the head of that file explains it",),
        )

    def _value(self) -> syntax.ParameterValue:
        """A term or a duration."""
        token = self.cursor.token
        if (
            token.kind in NUMBERS
            and self.cursor.peek().kind == "name"
            and self.cursor.peek().text.lower() in UNITS
        ):
            return self._windows.duration()
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        if token.kind == "var":
            name = self.cursor.variable_name(token)
            if self._windows.symbolic:
                self.cursor.advance()
                return syntax.Reference(name)
            if name in self._parameters:
                self.cursor.advance()
                return self._parameters.terms.get(name) or self._parameters.durations[name]
            raise self.cursor.fail("a term or a duration", "only a parameter of this file is allowed here")
        raise self.cursor.fail("a term or a duration")

    def _import(self) -> syntax.ImportSyntax:
        start = self.cursor.expect("IMPORT")
        path = self._path_text()
        alias = self._windows.name("a name") if self.cursor.accept("AS") else None
        queries: list[tuple[syntax.Name, syntax.Name]] = []
        values: list[tuple[syntax.Name, syntax.ParameterValue]] = []
        if self.cursor.accept("WITH"):
            while True:
                if self.cursor.token.kind == "var":
                    name = self._windows.variable()
                    self.cursor.expect(":=")
                    values.append((name, self._value()))
                else:
                    query = self._windows.name("`Name := Name` or `?name := value`")
                    self.cursor.expect(":=")
                    queries.append((query, self._windows.name("the name of a query or rule")))
                if not self.cursor.accept(","):
                    break
        return syntax.ImportSyntax(path, alias, tuple(queries), tuple(values), self.cursor.since(start))

    def _hold(self) -> syntax.HoldSyntax:
        start = self.cursor.expect("HOLD")
        held = [self._held()]
        while self.cursor.accept(","):
            held.append(self._held())
        latest = self.cursor.accept("LATEST") is not None
        begin = self._predicate_of_time() if self.cursor.accept("FROM") else None
        end = self._predicate_of_time() if self.cursor.accept("UNTIL") else None
        duration = self._windows.duration() if self.cursor.accept("FOR") else None
        if not self._windows.at_statement() and self.cursor.token.kind != "end":
            hint = "write LATEST, FROM, UNTIL and FOR in this order" if self.cursor.key in HOLDING else ""
            if self.cursor.token.kind in ("iri", "pname"):
                hint = "predicates are separated by commas"
            raise self.cursor.fail(
                "`,`, LATEST, FROM, UNTIL, FOR or the next line",
                hint or nearest(self.cursor.token.text, HOLDING),
            )
        return syntax.HoldSyntax(tuple(held), latest, duration, self.cursor.since(start), begin, end)

    def _predicate_of_time(self) -> syntax.HeldPredicate:
        start = self.cursor.token
        if not self.cursor.at_iri():
            hint = "write FOR for a length of time" if start.kind in ("integer", "decimal") else ""
            raise self.cursor.fail("the predicate that has the time", hint)
        return syntax.HeldPredicate(self.cursor.iri_term(), self.cursor.since(start))

    def _held(self) -> syntax.Held:
        start = self.cursor.token
        if self.cursor.accept("*"):
            return syntax.HeldRest(self.cursor.since(start))
        if start.text == "a":
            self.cursor.advance()
            return syntax.HeldClass(self.cursor.iri_term(), self.cursor.since(start))
        if not self.cursor.at_iri():
            hint = "members of a class are `a :Class`" if start.kind == "name" else ""
            raise self.cursor.fail("a predicate, `a` and a class, or `*`", hint)
        return syntax.HeldPredicate(self.cursor.iri_term(), self.cursor.since(start))

    def _query_definition(self) -> syntax.QuerySyntax:
        start = self.cursor.expect("QUERY")
        name = self._windows.name("the name of the query")
        self.cursor.expect(":=", hint="write `QUERY Name := { SELECT … }`")
        operator = self._windows.operator()
        if operator is not None and self.cursor.token.kind == "name":
            alias = self._windows.name("the name of a query")
            return syntax.QuerySyntax(name, None, self.cursor.since(start), operator, alias)
        select = self._clauses.embedded()
        return syntax.QuerySyntax(name, select, self.cursor.since(start), operator)
