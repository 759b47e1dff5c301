"""Aggregates over relations: rows of all groups, and which groups an instant touches.

Place:   used by stratum_evaluation.py, one per AGGREGATE of a program.
Method:  the groups that a new or removed row can change are found by joining the row with the rest of the
         aggregate's body; only those are aggregated again, over what holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dotr.budget import EXPRESSION
from dotr.datalog.clauses import AggregateClause
from dotr.datalog.triggers import outside
from dotr.expressions.aggregates import summarise
from dotr.ir import Var
from dotr.joins.body import AbsentPattern, BodyPattern, Item, View
from dotr.joins.filters import positional_value
from dotr.joins.graph_relations import relation_name
from dotr.joins.join_code import compile_plan
from dotr.joins.planner import plan
from dotr.joins.store import TripleIndex
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import Term

Row = tuple[Term, ...]
Finder = Callable[..., Any]


class GroupTotals:
    """Owns the compiled functions of one aggregate."""

    def __init__(self, aggregation: AggregateClause, store: TripleIndex) -> None:
        self.relation = aggregation.relation
        self._aggregation = aggregation
        self._store = store
        self._meter = store.meter
        self._arguments = aggregation.arguments
        self._columns = [
            None if t.argument is None else positional_value(t.argument, self._arguments, store.moment)
            for t in aggregation.totals
        ]
        self._seekers: dict[tuple[int, bool], Finder] = {}
        self._members: Finder | None = None

    def affected(self, touched: Sequence[Changes]) -> list[Row]:
        """The distinct groups that may have changed."""
        groups: dict[Row, None] = {}
        for changes in touched:
            for place, item in enumerate(self._aggregation.items):
                pattern = item.pattern if isinstance(item, AbsentPattern) else item
                if not isinstance(pattern, BodyPattern) or pattern.relation != changes.relation:
                    continue
                for rows, gone in ((changes.added, False), (changes.removed, True)):
                    if rows:
                        self._meter.charge(len(rows), relation_name(changes.relation))
                        seek = self._seeker(place, gone)
                        for row in rows:
                            seek(groups.setdefault, *((row,) if changes.arity == 1 else row))
        return list(groups)

    def _seeker(self, place: int, gone: bool) -> Finder:
        """Groups whose solutions use an added or removed row, before or after the change."""
        found = self._seekers.get((place, gone))
        if found is None:
            items: Sequence[Item] = self._aggregation.items
            item = items[place]
            if isinstance(item, AbsentPattern):
                trigger, rest, old = outside(item, items), items, not gone
            elif isinstance(item, BodyPattern):
                trigger, rest, old = item, (*items[:place], *items[place + 1 :]), gone
            else:
                raise AssertionError("filters have no rows")
            view = View.OLD if old else View.NEW
            outputs = [Var(name) for name in self._aggregation.group]
            the_plan = plan(rest, outputs, self._store, trigger=trigger, view=view, as_set=True)
            found = self._seekers[place, gone] = compile_plan(the_plan, self._store)
        return found

    def before(self, group: Row) -> Row | None:
        """The group's row in the closed background."""
        table = self._store.tables.get(self.relation)
        asked = (*group, *(None for _ in self._aggregation.totals))
        return next(iter(table.find(asked)), None) if table is not None else None

    def now(self, group: Row) -> Row | None:
        """The group's row over what holds now; None if it has no member or a total has no value."""
        if self._members is None:
            outputs = [Var(name) for name in self._arguments]
            given = self._aggregation.group
            self._members = compile_plan(
                plan(self._aggregation.items, outputs, self._store, given=given), self._store
            )
        members: list[Row] = []
        self._members(members.append, *group)
        return self._row(group, members)

    def all(self) -> list[Row]:
        """The rows of all groups, over what holds now."""
        names = (*self._aggregation.group, *self._arguments)
        the_plan = plan(self._aggregation.items, [Var(name) for name in names], self._store)
        solutions: list[Row] = []
        compile_plan(the_plan, self._store)(solutions.append)
        width = len(self._aggregation.group)
        groups: dict[Row, list[Row]] = {}
        for solution in solutions:
            groups.setdefault(solution[:width], []).append(solution[width:])
        rows = (self._row(group, members) for group, members in groups.items())
        return [row for row in rows if row is not None]

    def _row(self, group: Row, members: Sequence[Row]) -> Row | None:
        if not members:
            return None
        evaluated = sum(value is not None for value in self._columns)
        self._meter.charge(len(members) * (1 + EXPRESSION * evaluated), "members of a group")
        found: list[Term] = []
        for total, value in zip(self._aggregation.totals, self._columns, strict=True):
            if value is None:
                term = summarise("COUNT", False, [None] * len(members), star=True)
            else:
                # one variable is passed bare, several as a tuple (joins/variables.py)
                bare = len(self._arguments) == 1
                column = [value(member[0] if bare else member) for member in members]
                term = summarise(total.function, total.distinct, column)
            if term is None:
                return None
            found.append(term)
        return (*group, *found)
