"""Triple patterns: text → `ir.Triples`.

Place:   between paths.py and sparql.py.
Method:  SPARQL 1.1, sec. 19.8. Blank nodes and collections become variables and plain triple patterns,
         numbered as they appear: printing and parsing again gives the same tree.
"""

from __future__ import annotations

from typing import Final

from dotr.ir import Node, Path, TriplePattern, Triples, Var
from dotr.lang.grammar.base import NUMBERS
from dotr.lang.grammar.expressions import ExpressionParser
from dotr.lang.grammar.paths import PathParser
from dotr.lang.grammar.tokens import Token
from dotr.rdf.terms import RDF, Term

FIRST: Final[Term] = f"<{RDF}first>"
REST: Final[Term] = f"<{RDF}rest>"
NIL: Final[Term] = f"<{RDF}nil>"


class TriplesParser:
    """Owns what is scoped to one query: blank node labels, their number, the basic graph pattern it is in."""

    def __init__(self, at: ExpressionParser) -> None:
        self._at = at
        self._paths = PathParser(at)
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
        token = self._at.token
        return (
            token.kind in ("var", "iri", "pname", "label", "string", "integer", "decimal", "double")
            or token.key in ("(", "[", "TRUE", "FALSE")
            or (token.key in ("+", "-") and self._at.peek().kind in NUMBERS)
        )

    def block(self) -> Triples:
        """Triples up to the first token that is not part of one; dots stand between subjects."""
        found: list[TriplePattern] = []
        while True:
            start = self._at.token
            opened = start.key in ("[", "(") and not self._empty_bracket()
            subject = self._node(found)
            if not (opened and self._at.key in (".", "}") and found):
                self._predicates(subject, found)
            if self._at.token.kind in ("attribute", "timeof"):
                self._at.split_attribute()
            if not self._at.accept("."):
                if self.begins():
                    raise self._at.fail("`.`, `;` or `,`", "triples are separated by `.`")
                break
            if self._at.token.kind in ("attribute", "timeof"):
                self._at.split_attribute()
            if not self.begins():
                break
        return Triples(tuple(found))

    def _empty_bracket(self) -> bool:
        return self._at.peek().key in ("]", ")")

    def _predicates(self, subject: Node, found: list[TriplePattern]) -> None:
        """`verb object, object ; verb object …` behind a subject."""
        while True:
            start = self._at.token
            verb = self._verb()
            while True:
                inner: list[TriplePattern] = []
                if self._at.token.kind in ("attribute", "timeof"):
                    self._at.split_attribute()
                object_ = self._node(inner)
                found.append(TriplePattern(subject, verb, object_, self._at.since(start)))
                found.extend(inner)
                if not self._at.accept(","):
                    break
            if not self._at.accept(";"):
                return
            while self._at.accept(";"):
                pass
            if not self._at_verb():
                return

    def _at_verb(self) -> bool:
        return self._at.token.kind in ("var", "iri", "pname") or self._at.key in ("A", "^", "!", "(")

    def _verb(self) -> Node | Path:
        if self._at.token.kind == "var":
            return self._variable_node()
        if not self._at_verb():
            hint = ""
            if self._at.token.kind == "string" or self._at.at_literal():
                hint = "a literal is never a predicate"
            raise self._at.fail("a predicate", hint)
        return self._paths.path()

    def _variable_node(self) -> Node:
        token = self._at.advance()
        name = self._at.variable_name(token)
        return self._at.parameter(name, token) or Var(name, self._at.span(token))

    def _blank(self, token: Token) -> Var:
        name = f".b{self._blanks}"
        self._blanks += 1
        return Var(name, self._at.span(token))

    def _node(self, found: list[TriplePattern]) -> Node:
        """A subject or object. The triples inside `[…]` and `(…)` go to `found`, in order of appearance."""
        token = self._at.token
        if token.kind == "var":
            return self._variable_node()
        if self._at.at_iri():
            return self._at.iri_term()
        if token.kind == "label":
            return self._label(self._at.advance())
        if token.key == "[":
            return self._properties(found)
        if token.key == "(":
            return self._collection(found)
        number = self._at.signed_number()
        if number is not None:
            return number
        if self._at.at_literal():
            return self._at.literal_term()
        hint = f"a variable is written `?{token.text}`" if token.kind == "name" and token.key != "A" else ""
        raise self._at.fail("a variable or a term", hint)

    def _label(self, token: Token) -> Var:
        name, pattern = self._labels.get(token.text, ("", self.pattern))
        if not name:
            variable = self._blank(token)
            self._labels[token.text] = (variable.name, self.pattern)
            return variable
        if pattern != self.pattern:
            self._at.error(
                "D1214",
                f"`{token.text}` stands in two groups",
                self._at.span(token),
                hint="a variable can join them: `?x`",
                notes=("a blank node label is known in one basic graph pattern only",),
            )
        return Var(name, self._at.span(token))

    def _properties(self, found: list[TriplePattern]) -> Node:
        node = self._blank(self._at.advance())
        if self._at.accept("]"):
            return node
        with self._at.nested():
            self._predicates(node, found)
            self._at.expect("]", "`]`, `;` or `,`")
        return node

    def _collection(self, found: list[TriplePattern]) -> Node:
        start = self._at.advance()
        if self._at.accept(")"):
            return NIL
        first = cell = self._blank(start)
        with self._at.nested():
            while True:
                inner: list[TriplePattern] = []
                item_start = self._at.token
                item = self._node(inner)
                found.append(TriplePattern(cell, FIRST, item, self._at.since(item_start)))
                found.extend(inner)
                if self._at.key == ")":
                    self._at.advance()
                    found.append(TriplePattern(cell, REST, NIL, self._at.since(start)))
                    return first
                following = self._blank(self._at.token)
                found.append(TriplePattern(cell, REST, following, self._at.since(start)))
                cell = following
