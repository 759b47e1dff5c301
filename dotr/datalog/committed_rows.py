"""Apply a change to the index in place, and undo it.

Place:   under maintenance.py, which supplies the change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from dotr.datalog.expiration import Expiration
from dotr.datalog.statements import Marks, Statements, Step, Undo, row_of
from dotr.joins.graph_relations import Relation, is_class
from dotr.joins.store import Table
from dotr.rdf.background import Background
from dotr.rdf.overlay import Changes, Row
from dotr.rdf.terms import RDF_TYPE

Exchange: TypeAlias = Mapping[Relation, tuple[Collection[Row], Collection[Row]]]
"""Relation → (keys of added rows, keys of removed rows)."""


class CommittedRows:
    """Changes the index, the tables beside it, the marks of derived rows, and bounds."""

    def __init__(
        self,
        index: Background,
        tables: Mapping[Relation, Table],
        statements: Marks,
        expiration: Expiration | None,
    ) -> None:
        self._index, self._tables = index, tables
        self._statements, self._expiration = statements, expiration

    def commit(
        self,
        touched: Sequence[Changes],
        opened: Collection[Statements],
        changes_of: Callable[[Relation], Changes],
    ) -> Undo:
        """Apply the change to the index; returns how to undo it. O(the change)."""
        undo = Undo([], None if self._expiration is None else self._expiration.commit(touched))
        stated = {statements.relation for statements in opened if not statements.derived}
        for changes in touched:
            self._commit(changes, undo)
        for statements in opened:
            relation, derived, unstated = statements.relation, statements.derived, []
            if not derived and not statements.ended:
                continue
            gone = changes_of(relation).removed
            if not derived and relation in stated and len(gone) == len(statements.ended):
                continue  # every old row was stated, and ended ones are gone
            if statements.ended:
                unstated = list(set(statements.ended).difference(gone, derived))
            confirmed = set(statements.begun).intersection(derived)
            if unstated or confirmed:
                derived.update(unstated)
                derived.difference_update(confirmed)
                undo.steps.append(Step(relation, (), (), unstated, confirmed))
        return undo

    def _commit(self, changes: Changes, undo: Undo) -> None:
        relation = changes.relation
        added, removed = list(changes.added), list(changes.removed)
        if relation in self._tables:
            self._move(relation, added, removed)
            undo.steps.append(Step(relation, added, removed))
            return
        statements = self._statements.of(relation)
        derived, begun = statements.derived, statements.begun
        if not derived and len(added) == len(begun):  # every old row is stated, and so are new ones
            self._move(relation, added, removed)
            undo.steps.append(Step(relation, added, removed))
            return
        unmarked = set(changes.removed).intersection(derived)
        marked = set(changes.added).difference(begun)  # on dicts: keys are not hashed again
        self._move(relation, added, removed)
        derived.difference_update(unmarked)
        derived.update(marked)
        undo.steps.append(Step(relation, added, removed, marked, unmarked))

    def _move(self, relation: Relation, added: Collection[Row], removed: Collection[Row]) -> None:
        """Remove and add rows of the index."""
        table = self._tables.get(relation)
        if table is not None:
            for key in removed:
                table.remove(row_of(key))
            for key in added:
                table.insert(row_of(key))
            return
        predicate = relation
        if is_class(relation):
            predicate, class_ = RDF_TYPE, relation[2:]
            added, removed = [(key, class_) for key in added], [(key, class_) for key in removed]
        if removed:
            self._index.remove_all(predicate, removed)
        if added:
            self._index.insert_all(predicate, added)

    def exchange(self, rows: Exchange) -> None:
        """Add and remove rows that are statements."""
        for relation, (added, removed) in rows.items():
            self._move(relation, added, removed)

    def undo(self, undo: Undo) -> None:
        """Undo the last committed change of the index. O(the change)."""
        for step in reversed(undo.steps):
            self._move(step.relation, step.removed, step.added)
            statements = self._statements.get(step.relation)
            if statements is not None:
                statements.derived.difference_update(step.marked)
                statements.derived.update(step.unmarked)
        if self._expiration is not None and undo.bounds is not None:
            self._expiration.undo(undo.bounds)
