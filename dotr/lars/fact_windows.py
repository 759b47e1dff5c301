"""What windows of facts show: the last n distinct atoms of queries and composite event rules.

Place:   engine.py gives them facts and asks them to refresh before a stratum reads them.
Method:  a log keeps the n greatest by (time, order in OF, canonical order) and no more; views compute their
         rows from it again when it changed: n is small, and what comes pushes out.
         `ALWAYS` is looked at again at every point, because every point must have a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dotr.events import Time, Values
from dotr.ir.lars import FactWindow, Modality
from dotr.lars.tables import FOREVER, Agenda, Row, Table
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term


class FactLog:
    """Owns the last atoms of the streams of a window, and where the window begins."""

    def __init__(self, window: FactWindow, beginning: int) -> None:
        self._count = window.count
        self._places = {name: place for place, name in enumerate(window.streams)}
        self._names = window.streams
        self._times: dict[tuple[int, int, Values], Time] = {}  # (point, place, values) → latest time
        self._sorted = True
        self.beginning = beginning
        self.version = 0

    def add(self, point: int, name: str, facts: Sequence[tuple[Time, Values]]) -> None:
        place, times = self._places[name], self._times
        for time, values in facts:
            atom = (point, place, values)
            times[atom] = max(time, times.get(atom, time))
        self._sorted = False

    def settle(self) -> None:
        """Cut to the last atoms."""
        if self._sorted:
            return
        self._sorted = True
        self.version += 1
        ranked = sorted(self._times.items(), key=lambda e: (e[1], e[0][1], values_key(e[0][2])))
        if len(ranked) >= self._count:
            ranked = ranked[-self._count :]
            self.beginning = min(point for (point, _, _), _ in ranked)
        self._times = dict(ranked)

    def of(self, name: str) -> list[tuple[int, Values]]:
        """(point, values) of the atoms of one stream that the window shows."""
        place = self._places[name]
        return [(point, values) for point, of, values in self._times if of == place]

    def dump(self) -> Any:
        atoms = [[point, place, list(values), time] for (point, place, values), time in self._times.items()]
        return [self.beginning, atoms]

    def load(self, state: Any) -> None:
        self.beginning, atoms = state
        self._times = {(point, place, tuple(values)): time for point, place, values, time in atoms}
        self._sorted = True
        self.version += 1


class FactView:
    """A table of what a window atom over facts shows: rows are values, under AT with the term of a point."""

    def __init__(
        self,
        agenda: Agenda,
        log: FactLog,
        name: str,
        modality: Modality,
        count: int,
        term: Callable[[int], Term],
        counted: bool,
    ) -> None:
        self.table = Table(agenda)
        self._agenda, self._log, self._name = agenda, log, name
        self._modality, self._count, self._term = modality, count, term
        self._others: dict[tuple[int, Values], None] | None = None if counted else {}
        self._seen = (-1, -1)
        self._fresh = True

    def begin(self, now: int, since: int) -> None:
        self.table.expire(now, since)

    def add(self, point: int, facts: Iterable[tuple[Time, Values]]) -> None:
        """Facts of the view's own name, where the window counts others."""
        if self._others is not None:
            self._others.update(((point, values), None) for _, values in facts)
            self._fresh = True

    def refresh(self, now: int) -> None:
        """Bring the rows up to date at point `now`."""
        log = self._log
        log.settle()
        seen = (log.version, now if self._modality is Modality.ALWAYS else 0)
        if seen == self._seen and not self._fresh:
            return
        self._seen, self._fresh = seen, False
        rows = self._shown(now)
        table = self.table
        for row in [row for row in table.rows if row not in rows]:
            table.assign(row, None)
        table.extend(list(rows), FOREVER)
        if rows and self._modality is Modality.ALWAYS:
            self._agenda.add(now + 1)

    def _shown(self, now: int) -> dict[Row, None]:
        first = self._log.beginning
        if self._others is None:
            pairs = self._log.of(self._name)
        else:
            self._others = {pair: None for pair in self._others if pair[0] >= first}
            pairs = list(self._others)
        atoms: dict[Row, list[int]] = {}
        for point, values in pairs:
            bound = tuple([value for value in values if value is not None])
            if len(bound) == len(values):
                atoms.setdefault(bound, []).append(point)
        match self._modality:
            case Modality.SOMETIME:
                return dict.fromkeys(atoms)
            case Modality.AT:
                return {(*v, self._term(point)): None for v, points in atoms.items() for point in points}
            case Modality.ALWAYS:
                needed = now - first + 1
            case Modality.AT_LEAST:
                needed = self._count
        return {values: None for values, points in atoms.items() if len(points) >= needed}

    def dump(self) -> Any:
        others = None if self._others is None else [[p, list(values)] for p, values in self._others]
        return [self.table.dump(), others]

    def load(self, state: Any) -> None:
        rows, others = state
        self.table.load(rows)
        if others is not None:
            self._others = {(point, tuple(values)): None for point, values in others}
        self._fresh = True
