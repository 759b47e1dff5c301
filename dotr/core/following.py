"""Answers from the background alone, maintained while the background changes.

Place:   under extract.py, for a background that datalog/maintenance.py keeps.
Method:  a unit with answers from the background also evaluates its query over the overlay of every change;
         the signed delta is added to its standing answers on commit and subtracted on undo. Interpreted
         queries are evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from dotr.budget import CHANGED
from dotr.core.query_units import UnitMaker
from dotr.core.spending import Spending
from dotr.joins.graph_relations import Relation
from dotr.joins.store import TripleIndex
from dotr.sparql.compiled_query import CompiledQuery
from dotr.sparql.solution_operators import Change
from dotr.sparql.units import IncrementalView, Interpreted, QueryUnit


class Moves(Struct, frozen=True):
    """Units whose standing answers change: by how much, or (`asked`) to be evaluated again."""

    changes: tuple[tuple[IncrementalView, Sequence[Change]], ...] = ()
    asked: tuple[Interpreted, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.asked)

    def __neg__(self) -> Moves:
        back = ((unit, [(row, -n) for row, n in changes]) for unit, changes in self.changes)
        return Moves(tuple(back), self.asked)


NO_MOVES = Moves()


class Following:
    """Owns the queries over the kept background, by the relations that wake them."""

    def __init__(self, units: Iterable[QueryUnit], maker: UnitMaker, kept: TripleIndex) -> None:
        self._kept = kept
        self._views: dict[Relation, list[tuple[IncrementalView, CompiledQuery]]] = {}
        self._fallbacks: dict[Relation, list[Interpreted]] = {}
        for unit in units:
            if isinstance(unit, IncrementalView) and any(map(kept.changing, unit.relations)):
                query = maker.follower(unit, kept)
                for relation in {source for watched in query.watched for source in watched.sources}:
                    self._views.setdefault(relation, []).append((unit, query))
            elif isinstance(unit, Interpreted):
                for relation in unit.relations:
                    self._fallbacks.setdefault(relation, []).append(unit)

    def reads(self, relation: Relation) -> bool:
        """Whether a query must be asked while a change of the relation is open."""
        return relation in self._views or relation in self._fallbacks

    def moves(self, spending: Spending, limit: int) -> Moves:
        """The effect of the open change; `limit`: units of each query. Raises Exhausted from a unit."""
        if not (self._views or self._fallbacks):
            return NO_MOVES
        touched = [changes.relation for changes in self._kept.overlay.touched]
        woken = {id(query): (unit, query) for r in touched for unit, query in self._views.get(r, ())}
        found = []
        for unit, query in woken.values():
            query.meter.open(spending.limit(limit))
            try:
                changes = query.changes()
                query.meter.charge(len(changes), "answers that change", CHANGED)
            finally:
                spending.spend_of(query.meter)
            query.forget()
            if changes:
                found.append((unit, changes))
        asked = dict.fromkeys(unit for r in touched for unit in self._fallbacks.get(r, ()))
        return Moves(tuple(found), tuple(asked))

    def settle(self, moves: Moves) -> None:
        for unit, changes in moves.changes:
            unit.settle(changes)
        for fallback in moves.asked:
            fallback.settle()
