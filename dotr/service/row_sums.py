"""Sums over the rows of a deployment's tables: rows that nobody committed are found, and rows that are gone.

Place:   under journal.py, which adds what a transaction changes and compares what it reads.
Method:  the sum of a table is that of the hashes of its rows, so a change costs what it changes: SQLite calls
         `_changed` for every row that comes or goes, by triggers of this connection alone, and the sums are
         written with the transaction. Comparing reads the whole table, as those who need it do anyway.
Why not: a hash in each row: a lost row, or one of an older commit, would not be missed. Hashes of the file's
         pages: Python's SQLite has no access to them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final

TABLES: Final = """
CREATE TABLE IF NOT EXISTS sums (name TEXT PRIMARY KEY, total TEXT NOT NULL) WITHOUT ROWID;
"""

OF_THEMSELVES: Final = ("sums", "closed")
"""Tables that have no sum: the sums, and a row that has a hash of its own and can be made again."""

_SIZE: Final = 16
_ALL: Final = 1 << 8 * _SIZE


class RowSums:
    """Owns what the open transaction changes of the sums. `tables`: what has one."""

    def __init__(self, connection: sqlite3.Connection, tables: str) -> None:
        self._connection = connection
        self.columns = {name: of for name, of in columns_of(tables).items() if name not in OF_THEMSELVES}
        self._changes: dict[str, int] = {}

    def watch(self) -> None:
        """From now on every change of a row counts."""
        connection = self._connection
        connection.execute("PRAGMA recursive_triggers = ON")  # so that what a row replaces counts, too
        connection.create_function("dotr_row", -1, self._changed)
        for name, columns in self.columns.items():
            for event, rows in (("INSERT", "+NEW"), ("DELETE", "-OLD"), ("UPDATE", "-OLD +NEW")):
                calls = "".join(
                    f"SELECT dotr_row('{row[0]}', '{name}', {', '.join(f'{row[1:]}.{c}' for c in columns)});"
                    for row in rows.split()
                )
                connection.execute(
                    f"CREATE TEMP TRIGGER dotr_{event}_{name} AFTER {event} ON main.{name} BEGIN {calls} END"
                )

    def _changed(self, how: str, name: str, *row: Any) -> None:
        found = row_sum(name, row)
        self._changes[name] = self._changes.get(name, 0) + (found if how == "+" else -found)

    def begin(self) -> None:
        """A transaction begins."""
        self._changes.clear()

    def finish(self) -> None:
        """Before it is committed: write the sums of the tables that changed."""
        for name, change in sorted(self._changes.items()):
            if change:
                total = self.total(name)
                if total is not None:
                    self._put(name, total + change)
        self._changes.clear()

    def total(self, name: str) -> int | None:
        """The sum that a table is to have; None where it is lost."""
        row = self._connection.execute("SELECT total FROM sums WHERE name = ?", (name,)).fetchone()
        try:
            return int(row[0], 16)
        except (TypeError, ValueError):
            return None

    def fits(self, name: str, rows: Iterable[Sequence[Any]]) -> bool:
        """Whether these are the rows of a table as they were committed, all columns of each."""
        return sum(row_sum(name, row) for row in rows) % _ALL == self.total(name)

    def renew(self) -> None:
        """The sums of what the tables have now: they are new, or of an older format."""
        for name in self.columns:
            rows = self._connection.execute(f"SELECT * FROM {name}")  # noqa: S608  # names of our own tables
            self._put(name, sum(row_sum(name, row) for row in rows))

    def _put(self, name: str, total: int) -> None:
        values = (name, f"{total % _ALL:032x}")
        self._connection.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", values)


def row_sum(name: str, row: Iterable[Any]) -> int:
    """A number for a row of a table. It is stored: another one is another format of the database."""
    try:
        text = "\0".join((name, *row))
    except TypeError:  # not of strings alone
        plain = [_digest(value).hex() if type(value) is bytes else value for value in row]
        text = f"{name} {plain!a}"
    return int.from_bytes(_digest(text.encode("utf-8", "surrogatepass")), "little")


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_SIZE).digest()


@cache
def columns_of(tables: str) -> dict[str, dict[str, tuple[Any, ...]]]:
    """The tables that statements make → their columns → kind, whether a value is needed, default, place in
    the key.
    """
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(tables)
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {name: columns_in(connection, name) for name in names}
    finally:
        connection.close()


def columns_in(connection: sqlite3.Connection, name: str) -> dict[str, tuple[Any, ...]]:
    """The columns of a table in a database, as `columns_of` has them; none where there is no such table."""
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', (name,)
    )
    return {row[0]: row[1:] for row in rows}
