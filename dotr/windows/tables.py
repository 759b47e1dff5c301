"""The remembered atoms of each name, and the piles that collect solutions of generated joins.

Place:   body_code.py writes into `pile`; rules.py adds derived atoms and calls `empty` when a join has run;
         engine.py adds facts. The views of a name are notified of changes.
Method:  a pile is a dict: solutions of one last point, or of one point that a head is put at, leave together,
         so that tables take them in as a whole. Nothing is entered into a table while a join reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from dotr.events import Values
from dotr.rdf.terms import Term
from dotr.rdf.values import values_key
from dotr.windows.window_tables import FOREVER, Agenda, Row
from dotr.windows.windows import AtWindow, WindowView


class Relation:
    """Owns the views of a name, and for a head what holds now (`present`) and what holds until it is found
    not to (`open_ended`: heads of rules that are evaluated as a whole).
    """

    def __init__(self, name: str, arity: int) -> None:
        self.name, self.arity = name, arity
        self.present: WindowView | None = None
        self.views: list[WindowView] = []
        self._others: list[WindowView] = []  # all but `present`
        self.each_point: list[AtWindow] = []
        self.open_ended: dict[Row, None] = {}
        self.put_now: set[Row] = set()
        self.now = 0

    def add(self, view: WindowView) -> None:
        """Notify a view from now on."""
        self.views.append(view)
        if view is not self.present:
            self._others.append(view)
        if isinstance(view, AtWindow):
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

    def start(self, atoms: Iterable[Row]) -> None:
        """Atoms hold from now on, until they are stopped."""
        new = [values for values in atoms if values not in self.open_ended]
        if new:
            self.open_ended.update(dict.fromkeys(new))
            self.hold(new, FOREVER)

    def stop(self, values: Row) -> None:
        """The atom held, and is not derived now."""
        del self.open_ended[values]
        last = self.now if values in self.put_now else self.now - 1
        for view in self.views:
            view.stop(values, last)

    def settle(self) -> None:
        """What holds now is known."""
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
        return [[view.dump() for view in self.views], [list(values) for values in self.open_ended]]

    def load(self, state: Any, now: int) -> None:
        views, open_ended = state
        self.now = now
        for view, part in zip(self.views, views, strict=True):
            view.load(part)
        self.open_ended = {tuple(values): None for values in open_ended}


class SolutionBuffer(Protocol):
    """Solutions, for a while."""

    @property
    def pile(self) -> dict[Any, Any]:
        """Key → list of rows, or rows as keys."""

    def empty(self) -> None:
        """Hand over what there is."""


class Through:
    """Rows by the last point at which they hold: heads that are bounded."""

    def __init__(self, relation: Relation) -> None:
        self.pile: dict[int, list[Row]] = {}
        self.relation = relation

    def empty(self) -> None:
        for until, rows in self.pile.items():
            self.relation.hold(rows, until)
        self.pile.clear()


class Placing:
    """Owns atoms that are put ahead, and puts the others where they belong."""

    def __init__(self, agenda: Agenda, beginning: int) -> None:
        self._agenda = agenda
        self.beginning = beginning
        self.now = beginning - 1
        self.pending: dict[int, dict[str, dict[Row, None]]] = {}

    def put(self, relation: Relation, atoms: list[Row], point: int) -> None:
        """Put atoms at a point: before the first they are dropped, after now they wait."""
        if point > self.now:
            self.pending.setdefault(point, {}).setdefault(relation.name, {}).update(dict.fromkeys(atoms))
            self._agenda.add(point)
        elif point >= self.beginning:
            relation.put(atoms, point)


class Scattered:
    """Rows by the term of the point that the head's variable of AT is."""

    def __init__(self, placing: Placing, relation: Relation, points: Mapping[Term, int], offset: int) -> None:
        self.pile: dict[Term, list[Row]] = {}
        self._placing, self._relation, self._points, self._offset = placing, relation, points, offset

    def empty(self) -> None:
        for term, rows in self.pile.items():
            self._placing.put(self._relation, rows, self._points[term] + self._offset)
        self.pile.clear()


class OpenEnded:
    """Rows that hold from now on, until they are stopped."""

    def __init__(self, relation: Relation) -> None:
        self.pile: dict[Row, None] = {}
        self.relation = relation

    def empty(self) -> None:
        if self.pile:
            self.relation.start(self.pile)
            self.pile.clear()


class Kept:
    """Rows that are compared with what held before, once all rules have run."""

    def __init__(self, relation: Relation, found: dict[Row, None]) -> None:
        self.relation = relation
        self.pile = found

    def empty(self) -> None:
        pass


HeadPile: TypeAlias = Through | OpenEnded | Kept
"""The pile of one head."""
