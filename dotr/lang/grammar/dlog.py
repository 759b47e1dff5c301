"""Datalog (`.dlog`): text → `ir.DatalogRule`.

Place:   beside dotr.py; what the rules mean together (safety, strata) is datalog/strata.py's to say.
Method:  language.md, sec. 4; recovery at the dot that ends a rule.
"""

from __future__ import annotations

from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES, listed
from dotr.ir import (
    AggregateAtom,
    AggregateTerm,
    Atom,
    BindAtom,
    BodyAtom,
    DatalogRule,
    Expression,
    FilterAtom,
    Node,
    NotAtom,
    Var,
)
from dotr.lang.grammar.base import TYPE, Skip
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.source import Source, Span


class DatalogParser(ExpressionParser):
    """Owns one .dlog text. `prologue`: the places of PREFIX (with the prefix) and BASE (with None)."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        super().__init__(source, found)
        self.prologue: list[tuple[str | None, Span]] = []

    def rules(self) -> tuple[DatalogRule, ...]:
        """Every rule of the text that could be read, in order. Raises nothing: findings are in `found`."""
        self.mode, self.code, self.deployed = Mode.DATALOG, "D3020", True
        found: list[DatalogRule] = []
        while self.token.kind != "end":
            start = self.at
            try:
                first = self.token
                if self.key == "PREFIX":
                    name = self.peek().text[:-1]
                    self.declare_prefix(self.declared)
                    self.accept(".")
                    self.prologue.append((name, self.since(first)))
                elif self.key == "BASE":
                    self.declare_base()
                    self.accept(".")
                    self.prologue.append((None, self.since(first)))
                else:
                    found.append(self._rule())
            except Skip:
                self._recover(start)
        return tuple(found)

    def _recover(self, start: int) -> None:
        """Go on behind the next dot, or at the next PREFIX."""
        if self.at == start:
            self.advance()
        while self.token.kind != "end" and self.key != "PREFIX":
            if self.advance().key == ".":
                return

    def _rule(self) -> DatalogRule:
        start = self.token
        if start.kind == "language" and start.text in ("@prefix", "@base"):
            raise self.fail(
                "a rule", f"write `{start.text[1:].upper()}`, without `@` and without a dot at the end"
            )
        heads = [self._head()]
        while self.accept(","):
            heads.append(self._head())
        body: list[BodyAtom] = []
        if self.accept(":-"):
            if self.key == ".":
                raise self.fail("an atom", "a fact is written without `:-`")
            body.append(self._body_atom())
            while self.accept(","):
                body.append(self._body_atom())
            if self.key in ("&&", "AND"):
                raise self.fail("`,` or `.`", "atoms are separated by `,`")
        elif self.key in ("<", "<=", "="):
            raise self.fail("`:-`, `,` or `.`", "the arrow is written `:-`")
        if self.key != ".":
            hint = "a rule ends with a dot" if self.at_iri() or self.key in ("[", "end") else ""
            raise self.fail("`,` or `.`" if body else "`:-`, `,` or `.`", hint)
        self.advance()
        return DatalogRule(tuple(heads), tuple(body), self.since(start))

    def _head(self) -> Atom:
        start = self.token
        if start.key == "NOT":
            raise self.fail("an atom", "nothing can be concluded to be false: negation stands in the body")
        return self._atom()

    def _body_atom(self) -> BodyAtom:
        start = self.token
        match start.key:
            case "NOT":
                self.advance()
                if self.key == "EXISTS":
                    raise self.fail("an atom", "write `NOT [?x, :p, ?y]`")
                return NotAtom(self._atom(), self.since(start))
            case "FILTER":
                return self._filter()
            case "BIND":
                return self._bind()
            case "AGGREGATE":
                return self._aggregate_atom()
            case _:
                return self._atom()

    def _filter(self) -> FilterAtom:
        start = self.advance()
        self.expect("(")
        with self.nested():
            condition = self.expression()
            self.expect(")", "`)` or an operator")
        return FilterAtom(condition, self.since(start))

    def _bind(self) -> BindAtom:
        start = self.advance()
        self.expect("(")
        with self.nested():
            expression = self.expression()
            self.expect("AS", "`AS` or an operator")
            variable = self._variable()
            self.expect(")")
        return BindAtom(expression, variable, self.since(start))

    def _aggregate_atom(self) -> AggregateAtom:
        start = self.advance()
        body: list[Atom | FilterAtom | BindAtom | NotAtom] = []
        group: list[Var] = []
        totals: list[AggregateTerm] = []
        self.expect("(")
        with self.nested():
            while True:
                at = self.token
                atom = self._body_atom()
                if isinstance(atom, AggregateAtom):
                    self.error("D3023", "AGGREGATE stands inside another AGGREGATE", self.span(at),
                               hint="derive the inner total by a rule of its own")  # fmt: skip
                    raise Skip
                body.append(atom)
                if not self.accept(","):
                    break
            if self.accept("ON"):
                while self.token.kind == "var":
                    group.append(self._variable())
                    self.accept(",")
            if self.key != "BIND":
                raise self.fail("`,`, `ON ?group` or `BIND total AS ?v`")
            while self.accept("BIND"):
                totals.append(self._total())
                self.accept(",")
            self.expect(")", "`BIND` or `)`")
        return AggregateAtom(tuple(body), tuple(group), tuple(totals), self.since(start))

    def _total(self) -> AggregateTerm:
        token = self.token
        if token.key not in AGGREGATES:
            raise self.fail(listed())
        self.advance()
        self.expect("(")
        with self.nested():
            distinct = self.accept("DISTINCT") is not None
            argument: Expression | None = None
            if self.key == "*" and token.key == "COUNT":
                self.advance()
            else:
                argument = self.expression()
            self.expect(")")
        self.expect("AS")
        return AggregateTerm(token.key, argument, distinct, self._variable())

    def _variable(self) -> Var:
        token = self.token
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        self.advance()
        return Var(self.variable_name(token), self.span(token))

    def _atom(self) -> Atom:
        """`:p(?x, ?y)`, `:C(?x)` or `[?x, :p, ?y]`."""
        start = self.token
        if self.accept("["):
            parts = [self._node()]
            while self.accept(","):
                parts.append(self._predicate() if len(parts) == 1 else self._node())
            self.expect("]", "`,` or `]`")
            if len(parts) != 3:
                self.error(
                    "D3021",
                    f"a triple has three parts, this one {len(parts)}",
                    self.since(start),
                    hint="write `[?subject, :predicate, ?object]`",
                )
                raise Skip
            return Atom(parts[0], parts[1], parts[2], self.since(start))
        if self.at_iri():
            return self._predicate_atom()
        hint = ""
        if start.kind == "var":
            hint = "a variable predicate is written `[?x, ?p, ?y]`"
        elif start.key == "A":
            hint = "a class is written `:Class(?x)` or `[?x, a, :Class]`"
        elif start.kind == "name":
            hint = f"a predicate is an IRI: `:{start.text}`"
        elif start.kind in ("attribute", "timeof"):
            hint = "Datalog knows no events: it sees one instant"
        raise self.fail("an atom such as `:p(?x, ?y)` or `[?x, :p, ?y]`", hint)

    def _predicate_atom(self) -> Atom:
        start = self.token
        predicate = self.iri_term()
        self.expect("(", "`(`", "write `:p(?x, ?y)`, or `[?x, :p, ?y]`")
        parts: list[Node] = []
        if self.key != ")":
            parts.append(self._node())
            while self.accept(","):
                parts.append(self._node())
        self.expect(")", "`,` or `)`")
        span = self.since(start)
        if len(parts) == 1:
            return Atom(parts[0], TYPE, predicate, span)
        if len(parts) == 2:
            return Atom(parts[0], predicate, parts[1], span)
        self.error(
            "D3021",
            f"`{start.text}` has {len(parts)} arguments: an atom is a triple",
            span,
            hint="one argument is a class, two are subject and object",
        )
        raise Skip

    def _predicate(self) -> Node:
        if self.key == "A" and self.token.text == "a":
            self.advance()
            return TYPE
        return self._node()

    def _node(self) -> Node:
        token = self.token
        if token.kind == "var":
            return self._variable()
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_literal():
            return self.literal_term()
        if token.kind == "label" or token.key == "[":
            self.error(
                "D3024",
                "a rule knows no blank nodes",
                self.span(),
                hint="in a body write a variable, in a head an IRI",
            )
            raise Skip
        hint = (
            f"a variable is written `?{token.text}`, an IRI `:{token.text}`" if token.kind == "name" else ""
        )
        raise self.fail("a variable, an IRI or a literal", hint)
