"""Triple patterns: text → `ir.Triples`.

Place:   above paths.py; held by sparql.py.
Method:  SPARQL 1.1, sec. 19.8. Blank nodes and collections become variables and plain triple patterns,
         numbered as they appear: printing and parsing again gives the same tree.
"""

from __future__ import annotations

from typing import Final

from dotr.ir import Node, Path, TriplePattern, Triples, Var
from dotr.lang.grammar.base import NUMBERS, Cursor
from dotr.lang.grammar.parameters import Parameters
from dotr.lang.grammar.paths import PathParser
from dotr.lang.grammar.tokens import Token
from dotr.rdf.terms import RDF, Term

FIRST: Final[Term] = f"<{RDF}first>"
REST: Final[Term] = f"<{RDF}rest>"
NIL: Final[Term] = f"<{RDF}nil>"


class TriplesParser:
    """Owns what is scoped to one query: blank node labels, their number, the basic graph pattern it is in."""

    def __init__(self, cursor: Cursor, parameters: Parameters) -> None:
        self.cursor = cursor
        self._parameters = parameters
        self._paths = PathParser(cursor)
        self._labels: dict[str, tuple[str, int]] = {}
        self._blanks = 0
        self.pattern = 0
        """Number of the basic graph pattern: a label may stand in one only."""
        self._patterns = 0

    def new_pattern(self) -> None:
        """Another basic graph pattern begins."""
        self._patterns += 1
        self.pattern = self._patterns

    def begins(self) -> bool:
        """Whether a triple may begin here."""
        token = self.cursor.token
        return (
            token.kind in ("var", "iri", "pname", "label", "string", "integer", "decimal", "double")
            or token.key in ("(", "[", "TRUE", "FALSE")
            or (token.key in ("+", "-") and self.cursor.peek().kind in NUMBERS)
        )

    def block(self) -> Triples:
        """Triples up to the first token that is not part of one; dots stand between subjects."""
        found: list[TriplePattern] = []
        while True:
            start = self.cursor.token
            opened = start.key in ("[", "(") and not self._empty_bracket()
            subject = self._node(found)
            if not (opened and self.cursor.key in (".", "}") and found):
                self._predicates(subject, found)
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if not self.cursor.accept("."):
                if self.begins():
                    raise self.cursor.fail("`.`, `;` or `,`", "triples are separated by `.`")
                break
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if not self.begins():
                break
        return Triples(tuple(found))

    def _empty_bracket(self) -> bool:
        return self.cursor.peek().key in ("]", ")")

    def _predicates(self, subject: Node, found: list[TriplePattern]) -> None:
        """`verb object, object ; verb object …` behind a subject."""
        while True:
            start = self.cursor.token
            verb = self._verb()
            while True:
                inner: list[TriplePattern] = []
                if self.cursor.token.kind in ("attribute", "timeof"):
                    self.cursor.split_attribute()
                object_ = self._node(inner)
                found.append(TriplePattern(subject, verb, object_, self.cursor.since(start)))
                found.extend(inner)
                if not self.cursor.accept(","):
                    break
            if not self.cursor.accept(";"):
                return
            while self.cursor.accept(";"):
                pass
            if not self._at_verb():
                return

    def _at_verb(self) -> bool:
        return self.cursor.token.kind in ("var", "iri", "pname") or self.cursor.key in ("A", "^", "!", "(")

    def _verb(self) -> Node | Path:
        if self.cursor.token.kind == "var":
            return self._variable_node()
        if not self._at_verb():
            hint = ""
            if self.cursor.token.kind == "string" or self.cursor.at_literal():
                hint = "a literal is never a predicate"
            raise self.cursor.fail("a predicate", hint)
        return self._paths.path()

    def _variable_node(self) -> Node:
        token = self.cursor.advance()
        name = self.cursor.variable_name(token)
        return self._parameters.term(name, token) or Var(name, self.cursor.span(token))

    def _blank(self, token: Token) -> Var:
        name = f".b{self._blanks}"
        self._blanks += 1
        return Var(name, self.cursor.span(token))

    def _node(self, found: list[TriplePattern]) -> Node:
        """A subject or object. The triples inside `[…]` and `(…)` go to `found`, in order of appearance."""
        token = self.cursor.token
        if token.kind == "var":
            return self._variable_node()
        if token.kind == "label":
            return self._label(self.cursor.advance())
        if token.key == "[":
            return self._properties(found)
        if token.key == "(":
            return self._collection(found)
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        hint = f"a variable is written `?{token.text}`" if token.kind == "name" and token.key != "A" else ""
        raise self.cursor.fail("a variable or a term", hint)

    def _label(self, token: Token) -> Var:
        name, pattern = self._labels.get(token.text, ("", self.pattern))
        if not name:
            variable = self._blank(token)
            self._labels[token.text] = (variable.name, self.pattern)
            return variable
        if pattern != self.pattern:
            self.cursor.error(
                "D1214",
                f"`{token.text}` stands in two groups",
                self.cursor.span(token),
                hint="a variable can join them: `?x`",
                notes=("a blank node label is known in one basic graph pattern only",),
            )
        return Var(name, self.cursor.span(token))

    def _properties(self, found: list[TriplePattern]) -> Node:
        node = self._blank(self.cursor.advance())
        if self.cursor.accept("]"):
            return node
        with self.cursor.nested():
            self._predicates(node, found)
            self.cursor.expect("]", "`]`, `;` or `,`")
        return node

    def _collection(self, found: list[TriplePattern]) -> Node:
        start = self.cursor.advance()
        if self.cursor.accept(")"):
            return NIL
        first = cell = self._blank(start)
        with self.cursor.nested():
            while True:
                inner: list[TriplePattern] = []
                item_start = self.cursor.token
                item = self._node(inner)
                found.append(TriplePattern(cell, FIRST, item, self.cursor.since(item_start)))
                found.extend(inner)
                if self.cursor.key == ")":
                    self.cursor.advance()
                    found.append(TriplePattern(cell, REST, NIL, self.cursor.since(start)))
                    return first
                following = self._blank(self.cursor.token)
                found.append(TriplePattern(cell, REST, following, self.cursor.since(start)))
                cell = following
