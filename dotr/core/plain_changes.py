"""Changes of relations that no rule reads or derives: rows go straight into the index.

Place:   lasting_model.py asks it before it opens a change over an overlay.
Method:  a solution of a conjunction binds all its variables. So the solutions that a change removes are those
         that use a removed row in the index before the change, and the solutions that it adds are those that
         use an added row in the index after it. Both are sets, whichever pattern a row matches. For each
         relation a query has one generated function that finds them (sparql/using_rows.py).
Why not: for everything: derivations, paths, OPTIONAL and groups compare both states, which needs the overlay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from dotr.budget import CHANGED, SLACK, Exhausted, Meter
from dotr.datalog.maintenance import Maintained
from dotr.datalog.statements import place_of
from dotr.ir import Select
from dotr.joins.graph_relations import Relation
from dotr.rdf.overlay import Row as Key
from dotr.rdf.terms import Triple
from dotr.sparql.solution_operators import Change, Row
from dotr.sparql.standing import MaintainedQuery
from dotr.sparql.using_rows import UsingRows

_REMEMBERED = 10_000

Difference: TypeAlias = tuple[Select, MaintainedQuery, Sequence[Change]]
Reader: TypeAlias = tuple[Select, MaintainedQuery, UsingRows]

Answers: TypeAlias = dict[MaintainedQuery, dict[Row, None]]
"""Query → its solutions before projection: a set, in order."""

PlainChange: TypeAlias = tuple[Sequence[Difference], Callable[[], None]]
"""How the answers of queries changed, and how to undo the change of the index."""

Rows: TypeAlias = dict[Relation, tuple[dict[Key, None], dict[Key, None]]]
"""Relation → (keys of added rows, keys of removed rows)."""


class PlainChanges:
    """Owns which relations are plain, and their queries. Made again whenever plans are.

    `woken`: standing queries by the relations that they read. `follows`: whether others must see a change of
    a relation while it is open. `meter`: the meter of the queries.
    """

    def __init__(
        self,
        kept: Maintained,
        woken: Mapping[Relation, Sequence[tuple[Select, MaintainedQuery]]],
        follows: Callable[[Relation], bool],
        meter: Meter,
    ) -> None:
        self._kept, self._woken, self._follows, self._meter = kept, woken, follows, meter
        self._readers: dict[Relation, list[Reader] | None] = {}

    def make(self, begun: Iterable[Triple], ended: Iterable[Triple], limit: int) -> PlainChange | None:
        """Make a change in the index and tell the queries. None, and nothing is done, if a relation is not
        plain or if it takes more than a part of `limit`: then the overlay decides.
        """
        self._meter.open(limit // SLACK)
        if len(self._readers) > _REMEMBERED:
            self._readers.clear()
        lost: Answers = {}
        gained: Answers = {}
        try:
            rows = self._rows(begun, ended)
            if rows is None:
                return None
            for relation, (_, removed) in rows.items():
                if removed:
                    self._use(relation, removed, lost)
        except Exhausted:
            return None
        self._kept.exchange(rows)
        undo = partial(self._take_back, rows)
        try:
            for relation, (added, _) in rows.items():
                if added:
                    self._use(relation, added, gained)
            return self._moved(rows, lost, gained) if lost or gained else (), undo
        except Exhausted:
            for query in lost | gained:
                query.forget()
            undo()
            return None

    def _take_back(self, rows: Rows) -> None:
        self._kept.exchange({relation: (removed, added) for relation, (added, removed) in rows.items()})

    def _use(self, relation: Relation, rows: Collection[Key], found: Answers) -> None:
        """Add the solutions that use rows of a relation to `found`."""
        for _, query, using in self._readers[relation] or ():
            if answers := using(rows):
                self._meter.charge(len(answers), "answers that change", CHANGED)
                found.setdefault(query, {}).update(dict.fromkeys(answers))

    def _moved(self, relations: Iterable[Relation], lost: Answers, gained: Answers) -> list[Difference]:
        """The signed answers of each query that lost or gained solutions."""
        selects = {query: select for r in relations for select, query, _ in self._readers[r] or ()}
        found: list[Difference] = []
        for query in lost | gained:
            query.take(lost.get(query, ()), gained.get(query, ()))
            found.append((selects[query], query, query.moved()))
        return found

    def _rows(self, begun: Iterable[Triple], ended: Iterable[Triple]) -> Rows | None:
        """The effective part of a change; None if a relation is not plain."""
        index = self._kept.index
        rows: Rows = {}
        for triple in ended:
            relation, key = place_of(triple)
            exchanged = rows.get(relation) or self._entered(relation, rows)
            if exchanged is None:
                return None
            if triple in index:
                exchanged[1][key] = None
        for triple in begun:
            relation, key = place_of(triple)
            exchanged = rows.get(relation) or self._entered(relation, rows)
            if exchanged is None:
                return None
            if key in exchanged[1]:
                del exchanged[1][key]
            elif triple not in index:
                exchanged[0][key] = None
        return rows

    def _entered(self, relation: Relation, rows: Rows) -> tuple[dict[Key, None], dict[Key, None]] | None:
        """An entry for a relation in `rows`; None if it is not plain."""
        if relation not in self._readers:
            self._readers[relation] = None
            self._readers[relation] = self._reading(relation)
        return None if self._readers[relation] is None else rows.setdefault(relation, ({}, {}))

    def _reading(self, relation: Relation) -> list[Reader] | None:
        """The queries that read a relation; None if it is not plain."""
        if not self._kept.plain(relation) or self._follows(relation):
            return None
        found: list[Reader] = []
        for select, query in self._woken.get(relation, ()):
            using = query.using(relation)
            if using is None:
                return None
            found.append((select, query, using))
        return found
