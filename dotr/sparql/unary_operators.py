"""Operators of one input, and UNION: filters, binds, groups.

Place:   beside solution_operators.py, which has their protocol and the operators with look-ups.
Method:  a change of the input becomes a change of the output, row by row; a group that a change touches is
         aggregated again, before and after, unless the background has none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from dotr.budget import EXPRESSION, KEPT, Meter
from dotr.joins.body import View
from dotr.rdf.terms import Term, integer
from dotr.sparql import solution_aggregates as totals
from dotr.sparql.solution_operators import (
    C,
    Change,
    Compute,
    Lookup,
    Row,
    Seed,
    SolutionOperator,
    Test,
    Watched,
    agrees,
    consolidated,
    counted,
    gained,
    seeded,
)


def columns_for(have: Sequence[str], want: Sequence[str]) -> list[int | None]:
    """The place of each wanted variable, None if missing."""
    places = {name: i for i, name in enumerate(have)}
    return [places.get(name) for name in want]


def picked(row: Row, columns: Sequence[int | None]) -> Row:
    return tuple([None if i is None else row[i] for i in columns])


class UnionOperator:
    """UNION: the rows of every branch, mapped to one schema."""

    def __init__(self, branches: Sequence[SolutionOperator], meter: Meter) -> None:
        self._branches = branches
        self._meter = meter
        self.schema = tuple(sorted({name for branch in branches for name in branch.schema}))
        self._columns = [columns_for(branch.schema, self.schema) for branch in branches]
        sets = [branch.certain for branch in branches]
        self.certain: frozenset[str] = frozenset.intersection(*sets) if sets else frozenset()
        self.statically_empty = all(branch.statically_empty for branch in branches)

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        for branch, columns in zip(self._branches, self._columns, strict=True):
            for row in counted(branch.rows(view, seed), self._meter, "a branch of a UNION", KEPT):
                yield picked(row, columns)

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        return [
            (picked(row, columns), count)
            for branch, columns in zip(self._branches, self._columns, strict=True)
            for row, count in counted(branch.changes(), self._meter, "a branch of a UNION", KEPT)
        ]

    def watch(self) -> list[Watched]:
        return [watched for branch in self._branches for watched in branch.watch()]


class FilterOperator:
    """FILTER without EXISTS."""

    def __init__(
        self, inner: SolutionOperator, condition: Callable[[tuple[str, ...]], Test], meter: Meter
    ) -> None:
        self._inner, self._meter = inner, meter
        self.schema = inner.schema
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self._holds = condition(inner.schema)

    def rows(self, view: View, seed: Seed) -> list[Row]:
        return list(filter(self._holds, self._tested(self._inner.rows(view, seed))))

    def lookup(self, names: Sequence[str]) -> Lookup:
        inner, holds, tested = self._inner.lookup(names), self._holds, self._tested
        return lambda view, values: list(filter(holds, tested(inner(view, values))))

    def changes(self) -> list[Change]:
        return [change for change in self._tested(self._inner.changes()) if self._holds(change[0])]

    def _tested(self, rows: Iterable[C]) -> list[C]:
        return counted(rows, self._meter, "rows that a FILTER is asked of", 1 + EXPRESSION)

    def watch(self) -> list[Watched]:
        return self._inner.watch()


class ExtendOperator:
    """BIND or a SELECT expression; an error leaves the variable unbound."""

    def __init__(
        self,
        inner: SolutionOperator,
        variable: str,
        compute: Callable[[tuple[str, ...]], Compute],
        meter: Meter,
    ) -> None:
        self._inner, self._variable, self._meter = inner, variable, meter
        self.schema = tuple(sorted({*inner.schema, variable}))
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self._columns = columns_for(inner.schema, self.schema)
        self._place = self.schema.index(variable)
        self._compute = compute(inner.schema)

    def _row(self, row: Row) -> Row:
        wide = list(picked(row, self._columns))
        wide[self._place] = self._compute(row)
        return tuple(wide)

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        wanted = seed.get(self._variable)
        inner = seed if wanted is None else {n: t for n, t in seed.items() if n != self._variable}
        for row in map(self._row, self._computed(self._inner.rows(view, inner))):
            if wanted is None or row[self._place] in (wanted, None):
                yield row

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        return [(self._row(row), count) for row, count in self._computed(self._inner.changes())]

    def _computed(self, rows: Iterable[C]) -> list[C]:
        return counted(rows, self._meter, "rows that a BIND is computed for", KEPT + EXPRESSION)

    def watch(self) -> list[Watched]:
        return self._inner.watch()


class AggregateState(Struct, frozen=True):
    """One aggregate: `argument` None is `COUNT(*)`; with `distinct` over whole solutions."""

    function: str
    distinct: bool
    argument: Compute | None


class GroupOperator:
    """Groups and their totals.

    `keys`: (name, its inner variable or None for an expression, how to compute it).
    """

    def __init__(
        self,
        inner: SolutionOperator,
        keys: Sequence[tuple[str, str | None, Compute]],
        totals: Sequence[tuple[str, AggregateState]],
        scope: Sequence[str],
        meter: Meter,
    ) -> None:
        self._inner, self._meter = inner, meter
        self._keys = keys
        self._totals = [total for _, total in totals]
        self._units = 1 + EXPRESSION * (len(keys) + len(totals))
        self._whole = columns_for(inner.schema, scope)
        names = [name for name, _, _ in keys] + [name for name, _ in totals]
        self.schema = tuple(sorted(names))
        self.certain = frozenset(name for name, source, _ in keys if source in inner.certain)
        self.statically_empty = inner.statically_empty and bool(keys)
        self._columns = columns_for(names, self.schema)
        self._empty = None if keys else self._row((), [])

    def _key(self, row: Row) -> Row:
        return tuple([compute(row) for _, _, compute in self._keys])

    def _groups(self, rows: Iterable[Row]) -> dict[Row, list[Row]]:
        groups: dict[Row, list[Row]] = {} if self._keys else {(): []}
        for row in counted(rows, self._meter, "rows that are grouped", self._units):
            groups.setdefault(self._key(row), []).append(row)
        return groups

    def _row(self, key: Row, members: list[Row]) -> Row:
        found = [self._total(total, members) for total in self._totals]
        return picked((*key, *found), self._columns)

    def _total(self, total: AggregateState, members: list[Row]) -> Term | None:
        if total.argument is not None:
            return totals.total(total.function, total.distinct, [total.argument(row) for row in members])
        rows = {picked(row, self._whole) for row in members} if total.distinct else members
        return integer(len(rows))

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        inner = {source: seed[name] for name, source, _ in self._keys if source is not None and name in seed}
        columns = [(i, name) for i, name in enumerate(self.schema)]
        for key, members in self._groups(self._inner.rows(view, inner)).items():
            row = self._row(key, members)
            if agrees(row, columns, seed):
                yield row

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        changes = consolidated(self._inner.changes())
        if not changes:
            return []
        if self._inner.statically_empty:  # the changes are everything
            found = [(self._row(key, members), 1) for key, members in self._groups(gained(changes)).items()]
            return found if self._empty is None else [*found, (self._empty, -1)]
        return [
            change for key in dict.fromkeys(self._key(r) for r, _ in changes) for change in self._again(key)
        ]

    def _again(self, key: Row) -> Iterator[Change]:
        """One group, before and after."""
        pairs = zip(self._keys, key, strict=True)
        seed = {source: term for (_, source, _), term in pairs if source is not None and term is not None}
        for view, sign in ((View.NEW, 1), (View.OLD, -1)):
            rows = counted(self._inner.rows(view, seed), self._meter, "rows that are grouped", self._units)
            members = [row for row in rows if self._key(row) == key]
            if members or not self._keys:
                yield self._row(key, members), sign

    def watch(self) -> list[Watched]:
        return self._inner.watch()
