"""Ground window atoms: rows, each with the last point at which it holds.

Place:   windows.py fills them, generated joins (body_code.py) read `rows`, `indexes` and `delta`.
Method:  a row's annotation [c, h] of Laser is its being there (c has come) and h. Of several annotations the
         longest is kept: all that are there have begun. Rows expire from buckets by h; a bucket may hold a
         row that was extended since, and is then skipped.
Why not: a heap of rows: a bucket costs one append.

Points are numbered here and everywhere in this room: time // step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any, Final, TypeAlias

from dotr.rdf.terms import Term

Row: TypeAlias = tuple[Term, ...]
Index: TypeAlias = dict[Any, tuple[Row, ...] | dict[Row, None]]
"""Key (a term, or a tuple of several) → rows: a few, or many. Most keys have one row, and a dict for each of
them costs five times what a tuple does.
"""

_FEW = 8

FOREVER: Final = 1 << 60
"""From here on: no end is known."""


class Buckets:
    """Owns what is to be examined once a point has passed, by that point."""

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


class AtomTable:
    """Owns rows and their last points.

    `delta`: rows that began or were extended at this point, in order, also twice. `changed`: a row began or
    ended at this point. `timed`: somebody waits for the end of a row. `net`: what began and what ended at
    this point, where somebody asks. `journals`: (row, began) is appended to each.
    """

    __slots__ = ("_agenda", "_buckets", "changed", "delta", "indexes", "journals", "net", "rows", "timed")

    def __init__(self, agenda: Agenda) -> None:
        self.rows: dict[Row, int] = {}
        self.delta: list[Row] = []
        self.changed = False
        self.timed = False
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.journals: list[list[tuple[Row, bool]]] = []
        self.net: Net | None = None
        self._buckets: dict[int, list[Row]] = {}
        self._agenda = agenda

    def index(self, columns: tuple[int, ...]) -> Index:
        """Rows by the values of these columns, kept up from now on; made before there are rows."""
        return self.indexes.setdefault(columns, {})

    def extend(self, rows: Sequence[Row], until: int) -> list[Row]:
        """The rows hold now and through `until`, and through whatever they held before.

        Returns those for which that is new, each once.
        """
        known = self.rows
        given = dict.fromkeys(rows, until)
        if known.keys().isdisjoint(given):
            known.update(given)
            new = fresh = list(given)
        else:
            new, fresh = [], []
            for row in given:
                before = known.get(row)
                if before is None:
                    new.append(row)
                elif before >= until:
                    continue
                fresh.append(row)
                known[row] = until
        if not fresh:
            return fresh
        if new:
            self.changed = True
            self._began(new)
        self.delta += fresh
        if until < FOREVER:
            self._ends(fresh, until)
        return fresh

    def assign(self, row: Row, until: int | None) -> None:
        """The row holds through `until`, however long it was to hold before; None: not at all."""
        before = self.rows.get(row)
        if until is None:
            if before is not None:
                del self.rows[row]
                self._ended([row])
        elif before is None or until > before:
            self.extend((row,), until)
        elif until < before:
            self.rows[row] = until
            self._ends((row,), until)

    def expire(self, now: int, since: int) -> None:
        """Go on to point `now` from `since`: rows that ended before it leave."""
        if self.delta:
            self.delta = []
        if self.changed:
            self.changed = False
            if self.net is not None:
                self.net.clear()
        buckets = self._buckets
        if not buckets:
            return
        due: Iterable[int]
        if now == since + 1:
            due = (since,) if since in buckets else ()
        elif now - since <= len(buckets):
            due = range(since, now)
        else:
            due = sorted(point for point in buckets if point < now)
        for point in due:
            bucket = buckets.pop(point, None)
            if bucket is not None:
                self._close(point, bucket)

    def _close(self, point: int, bucket: list[Row]) -> None:
        """Take out the rows of a bucket that were not extended since."""
        rows = self.rows
        ended = [row for row in bucket if rows.get(row) == point]
        if ended:
            ended = list(dict.fromkeys(ended))
            for row in ended:
                del rows[row]
            self._ended(ended)

    def dump(self) -> list[list[Any]]:
        return [[list(row), until] for row, until in self.rows.items()]

    def load(self, rows: Iterable[tuple[list[Term], int]]) -> None:
        for row, until in rows:
            self.extend((tuple(row),), until)
        self.delta = []
        self.changed = False
        if self.net is not None:
            self.net.clear()
        for journal in self.journals:
            journal.clear()

    def _ends(self, rows: Iterable[Row], until: int) -> None:
        bucket = self._buckets.get(until)
        if bucket is None:
            self._buckets[until] = list(rows)
            if self.timed:
                self._agenda.add(until + 1)
        else:
            bucket += rows

    def _began(self, rows: Sequence[Row]) -> None:
        for columns, index in self.indexes.items():
            key = itemgetter(*columns)
            for row in rows:
                at = key(row)
                there = index.get(at)
                if there is None:
                    index[at] = (row,)
                elif isinstance(there, dict):
                    there[row] = None
                elif len(there) < _FEW:
                    index[at] = (*there, row)
                else:
                    index[at] = dict.fromkeys((*there, row))
        if self.net is not None:
            self.net.begin(rows)
        for journal in self.journals:
            journal += [(row, True) for row in rows]

    def _ended(self, rows: Sequence[Row]) -> None:
        self.changed = True
        for columns, index in self.indexes.items():
            key = itemgetter(*columns)
            for row in rows:
                at = key(row)
                there = index[at]
                if len(there) == 1:
                    del index[at]
                elif isinstance(there, dict):
                    del there[row]
                else:
                    index[at] = tuple([other for other in there if other != row])
        if self.net is not None:
            self.net.end(rows)
        for journal in self.journals:
            journal += [(row, False) for row in rows]


class Net:
    """Owns what began and what ended at a point, net: what did both did neither."""

    __slots__ = ("began", "ended")

    def __init__(self) -> None:
        self.began: dict[Row, None] = {}
        self.ended: dict[Row, None] = {}

    def clear(self) -> None:
        self.began.clear()
        self.ended.clear()

    def begin(self, rows: Sequence[Row]) -> None:
        _move(rows, self.ended, self.began)

    def end(self, rows: Sequence[Row]) -> None:
        _move(rows, self.began, self.ended)


def _move(rows: Sequence[Row], there: dict[Row, None], to: dict[Row, None]) -> None:
    """Take rows out of one table, those that are not in it into the other."""
    if not there:
        to.update(dict.fromkeys(rows))
        return
    for row in rows:
        if row in there:
            del there[row]
        else:
            to[row] = None
