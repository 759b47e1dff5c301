"""Where generated joins leave their solutions, and what becomes of them after the join.

Place:   body_code.py writes into `pile`; rule_components.py calls `empty` when a join has run.
Method:  a pile is a dict: solutions of one last point, or of one point that a head is put at, leave together,
         so that tables take them in as a whole. Nothing is entered into a table while a join reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from dotr.lars.remembered_atoms import Relation
from dotr.lars.window_tables import Agenda, Row
from dotr.rdf.terms import Term


class Pile(Protocol):
    """Solutions, for a while."""

    @property
    def pile(self) -> dict[Any, Any]:
        """Key → list of rows, or rows as keys."""

    def empty(self) -> None:
        """Hand over what there is."""


class Through:
    """Rows by the last point at which they hold: heads that last."""

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


class Upright:
    """Rows that stand from now on."""

    def __init__(self, relation: Relation) -> None:
        self.pile: dict[Row, None] = {}
        self.relation = relation

    def empty(self) -> None:
        if self.pile:
            self.relation.stand(self.pile)
            self.pile.clear()


class Kept:
    """Rows that are compared with what stood before, once all rules have run."""

    def __init__(self, relation: Relation, found: dict[Row, None]) -> None:
        self.relation = relation
        self.pile = found

    def empty(self) -> None:
        pass


HeadPile: TypeAlias = Through | Upright | Kept
"""The pile of one head."""
