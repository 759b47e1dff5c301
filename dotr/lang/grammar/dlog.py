"""Datalog (`.dlog`): text → `ir.DatalogRule`.

Place:   beside dotr.py; what the rules mean together (safety, strata) is datalog/strata.py's to say.
Method:  language.md, sec. 4; recovery at the dot that ends a rule.
"""

from __future__ import annotations

from dotr import ir
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES, listed
from dotr.lang.grammar.atoms import AtomParser
from dotr.lang.grammar.base import TYPE, Cursor, Skip
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.source import Source


class DatalogParser:
    """Owns one .dlog text. `prologue`: the places of PREFIX (with the prefix) and BASE (with None)."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        self.cursor = Cursor(source, found)
        self.cursor.code = "D3020"
        self._expressions = ExpressionParser(self.cursor, Mode.DATALOG)
        self._atoms = AtomParser(self.cursor, self._expressions)
        self.prologue = self._atoms.prologue

    def rules(self) -> tuple[ir.DatalogRule, ...]:
        """Every rule of the text that could be read, in order. Raises nothing: findings are in `found`."""
        found: list[ir.DatalogRule] = []
        while self.cursor.token.kind != "end":
            start = self.cursor.at
            try:
                if not self._atoms.prologue_line():
                    found.append(self._rule())
            except Skip:
                self._atoms.recover(start, ("PREFIX",))
        return tuple(found)

    def _rule(self) -> ir.DatalogRule:
        start = self.cursor.token
        self._atoms.refuse_turtle()
        heads = [self._head()]
        while self.cursor.accept(","):
            heads.append(self._head())
        body: list[ir.BodyAtom] = []
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
        return ir.DatalogRule(tuple(heads), tuple(body), self.cursor.since(start))

    def _head(self) -> ir.Atom:
        start = self.cursor.token
        if start.key == "NOT":
            raise self.cursor.fail("an atom", "a conclusion cannot be negated: negation belongs in the body")
        return self._atom()

    def _body_atom(self) -> ir.BodyAtom:
        start = self.cursor.token
        match start.key:
            case "NOT":
                self.cursor.advance()
                if self.cursor.key == "EXISTS":
                    raise self.cursor.fail("an atom", "write `NOT [?x, :p, ?y]`")
                return ir.NotAtom(self._atom(), self.cursor.since(start))
            case "FILTER":
                return self._atoms.filter()
            case "BIND":
                return self._atoms.bind()
            case "AGGREGATE":
                return self._aggregate_atom()
            case _:
                return self._atom()

    def _aggregate_atom(self) -> ir.AggregateAtom:
        start = self.cursor.advance()
        body: list[ir.Atom | ir.FilterAtom | ir.BindAtom | ir.NotAtom] = []
        group: list[ir.Var] = []
        totals: list[ir.AggregateTerm] = []
        self.cursor.expect("(")
        with self.cursor.nested():
            while True:
                at = self.cursor.token
                atom = self._body_atom()
                if isinstance(atom, ir.AggregateAtom):
                    self.cursor.error(
                        "D3023",
                        "AGGREGATE stands inside another AGGREGATE",
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
        return ir.AggregateAtom(tuple(body), tuple(group), tuple(totals), self.cursor.since(start))

    def _total(self) -> ir.AggregateTerm:
        token = self.cursor.token
        if token.key not in AGGREGATES:
            raise self.cursor.fail(listed())
        self.cursor.advance()
        distinct, argument = self._atoms.aggregate()
        self.cursor.expect("AS")
        return ir.AggregateTerm(token.key, argument, distinct, self._atoms.variable())

    def _atom(self) -> ir.Atom:
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
            return ir.Atom(parts[0], parts[1], parts[2], self.cursor.since(start))
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

    def _predicate_atom(self) -> ir.Atom:
        start = self.cursor.token
        predicate = self.cursor.iri_term()
        self.cursor.expect("(", "`(`", "write `:p(?x, ?y)`, or `[?x, :p, ?y]`")
        parts: list[ir.Node] = []
        if self.cursor.key != ")":
            parts.append(self._node())
            while self.cursor.accept(","):
                parts.append(self._node())
        self.cursor.expect(")", "`,` or `)`")
        span = self.cursor.since(start)
        if len(parts) == 1:
            return ir.Atom(parts[0], TYPE, predicate, span)
        if len(parts) == 2:
            return ir.Atom(parts[0], predicate, parts[1], span)
        self.cursor.error(
            "D3021",
            f"`{start.text}` has {len(parts)} arguments: an atom is a triple",
            span,
            hint="one argument is a class, two are subject and object",
        )
        raise Skip

    def _predicate(self) -> ir.Node:
        if self.cursor.key == "A" and self.cursor.token.text == "a":
            self.cursor.advance()
            return TYPE
        return self._node()

    def _node(self) -> ir.Node:
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
