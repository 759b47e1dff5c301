"""Property paths: text → `ir.Path`.

Place:   between the cursor and triples.py.
Method:  SPARQL 1.1, sec. 19.8, one method a rule of the grammar.
"""

from __future__ import annotations

from dotr.ir import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.lang.grammar.base import NUMBERS, TYPE, Cursor
from dotr.rdf.terms import Term


class PathParser:
    """Takes paths from a cursor."""

    def __init__(self, at: Cursor) -> None:
        self._at = at

    def path(self) -> Path:
        """Take a path, which may be one predicate."""
        with self._at.nested():
            branches = [self._sequence()]
            while self._at.accept("|"):
                branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternative(tuple(branches))

    def _sequence(self) -> Path:
        steps = [self._step()]
        while self._at.accept("/"):
            steps.append(self._step())
        return steps[0] if len(steps) == 1 else Sequence(tuple(steps))

    def _step(self) -> Path:
        if self._at.accept("^"):
            return Inverse(self._element())
        return self._element()

    def _element(self) -> Path:
        path = self._primary()
        if self._at.key == "*":
            self._at.advance()
            return Repeat(path, 0, unbounded=True)
        if self._at.key == "+" and not (
            self._at.peek().kind in NUMBERS and self._at.peek().start == self._at.token.end
        ):
            self._at.advance()
            return Repeat(path, 1, unbounded=True)
        if self._at.key == "?":
            self._at.advance()
            return Repeat(path, 0, unbounded=False)
        return path

    def _primary(self) -> Path:
        if self._at.key == "(":
            self._at.advance()
            path = self.path()
            self._at.expect(")")
            return path
        if self._at.accept("!"):
            return self._negated_set()
        return self._iri()

    def _iri(self) -> Term:
        if self._at.key == "A" and self._at.token.text == "a":
            self._at.advance()
            return TYPE
        if not self._at.at_iri():
            hint = "the predicate rdf:type is a lower-case `a`" if self._at.key == "A" else ""
            raise self._at.fail("a predicate", hint)
        return self._at.iri_term()

    def _negated_set(self) -> NegatedSet:
        forward: list[Term] = []
        inverse: list[Term] = []

        def one() -> None:
            (inverse if self._at.accept("^") else forward).append(self._iri())

        if self._at.accept("("):
            if not self._at.accept(")"):
                one()
                while self._at.accept("|"):
                    one()
                self._at.expect(")", "`|` or `)`")
        else:
            one()
        return NegatedSet(tuple(forward), tuple(inverse))
