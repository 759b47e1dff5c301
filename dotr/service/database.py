"""What the SQLite files of a deployment have in common: changes of the disk, locks, sums, signs of damage.

Place:   under journal.py, inbox.py and outbox.py.
Method:  every change of the disk goes through `Disk`, so that tests can let it fail. A lock is an exclusive
         transaction on a file of its own, which the operating system ends with the process.
         Row sums: the sum of a table is that of the hashes of its rows, so a change costs what it changes:
         SQLite calls `_changed` for every row that comes or goes, by triggers of this connection alone, and
         the sums are written with the transaction. Tables that grow without bound have no sum: to compare it
         would take reading all of them. Their rows have digests, and numbers that show what is missing.
Why not: a hash in each row of every table: a lost row, or one of an older commit, would not be missed. Hashes
         of the file's pages: Python's SQLite has no access to them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias

Execute: TypeAlias = Callable[[str, Sequence[Any]], object]
"""Runs a statement with its values."""

Query: TypeAlias = Callable[[str], list[tuple[Any, ...]]]
"""The rows of a SELECT. Whole tables are read by `SELECT *`, so that their sums can be compared."""

_SIZE: Final = 16
_ALL: Final = 1 << 8 * _SIZE


class Disk:
    """What the journal and its outputs do to the disk; tests put one in that fails."""

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        connection.execute(statement, values)

    def insert(self, connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """As `execute` with each of the rows."""
        connection.executemany(statement, rows)

    def write(self, file: int, content: bytes) -> int:
        return os.write(file, content)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def truncate(self, file: int, length: int) -> None:
        os.ftruncate(file, length)

    def create(self, path: str) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def locked(path: Path) -> sqlite3.Connection | None:
    """A lock, held until it is closed; None where another process has it. Raises sqlite3.Error."""
    lock = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise
        return None
    return lock


_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "corrupt", "decode to UTF-8")
"""What SQLite says of a database that was written by something else."""

_DAMAGE = ("CORRUPT", "NOTADB", "CONSTRAINT", "MISMATCH", "SCHEMA", "FORMAT", "RANGE", "IOERR_SHORT_READ")
"""And how it calls its errors then; errors of the statement (ERROR) are of that kind, too: ours are right."""


def is_damage(error: Exception, path: Path) -> bool:
    """Whether SQLite's error means that the database was damaged, or written by something else."""
    name = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_")
    kept_out = name == "READONLY" and os.access(path, os.W_OK)  # its head says so
    strange = isinstance(error, UnicodeDecodeError) or any(word in str(error) for word in _DAMAGED)
    return strange or name.startswith(_DAMAGE) or name == "ERROR" or kept_out


def digest(content: bytes) -> bytes:
    """The hash that detects damage."""
    return blake2b(content, digest_size=16).digest()


def row_digest(values: Iterable[Any]) -> bytes:
    """A digest of the values of a row: numbers, strings, bytes and None. It is stored: another one is another
    format of the database.
    """
    parts: list[bytes] = []
    for value in values:
        content = value if type(value) is bytes else str(value).encode("utf-8", "surrogatepass")
        parts += (b"%d:" % len(content), content)
    return blake2b(b"".join(parts), digest_size=_SIZE).digest()


SUMMED_TABLES: Final = """
CREATE TABLE IF NOT EXISTS sums (name TEXT PRIMARY KEY, total TEXT NOT NULL) WITHOUT ROWID;
"""

OF_THEMSELVES: Final = ("sums", "closed", "outbox", "letters", "outcomes", "cursors")
"""Tables that have no sum: the sums, and rows that have hashes of their own."""


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
        plain = [digest(value).hex() if type(value) is bytes else value for value in row]
        text = f"{name} {plain!a}"
    return int.from_bytes(digest(text.encode("utf-8", "surrogatepass")), "little")


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
