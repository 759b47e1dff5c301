"""`.dotr` files: text → syntax.

Place:   the last of the parsers; resolve.py looks names up in what it returns.
Method:  language.md, sec. 2. A clause that cannot be read is left out and parsing goes on at the next clause;
         the rule is then not `whole` and names that the lost clause may have bound are not reported as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.errors import Diagnostics
from dotr.ir import Expression, Fresh, Select, Selection, TemplateNode, TemplateTriple, TemplateVar
from dotr.lang.base import TYPE, Skip, nearest
from dotr.lang.durations import LONGEST, UNITS, micros
from dotr.lang.expressions import Mode
from dotr.lang.sparql import NUMBERS, SparqlParser
from dotr.lang.syntax import (
    AbsentSyntax,
    BackgroundSyntax,
    BetweenSyntax,
    BindingSyntax,
    ChooseSyntax,
    ConjunctSyntax,
    Duration,
    EntailmentSyntax,
    Event,
    EverySyntax,
    FileSyntax,
    ImportSyntax,
    Name,
    ParameterValue,
    PathSyntax,
    QueryParameter,
    QuerySyntax,
    RulesSyntax,
    RuleSyntax,
    Statement,
    SummariseSyntax,
    ValueParameter,
    WindowSyntax,
    WithinSyntax,
)
from dotr.lang.tokens import Token, string_value
from dotr.rdf.terms import Term, is_iri, is_literal, literal_parts
from dotr.source import Source, Span

TOTALS: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")
STATEMENTS: Final = (
    "PREFIX", "BASE", "BACKGROUND", "RULES", "ENTAILMENT", "PARAMETER", "IMPORT", "QUERY", "RULE",
)  # fmt: skip
KEYWORDS: Final = frozenset(
    (*STATEMENTS, *TOTALS, "AS", "WITH", "DEFINE", "FROM", "WHERE", "CONSUMING", "EVERY", "AND", "EACH",
     "LAST", "FIRST", "NOT", "ON", "OVER", "WITHIN", "BEFORE", "BETWEEN", "DISTINCT", "SELECT")
)  # fmt: skip
_CLAUSES: Final = frozenset((*STATEMENTS, "AND", "WHERE", "WITH", "CONSUMING", "DEFINE", "end"))
_CONJUNCTS: Final = ("EACH", "LAST", "FIRST", "NOT", *TOTALS)


class DotrParser(SparqlParser):
    """Owns one .dotr text, and the values of its parameters in this import."""

    def __init__(
        self,
        source: Source,
        found: Diagnostics | None = None,
        values: Mapping[str, ParameterValue] | None = None,
    ) -> None:
        super().__init__(source, found)
        self._durations: dict[str, Duration] = {}
        for name, value in (values or {}).items():
            self.set_parameter(name, value)
        self._given = frozenset(values or ())
        self._own: dict[str, Span] = {}
        self._wild: set[str] = set()

    def set_parameter(self, name: str, value: ParameterValue) -> None:
        if isinstance(value, Duration):
            self._durations[name] = value
        else:
            self.parameters[name] = value

    # -- files ------------------------------------------------------------

    def file(self) -> FileSyntax:
        """Every statement that could be read. Raises nothing: findings are in `found`."""
        self.mode = Mode.RULE
        statements: list[Statement] = []
        self._declarations()
        while self.token.kind != "end":
            start = self.at
            try:
                statement = self._statement()
                if statement is not None:
                    statements.append(statement)
            except Skip:
                if self.at == start:
                    self.advance()
                self._to_statement()
        return FileSyntax(tuple(statements), dict(self.prefixes))

    def _declarations(self) -> None:
        """Read every PREFIX and PARAMETER beforehand: they hold in the whole file."""
        silent = self.found
        for keys in (("PREFIX", "BASE"), ("BASE", "PARAMETER")):
            self.found = Diagnostics()  # what is wrong is told when the statement is read in its turn
            depth = 0
            while self.token.kind != "end":
                key = self.key
                if self._at_definition():
                    depth = 0
                if key == "{":
                    depth += 1
                elif key == "}":
                    depth = max(0, depth - 1)
                elif depth == 0 and key in keys:
                    self._declaration(key)
                    continue
                self.advance()
            self.base = None
            self._undeclared.clear()
            self.jump(0)
        self.used.clear()
        self.found = silent

    def _declaration(self, key: str) -> None:
        at = self.at
        try:
            if key == "PREFIX":
                if self.prefixes.get(self.peek().text[:-1]) is not None:
                    self.advance()  # the first one counts; the second is reported in its turn
                else:
                    self.declare_prefix()
            elif key == "BASE":
                self.declare_base()
            else:
                parameter = self._parameter()
                if isinstance(parameter, ValueParameter) and parameter.name.text not in self._given:
                    if parameter.default is not None:
                        self.set_parameter(parameter.name.text, parameter.default)
                    else:
                        self._symbolic(parameter.name)
        except Skip:
            pass
        if self.at == at:
            self.advance()

    def _symbolic(self, name: Name) -> None:
        """A parameter without a value: a file of patterns is checked with a stand-in for it."""
        self.parameters[name.text] = f"<urn:dotr:parameter:{name.text}>"
        self._durations[name.text] = Duration(1_000_000, name.span)

    def _at_definition(self) -> bool:
        """At `RULE Name DEFINE` or `QUERY Name :=`: strong enough to end whatever was left open."""
        return (self.key == "RULE" and self.peek(2).key == "DEFINE") or (
            self.key == "QUERY" and self.peek(2).key == ":="
        )

    def _to_statement(self) -> None:
        while self.token.kind != "end" and self.key not in STATEMENTS:
            self.advance()

    def _statement(self) -> Statement | None:
        match self.key:
            case "PREFIX":
                self.declare_prefix(self._own)
            case "BASE":
                self.declare_base()
            case "BACKGROUND":
                self.advance()
                return BackgroundSyntax(self._paths())
            case "RULES":
                self.advance()
                return RulesSyntax(self._paths())
            case "ENTAILMENT":
                self.advance()
                if self.token.kind != "name":
                    raise self.fail("none, rdfs or owl2rl")
                return EntailmentSyntax(self._word())
            case "PARAMETER":
                return self._parameter()
            case "IMPORT":
                return self._import()
            case "QUERY":
                return self._query_definition()
            case "RULE":
                return self._rule()
            case _:
                self._no_statement()
        return None

    def _no_statement(self) -> None:
        token = self.token
        hint = ""
        if token.kind == "language" and token.text in ("@prefix", "@base"):
            hint = f"write `{token.text[1:].upper()}`, without `@` and without a dot at the end"
        elif token.kind == "name":
            hint = nearest(token.text, STATEMENTS)
            if token.key == "SELECT":
                hint = "a query is named: `QUERY Name := { SELECT … }`"
        elif token.key in ("[",) or token.kind in ("pname", "iri"):
            hint = "Datalog stands in a file of its own: `RULES <file.dlog>`"
        elif token.key == ".":
            hint = "no dot ends a line here"
        raise self.fail("a rule, a query or a prologue line", hint)

    def _word(self) -> Name:
        token = self.advance()
        return Name(token.text, self.span(token))

    def name(self, what: str) -> Name:
        """Take a name that is no keyword."""
        token = self.token
        if token.kind != "name":
            hint = "names are letters, digits and `_`, without a prefix" if token.kind == "pname" else ""
            if token.kind in ("attribute", "timeof"):
                hint = f"write `{token.text.split('.')[0]}`"
            raise self.fail(what, hint)
        if token.key in KEYWORDS:
            if token.key in _CLAUSES and self.source.text[token.start : token.end].isupper():
                raise self.fail(what)
            self.error(
                "D1009", f"`{token.text}` is a keyword and no name", self.span(), hint="choose another name"
            )
        return self._word()

    def _paths(self) -> tuple[PathSyntax, ...]:
        found = [self._path_text()]
        while self.accept(","):
            found.append(self._path_text())
        return tuple(found)

    def _path_text(self) -> PathSyntax:
        token = self.token
        if token.kind == "iri":
            self.advance()
            return PathSyntax(self.iri_text(token), self.span(token))
        if token.kind == "string":
            self.advance()
            return PathSyntax(string_value(token, self.source, self.found), self.span(token))
        hint = 'a path with blanks stands in quotation marks: "…"' if token.key == "<" else "write `<file>`"
        raise self.fail("a path", hint)

    # -- libraries ------------------------------------------------------------

    def _parameter(self) -> QueryParameter | ValueParameter:
        start = self.expect("PARAMETER")
        if self.accept("QUERY"):
            name = self.name("the name of the query")
            variables: list[Name] = []
            self.expect("(", "`(?v, …)`, the variables that the query must select")
            while self.token.kind == "var":
                variables.append(self._variable_name())
                self.accept(",")
            self.expect(")", "a variable or `)`")
            return QueryParameter(name, tuple(variables), self.since(start))
        if self.token.kind != "var":
            raise self.fail("`QUERY Name(…)` or `?name`")
        name = self._variable_name()
        default = self._value() if self.accept(":=") else None
        return ValueParameter(name, default, self.since(start))

    def _variable_name(self) -> Name:
        token = self.token
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        self.advance()
        return Name(self.variable_name(token), self.span(token))

    def _value(self) -> ParameterValue:
        """A term or a duration."""
        token = self.token
        if token.kind in NUMBERS and self.peek().kind == "name" and self.peek().text.lower() in UNITS:
            return self._duration()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_iri():
            return self.iri_term()
        if self.at_literal():
            return self.literal_term()
        if token.kind == "var":
            name = self.variable_name(token)
            if name in self._durations and name not in self.parameters:
                self.advance()
                return self._durations[name]
            if name in self.parameters:
                self.advance()
                return self.parameters[name]
            raise self.fail("a term or a duration", "only a parameter of this file may stand here")
        raise self.fail("a term or a duration")

    def _import(self) -> ImportSyntax:
        start = self.expect("IMPORT")
        path = self._path_text()
        alias = self.name("a name") if self.accept("AS") else None
        queries: list[tuple[Name, Name]] = []
        values: list[tuple[Name, ParameterValue]] = []
        if self.accept("WITH"):
            while True:
                if self.token.kind == "var":
                    name = self._variable_name()
                    self.expect(":=")
                    values.append((name, self._value()))
                else:
                    query = self.name("`Name := Name` or `?name := value`")
                    self.expect(":=")
                    queries.append((query, self.name("the name of a query or rule")))
                if not self.accept(","):
                    break
        return ImportSyntax(path, alias, tuple(queries), tuple(values), self.since(start))

    # -- queries and rules ------------------------------------------------------------

    def _query_definition(self) -> QuerySyntax:
        start = self.expect("QUERY")
        name = self.name("the name of the query")
        self.expect(":=", hint="write `QUERY Name := { SELECT … }`")
        select = self.embedded()
        return QuerySyntax(name, select, self.since(start))

    def embedded(self) -> Select | None:
        """Take `{ SELECT … }`. None when it cannot be read; the cursor then stands behind its last brace."""
        opened = self.at
        if self.key != "{":
            raise self.fail("`{ SELECT … }`")
        self.advance()
        try:
            with self.nested():
                select = self.query(ask=False)
                if self.key != "}":
                    self.code, code = "D1201", self.code
                    try:
                        raise self.fail(
                            "`}`", "the query ends here" if self.key != "end" else "a `}` is missing"
                        )
                    finally:
                        self.code = code
            self.advance()
        except Skip:
            self._close(opened)
            return None
        return select

    def _close(self, opened: int) -> None:
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
            elif token.kind == "name" and at > opened and self._surely_outside(at):
                break
            at += 1
        self.jump(at)

    def _surely_outside(self, at: int) -> bool:
        key = self.tokens[at].key
        following = self.tokens[min(at + 1, len(self.tokens) - 1)].key
        second = self.tokens[min(at + 2, len(self.tokens) - 1)].key
        return (
            (key == "RULE" and second == "DEFINE")
            or (key == "QUERY" and second == ":=")
            or (key == "AND" and following in _CONJUNCTS)
        )

    def _rule(self) -> RuleSyntax:
        start = self.expect("RULE")
        name = self.name("the name of the rule")
        self._wild = set()
        whole = True
        template: tuple[TemplateTriple, ...] = ()
        names: tuple[Name, ...] = ()
        trigger: Event | EverySyntax | None = None
        conjuncts: list[ConjunctSyntax] = []
        where: Expression | None = None
        bindings: list[BindingSyntax] = []
        consuming: list[Name] = []
        try:
            self.expect("DEFINE")
            template, names, clean = self._template()
            whole = clean
            if self.key != "FROM":
                raise self.fail("FROM")
            self.advance()
            trigger = self._trigger()
            self._end_of_clause()
        except Skip:
            whole = False
            self._to_clause()
        while self.key == "AND":
            try:
                conjuncts.append(self._conjunct())
                self._end_of_clause(conditions=True)
            except Skip:
                whole = False
                self._to_clause()
        for key in ("WHERE", "WITH", "CONSUMING"):
            if self.key != key:
                continue
            self.advance()
            try:
                if key == "WHERE":
                    where = self.expression()
                elif key == "WITH":
                    self._bindings(bindings)
                else:
                    self._names(consuming)
                self._end_of_clause(conditions=key != "CONSUMING")
            except Skip:
                whole = False
                self._to_clause()
        self._misplaced()
        return RuleSyntax(
            name, template, trigger, tuple(conjuncts), where, tuple(bindings), tuple(consuming), names,
            frozenset(self._wild), whole, self.since(start),
        )  # fmt: skip

    def _misplaced(self) -> None:
        """A clause of this rule that stands too late: said, and skipped."""
        while self.key in ("AND", "WHERE", "WITH", "CONSUMING", "DEFINE"):
            token = self.advance()
            self.error(
                "D1004",
                f"`{token.text}` stands too late or twice",
                self.span(token),
                hint="the order is DEFINE FROM AND… WHERE WITH CONSUMING, each but AND once",
            )
            self._to_clause()

    def _end_of_clause(self, *, conditions: bool = False) -> None:
        """Complain when a clause goes on with something that is not the next clause."""
        if self.key in _CLAUSES:
            if conditions and self.key == "AND" and self.peek().key not in _CONJUNCTS:
                self._and_for_both()
            return
        token = self.token
        hint = (
            nearest(token.text, ("WITHIN", *(c for c in _CLAUSES if c != "end")))
            if token.kind == "name"
            else ""
        )
        if token.key in ("EACH", "LAST", "FIRST", "NOT"):
            hint = f"write `AND {token.text}`"
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
        raise self.fail("AND, WHERE, WITH, CONSUMING or the next rule", hint)

    def _and_for_both(self) -> None:
        self.error(
            "D1010",
            "`AND` joins events, not conditions",
            self.span(),
            hint="write &&",
        )
        self.advance()
        self._to_clause()

    def _to_clause(self) -> None:
        """Skip to the next clause or statement; braces are skipped as a whole."""
        while self.key not in _CLAUSES:
            if self.key == "{":
                self._close(self.at)
            else:
                self.advance()

    def _trigger(self) -> Event | EverySyntax:
        start = self.token
        if self.accept("EVERY"):
            duration = self._duration()
            if duration.micros == 0:
                self.error(
                    "D1403", "EVERY 0 never ends", duration.span, hint="write how often it ticks, as `1 min`"
                )
            self.expect("AS", hint="a tick has a name: `EVERY 1 min AS Tick`")
            name = self.name("a name for the tick")
            return EverySyntax(duration, name, self.since(start))
        if start.key in ("EACH", "LAST", "FIRST", "NOT"):
            raise self.fail("an event", "the trigger is every fact of its query: write its name alone")
        return self._event()

    def _event(self) -> Event:
        name = self.name("the name of an event")
        self._wild.add(name.text)
        if not self.accept(":="):
            if self.key == "{" or (self.key == "=" and self.peek().key == "{"):
                raise self.fail("`:=`", f"write `{name.text} := {{ SELECT … }}`")
            self._wild.discard(name.text)
            return Event(name)
        if self.key == "{":
            query = self.embedded()
            if query is not None:
                self._wild.discard(name.text)
            return Event(name, query, broken=query is None)
        alias = self.name("`{ SELECT … }`, or the name of a query or rule")
        self._wild.discard(name.text)
        return Event(name, alias=alias)

    def _conjunct(self) -> ConjunctSyntax:
        start = self.expect("AND")
        event: Event | None = None
        try:
            match self.key:
                case "EACH" | "LAST" | "FIRST":
                    selection = Selection(self.advance().key)
                    k = self._count(selection)
                    event = self._event()
                    window = self._window()
                    on = self.expression() if self.accept("ON") else None
                    if not isinstance(window, WithinSyntax):
                        self.error(
                            "D1411",
                            f"{selection} has no BETWEEN",
                            window.span,
                            hint="write `WITHIN … FROM` or `WITHIN … BEFORE`; BETWEEN is for NOT and aggregates",
                        )
                        raise Skip
                    return ChooseSyntax(selection, k, event, window, on, self.since(start))
                case "NOT":
                    self.advance()
                    if self.key in ("EACH", "LAST", "FIRST"):
                        raise self.fail(
                            "the name of an event", "NOT asks for any such event: write its name alone"
                        )
                    event = self._event()
                    window = self._window()
                    on = self.expression() if self.accept("ON") else None
                    return AbsentSyntax(event, window, on, self.since(start))
                case key if key in TOTALS:
                    return self._summarise(start)
                case _:
                    hint = ""
                    if self.token.kind == "name" and self.key not in KEYWORDS:
                        hint = nearest(self.token.text, _CONJUNCTS) or f"write `AND EACH {self.token.text}`"
                    elif self.token.kind in ("attribute", "timeof"):
                        hint = "conditions are joined with &&"
                    raise self.fail("EACH, LAST, FIRST, NOT or an aggregate", hint)
        except Skip:
            if event is not None:
                self._wild.add(event.name.text)
            raise

    def _summarise(self, start: Token) -> SummariseSyntax:
        function = self.advance().key
        self.expect("(", hint=f"write `{function}(…)`")
        argument: Expression | None = None
        distinct = self.accept("DISTINCT") is not None
        if self.key == "*":
            star = self.advance()
            if function != "COUNT":
                self.error(
                    "D1004", f"{function}(*) has no meaning", self.span(star), hint="name a value: Event.?x"
                )
            if distinct:
                self.error(
                    "D1004",
                    "COUNT(DISTINCT *) has no meaning",
                    self.span(star),
                    hint="name a value: Event.?x",
                )
        else:
            with self.nested():
                argument = self.expression()
        self.expect(")", "`)` or an operator")
        self.expect("AS", hint="an aggregate has a name: `AS ?v`")
        variable = self._variable_name()
        self._wild.add("?" + variable.text)
        if variable.text in self.parameters or variable.text in self._durations:
            self.error("D1114", f"`?{variable.text}` is a parameter and cannot be bound", variable.span,
                       hint="give the aggregate another name")  # fmt: skip
        self.expect("OVER")
        event = self._event()
        self._wild.add(event.name.text)
        window = self._window()
        on = self.expression() if self.accept("ON") else None
        if not event.broken:
            self._wild.discard(event.name.text)
        self._wild.discard("?" + variable.text)
        return SummariseSyntax(function, argument, distinct, variable, event, window, on, self.since(start))

    def _count(self, selection: Selection) -> int:
        """The `k` of LAST k, 1 when none is written."""
        token = self.token
        if token.kind == "var" or token.kind in NUMBERS or token.key in ("-", "+"):
            value = self._k(token)
            if selection is Selection.EACH:
                self.error("D1408", "EACH takes every candidate and no number", self.span(token),
                           hint="write LAST k or FIRST k")  # fmt: skip
                return 1
            if value is None or not 1 <= value <= 10**9:
                self.error("D1408", f"`{self.shown_since(token)}` is no number of events", self.since(token),
                           hint="write a whole number from 1 on")  # fmt: skip
                return 1
            return value
        return 1

    def shown_since(self, token: Token) -> str:
        return self.source.text[token.start : self.tokens[self.at - 1].end]

    def _k(self, token: Token) -> int | None:
        if token.kind == "var":
            term = self._parameter_term(self.advance())
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

    def _parameter_term(self, token: Token) -> Term | None:
        name = self.variable_name(token)
        if name in self.parameters:
            return self.parameters[name]
        self._unknown_parameter(name, token)
        return None

    def _unknown_parameter(self, name: str, token: Token) -> None:
        known = {*self.parameters, *self._durations}
        kind = "a duration" if name in self._durations else "no parameter of this file"
        self.error("D1112", f"`?{name}` is {kind}", self.span(token),
                   hint=nearest(name, known - {name}, "?") or f"declare it: `PARAMETER ?{name}`")  # fmt: skip

    def _window(self) -> WindowSyntax:
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
        duration = self._duration()
        before = self.key == "BEFORE"
        if not before and self.key != "FROM":
            hint = "write `WITHIN 5 min FROM Event`: closed at both ends, or `BEFORE Event`"
            raise self.fail("FROM or BEFORE", hint)
        self.advance()
        reference = self.name("the name of an event")
        return WithinSyntax(duration, reference, before, self.since(start))

    def _duration(self) -> Duration:
        token = self.token
        if token.kind == "var":
            self.advance()
            name = self.variable_name(token)
            if name in self._durations:
                return Duration(self._durations[name].micros, self.span(token))
            if name in self.parameters:
                self.error("D1113", f"`?{name}` is a term and no duration", self.span(token),
                           hint=f"write `?{name} := 5 min`")  # fmt: skip
            else:
                self._unknown_parameter(name, token)
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
            hint = {"m": "write `min` for minutes, `ms` for milliseconds",
                    "w": "write days", "week": "write days", "weeks": "write days", "mo": "write days",
                    "month": "a month has no fixed length: write days",
                    "months": "a month has no fixed length: write days",
                    "year": "a year has no fixed length: write days",
                    "years": "a year has no fixed length: write days"}  # fmt: skip
            self.error("D1401", f"`{unit.text}` is no unit of time", self.span(unit),
                       hint=hint.get(unit.text.lower(), "") or nearest(unit.text, UNITS) or "write us, ms, s, min, h or d")  # fmt: skip
            return Duration(1, span)
        value = micros(number.text, unit.text) if number.kind != "double" and len(number.text) <= 60 else None
        if value is None or value > LONGEST:
            self.error("D1406", f"`{self.shown_since(number)}` is no duration", span,
                       hint="write a whole number of microseconds, at most a thousand years")  # fmt: skip
            return Duration(1, span)
        return Duration(value, span)

    def _bindings(self, found: list[BindingSyntax]) -> None:
        while True:
            token = self.token
            if token.kind != "var":
                raise self.fail(
                    "`?v := expression`", f"write `?{token.text} := …`" if token.kind == "name" else ""
                )
            name = self._variable_name()
            if not self.accept(":="):
                raise self.fail("`:=`", "a binding is written `?v := expression`" if self.key == "=" else "")
            found.append(BindingSyntax(name, self.expression()))
            if not self.accept(","):
                if self.token.kind == "var":
                    raise self.fail("`,` or the next clause", "bindings are separated by commas")
                return

    def _names(self, found: list[Name]) -> None:
        found.append(self.name("the name of an event"))
        while self.accept(","):
            found.append(self.name("the name of an event"))

    # -- templates ------------------------------------------------------------

    def _template(self) -> tuple[tuple[TemplateTriple, ...], tuple[Name, ...], bool]:
        """`{ triples }`: the triples, the variables they name, and whether all could be read."""
        opened = self.at
        self.expect("{")
        found: list[TemplateTriple] = []
        names: list[Name] = []
        try:
            while not self.accept("}"):
                self._template_subject(found, names)
                if not self.accept(".") and self.key != "}":
                    raise self.fail("`.`, `;`, `,` or `}`")
        except Skip:
            self._close(opened)
            return tuple(found), tuple(names), False
        return tuple(found), tuple(names), True

    def _template_subject(self, found: list[TemplateTriple], names: list[Name]) -> None:
        token = self.token
        subject = self._template_node(names)
        if isinstance(subject, str) and is_literal(subject):
            self.error("D1012", "a literal is never a subject", self.span(token))
        while True:
            verb_token = self.token
            predicate = self._template_verb(names)
            while True:
                object_ = self._template_node(names)
                found.append(TemplateTriple(subject, predicate, object_, self.since(verb_token)))
                if not self.accept(","):
                    break
            if not self.accept(";"):
                return
            while self.accept(";"):
                pass
            if self.key in (".", "}"):
                return

    def _template_verb(self, names: list[Name]) -> TemplateNode:
        token = self.token
        if token.key == "A" and token.text == "a":
            self.advance()
            return TYPE
        if token.kind == "name" and token.text.startswith("dotr_"):
            self.error("D1012", "a fresh name is never a predicate", self.span(), hint="write an IRI")
            self.advance()
            return TYPE
        if token.kind == "var" or self.at_iri():
            node = self._template_node(names)
            if isinstance(node, str) and not is_iri(node):
                self.error("D1012", "a predicate is an IRI", self.span(token))
            return node
        hint = ""
        if token.key in ("^", "!", "("):
            hint = "a template has no property paths"
        elif token.kind == "name":
            hint = f"write `:{token.text}`"
        raise self.fail("a predicate", hint)

    def _template_node(self, names: list[Name]) -> TemplateNode:
        token = self.token
        if token.kind == "var":
            name = self._variable_name()
            names.append(name)
            return TemplateVar(name.text)
        if token.kind == "name" and token.key not in ("TRUE", "FALSE"):
            return self._fresh(token)
        if token.kind == "label" or token.key in ("[", "("):
            what = {"[": "`[ ]`", "(": "`( )`"}.get(token.key, f"`{token.text}`")
            self.error("D1011", f"{what} has no name that replay would give again", self.span(), hint="use dotr_x",
                       notes=("a fresh name `dotr_x` becomes an IRI made from what matched",))  # fmt: skip
            raise Skip
        if token.kind in ("attribute", "timeof"):
            self.error("D1012", f"`{token.text}` stands in a template", self.span(),
                       hint=f"bind it: WITH ?x := {token.text}, and write ?x")  # fmt: skip
            raise Skip
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_literal():
            return self.literal_term()
        raise self.fail("a term, a WITH variable or a fresh name")

    def _fresh(self, token: Token) -> Fresh:
        if token.text.startswith("dotr_") and len(token.text) > 5:
            self.advance()
            return Fresh(token.text)
        hint = "a fresh name begins with dotr_ : `dotr_id1`"
        if token.text == "a":
            hint = "a subject is missing before `a`"
        elif not token.key.startswith("DOTR"):
            hint = f"write `?{token.text}`, `:{token.text}` or `dotr_{token.text}`"
        self.error("D1012", f"`{token.text}` is no term", self.span(), hint=hint)
        raise Skip
