"""Ground window atoms: rows, each with the last point at which it holds.

Place:   views.py fills them, generated joins (emit.py) read `rows`, `indexes` and `delta`.
Method:  a row's annotation [c, h] of Laser is its being there (c has come) and h. Of several annotations the
         longest is kept: all that are there have begun. Rows expire from buckets by h; a bucket may hold a
         row that was extended since, and is then skipped.
Why not: a heap of rows: a bucket costs one append.

Points are numbered here and everywhere in this room: time // step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from dotr.rdf.terms import Term

Row: TypeAlias = tuple[Term, ...]
Index: TypeAlias = dict[Any, dict[Row, None]]
"""Key (a term, or a tuple of several) → rows."""

FOREVER: Final = 1 << 60
"""From here on: no end is known."""


class Buckets:
    """Owns what is to be looked at once a point has passed, by that point."""

    __slots__ = ("lists",)

    def __init__(self) -> None:
        self.lists: dict[int, list[Any]] = {}

    def add(self, point: int, item: Any) -> None:
        if point in self.lists:
            self.lists[point].append(item)
        else:
            self.lists[point] = [item]

    def before(self, now: int, since: int) -> Iterator[tuple[int, list[Any]]]:
        """What belongs to points before `now`, none of them before `since`; it is taken out."""
        lists = self.lists
        if now - since <= len(lists):
            due: Iterable[int] = range(since, now)
        else:
            due = sorted(point for point in lists if point < now)
        for point in due:
            found = lists.pop(point, None)
            if found is not None:
                yield point, found


class Agenda:
    """Owns the points that must be visited although nothing may come."""

    __slots__ = ("_heap", "_there")

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._there: set[int] = set()

    def add(self, point: int) -> None:
        if point not in self._there and point < FOREVER:
            self._there.add(point)
            heappush(self._heap, point)

    def after(self, now: int) -> int | None:
        """The first point after `now`; those up to it are forgotten."""
        heap = self._heap
        while heap and heap[0] <= now:
            self._there.discard(heappop(heap))
        return heap[0] if heap else None

    def dump(self) -> list[int]:
        return sorted(self._heap)

    def load(self, points: Iterable[int]) -> None:
        self._heap = list(points)
        heapify(self._heap)
        self._there = set(self._heap)


class Table:
    """Owns rows and their last points.

    `delta`: rows that began or were extended at this point, in order, also twice. `changed`: a row began or
    ended at this point. `timed`: somebody must be told when a row ends. `journals`: (row, began) is appended
    to each.
    """

    __slots__ = ("_agenda", "_buckets", "changed", "delta", "indexes", "journals", "rows", "timed")

    def __init__(self, agenda: Agenda) -> None:
        self.rows: dict[Row, int] = {}
        self.delta: list[Row] = []
        self.changed = False
        self.timed = False
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.journals: list[list[tuple[Row, bool]]] = []
        self._buckets: dict[int, list[Row]] = {}
        self._agenda = agenda

    def index(self, columns: tuple[int, ...]) -> Index:
        """Rows by the values of these columns, kept up from now on; made before there are rows."""
        if columns not in self.indexes:
            self.indexes[columns] = {}
            for row in self.rows:
                self._enter(row)
        return self.indexes[columns]

    def extend(self, row: Row, until: int) -> None:
        """The row holds now and through `until`, and through whatever it held before."""
        rows = self.rows
        before = rows.get(row)
        if before is None:
            rows[row] = until
            self.changed = True
            if self.indexes:
                self._enter(row)
            for journal in self.journals:
                journal.append((row, True))
        elif until <= before:
            return
        else:
            rows[row] = until
        self.delta.append(row)
        if until < FOREVER:
            bucket = self._buckets.get(until)
            if bucket is None:
                self._open(until)
                bucket = self._buckets[until]
            bucket.append(row)

    def assign(self, row: Row, until: int | None) -> None:
        """The row holds through `until`, however long it was to hold before; None: not at all."""
        before = self.rows.get(row)
        if until is None:
            if before is not None:
                self._leave(row)
        elif before is None or until > before:
            self.extend(row, until)
        elif until < before:
            self.rows[row] = until
            if until not in self._buckets:
                self._open(until)
            self._buckets[until].append(row)

    def expire(self, now: int, since: int) -> None:
        """Go on to point `now` from `since`: rows that ended before it leave."""
        self.delta = []
        self.changed = False
        buckets = self._buckets
        if not buckets:
            return
        if now - since <= len(buckets):
            due: Iterable[int] = range(since, now)
        else:
            due = sorted(point for point in buckets if point < now)
        rows = self.rows
        plain = not self.indexes and not self.journals
        for point in due:
            bucket = buckets.pop(point, None)
            if bucket is None:
                continue
            for row in bucket:
                if rows.get(row) == point:
                    if plain:
                        del rows[row]
                        self.changed = True
                    else:
                        self._leave(row)

    def dump(self) -> list[list[Any]]:
        return [[list(row), until] for row, until in self.rows.items()]

    def load(self, rows: Iterable[tuple[list[Term], int]]) -> None:
        for row, until in rows:
            self.extend(tuple(row), until)
        self.delta = []
        self.changed = False
        for journal in self.journals:
            journal.clear()

    def _open(self, until: int) -> None:
        self._buckets[until] = []
        if self.timed:
            self._agenda.add(until + 1)

    def _enter(self, row: Row) -> None:
        for columns, index in self.indexes.items():
            key = row[columns[0]] if len(columns) == 1 else tuple([row[column] for column in columns])
            if key in index:
                index[key][row] = None
            else:
                index[key] = {row: None}

    def _leave(self, row: Row) -> None:
        del self.rows[row]
        self.changed = True
        for columns, index in self.indexes.items():
            key = row[columns[0]] if len(columns) == 1 else tuple([row[column] for column in columns])
            rows = index[key]
            del rows[row]
            if not rows:
                del index[key]
        for journal in self.journals:
            journal.append((row, False))
