"""Property paths: text → `ir.Path`.

Place:   above base.py; held by triples.py.
Method:  SPARQL 1.1, sec. 19.8, one method a rule of the grammar.
"""

from __future__ import annotations

from dotr.ir import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.lang.grammar.base import NUMBERS, TYPE, Cursor
from dotr.rdf.terms import Term


class PathParser:
    """Takes paths from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def path(self) -> Path:
        """Take a path, which may be one predicate."""
        with self.cursor.nested():
            branches = [self._sequence()]
            while self.cursor.accept("|"):
                branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternative(tuple(branches))

    def _sequence(self) -> Path:
        steps = [self._step()]
        while self.cursor.accept("/"):
            steps.append(self._step())
        return steps[0] if len(steps) == 1 else Sequence(tuple(steps))

    def _step(self) -> Path:
        if self.cursor.accept("^"):
            return Inverse(self._element())
        return self._element()

    def _element(self) -> Path:
        path = self._primary()
        if self.cursor.key == "*":
            self.cursor.advance()
            return Repeat(path, 0, unbounded=True)
        if self.cursor.key == "+" and not (
            self.cursor.peek().kind in NUMBERS and self.cursor.peek().start == self.cursor.token.end
        ):
            self.cursor.advance()
            return Repeat(path, 1, unbounded=True)
        if self.cursor.key == "?":
            self.cursor.advance()
            return Repeat(path, 0, unbounded=False)
        return path

    def _primary(self) -> Path:
        if self.cursor.key == "(":
            self.cursor.advance()
            path = self.path()
            self.cursor.expect(")")
            return path
        if self.cursor.accept("!"):
            return self._negated_set()
        return self._iri()

    def _iri(self) -> Term:
        if self.cursor.key == "A" and self.cursor.token.text == "a":
            self.cursor.advance()
            return TYPE
        if not self.cursor.at_iri():
            hint = "the predicate rdf:type is a lower-case `a`" if self.cursor.key == "A" else ""
            raise self.cursor.fail("a predicate", hint)
        return self.cursor.iri_term()

    def _negated_set(self) -> NegatedSet:
        forward: list[Term] = []
        inverse: list[Term] = []

        def one() -> None:
            (inverse if self.cursor.accept("^") else forward).append(self._iri())

        if self.cursor.accept("("):
            if not self.cursor.accept(")"):
                one()
                while self.cursor.accept("|"):
                    one()
                self.cursor.expect(")", "`|` or `)`")
        else:
            one()
        return NegatedSet(tuple(forward), tuple(inverse))
