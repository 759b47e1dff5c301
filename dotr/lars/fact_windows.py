"""What windows of facts show: the last n distinct atoms of queries and composite event rules.

Place:   engine.py gives them facts and asks them to refresh before a stratum reads them.
Method:  a log is a queue of the last n in the order (time, order in OF, canonical order): facts of a point
         are later than all before, so only they are sorted, and what comes pushes out the oldest. Views count
         the atoms that they show as these come and go. `ALWAYS` is looked at again at every point, because
         every point must have a fact: what holds then is among the facts of now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dotr.events import Time, Values
from dotr.ir.lars import FactWindow, Modality
from dotr.lars.window_tables import FOREVER, Agenda, AtomTable, Row
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term

Shown = tuple[int, Values]
"""(point, values) of an atom."""


class PointLog:
    """Owns the last atoms of the streams of a window, and where the window begins."""

    def __init__(self, window: FactWindow, beginning: int) -> None:
        self._count = window.count
        self._places = {name: place for place, name in enumerate(window.streams)}
        self._names = window.streams
        self._last: deque[tuple[int, int, Values]] = deque()  # (point, place, values)
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
        last = self._last
        for atom, _ in sorted(self._new.items(), key=lambda e: (e[1], e[0][1], values_key(e[0][2]))):
            last.append(atom)
            self._notify(atom, 1)
        self._new.clear()
        while len(last) > self._count:
            self._notify(last.popleft(), -1)
        if len(last) == self._count:
            self.beginning = last[0][0]

    def _notify(self, atom: tuple[int, int, Values], sign: int) -> None:
        point, place, values = atom
        for view in self._views:
            if view.name == self._names[place]:
                view.count((point, values), sign)

    def dump(self) -> Any:
        return [self.beginning, [[point, place, list(values)] for point, place, values in self._last]]

    def load(self, state: Any) -> None:
        """Before views are loaded, which are filled again."""
        self.beginning, atoms = state
        for point, place, values in atoms:
            self._last.append((point, place, tuple(values)))
            self._notify(self._last[-1], 1)


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
        self._modality, self._term = modality, term
        self._needed = count if modality is Modality.AT_LEAST else 1
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
        if self._modality is Modality.AT:
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
        if self._modality is Modality.ALWAYS:
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
        if table.rows and self._modality is Modality.ALWAYS:
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
