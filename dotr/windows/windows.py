"""What windows show: views over time and over the last n facts, and aggregates over them.

Place:   tables.py notifies views of what begins, ends and is put; rules read their tables. engine.py gives
         windows of facts their facts and asks them to refresh before a stratum reads them.
Method:  one table for a name, a modality and a length. An atom that holds through h makes, at once, the row
         of `WITHIN n` through h + n; of `ALWAYS` through h from the n-th point of its run on (from its first,
         if that is the beginning of the timeline); of `AT ?t` one row (values, t) per point, through t + n;
         of `AT LEAST k` the span in which the count of its points in the window reaches k. Spans that begin
         later are waited for (`wakes`).
         `WINDOWS` has a row for each modality: its text, its table, what that keeps.
         Windows of facts: the last n distinct atoms of queries and composite event rules. A log is a queue of
         the last n in the order (time, order in OF, canonical order): facts of a point are later than all
         before, so only they are sorted, and what comes pushes out the oldest. Views count the atoms that
         they show as these come and go. `ALWAYS` is checked again at every point, because every point must
         have a fact: what holds then is among the facts of now.
         Totals: aggregates over pairs of an atom and a point, maintained as pairs come and go. The table is
         read like that of a window atom: rows are the values of PER and the total. The source is the table of
         the same window under AT: one row per pair. It notes what begins and ends; the accumulator of
         a group adds or removes it (expressions/accumulators.py).

Times are numbers of points. `hold`: atoms hold from now through `until`; `put`: they do at one point in the
past; `stop`: what held without known end held last at `last`, now or the point before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct

from dotr.budget import EXPRESSION, Meter
from dotr.events import Time, Values
from dotr.expressions.accumulators import InOrder, accumulator
from dotr.expressions.aggregates import aggregator
from dotr.program.program import FactWindow, Modality, WindowAggregate, WindowAtom
from dotr.rdf.terms import Term
from dotr.rdf.values import values_key
from dotr.windows.window_tables import FOREVER, Agenda, AtomTable, Buckets, Row


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


class DiamondWindow:
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


class AtWindow:
    """`AT ?t WITHIN n`. Rows are values and the term of a point.

    What holds on is entered point by point: at `begin`, or, where it may turn out not to (`open_ended`), in
    `settle`.
    """

    __slots__ = ("_agenda", "_length", "_now", "_open_ended", "_term", "ends", "table")

    def __init__(self, agenda: Agenda, length: int, term: Callable[[int], Term], open_ended: bool) -> None:
        self.table = AtomTable(agenda)
        self.ends: dict[Row, int] = {}
        self._agenda = agenda
        self._length = length
        self._term = term
        self._open_ended = open_ended
        self._now = 0

    def begin(self, now: int, since: int) -> None:
        self._now = now
        self.table.expire(now, since)
        if self.ends:
            self.ends = {values: until for values, until in self.ends.items() if until >= now}
            if not self._open_ended:
                self.settle()
            if self.ends:
                self._agenda.add(now + 1)

    def hold(self, atoms: Sequence[Row], until: int) -> None:
        now, ends = self._now, self.ends
        self.put(atoms, now)
        if until > now:
            ends.update((values, until) for values in atoms if until > ends.get(values, 0))
            self._agenda.add(now + 1)

    def put(self, atoms: Sequence[Row], point: int) -> None:
        if point + self._length >= self._now:
            term = self._term(point)
            self.table.extend([(*values, term) for values in atoms], point + self._length)

    def stop(self, values: Row, last: int) -> None:
        self.ends.pop(values, None)
        if last == self._now:  # put here: it had no known end then, so that nothing was entered
            self.put((values,), last)

    def settle(self) -> None:
        if self.ends:
            self.put(list(self.ends), self._now)

    def dump(self) -> Any:
        ends = [[list(values), until] for values, until in self.ends.items()]
        return [self._now, self.table.dump(), ends]

    def load(self, state: Any) -> None:
        self._now, rows, ends = state
        self.table.load(rows)
        self.ends = {tuple(values): until for values, until in ends}


Interval = list[int]
"""[first, last]: points at which an atom holds, one after the other."""


class BoxWindow:
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
        runs = [[list(values), [list(run) for run in runs]] for values, runs in self._runs.items()]
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
    and one leaves at most, so that the number does not fall; after it nothing comes in.
    Cost: `count` runs are examined, not all of the window.
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


Shown = tuple[int, Values]
"""(point, values) of an atom."""


class PointLog:
    """Owns the last atoms of the streams of a window, of each key if it has one, and where the window begins;
    with keys it begins where the timeline does, since nothing but its atoms is asked for.
    """

    def __init__(self, window: FactWindow, beginning: int) -> None:
        self._count = window.count
        self._places = {name: place for place, name in enumerate(window.streams)}
        self._names = window.streams
        self._key = window.per
        self._last: dict[Values, deque[tuple[int, int, Values]]] = {}  # key → (point, place, values)
        self._new: dict[tuple[int, int, Values], Time] = {}  # of this point, with the latest time
        self._views: list[FactView] = []
        self.beginning = beginning

    def add_view(self, view: FactView) -> None:
        """Notify a view of what comes and goes from now on."""
        self._views.append(view)

    def add(self, point: int, name: str, facts: Sequence[tuple[Time, Values]]) -> None:
        place, new = self._places[name], self._new
        for time, values in facts:
            atom = (point, place, values)
            new[atom] = max(time, new.get(atom, time))

    def settle(self) -> None:
        """Take in the facts of this point, of which there will be no more."""
        if not self._new:
            return
        for atom, _ in sorted(self._new.items(), key=lambda e: (e[1], e[0][1], values_key(e[0][2]))):
            last = self._of_key(atom[2])
            last.append(atom)
            self._notify(atom, 1)
            if len(last) > self._count:
                self._notify(last.popleft(), -1)
            if len(last) == self._count and not self._key:
                self.beginning = last[0][0]
        self._new.clear()

    def _of_key(self, values: Values) -> deque[tuple[int, int, Values]]:
        return self._last.setdefault(tuple([values[n] for n in self._key]), deque())

    def _notify(self, atom: tuple[int, int, Values], sign: int) -> None:
        point, place, values = atom
        for view in self._views:
            if view.name == self._names[place]:
                view.count((point, values), sign)

    def dump(self) -> Any:
        atoms = [atom for last in self._last.values() for atom in last]
        return [self.beginning, [[point, place, list(values)] for point, place, values in atoms]]

    def load(self, state: Any) -> None:
        """Before views are loaded, which are filled again."""
        self.beginning, atoms = state
        for point, place, values in atoms:
            atom = (point, place, tuple(values))
            self._of_key(atom[2]).append(atom)
            self._notify(atom, 1)


class FactView:
    """A table of what a window atom over facts shows: rows are values, under AT with the term of a point.

    `counted`: the window counts the atom's own stream. If it does not, the view owns the atoms since the
    window's beginning.
    """

    def __init__(
        self,
        agenda: Agenda,
        log: PointLog,
        name: str,
        modality: Modality,
        count: int,
        term: Callable[[int], Term],
        counted: bool,
    ) -> None:
        self.table = AtomTable(agenda)
        self.name = name
        self._agenda, self._log = agenda, log
        self._kind, self._term = WINDOWS[modality], term
        self._needed = count or 1
        self._others: deque[Shown] | None = None if counted else deque()
        self._there: set[Shown] = set()  # of the others, at this point
        self._points: dict[Row, int] = {}  # row → at how many points the window shows it
        self._touched: dict[Row, None] = {}
        self._now = 0
        if counted:
            log.add_view(self)

    def begin(self, now: int, since: int) -> None:
        self._now = now
        self._touched.clear()
        self._there.clear()
        self.table.expire(now, since)

    def add(self, point: int, facts: Iterable[tuple[Time, Values]]) -> None:
        """Facts of the view's own name, where the window counts others."""
        assert self._others is not None
        for _, values in facts:
            atom = (point, values)
            if atom not in self._there:
                self._there.add(atom)
                self._others.append(atom)
                self.count(atom, 1)

    def count(self, atom: Shown, sign: int) -> None:
        """An atom comes into the window (1) or leaves it (-1). An unbound attribute matches nothing."""
        point, values = atom
        row = tuple([value for value in values if value is not None])
        if len(row) < len(values):
            return
        if self._kind.each_point:
            row = (*row, self._term(point))
        self._points[row] = self._points.get(row, 0) + sign
        self._touched[row] = None

    def refresh(self, now: int) -> None:
        """Bring the rows up to date at point `now`."""
        self._log.settle()
        others, first = self._others, self._log.beginning
        while others and others[0][0] < first:
            self.count(others.popleft(), -1)
        table, points = self.table, self._points
        needed = self._needed
        if self._kind.every_point:
            needed = now - first + 1
            self._touched.update(dict.fromkeys(table.rows))
        new = []
        for row in self._touched:
            if points.get(row, 0) >= needed:
                new.append(row)
            else:
                table.assign(row, None)
            if not points.get(row):
                points.pop(row, None)
        table.extend(new, FOREVER)
        self._touched.clear()
        if table.rows and self._kind.every_point:
            self._agenda.add(now + 1)

    def dump(self) -> Any:
        others = None if self._others is None else [[point, list(values)] for point, values in self._others]
        return [self.table.dump(), others]

    def load(self, state: Any) -> None:
        """After the log."""
        rows, others = state
        for point, values in others or ():
            assert self._others is not None
            self._others.append((point, tuple(values)))
            self.count(self._others[-1], 1)
        self.table.load(rows)
        self._touched.clear()


Reading = Callable[[Row], tuple[Row, Term | None] | None]
"""A row of the source → its group and the value aggregated (None: an error); None where it is not meant."""


class Totals:
    """Owns the groups of one aggregate and the table of their totals."""

    def __init__(
        self, agenda: Agenda, literal: WindowAggregate, source: AtomTable, reading: Reading, meter: Meter
    ) -> None:
        self.table = AtomTable(agenda)
        self._meter = meter
        self._literal = literal
        self._reading = reading
        function = literal.function
        self._ordered = aggregator(function).ordered
        self._make: Callable[[], Any] = (
            partial(InOrder, function)
            if self._ordered
            else partial(accumulator, function, literal.distinct, literal.argument is None)
        )
        self._groups: dict[Row, Any] = {}
        self._shown: dict[Row, Row] = {}
        self._journal: list[tuple[Row, bool]] = []
        self._source = source
        source.journals.append(self._journal)

    def begin(self, now: int, since: int) -> None:
        self.table.expire(now, since)

    def refresh(self) -> None:
        """Take in what came and went in the source since."""
        touched: dict[Row, None] = {}
        self._meter.charge(len(self._journal), f"pairs of {self._literal.atom.name}()", EXPRESSION)
        for row, began in self._journal:
            read = self._reading(row)
            if read is None:
                continue
            key, term = read
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._make()
            # rows end with their points
            entry = (values_key((row[-1], *row[:-1])), term) if self._ordered else term
            if began:
                group.add(entry)
            else:
                group.remove(entry)
            touched[key] = None
        self._journal.clear()
        for key in touched:
            self._show(key)

    def _show(self, key: Row) -> None:
        group = self._groups[key]
        total = group.value() if group.size else None
        if not group.size:
            del self._groups[key]
        row = None if total is None else (*key, total)
        before = self._shown.get(key)
        if row == before:
            return
        if before is not None:
            self.table.assign(before, None)
            del self._shown[key]
        if row is not None:
            self.table.extend((row,), FOREVER)
            self._shown[key] = row

    def load(self) -> None:
        """After the source: its rows make the groups."""
        self._journal.clear()
        self._journal += [(row, True) for row in self._source.rows]
        self.refresh()
        self.table.delta = []
        self.table.changed = False
        if self.table.net is not None:
            self.table.net.clear()  # they did not begin now


# -- kinds


class ViewOptions(Struct, frozen=True):
    """What views of windows of time are made of. `length` in points; `count`: of AT LEAST; `term`: that of a
    point. `open_ended`: atoms may turn out not to hold on; `scattered`: they may be put in the past.
    """

    agenda: Agenda
    length: int
    count: int
    beginning: int
    term: Callable[[int], Term]
    open_ended: bool
    scattered: bool


class WindowKind(Struct, frozen=True):
    """At which points of its window an atom must hold.

    `text`: (variable of AT, number of AT LEAST) → what stands between the atom and WITHIN. `view`: makes the
    table over a window of time; over a window of facts `FactView` does. `keeps`: (length, scattered) → what
    such a table keeps, as text. `each_point`: a row for each point, with its term; `every_point`: only what
    holds at all points. `grows`: components that are recursive through it are open-ended. `missing`: what is
    stated where there is none.
    """

    text: Callable[[str | None, int], str]
    view: Callable[[ViewOptions], WindowView]
    keeps: Callable[[str, bool], str]
    each_point: bool = False
    every_point: bool = False
    grows: bool = False
    missing: str = "nothing"


def _stretches(length: str) -> str:
    return f"the stretches for which each atom holds, for {length}"


WINDOWS: Final[Mapping[Modality, WindowKind]] = {
    Modality.SOMETIME: WindowKind(
        text=lambda _at, _count: "",
        view=lambda o: DiamondWindow(o.agenda, o.length),
        keeps=lambda length, _scattered: f"each atom, for {length} after it last held",
        grows=True,
    ),
    Modality.AT: WindowKind(
        text=lambda at, _count: " AT" if at is None else f" AT ?{at}",
        view=lambda o: AtWindow(o.agenda, o.length, o.term, o.open_ended),
        keeps=lambda length, _scattered: f"each atom at each of its points, for {length}",
        each_point=True,
    ),
    Modality.ALWAYS: WindowKind(
        text=lambda _at, _count: " ALWAYS",
        view=lambda o: BoxWindow(o.agenda, o.length, None, o.beginning, o.scattered),
        keeps=lambda length, scattered: (
            _stretches(length)
            if scattered
            else "the stretch for which each atom holds without a gap, and no further back"
        ),
        every_point=True,
        missing="not at every point",
    ),
    Modality.AT_LEAST: WindowKind(
        text=lambda _at, count: f" AT LEAST {count}",
        view=lambda o: BoxWindow(o.agenda, o.length, o.count, o.beginning, o.scattered),
        keeps=lambda length, _scattered: _stretches(length),
        grows=True,
        missing="at too few points",
    ),
}
"""A new kind is a row; what it means is a case of reference/lars.py."""


def kind_of(atom: WindowAtom) -> WindowKind:
    """SOMETIME where nothing is written."""
    return WINDOWS[atom.modality or Modality.SOMETIME]
