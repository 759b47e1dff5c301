"""`.dotr` files: text → syntax.

Place:   the last of the parsers; resolve.py looks names up in what it returns.
Method:  language.md, sec. 2. PREFIX and PARAMETER hold in the whole file, so they are read beforehand; a
         statement that cannot be read is left out and parsing goes on at the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dotr.errors import Diagnostics
from dotr.lang.grammar import syntax
from dotr.lang.grammar.base import NUMBERS, Cursor, Skip, nearest
from dotr.lang.grammar.clauses import ClauseParser
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.foreign_words import foreign_word
from dotr.lang.grammar.parameters import Parameters
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.grammar.tokens import string_value
from dotr.lang.grammar.windows import CONTEXTUAL, STATEMENTS, WindowParser
from dotr.source import Source, Span
from dotr.temporal.durations import UNITS, duration_text

HOLDING: Final = ("LATEST", "FOR")
"""What stands behind the predicates of a HOLD; names everywhere else."""


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
                elif key == "RULE" or key == "QUERY":
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
        """At `RULE Name DEFINE` or `QUERY Name :=`: strong enough to end whatever was left open."""
        return (self.cursor.key == "RULE" and self.cursor.peek(2).key == "DEFINE") or (
            self.cursor.key == "QUERY" and self.cursor.peek(2).key == ":="
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
            hint = nearest(token.text, (*STATEMENTS, *CONTEXTUAL))
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
        hint = 'a path with blanks stands in quotation marks: "…"' if token.key == "<" else "write `<file>`"
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
            notes=(f"it is declared so at {parameter.span}, and the head of that file says why",),
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
            raise self.cursor.fail("a term or a duration", "only a parameter of this file may stand here")
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
        duration = self._windows.duration() if self.cursor.accept("FOR") else None
        if not self._windows.at_statement() and self.cursor.token.kind != "end":
            hint = "FOR stands behind LATEST" if self.cursor.key == "LATEST" else ""
            if self.cursor.token.kind in ("iri", "pname"):
                hint = "predicates are separated by commas"
            raise self.cursor.fail(
                "`,`, LATEST, FOR or the next line", hint or nearest(self.cursor.token.text, HOLDING)
            )
        return syntax.HoldSyntax(tuple(held), latest, duration, self.cursor.since(start))

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
