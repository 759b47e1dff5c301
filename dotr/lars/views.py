"""What windows of time show: one table for a name, a modality and a length.

Place:   remembered_atoms.py notifies views of what begins, ends and is put; rules read their tables.
Method:  an atom that holds through h makes, at once, the row of `WITHIN n` through h + n; of `ALWAYS` through
         h from the n-th point of its run on (from its first, if that is the beginning of the timeline); of
         `AT ?t` one row (values, t) a point, through t + n; of `AT LEAST k` the span in which the count of
         its points in the window reaches k. Spans that begin later are waited for (`wakes`).

Times are numbers of points. `hold`: atoms hold from now through `until`; `put`: they do at one point in the
past; `stop`: what held without known end held last at `last`, now or the point before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from dotr.lars.window_tables import FOREVER, Agenda, AtomTable, Buckets, Row
from dotr.rdf.terms import Term


class WindowView(Protocol):
    """A table and what feeds it."""

    table: AtomTable

    def begin(self, now: int, since: int) -> None: ...
    def hold(self, atoms: Sequence[Row], until: int) -> None: ...
    def put(self, atoms: Sequence[Row], point: int) -> None: ...
    def stop(self, values: Row, last: int) -> None: ...
    def settle(self) -> None: ...
    def dump(self) -> Any: ...
    def load(self, state: Any) -> None: ...


class Sometime:
    """`WITHIN n`, and with n = 0 what holds now. Rows are values."""

    __slots__ = ("_length", "_now", "table")

    def __init__(self, agenda: Agenda, length: int) -> None:
        self.table = AtomTable(agenda)
        self._length = length
        self._now = 0

    def begin(self, now: int, since: int) -> None:
        self._now = now
        self.table.expire(now, since)

    def hold(self, atoms: Sequence[Row], until: int) -> None:
        self.table.extend(atoms, until + self._length)

    def put(self, atoms: Sequence[Row], point: int) -> None:
        if point + self._length >= self._now:
            self.table.extend(atoms, point + self._length)

    def stop(self, values: Row, last: int) -> None:
        until = last + self._length
        self.table.assign(values, until if until >= self._now else None)

    def settle(self) -> None:
        pass

    def dump(self) -> Any:
        return [self._now, self.table.dump()]

    def load(self, state: Any) -> None:
        self._now, rows = state
        self.table.load(rows)


class EachPoint:
    """`AT ?t WITHIN n`. Rows are values and the term of a point.

    What holds on is entered point by point: at `begin`, or, where it may turn out not to (`standing`), in
    `settle`.
    """

    __slots__ = ("_agenda", "_length", "_now", "_standing", "_term", "lasting", "table")

    def __init__(self, agenda: Agenda, length: int, term: Callable[[int], Term], standing: bool) -> None:
        self.table = AtomTable(agenda)
        self.lasting: dict[Row, int] = {}
        self._agenda = agenda
        self._length = length
        self._term = term
        self._standing = standing
        self._now = 0

    def begin(self, now: int, since: int) -> None:
        self._now = now
        self.table.expire(now, since)
        if self.lasting:
            self.lasting = {values: until for values, until in self.lasting.items() if until >= now}
            if not self._standing:
                self.settle()
            if self.lasting:
                self._agenda.add(now + 1)

    def hold(self, atoms: Sequence[Row], until: int) -> None:
        now, lasting = self._now, self.lasting
        self.put(atoms, now)
        if until > now:
            lasting.update((values, until) for values in atoms if until > lasting.get(values, 0))
            self._agenda.add(now + 1)

    def put(self, atoms: Sequence[Row], point: int) -> None:
        if point + self._length >= self._now:
            term = self._term(point)
            self.table.extend([(*values, term) for values in atoms], point + self._length)

    def stop(self, values: Row, last: int) -> None:
        self.lasting.pop(values, None)
        if last == self._now:  # put here: it was standing then, so that nothing was entered
            self.put((values,), last)

    def settle(self) -> None:
        if self.lasting:
            self.put(list(self.lasting), self._now)

    def dump(self) -> Any:
        lasting = [[list(values), until] for values, until in self.lasting.items()]
        return [self._now, self.table.dump(), lasting]

    def load(self, state: Any) -> None:
        self._now, rows, lasting = state
        self.table.load(rows)
        self.lasting = {tuple(values): until for values, until in lasting}


Interval = list[int]
"""[first, last]: points at which an atom holds, one after the other."""


class HeldRuns:
    """`ALWAYS WITHIN n` (`count` None) and `AT LEAST k WITHIN n`. Rows are values.

    Owns, for each atom, the runs of points at which it holds, disjoint and in order, as far as they matter.
    `scattered`: atoms may be put at points in the past, which may join runs.
    """

    __slots__ = ("_beginning", "_count", "_ends", "_keep", "_length", "_now", "_runs", "_wakes", "table")

    def __init__(
        self, agenda: Agenda, length: int, count: int | None, beginning: int, scattered: bool
    ) -> None:
        self.table = AtomTable(agenda)
        self._length, self._count, self._beginning = length, count, beginning
        # what ended at the point before may go on now; a gap may be closed later, and counts look back
        self._keep = 1 + (length if scattered or count is not None else 0)
        self._runs: dict[Row, list[Interval]] = {}
        self._ends = Buckets()  # by the last point at which an atom's last run matters
        self._wakes = Wakes(agenda)
        self._now = 0

    def begin(self, now: int, since: int) -> None:
        self._now = now
        self.table.expire(now, since)
        oldest = now - self._keep
        for _, ended in self._ends.before(now, since):
            for values in ended:
                runs = self._runs.get(values)
                if runs is not None and runs[-1][1] < oldest:
                    del self._runs[values]
        for values in self._wakes.due(now, since):
            if values in self._runs:
                self._look(values, self._runs[values])

    def hold(self, atoms: Sequence[Row], until: int) -> None:
        for values in atoms:
            runs = self._runs.get(values)
            if runs is None:
                self._runs[values] = runs = [[self._now, until]]
            else:
                _enter(runs, self._now, until)
            self._changed(values, runs, until)

    def put(self, atoms: Sequence[Row], point: int) -> None:
        if point + self._length < self._now:
            return
        for values in atoms:
            runs = self._runs.setdefault(values, [])
            _enter(runs, point, point)
            self._changed(values, runs, point)

    def stop(self, values: Row, last: int) -> None:
        runs = self._runs[values]
        runs[-1][1] = last
        if last < runs[-1][0]:
            runs.pop()
        if runs:
            self._changed(values, runs, runs[-1][1])
        else:
            del self._runs[values]
            self.table.assign(values, None)

    def settle(self) -> None:
        pass

    def _changed(self, values: Row, runs: list[Interval], until: int) -> None:
        if until < FOREVER:
            self._ends.add(until + self._keep, values)
        self._look(values, runs)

    def _look(self, values: Row, runs: list[Interval]) -> None:
        """Enter the span that now is in; of one that begins later, its beginning."""
        now, oldest = self._now, self._now - self._keep
        while len(runs) > 1 and runs[0][1] < oldest:
            runs.pop(0)
        if self._count is None:
            span = _always(runs, self._length, self._beginning, now)
        else:
            span = _at_least(runs, self._length, self._count, now)
        if span is None:
            self.table.assign(values, None)
            return
        begin, until = span
        if begin > now:
            self.table.assign(values, None)
            self._wakes.add(begin, values)
            return
        self.table.assign(values, until)

    def dump(self) -> Any:
        runs = [[list(values), runs] for values, runs in self._runs.items()]
        return [self._now, self.table.dump(), runs, self._wakes.dump()]

    def load(self, state: Any) -> None:
        self._now, rows, runs, wakes = state
        self.table.load(rows)
        for values, intervals in runs:
            self._runs[tuple(values)] = [list(interval) for interval in intervals]
            until = intervals[-1][1]
            if until < FOREVER:
                self._ends.add(max(until + self._keep, self._now), tuple(values))
        self._wakes.load(wakes)


class Wakes:
    """Owns atoms to look at again, by the point at which."""

    __slots__ = ("_agenda", "_at")

    def __init__(self, agenda: Agenda) -> None:
        self._at = Buckets()
        self._agenda = agenda

    def add(self, point: int, values: Row) -> None:
        self._at.add(point, values)
        self._agenda.add(point)

    def due(self, now: int, since: int) -> Iterable[Row]:
        """Each atom whose point has come since, once."""
        if not self._at.lists:
            return ()
        return dict.fromkeys(values for _, found in self._at.before(now + 1, since) for values in found)

    def dump(self) -> Any:
        return [[point, [list(values) for values in atoms]] for point, atoms in self._at.lists.items()]

    def load(self, state: Any) -> None:
        for point, atoms in state:
            for values in atoms:
                self._at.add(point, tuple(values))


def _enter(runs: list[Interval], first: int, last: int) -> None:
    """Add the points from `first` through `last` to runs."""
    if runs and runs[-1][0] <= first <= runs[-1][1] + 1:
        runs[-1][1] = max(runs[-1][1], last)
        return
    if not runs or runs[-1][1] + 1 < first:
        runs.append([first, last])
        return
    apart = [run for run in runs if run[1] + 1 < first or run[0] > last + 1]
    touching = [run for run in runs if not (run[1] + 1 < first or run[0] > last + 1)]
    joined = [min([first, *(r[0] for r in touching)]), max([last, *(r[1] for r in touching)])]
    runs[:] = sorted([*apart, joined])


def _always(runs: Sequence[Interval], length: int, beginning: int, now: int) -> tuple[int, int] | None:
    """The span, now or later, at whose points the whole window is in one run."""
    first, last = runs[-1]
    begin = first if first <= beginning else first + length
    return (max(begin, now), last) if last >= now and begin <= last else None


def _at_least(runs: Sequence[Interval], length: int, count: int, now: int) -> tuple[int, int] | None:
    """The span, now or later, at whose points the window has `count` points of the runs or more.

    There is one at most: only the last run reaches beyond now. While it goes on a point comes in at each step
    and one leaves at most, so that the number does not fall; behind it nothing comes in.
    Cost: `count` runs are looked at, not all of the window.
    """
    if count > length + 1:
        return None
    first, last = runs[-1]
    until = FOREVER
    if last < FOREVER:
        least = _last_but(runs, last, count)
        if least is None or least + length < now:
            return None
        until = least + length

    def holds(at: int) -> bool:
        least = _last_but(runs, at, count)
        return least is not None and least >= at - length

    if holds(now):
        return now, until
    before, begin = now, min(last, first + count - 1)
    if begin <= now or not holds(begin):
        return None
    while begin - before > 1:
        middle = (before + begin) // 2
        before, begin = (before, middle) if holds(middle) else (middle, begin)
    return begin, until


def _last_but(runs: Sequence[Interval], at: int, count: int) -> int | None:
    """The `count`-th point of the runs, counted back from `at`; None if there are fewer."""
    for first, last in reversed(runs):
        end = min(last, at)
        if end - first + 1 >= count:
            return end - count + 1
        count -= max(0, end - first + 1)
    return None
