"""A name and everything that is remembered of its atoms.

Place:   rules.py puts derived atoms here, engine.py facts; the views of the name are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dotr.events import Values
from dotr.lars.tables import FOREVER, Row
from dotr.lars.views import EachPoint, Sometime, View
from dotr.rdf.order import values_key


class Relation:
    """Owns the views of a name, and for a head what holds now (`present`) and what stands until it is found
    not to hold any more (`standing`: heads of rules that are evaluated as a whole).
    """

    def __init__(self, name: str, arity: int) -> None:
        self.name, self.arity = name, arity
        self.present: Sometime | None = None
        self.views: list[View] = []
        self.each_point: list[EachPoint] = []
        self.standing: dict[Row, None] = {}
        self.put_now: set[Row] = set()
        self.journal: list[tuple[Row, bool]] = []
        self.now = 0

    def begin(self, now: int, since: int) -> None:
        self.now = now
        if self.put_now:
            self.put_now = set()
        for view in self.views:
            view.begin(now, since)

    def hold(self, values: Row, until: int) -> None:
        """The atom holds now and through `until`."""
        if self.present is not None and self.present.table.rows.get(values, -1) >= until:
            return
        for view in self.views:
            view.hold(values, until)

    def put(self, values: Row, point: int) -> None:
        """The atom holds at `point`, now or before."""
        if point == self.now:
            self.put_now.add(values)
            self.hold(values, point)
        else:
            for view in self.views:
                view.put(values, point)

    def stand(self, values: Row) -> None:
        """The atom holds from now on, until it is stopped."""
        if values not in self.standing:
            self.standing[values] = None
            self.hold(values, FOREVER)

    def stop(self, values: Row) -> None:
        """The atom stood, and is not derived now."""
        del self.standing[values]
        last = self.now if values in self.put_now else self.now - 1
        for view in self.views:
            view.stop(values, last)

    def settle(self) -> None:
        """What stands now is known."""
        for view in self.each_point:
            view.settle()

    def changes(self) -> tuple[list[Values], list[Values]]:
        """What began and what ended to hold at this point, in canonical order."""
        net: dict[Row, int] = {}
        for row, began in self.journal:
            net[row] = net.get(row, 0) + (1 if began else -1)
        self.journal.clear()
        began_now: list[Values] = [row for row, change in net.items() if change > 0]
        ended: list[Values] = [row for row, change in net.items() if change < 0]
        return sorted(began_now, key=values_key), sorted(ended, key=values_key)

    def holding(self) -> Iterable[Row]:
        """What holds now, in no particular order."""
        assert self.present is not None
        return self.present.table.rows

    def dump(self) -> Any:
        return [[view.dump() for view in self.views], [list(values) for values in self.standing]]

    def load(self, state: Any, now: int) -> None:
        views, standing = state
        self.now = now
        for view, part in zip(self.views, views, strict=True):
            view.load(part)
        self.standing = {tuple(values): None for values in standing}
        self.journal.clear()
