"""Shapes: what queries share that differ only in names and in compared constants.

Place:   before compilation; one shape is compiled and evaluated once for all its members.
Method:  variables are renamed in order of first appearance. A top-level filter that compares a variable with
         a constant (`?v > 60`) is extracted: the shape also selects `?v`, and an index of the members'
         constants (comparison_index.py) decides who gets a row, as in publish/subscribe systems.
Why not: sharing parts of queries: hand-written rules repeat whole queries, or change a threshold.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dotr import ir
from dotr.rdf.terms import Term
from dotr.sparql.algebra import conjuncts
from dotr.sparql.bound_variables import is_grouped, visible
from dotr.sparql.rewriting import Rewriter

_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Comparison(Struct, frozen=True):
    """`variable operator constant`, the constant left open."""

    variable: str
    operator: str


class Shape(Struct, frozen=True):
    """A query without its comparisons; `query` selects `width` projected variables, then the compared
    ones."""

    query: ir.Select
    width: int
    comparisons: tuple[Comparison, ...]


def shape_of(select: ir.Select) -> tuple[Shape, tuple[Term, ...]]:
    """The shape of a query and its constants, one per comparison."""
    comparisons: list[Comparison] = []
    constants: list[Term] = []
    elements: list[ir.Element] = []
    divisible = not (is_grouped(select) or select.order_by or select.ask or select.values is not None)
    scope = set(visible(select.where)) if divisible else set()
    for element in select.where.elements:
        if not isinstance(element, ir.Filter):
            elements.append(element)
            continue
        for part in conjuncts(element.condition):
            found = _comparison(part)
            if found is None or found[0].variable not in scope:
                elements.append(ir.Filter(part))
            else:
                comparisons.append(found[0])
                constants.append(found[1])
    renamer = Renamer()
    have = select.variables
    asked = dict.fromkeys(c.variable for c in comparisons if c.variable not in have)
    bare = replace(
        select,
        where=ir.GroupPattern(tuple(elements)),
        projection=(*select.projection, *(ir.Projection(ir.Var(name)) for name in asked)),
        star=False,
        reduced=False,
        span=None,
    )
    shape = Shape(
        renamer.select(bare),
        len(select.projection),
        tuple(Comparison(renamer.name(c.variable), c.operator) for c in comparisons),
    )
    return shape, tuple(constants)


def _comparison(condition: ir.Expression) -> tuple[Comparison, Term] | None:
    if isinstance(condition, ir.Call) and condition.function in _MIRRORED:
        left, right = condition.arguments
        if isinstance(left, ir.Var) and isinstance(right, ir.Const):
            return Comparison(left.name, condition.function), right.term
        if isinstance(left, ir.Const) and isinstance(right, ir.Var):
            return Comparison(right.name, _MIRRORED[condition.function]), left.term
    return None


class Renamer:
    """Owns the new names of one query's variables, in order of first appearance."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._walk = Rewriter(self._node, self.select, self._triples, self._var)

    def select(self, select: ir.Select) -> ir.Select:
        """The query under the new names."""
        return self._walk.select(select)

    def name(self, name: str) -> str:
        new = self._names.get(name)
        if new is None:
            new = self._names[name] = f"{'.b' if name[0] == '.' else 'v'}{len(self._names)}"
        return new

    def _var(self, variable: ir.Var) -> ir.Var:
        return ir.Var(self.name(variable.name))

    def _node(self, expression: ir.Expression) -> ir.Expression:
        return self._var(expression) if isinstance(expression, ir.Var) else expression

    def _triples(self, triples: ir.Triples) -> list[ir.Element]:
        return [ir.Triples(tuple(map(self._pattern, triples.patterns)))]

    def _pattern(self, pattern: ir.TriplePattern) -> ir.TriplePattern:
        s, p, o = pattern.subject, pattern.predicate, pattern.object
        return ir.TriplePattern(
            self._var(s) if isinstance(s, ir.Var) else s,
            self._var(p) if isinstance(p, ir.Var) else p,
            self._var(o) if isinstance(o, ir.Var) else o,
        )
