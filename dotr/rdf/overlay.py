"""The overlay: what one instant adds to the background and removes from it, dropped afterwards.

Place:   filled and read by the functions that joins/ compiles, read by queries; emptied by `forget`.
Method:  per relation the new rows, the rows of the background that do not hold now, and hash indexes for the
         columns that plans need. Forgetting empties only what was touched, so an instant costs as much as its
         own triples, and the background needs no deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = Any
"""The key of a row: a bare term for one column, else the tuple of its columns."""

Index: TypeAlias = dict[Any, list[Any]]
"""Value of the indexed column (a tuple, if several) → the other column of two, else whole rows."""


class Changes:
    """Owns what changes in one relation at one instant.

    `added` maps new rows to their annotation (None in the plain case), `removed` holds rows of the background
    that do not hold. Readers may keep the dicts: `forget` empties them in place. `readers` are not called
    here; the code that runs queries finds in it what this relation wakes. `idle`: not touched yet.
    """

    __slots__ = ("_clear", "added", "arity", "extended", "idle", "indexes", "readers", "relation", "removed")

    def __init__(self, relation: str, arity: int) -> None:
        self.relation = relation
        self.arity = arity
        self.added: dict[Row, Any] = {}
        self.removed: dict[Row, None] = {}
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.readers: list[Any] = []
        self.idle = True
        self._clear: tuple[Callable[[], None], ...] = (self.added.clear,)
        self.extended: Callable[[Changes, tuple[int, ...]], None] | None = None

    def index(self, columns: tuple[int, ...]) -> Index:
        """The index on these columns, ascending and not all of them; made on the first call.

        Existing rows are entered, and `extended` is called: code that adds rows must know of the index.
        """
        found = self.indexes.get(columns)
        if found is None:
            found = self.indexes[columns] = {}
            self._clear = (*self._clear, found.clear)
            self.fill(columns)
            if self.extended is not None:
                self.extended(self, columns)
        return found

    def fill(self, columns: tuple[int, ...]) -> None:
        """Rebuild an index from the rows added."""
        index = self.indexes[columns]
        index.clear()
        for row in self.added:
            _enter(index, columns, self.arity, (row,) if self.arity == 1 else row)

    def enter(self, row: tuple[str, ...]) -> None:
        """Put a row that is in `added` into the indexes; generated code does the same inline."""
        for columns, index in self.indexes.items():
            _enter(index, columns, self.arity, row)

    def forget(self) -> None:
        """Empty it. Code that removes rows clears `idle`; generated code that only adds does not."""
        for clear in self._clear:
            clear()
        if not self.idle:
            self.removed.clear()
            self.idle = True


def _enter(index: Index, columns: tuple[int, ...], arity: int, row: tuple[str, ...]) -> None:
    key = row[columns[0]] if len(columns) == 1 else tuple(row[i] for i in columns)
    index.setdefault(key, []).append(row[1 - columns[0]] if arity == 2 else row)


class Overlay:
    """Owns the changes of all relations; `touched` lists those that have any, in order of the first."""

    __slots__ = ("relations", "touched")

    def __init__(self) -> None:
        self.relations: dict[str, Changes] = {}
        self.touched: list[Changes] = []

    def changes(self, relation: str, arity: int) -> Changes:
        """The changes of a relation, always the same object."""
        found = self.relations.get(relation)
        if found is None:
            found = self.relations[relation] = Changes(relation, arity)
        return found

    def add(self, relation: str, row: tuple[str, ...], annotation: object = None) -> None:
        """Add a row directly (tests, small tables); it must be neither here nor in the background."""
        changes = self.changes(relation, len(row))
        if changes.idle:
            changes.idle = False
            self.touched.append(changes)
        changes.added[row[0] if len(row) == 1 else row] = annotation
        changes.enter(row)

    def remove(self, relation: str, row: Sequence[str]) -> None:
        """Remove a row of the background from this instant."""
        changes = self.changes(relation, len(row))
        if changes.idle:
            changes.idle = False
            self.touched.append(changes)
        changes.removed[row[0] if len(row) == 1 else tuple(row)] = None

    def forget(self) -> None:
        """Empty everything. O(what was touched)."""
        for changes in self.touched:
            changes.forget()
        self.touched.clear()
