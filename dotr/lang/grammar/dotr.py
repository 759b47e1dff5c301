"""`.dotr` files: text → syntax.

Place:   the last of the parsers; resolve.py looks names up in what it returns.
Method:  language.md, sec. 2. PREFIX and PARAMETER hold in the whole file, so they are read beforehand; a
         statement that cannot be read is left out and parsing goes on at the next.
"""

from __future__ import annotations

from typing import Final

from dotr.errors import Diagnostics
from dotr.lang.checks.sorts import STAND_IN
from dotr.lang.grammar.base import NUMBERS, Skip, nearest
from dotr.lang.grammar.clauses import ClauseParser
from dotr.lang.grammar.durations import UNITS
from dotr.lang.grammar.expressions import Mode
from dotr.lang.grammar.foreign_words import foreign_word
from dotr.lang.grammar.syntax import (
    BackgroundSyntax,
    Duration,
    EntailmentSyntax,
    FileSyntax,
    Held,
    HeldClass,
    HeldPredicate,
    HeldRest,
    HoldSyntax,
    ImportSyntax,
    LarsSyntax,
    Name,
    ParameterValue,
    PathSyntax,
    QueryParameter,
    QuerySyntax,
    Reference,
    RulesSyntax,
    Statement,
    ValueParameter,
)
from dotr.lang.grammar.tokens import string_value
from dotr.lang.grammar.windows import CONTEXTUAL, STATEMENTS
from dotr.source import Span

HOLDING: Final = ("LATEST", "FOR")
"""What stands behind the predicates of a HOLD; names everywhere else."""


class DotrParser(ClauseParser):
    """Owns one .dotr text, and the values of its parameters in this import."""

    def file(self) -> FileSyntax:
        """Every statement that could be read. Raises nothing: findings are in `found`."""
        self.mode, self.deployed = Mode.RULE, True
        statements: list[Statement] = []
        places: list[Span] = []
        prologue: list[tuple[str | None, Span]] = []
        self._declarations()
        while self.token.kind != "end":
            start = self.at
            first = self.token
            try:
                statement = self._statement()
                if statement is not None:
                    statements.append(statement)
                    places.append(self.since(first))
                else:
                    name = self.tokens[start + 1].text[:-1] if first.key == "PREFIX" else None
                    prologue.append((name, self.since(first)))
            except Skip:
                if self.at == start:
                    self.advance()
                self._to_statement()
        return FileSyntax(tuple(statements), dict(self.prefixes), tuple(places), tuple(prologue))

    def _declarations(self) -> None:
        """Read every PREFIX and PARAMETER beforehand: they hold in the whole file."""
        silent = self.found
        for keys in (("PREFIX", "BASE"), ("BASE", "PARAMETER")):
            self.found = Diagnostics()  # what is wrong is reported when the statement is read in its turn
            depth = 0
            for at, token in enumerate(self.tokens):
                key = token.key
                if key == "{":
                    depth += 1
                elif key == "}":
                    depth = max(0, depth - 1)
                elif key == "RULE" or key == "QUERY":
                    self.jump(at)
                    depth = 0 if self._at_definition() else depth
                elif depth == 0 and key in keys:
                    self.jump(at)
                    self._declaration(key)
            self.base = None
            self._undeclared.clear()
            self.jump(0)
        self.used.clear()
        self.found = silent

    def _declaration(self, key: str) -> None:
        try:
            if key == "PREFIX":
                if (
                    self.peek().text[:-1] not in self.prefixes
                ):  # the first one counts; a second is reported later
                    self.declare_prefix()
            elif key == "BASE":
                self.declare_base()
            else:
                parameter = self._parameter()
                if self.symbolic:
                    return
                if isinstance(parameter, ValueParameter) and parameter.name.text not in self.given:
                    if parameter.default is not None:
                        self.set_parameter(parameter.name.text, parameter.default)
                    else:
                        self._stand_in(parameter.name)
        except Skip:
            pass

    def _stand_in(self, name: Name) -> None:
        """A parameter without a value: a file of patterns is checked with a stand-in for it."""
        self.parameters[name.text] = f"{STAND_IN}{name.text}>"
        self.durations[name.text] = Duration(1_000_000, name.span)

    def _at_definition(self) -> bool:
        """At `RULE Name DEFINE` or `QUERY Name :=`: strong enough to end whatever was left open."""
        return (self.key == "RULE" and self.peek(2).key == "DEFINE") or (
            self.key == "QUERY" and self.peek(2).key == ":="
        )

    def _to_statement(self) -> None:
        while self.token.kind != "end" and not self.at_statement():
            self.advance()

    def _statement(self) -> Statement | None:
        match self.key:
            case "PREFIX":
                self.declare_prefix(self.declared)
            case "BASE":
                self.declare_base()
            case "BACKGROUND":
                self.advance()
                return BackgroundSyntax(self._paths())
            case "RULES":
                self.advance()
                return RulesSyntax(self._paths())
            case "LARS" if self.at_statement():
                self.advance()
                return LarsSyntax(self._paths())
            case "ENTAILMENT":
                self.advance()
                if self.token.kind != "name":
                    raise self.fail("none, rdfs or owl2rl")
                return EntailmentSyntax(self.word())
            case "PARAMETER":
                return self._parameter()
            case "IMPORT":
                return self._import()
            case "QUERY":
                return self._query_definition()
            case "RULE":
                return self.rule()
            case "PRIVATE" if self.at_statement():
                return self.rule()
            case "HOLD":
                return self._hold()
            case _:
                self._no_statement()
        return None

    def _no_statement(self) -> None:
        token = self.token
        hint = ""
        if token.kind == "language" and token.text in ("@prefix", "@base"):
            hint = f"write `{token.text[1:].upper()}`, without `@` and without a dot at the end"
        elif token.kind == "name":
            hint = nearest(token.text, (*STATEMENTS, *CONTEXTUAL))
            if token.key == "PRIVATE":
                hint = "write `PRIVATE RULE Name`"
            hint = foreign_word(token) or hint
        elif token.key in ("[",) or token.kind in ("pname", "iri"):
            hint = "Datalog stands in a file of its own: `RULES <file.dlog>`"
        elif token.key == "STEP" or token.key == ":-":
            hint = "what holds stands in a file of its own: `LARS <file.lars>`"
        elif token.key == ".":
            hint = "no dot ends a line here"
        failed = self.fail("a rule, a query or a prologue line", hint)
        self.advance()
        if foreign_word(token) and self.key in ("QUERY", "RULE") and not self._at_definition():
            self.advance()  # what follows is of the other language, too: `REGISTER QUERY Foo AS …`
        raise failed

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

    def _parameter(self) -> QueryParameter | ValueParameter:
        start = self.expect("PARAMETER")
        if self.accept("QUERY"):
            name = self.name("the name of the query")
            variables: list[Name] = []
            self.expect("(", "`(?v, …)`, the variables that the query must select")
            while self.token.kind == "var":
                variables.append(self.variable_here())
                self.accept(",")
            self.expect(")", "a variable or `)`")
            return QueryParameter(name, tuple(variables), self.since(start))
        if self.token.kind != "var":
            raise self.fail("`QUERY Name(…)` or `?name`")
        name = self.variable_here()
        default = self._value() if self.accept(":=") else None
        return ValueParameter(name, default, self.since(start))

    def _value(self) -> ParameterValue:
        """A term or a duration."""
        token = self.token
        if token.kind in NUMBERS and self.peek().kind == "name" and self.peek().text.lower() in UNITS:
            return self.duration()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_iri():
            return self.iri_term()
        if self.at_literal():
            return self.literal_term()
        if token.kind == "var":
            name = self.variable_name(token)
            if self.symbolic:
                self.advance()
                return Reference(name)
            if name in self.durations and name not in self.parameters:
                self.advance()
                return self.durations[name]
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
                    name = self.variable_here()
                    self.expect(":=")
                    values.append((name, self._value()))
                else:
                    query = self.name("`Name := Name` or `?name := value`")
                    self.expect(":=")
                    queries.append((query, self.name("the name of a query or rule")))
                if not self.accept(","):
                    break
        return ImportSyntax(path, alias, tuple(queries), tuple(values), self.since(start))

    def _hold(self) -> HoldSyntax:
        start = self.expect("HOLD")
        held = [self._held()]
        while self.accept(","):
            held.append(self._held())
        latest = self.accept("LATEST") is not None
        duration = self.duration() if self.accept("FOR") else None
        if not self.at_statement() and self.token.kind != "end":
            hint = "FOR stands behind LATEST" if self.key == "LATEST" else ""
            if self.token.kind in ("iri", "pname"):
                hint = "predicates are separated by commas"
            raise self.fail("`,`, LATEST, FOR or the next line", hint or nearest(self.token.text, HOLDING))
        return HoldSyntax(tuple(held), latest, duration, self.since(start))

    def _held(self) -> Held:
        start = self.token
        if self.accept("*"):
            return HeldRest(self.since(start))
        if start.text == "a":
            self.advance()
            return HeldClass(self.iri_term(), self.since(start))
        if not self.at_iri():
            hint = "members of a class are `a :Class`" if start.kind == "name" else ""
            raise self.fail("a predicate, `a` and a class, or `*`", hint)
        return HeldPredicate(self.iri_term(), self.since(start))

    def _query_definition(self) -> QuerySyntax:
        start = self.expect("QUERY")
        name = self.name("the name of the query")
        self.expect(":=", hint="write `QUERY Name := { SELECT … }`")
        operator = self.operator()
        if operator is not None and self.token.kind == "name":
            alias = self.name("the name of a query")
            return QuerySyntax(name, None, self.since(start), operator, alias)
        select = self.embedded()
        return QuerySyntax(name, select, self.since(start), operator)
