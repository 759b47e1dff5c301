"""Geometries and the objects of a predicate of which a relation holds: an R-tree, for filters.

Place:   extract/leaves.py adds one to a conjunction that has a filter such as `geof:sfWithin(?point, ?zone)`
         over objects of a predicate; store.py serves it like a path. Plans keep the filter; code.py leaves it
         out after a look-up here.
Method:  the filter implies that the envelopes have a point in common. The geometries of the background are in
         one R-tree for each reference system (STR packed; Leutenegger et al. 1997), made at the first look;
         of what it finds, and of those of other systems than the one asked for, empty ones, and those that
         the instant adds, the relation is tested. No plan ranges over geometries that are not bound: the
         planner expects too many rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from dotr.budget import EXPRESSION, Meter
from dotr.expressions.geometry import RELATIONS, Geometry, Located, RTree, geometry_of
from dotr.joins.plan import Relation, View
from dotr.program import Node
from dotr.rdf.index import Changes
from dotr.rdf.terms import Term

Pair = tuple[Term, Term]

_MANY = 10**15
"""Rows that the planner expects while the geometry is not bound."""


class GeometryStore(Protocol):
    """What the relation knows of the store."""

    def tree(self, predicate: Term) -> RTree: ...

    def changes(self, relation: Relation) -> Changes: ...


class NearbyRelation:
    """Rows are pairs of a geometry and an object of `predicate` of which `function` holds; `turned`: of the
    object and the geometry. What it reads is no source: whatever wakes the pattern of `predicate` wakes the
    conjunction.
    """

    sources: tuple[Relation, ...] = ()
    turn = 0

    def __init__(
        self,
        relation: Relation,
        predicate: Term,
        function: str,
        turned: bool,
        store: GeometryStore,
        meter: Meter,
    ) -> None:
        self.relation = relation
        self._store = store
        self._predicate = predicate
        self._function = function
        self._turned = turned
        self._holds = RELATIONS[function]
        self._meter = meter
        self._charged = f"geometries of {predicate}"
        self._tree: RTree | None = None
        self._added = store.changes(predicate).added

    def run(self) -> None:
        """Nothing is gained or lost."""

    def rows(self) -> int:
        """For the planner: too many to range over."""
        return _MANY

    def values(self, column: int) -> int:
        """For the planner: so that two objects are expected for a geometry."""
        return _MANY // 2 if column == 0 else 1

    def implied(self, place: Node, object_: Node) -> tuple[str, Node, Node]:
        """The function that holds of every row, and its arguments."""
        return (self._function, object_, place) if self._turned else (self._function, place, object_)

    def find(self, values: Sequence[Term | None], view: View) -> list[Pair]:
        """Pairs of a geometry and an object, in a fixed order."""
        place, object_ = values
        if place is None:
            raise AssertionError("a plan ranges over all geometries")
        if object_ is None:
            return self.near(place)
        given = geometry_of(place)
        return [] if given is None else self._holding(place, given, _located((object_,)))

    def near(self, place: Term) -> list[Pair]:
        """Pairs with this geometry, in a fixed order."""
        given = geometry_of(place)
        if given is None:
            return []
        if self._tree is None:
            self._tree = self._store.tree(self._predicate)
        located = self._tree.touching(given)
        if self._added:
            located = list(dict([*located, *_located(term for _, term in self._added)]).items())
        return self._holding(place, given, located)

    def _holding(self, place: Term, given: Geometry, located: list[Located]) -> list[Pair]:
        self._meter.charge(len(located), self._charged, 1 + EXPRESSION)
        if self._turned:
            return [(place, term) for term, one in located if self._holds(one, given)]
        return [(place, term) for term, one in located if self._holds(given, one)]


def tree_of(terms: Iterable[Term]) -> RTree:
    """The R-tree of those that are geometries."""
    return RTree(_located(terms))


def _located(terms: Iterable[Term]) -> list[Located]:
    read = ((term, geometry_of(term)) for term in terms)
    return [(term, one) for term, one in read if one is not None]
