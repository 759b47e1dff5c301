"""Datalog files (.dlog): string → `DatalogRule`s.

Place:   beside dotr.py. Safety and strata of all rules together are checked in enrich/analysis.py and
         enrich/rules.py. lars.py shares prologue, recovery, FILTER, BIND and the arguments of atoms.
Method:  language.md, sec. 4; recovery at the dot that ends a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dotr import program
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES, listed
from dotr.lang.grammar.cursor import TYPE, Cursor, Skip
from dotr.lang.grammar.expressions import FORBIDDEN, ExpressionParser, Mode
from dotr.program import BindAtom, Expression, FilterAtom, Var
from dotr.rdf.terms import Term
from dotr.source import Source, Span


class AtomParser:
    """Owns the places of PREFIX (with the prefix) and other lines of the prologue (with None)."""

    def __init__(self, cursor: Cursor, expressions: ExpressionParser) -> None:
        self.cursor = cursor
        self.expressions = expressions
        self.prologue: list[tuple[str | None, Span]] = []

    def prologue_line(self, step: Callable[[], None] | None = None) -> bool:
        """Take PREFIX, BASE or, by `step`, STEP; False at anything else."""
        first = self.cursor.token
        prefix: str | None = None
        if first.key == "PREFIX":
            prefix = self.cursor.peek().text[:-1]
            self.cursor.declare_prefix(self.cursor.declared)
        elif first.key == "BASE":
            self.cursor.declare_base()
        elif first.key == "STEP" and step is not None:
            step()
        else:
            return False
        self.cursor.accept(".")
        self.prologue.append((prefix, self.cursor.since(first)))
        return True

    def recover(self, start: int, prologue: Collection[str]) -> None:
        """Go on after the next dot, or at the next line that begins with a word of `prologue`."""
        if self.cursor.at == start:
            self.cursor.advance()
        while self.cursor.token.kind != "end" and self.cursor.key not in prologue:
            if self.cursor.advance().key == ".":
                return

    def refuse_turtle(self) -> None:
        """Raises Skip at `@prefix` and `@base`."""
        token = self.cursor.token
        if token.kind == "language" and token.text in ("@prefix", "@base"):
            raise self.cursor.fail(
                "a rule", f"write `{token.text[1:].upper()}`, without `@` and without a dot at the end"
            )

    def filter(self) -> FilterAtom:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.cursor.nested():
            condition = self.expressions.expression()
            self.cursor.expect(")", "`)` or an operator")
        return FilterAtom(condition, self.cursor.since(start))

    def bind(self) -> BindAtom:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.cursor.nested():
            expression = self.expressions.expression()
            self.cursor.expect("AS", "`AS` or an operator")
            variable = self.variable()
            self.cursor.expect(")")
        return BindAtom(expression, variable, self.cursor.since(start))

    def aggregate(self, close: str = "") -> tuple[str, bool, Expression | None]:
        """Take `(DISTINCT e)` or `(*)` after the word: the function, whether DISTINCT, and what of; None for
        `*`.
        """
        function = self.cursor.tokens[self.cursor.at - 1].key
        argument: Expression | None = None
        self.cursor.expect("(")
        with self.cursor.nested():
            distinct = self.cursor.accept("DISTINCT") is not None
            if not (function == "COUNT" and self.cursor.accept("*")):
                argument = self.expressions.expression()
                function = self.expressions.with_share(function)
            self.cursor.expect(")", close)
        return function, distinct, argument

    def variable(self) -> Var:
        token = self.cursor.variable()
        return Var(self.cursor.variable_name(token), self.cursor.span(token))

    def argument(self) -> Var | Term | None:
        """Take a variable or a constant; None at anything else."""
        return self.variable() if self.cursor.token.kind == "var" else self.cursor.constant()


class DatalogParser:
    """Owns one .dlog text. `prologue`: the places of PREFIX (with the prefix) and BASE (with None)."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        self.cursor = Cursor(source, found)
        self.cursor.code = "D3020"
        self._expressions = ExpressionParser(self.cursor, Mode.DATALOG)
        self._atoms = AtomParser(self.cursor, self._expressions)
        self.prologue = self._atoms.prologue

    def rules(self) -> tuple[program.DatalogRule, ...]:
        """Every rule of the text that could be read, in order. Raises nothing: findings are in `found`."""
        found: list[program.DatalogRule] = []
        while self.cursor.token.kind != "end":
            start = self.cursor.at
            try:
                if not self._atoms.prologue_line():
                    found.append(self._rule())
            except Skip:
                self._atoms.recover(start, ("PREFIX",))
        return tuple(found)

    def _rule(self) -> program.DatalogRule:
        start = self.cursor.token
        self._atoms.refuse_turtle()
        heads = [self._head()]
        while self.cursor.accept(","):
            heads.append(self._head())
        body: list[program.BodyAtom] = []
        if self.cursor.accept(":-"):
            if self.cursor.key == ".":
                raise self.cursor.fail("an atom", "a fact is written without `:-`")
            body.append(self._body_atom())
            while self.cursor.accept(","):
                body.append(self._body_atom())
            if self.cursor.key in ("&&", "AND"):
                raise self.cursor.fail("`,` or `.`", "atoms are separated by `,`")
        elif self.cursor.key in ("<", "<=", "="):
            raise self.cursor.fail("`:-`, `,` or `.`", "the arrow is written `:-`")
        if self.cursor.key != ".":
            hint = "a rule ends with a dot" if self.cursor.at_iri() or self.cursor.key in ("[", "end") else ""
            raise self.cursor.fail("`,` or `.`" if body else "`:-`, `,` or `.`", hint)
        self.cursor.advance()
        return program.DatalogRule(tuple(heads), tuple(body), self.cursor.since(start))

    def _head(self) -> program.Atom:
        start = self.cursor.token
        if start.key == "NOT":
            raise self.cursor.fail("an atom", "a conclusion cannot be negated: negation belongs in the body")
        return self._atom()

    def _body_atom(self) -> program.BodyAtom:
        start = self.cursor.token
        match start.key:
            case "NOT":
                self.cursor.advance()
                if self.cursor.key == "EXISTS":
                    raise self.cursor.fail("an atom", "write `NOT [?x, :p, ?y]`")
                return program.NotAtom(self._atom(), self.cursor.since(start))
            case "FILTER":
                return self._atoms.filter()
            case "BIND":
                return self._atoms.bind()
            case "AGGREGATE":
                return self._aggregate_atom()
            case _:
                return self._atom()

    def _aggregate_atom(self) -> program.AggregateAtom:
        start = self.cursor.advance()
        body: list[program.Atom | program.FilterAtom | program.BindAtom | program.NotAtom] = []
        group: list[program.Var] = []
        totals: list[program.AggregateTerm] = []
        self.cursor.expect("(")
        with self.cursor.nested():
            while True:
                at = self.cursor.token
                atom = self._body_atom()
                if isinstance(atom, program.AggregateAtom):
                    self.cursor.error(
                        "D3023",
                        "AGGREGATE is used inside another AGGREGATE",
                        self.cursor.span(at),
                        hint="derive the inner total by a rule of its own",
                    )
                    raise Skip
                body.append(atom)
                if not self.cursor.accept(","):
                    break
            if self.cursor.accept("ON"):
                while self.cursor.token.kind == "var":
                    group.append(self._atoms.variable())
                    self.cursor.accept(",")
            if self.cursor.key != "BIND":
                raise self.cursor.fail("`,`, `ON ?group` or `BIND total AS ?v`")
            while self.cursor.accept("BIND"):
                totals.append(self._total())
                self.cursor.accept(",")
            self.cursor.expect(")", "`BIND` or `)`")
        return program.AggregateAtom(tuple(body), tuple(group), tuple(totals), self.cursor.since(start))

    def _total(self) -> program.AggregateTerm:
        token = self.cursor.token
        if token.key not in AGGREGATES:
            raise self.cursor.fail(listed())
        if token.key in FORBIDDEN:
            self._expressions.forbid(token.key, token)
        self.cursor.advance()
        function, distinct, argument = self._atoms.aggregate()
        self.cursor.expect("AS")
        return program.AggregateTerm(function, argument, distinct, self._atoms.variable())

    def _atom(self) -> program.Atom:
        """`:p(?x, ?y)`, `:C(?x)` or `[?x, :p, ?y]`."""
        start = self.cursor.token
        if self.cursor.accept("["):
            parts = [self._node()]
            while self.cursor.accept(","):
                parts.append(self._predicate() if len(parts) == 1 else self._node())
            self.cursor.expect("]", "`,` or `]`")
            if len(parts) != 3:
                self.cursor.error(
                    "D3021",
                    f"a triple has three parts, this one {len(parts)}",
                    self.cursor.since(start),
                    hint="write `[?subject, :predicate, ?object]`",
                )
                raise Skip
            return program.Atom(parts[0], parts[1], parts[2], self.cursor.since(start))
        if self.cursor.at_iri():
            return self._predicate_atom()
        hint = ""
        if start.kind == "var":
            hint = "a variable predicate is written `[?x, ?p, ?y]`"
        elif start.key == "A":
            hint = "a class is written `:Class(?x)` or `[?x, a, :Class]`"
        elif start.kind == "name":
            hint = f"a predicate is an IRI: `:{start.text}`"
        elif start.kind in ("attribute", "timeof"):
            hint = "Datalog has no events: it sees one instant"
        raise self.cursor.fail("an atom such as `:p(?x, ?y)` or `[?x, :p, ?y]`", hint)

    def _predicate_atom(self) -> program.Atom:
        start = self.cursor.token
        predicate = self.cursor.iri_term()
        self.cursor.expect("(", "`(`", "write `:p(?x, ?y)`, or `[?x, :p, ?y]`")
        parts: list[program.Node] = []
        if self.cursor.key != ")":
            parts.append(self._node())
            while self.cursor.accept(","):
                parts.append(self._node())
        self.cursor.expect(")", "`,` or `)`")
        span = self.cursor.since(start)
        if len(parts) == 1:
            return program.Atom(parts[0], TYPE, predicate, span)
        if len(parts) == 2:
            return program.Atom(parts[0], predicate, parts[1], span)
        self.cursor.error(
            "D3021",
            f"`{start.text}` has {len(parts)} arguments: an atom is a triple",
            span,
            hint="one argument is a class, two are subject and object",
        )
        raise Skip

    def _predicate(self) -> program.Node:
        if self.cursor.key == "A" and self.cursor.token.text == "a":
            self.cursor.advance()
            return TYPE
        return self._node()

    def _node(self) -> program.Node:
        token = self.cursor.token
        argument = self._atoms.argument()
        if argument is not None:
            return argument
        if token.kind == "label" or token.key == "[":
            self.cursor.error(
                "D3024",
                "a rule cannot have blank nodes",
                self.cursor.span(),
                hint="in a body write a variable, in a head an IRI",
            )
            raise Skip
        hint = (
            f"a variable is written `?{token.text}`, an IRI `:{token.text}`" if token.kind == "name" else ""
        )
        raise self.cursor.fail("a variable, an IRI or a literal", hint)
