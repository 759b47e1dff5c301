"""Relations of geometries and the objects of a predicate that may touch them: an R-tree, for filters.

Place:   extract/leaves.py adds one to a conjunction that has a filter such as `geof:sfWithin(?point, ?zone)`
         over objects of a predicate; store.py serves it like a path. The filter stays.
Method:  the filter implies that the envelopes have a point in common, so a row of this relation is implied,
         too, and joins stay the same. The geometries of the background are in one R-tree for each reference
         system (STR packed; Leutenegger et al. 1997), made at the first look; those of other systems than
         the one asked for, empty ones, and those that the instant adds are all given. No plan ranges over
         geometries that are not bound: the planner expects too many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dotr.budget import Meter
from dotr.expressions.geometry import RTree, geometry
from dotr.joins.plan import Relation, View
from dotr.rdf.index import Changes, Column
from dotr.rdf.terms import Term
from dotr.rdf.values import decode

Pair = tuple[Term, Term]

_MANY = 10**15
"""Rows that the planner expects while the geometry is not bound."""


class ColumnReader(Protocol):
    """What the relation knows of the store."""

    def column(self, predicate: Term, key: int) -> Column | None: ...

    def changes(self, relation: Relation) -> Changes: ...


class NearbyRelation:
    """Owns the R-tree over the objects of `predicate` in the background, which instants do not change.

    Rows are pairs of a geometry and an object. What it reads is no source: whatever wakes the pattern of
    `predicate` wakes the conjunction.
    """

    sources: tuple[Relation, ...] = ()
    turn = 0

    def __init__(self, relation: Relation, predicate: Term, store: ColumnReader, meter: Meter) -> None:
        self.relation = relation
        self._predicate = predicate
        self._store = store
        self._meter = meter
        self._tree: RTree | None = None
        self._added = store.changes(predicate)

    def run(self) -> None:
        """Nothing is gained or lost."""

    def rows(self) -> int:
        """For the planner: too many to range over."""
        return _MANY

    def values(self, column: int) -> int:
        """For the planner: so that two objects are expected for a geometry."""
        return _MANY // 2 if column == 0 else 1

    def find(self, values: Sequence[Term | None], view: View) -> list[Pair]:
        """Pairs of a geometry and an object; with both given, that pair."""
        place, object_ = values
        if place is None:
            raise AssertionError("a plan ranges over all geometries")
        if object_ is not None:
            return [(place, object_)]
        given = geometry(decode(place))
        if given is None:
            return []
        if self._tree is None:
            self._tree = RTree(self._geometries())
        found: dict[Term, Any] = dict.fromkeys(self._tree.touching(given))
        found.update((added[1], None) for added in self._added.added)
        self._meter.charge(len(found), f"geometries of {self._predicate}")
        return [(place, term) for term in found]

    def _geometries(self) -> list[tuple[Term, Any]]:
        column = self._store.column(self._predicate, 1)
        read = ((term, geometry(decode(term))) for term in column or ())
        return [(term, one) for term, one in read if one is not None]
