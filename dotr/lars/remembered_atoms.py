"""A name and everything that is remembered of its atoms.

Place:   rules.py puts derived atoms here, engine.py facts; the views of the name are notified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dotr.events import Values
from dotr.lars.views import EachPoint, Sometime, WindowView
from dotr.lars.window_tables import FOREVER, Row
from dotr.rdf.order import values_key


class Relation:
    """Owns the views of a name, and for a head what holds now (`present`) and what stands until it is found
    not to hold any more (`standing`: heads of rules that are evaluated as a whole).
    """

    def __init__(self, name: str, arity: int) -> None:
        self.name, self.arity = name, arity
        self.present: Sometime | None = None
        self.views: list[WindowView] = []
        self._others: list[WindowView] = []  # all but `present`
        self.each_point: list[EachPoint] = []
        self.standing: dict[Row, None] = {}
        self.put_now: set[Row] = set()
        self.now = 0

    def add(self, view: WindowView) -> None:
        """Notify a view from now on."""
        self.views.append(view)
        if view is not self.present:
            self._others.append(view)
        if isinstance(view, EachPoint):
            self.each_point.append(view)

    def begin(self, now: int, since: int) -> None:
        self.now = now
        if self.put_now:
            self.put_now = set()
        for view in self.views:
            view.begin(now, since)

    def hold(self, atoms: Sequence[Row], until: int) -> None:
        """Atoms hold now and through `until`; what holds as long already is not looked at."""
        if self.present is not None:
            atoms = self.present.table.extend(atoms, until)
        if atoms:
            for view in self._others:
                view.hold(atoms, until)

    def put(self, atoms: Sequence[Row], point: int) -> None:
        """Atoms hold at `point`, now or before."""
        if point == self.now:
            self.put_now.update(atoms)
            self.hold(atoms, point)
        else:
            for view in self.views:
                view.put(atoms, point)

    def stand(self, atoms: Iterable[Row]) -> None:
        """Atoms hold from now on, until they are stopped."""
        new = [values for values in atoms if values not in self.standing]
        if new:
            self.standing.update(dict.fromkeys(new))
            self.hold(new, FOREVER)

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

    def changes(self, ordered: bool) -> tuple[list[Values], list[Values]]:
        """What began and what ended to hold at this point; `ordered`: in canonical order."""
        assert self.present is not None
        net = self.present.table.net
        assert net is not None, "it is watched"
        began: list[Values] = list(net.began)
        ended: list[Values] = list(net.ended)
        if ordered:
            began.sort(key=values_key)
            ended.sort(key=values_key)
        return began, ended

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
