"""The journal of a deployment: one SQLite file in which everything that must agree commits together.

Place:   below deployment_directory.py (rules) and feed.py (streams); the only code that speaks SQL.
Method:  write-ahead log, one transaction a commit: engine snapshot, source positions, output lengths. Output
         files are synced before the transaction and cut back to the committed length at the next start, so a
         kill at any point neither loses nor repeats an event. A second process is kept out by an exclusive
         transaction on a file of its own, which the operating system ends with the process. A commit that
         follows output is synced itself, so that no power cut rolls it back behind what was written. The rows
         of a table are those that were committed, or nothing is taken from it (row_sums.py): small tables are
         compared when the database is opened, others when they are read.
Why not: files renamed into place: three of them do not change together.
Bad state: D5105 rows that were not committed · D5201 no deployment · D5202 damaged · D5203 another version ·
           D5204 in use · D4201 cannot be written.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dotr.datalog.closing import Closed
from dotr.errors import NOT_WRITTEN, DataError, EngineError, RefusedError
from dotr.events import Time
from dotr.io.graph_source import Position
from dotr.rdf.checked_blocks import Content
from dotr.service import closed_files
from dotr.service.disk import Disk
from dotr.service.journal_tables import FORMAT, TABLES, UPDATES
from dotr.service.kept_tables import KeptRow, KeptSummary, read_kept, read_kept_summary, write_kept
from dotr.service.lasting_tables import (
    PlannedProgram,
    read_given,
    read_plan,
    read_stated,
    write_given,
    write_plan,
    write_stated,
)
from dotr.service.records import Commit, Deployed, OutputRow, digest, digest_of, planned
from dotr.service.row_sums import RowSums, columns_in

DATABASE, LOCK = "deployment.db", "lock.db"
"""The files of a deployment; beside the first stands its log."""

_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "corrupt", "decode to UTF-8")
"""What SQLite says of a database that was written by something else."""

_DAMAGE = ("CORRUPT", "NOTADB", "CONSTRAINT", "MISMATCH", "SCHEMA", "FORMAT", "RANGE", "IOERR_SHORT_READ")
"""And how it calls its errors then; errors of the statement (ERROR) are of that kind, too: ours are right."""

_SMALL = ("meta", "files", "texts", "removed", "outputs", "positions", "planned")
"""The tables that are compared when a deployment is opened."""


class Journal:
    """Owns the connection to a deployment's database. Use as a context; `exclusive` keeps others out."""

    def __init__(
        self, folder: str, *, create: bool = False, exclusive: bool = True, disk: Disk | None = None
    ) -> None:
        self.folder = Path(folder)
        self.disk = disk or Disk()
        self._lock: sqlite3.Connection | None = None
        path = self.folder / DATABASE
        if not path.exists() and not create:
            raise DataError.of(
                "D5201", f"there is no deployment in `{folder}`", place=str(folder), hint="dotr deploy RULES"
            )
        try:
            begun = path.exists() and path.stat().st_size > 0
            if not begun and not create:
                raise self._damaged("it is empty")
            self.folder.mkdir(parents=True, exist_ok=True)
            if exclusive:
                self._lock = self._locked()
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        except (OSError, sqlite3.Error) as error:
            self._release()
            raise self._failure(error) from None
        self._sums = self._summed()
        self._is_summed = False
        try:
            with self._guarded():
                try:
                    self._open(create and (not begun or self._bare()), exclusive)
                except sqlite3.OperationalError:
                    if exclusive or not self._reopened_for_a_look(path):
                        raise
                    self._check(exclusive)
        except BaseException:
            self.close()
            raise

    @classmethod
    def to_compare(cls, folder: str) -> Journal:
        """The deployment for a look, or an empty one in memory where there is none; nothing is created."""
        if (Path(folder) / DATABASE).exists():
            return cls(folder, exclusive=False)
        journal = cls.__new__(cls)
        journal.folder, journal.disk, journal._lock = Path(folder), Disk(), None
        journal._connection = sqlite3.connect(":memory:", isolation_level=None)
        journal._sums = journal._summed()
        journal._open(new=True, exclusive=True)
        return journal

    def _locked(self) -> sqlite3.Connection:
        """The lock on the deployment, held until it is closed. Raises RefusedError D5204."""
        lock = sqlite3.connect(self.folder / LOCK, isolation_level=None, timeout=0)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" not in str(error):
                raise
            raise RefusedError.of(
                "D5204",
                f"the deployment in `{self.folder}` is in use by another process",
                place=str(self.folder),
                hint="wait until that feed or deploy ends, or stop it with Ctrl-C",
            ) from None
        return lock

    def _bare(self) -> bool:
        """Whether a deploy was ended before it had made the tables."""
        return self._connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None

    def _open(self, new: bool, exclusive: bool) -> None:
        connection = self._connection
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 16777216"):
            connection.execute(f"PRAGMA {pragma}")
        if new:
            with self.transaction():
                for statement in TABLES.split(";")[:-1]:
                    self.disk.execute(connection, statement)
                self.disk.execute(connection, "INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
                self._sums.renew()
            self._is_summed = True
        else:
            self._check(exclusive)
        if exclusive:
            self._sums.watch()

    def _summed(self) -> RowSums:
        return RowSums(self._connection, TABLES)

    def _reopened_for_a_look(self, path: Path) -> bool:
        """Whether the database of a folder that cannot be written was opened all the same: it has no log."""
        log = path.with_name(path.name + "-wal")
        if os.access(self.folder, os.W_OK) or (log.exists() and log.stat().st_size):
            return False
        self._connection.close()
        where = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(where, uri=True, isolation_level=None)
        self._sums = self._summed()
        return True

    def _check(self, exclusive: bool) -> None:
        """Raises EngineError for a database that is damaged or of a format that is not known."""
        connection = self._connection
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged("its pages do not fit together")
        found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if found is None:
            raise self._damaged("it does not say its version")
        if found[0] in {str(older) for older in UPDATES}:
            if exclusive:
                self._update(int(found[0]))
        elif found[0] != str(FORMAT):
            raise EngineError.of(
                "D5203",
                f"the deployment in `{self.folder}` has format {found[0]}; this dotr writes {FORMAT}",
                place=str(self.folder),
                notes=("nothing was changed",),
                hint="use the dotr that wrote it, or deploy again with another --dir",
            )
        if not exclusive and found[0] != str(FORMAT):
            return
        for name, columns in self._sums.columns.items():
            if columns_in(connection, name) != columns:
                raise self._damaged(f"the table `{name}` has other columns")
        self._is_summed = True
        for name in _SMALL:
            self._whole(f"SELECT * FROM {name}")  # noqa: S608  # names of our own tables

    def _update(self, format_: int) -> None:
        """Bring the tables of an older format up to date, in one transaction. State and positions stay."""
        with self.transaction():
            for older in range(format_, FORMAT):
                for statement in UPDATES[older].split(";")[:-1]:
                    self.disk.execute(self._connection, statement)
            self.disk.execute(
                self._connection, "UPDATE meta SET value = ? WHERE key = 'format'", (str(FORMAT),)
            )
            self._sums.renew()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Raises EngineError."""
        with self._guarded():
            self.disk.execute(self._connection, "BEGIN IMMEDIATE")
            self._sums.begin()
            try:
                yield
                self._sums.finish()
                self.disk.execute(self._connection, "COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "user-defined function" in str(error):  # Ctrl-C, while a row was added to a sum
                raise KeyboardInterrupt from None
            raise self._failure(error) from None
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # of strings that are no UTF-8, too
            raise self._failure(error) from None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is done inside understands what was read; where it does not, that is damage (EngineError)."""
        try:
            with self._guarded():
                yield
        except (zlib.error, *NOT_WRITTEN) as error:
            raise self._damaged(f"{type(error).__name__}: {error}"[:200]) from error

    def _failure(self, error: Exception) -> EngineError:
        """An error of SQLite or the operating system, as a diagnostic."""
        text = str(error)
        name = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_")
        kept_out = name == "READONLY" and os.access(self.folder / DATABASE, os.W_OK)  # its head says so
        if isinstance(error, UnicodeDecodeError) or any(word in text for word in _DAMAGED):
            return self._damaged(text)
        if name.startswith(_DAMAGE) or name == "ERROR" or kept_out:
            return self._damaged(text)
        reason = (error.strerror if isinstance(error, OSError) else None) or text
        return EngineError.of(
            "D4201",
            f"cannot write the deployment in `{self.folder}`: {reason.lower()}",
            place=str(self.folder),
            notes=("nothing that was committed is lost",),
            hint="free space or make it writable, then run the same command again",
        )

    def _changed(self, table: str) -> EngineError:
        """Rows that were not committed, or not all that were."""
        found = EngineError.of(
            "D5105",
            f"the table `{table}` has other rows than were committed",
            place=str(self.folder / DATABASE),
        )
        return EngineError(
            [*found.diagnostics, *self._damaged("its rows do not match their sum").diagnostics]
        )

    def _whole(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of `SELECT * FROM table …`, compared with its sum. Raises EngineError D5105."""
        rows, table = self._rows(query), query.split()[3]
        if self._is_summed and not self._sums.fits(table, rows):
            raise self._changed(table)
        return rows

    def _damaged(self, found: str) -> EngineError:
        return EngineError.of(
            "D5202",
            f"the deployment in `{self.folder}` is damaged",
            place=str(self.folder / "deployment.db"),
            label=found,
            notes=("nothing was changed",),
            hint="put a copy back, or deploy again with another --dir and feed again from the start",
        )

    # ------------------------------------------------------------------ rules

    def deployed(self) -> Deployed:
        """What is deployed."""
        with self._guarded():
            files = self._connection.execute("SELECT path FROM files ORDER BY place").fetchall()
            texts = self._connection.execute("SELECT path, text FROM texts").fetchall()
            removed = self._connection.execute("SELECT * FROM removed").fetchall()
            background = self._connection.execute("SELECT hash FROM background").fetchone()
            digest = self._connection.execute("SELECT value FROM meta WHERE key = 'deployed'").fetchone()
        paths = tuple(path for (path,) in files)
        deployed = Deployed(
            paths,
            dict(texts),
            # a look at a deployment of format 1, which does not say of which file a rule was taken out
            frozenset((file, rule) for rule, *of in removed for file in of or paths),
            background[0] if background else "",
        )
        if digest is not None and digest[0] != digest_of(deployed):
            raise self._damaged("the rules are not those that were deployed")
        return deployed

    def deploy(self, deployed: Deployed, background: str, closed: tuple[str, Closed] | None = None) -> None:
        """Replace what is deployed; `background` is its triples as N-Triples, `closed` as `keep_closed`.

        One transaction, in which a closed background of before goes.
        """
        with self.transaction():
            self._deploy(deployed, background, closed)

    def _deploy(self, deployed: Deployed, background: str, closed: tuple[str, Closed] | None = None) -> None:
        execute, connection = self.disk.execute, self._connection
        was = self._rows("SELECT value FROM meta WHERE key = 'deployed'")
        digest, digest_before = digest_of(deployed), was[0][0] if was else ""
        for table in ("files", "texts", "removed", "background", "closed"):
            execute(connection, f"DELETE FROM {table}")  # noqa: S608  # names of our own tables
        for path in deployed.files:
            execute(connection, "INSERT INTO files (path) VALUES (?)", (path,))
        for path, text in sorted((deployed.texts or {}).items()):
            execute(connection, "INSERT INTO texts VALUES (?, ?)", (path, text))
        for file, rule in sorted(deployed.removed):
            execute(connection, "INSERT INTO removed VALUES (?, ?)", (rule, file))
        values = ("deployed", digest)
        execute(connection, "INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
        packed = zlib.compress(background.encode(), 1)
        execute(connection, "INSERT INTO background VALUES (1, ?, ?)", (deployed.background, packed))
        if closed is not None:
            self._keep_closed(*closed)
        if digest_before != digest:
            execute(connection, "DELETE FROM kept")  # it was found by other rules

    def background(self) -> str:
        """The background's triples as N-Triples, canonical, blank nodes labelled."""
        with self.reading():
            found = self._whole("SELECT * FROM background")
            return _unpacked(found[0][2]) if found else ""

    def closed(self, key: str) -> Content | None:
        """The closed background that was kept under `key`; None when there is none, or it is damaged."""
        with self._guarded():
            found = self._connection.execute(
                "SELECT hash, content FROM closed WHERE key = ?", (key,)
            ).fetchone()
        if found is None or digest(found[1]) != found[0]:
            return None
        return closed_files.read(self.folder, found[1])

    def keep_closed(self, key: str, closed: Closed) -> None:
        """Keep a closed background instead of the one kept before, a large one in a file."""
        with self.transaction():
            self._keep_closed(key, closed)

    def _keep_closed(self, key: str, closed: Closed) -> None:
        row = closed_files.write(self.folder, closed)
        self.disk.execute(
            self._connection, "INSERT OR REPLACE INTO closed VALUES (1, ?, ?, ?)", (key, digest(row), row)
        )

    # ------------------------------------------------------------------ state of the feed

    def snapshot(self) -> dict[str, Any] | None:
        """The engine's state at the last commit, None before the first."""
        with self.reading():
            found = self._whole("SELECT * FROM state")
            if not found:
                return None
            state: dict[str, Any] = json.loads(_unpacked(found[0][1]))
            if state.get("lasting") is not None:
                state["lasting"]["stated"] = read_stated(self._whole)
            return state

    def status(self) -> dict[str, Any]:
        """What the last commit said about itself; empty before the first."""
        with self.reading():
            found = self._whole("SELECT * FROM state")
            status: dict[str, Any] = json.loads(found[0][2]) if found else {}
            status.keys()  # it is one
            return status

    def position(self, source: str, part: str) -> Position | None:
        """How far a partition of a source is consumed, None before the first commit of it."""
        query = "SELECT position FROM positions WHERE source = ? AND part = ?"
        with self._guarded():
            row = self._connection.execute(query, (source, part)).fetchone()
        return None if row is None else self._value(row[0])

    def positions(self, source: str) -> dict[str, Position]:
        """How far every partition of a source is consumed."""
        query = "SELECT part, position FROM positions WHERE source = ? ORDER BY part"
        with self._guarded():
            if not self._has("positions"):  # a look at a deployment of format 5, which had files alone
                query = """SELECT file, json_array(how, "end", carried, size, hash, finished) FROM sources
                    WHERE 'files' = ? ORDER BY file"""
            rows = self._connection.execute(query, (source,)).fetchall()
        return {part: self._value(position) for part, position in rows}

    def _value(self, text: str) -> Position:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def outputs(self) -> dict[str, OutputRow]:
        """Every output file of this deployment with its committed length."""
        with self.reading():
            rows = self._rows("SELECT * FROM outputs ORDER BY path")
            found = {path: OutputRow(*row) for path, *row in rows}  # format 3 has no tails
            if any(type(row.length) is not int for row in found.values()):
                raise TypeError("a length that is no number")
            return found

    def register_output(self, path: str, format_: str) -> None:
        """Make an output file this deployment's, at length 0; done before the file is created."""
        with self.transaction():
            self.disk.execute(
                self._connection, "INSERT OR REPLACE INTO outputs VALUES (?, ?, 0, '')", (path, format_)
            )

    def forget_output(self, path: str) -> None:
        with self.transaction():
            self.disk.execute(self._connection, "DELETE FROM outputs WHERE path = ?", (path,))

    def commit(self, commit: Commit) -> None:
        """Snapshot, positions and output lengths, together. Raises EngineError; then nothing changed."""
        snapshot = zlib.compress(
            json.dumps(commit.snapshot, separators=(",", ":"), ensure_ascii=False).encode(), 1
        )
        status = json.dumps(commit.status, separators=(",", ":"), ensure_ascii=False)
        execute, connection = self.disk.execute, self._connection
        before = self.outputs()
        grown = any(
            path in before and output.length != before[path].length for path, output in commit.outputs.items()
        )
        with self._guarded():  # what was written must not outlast what is known of it, if the power fails
            execute(connection, f"PRAGMA synchronous = {'FULL' if grown else 'NORMAL'}")
        with self.transaction():
            execute(connection, "INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (snapshot, status))
            for (source, part), position in commit.positions.items():
                values: tuple[Any, ...] = (source, part, json.dumps(position, separators=(",", ":")))
                execute(connection, "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", values)
            for path, output in commit.outputs.items():
                values = (*output, path)
                execute(connection, "UPDATE outputs SET length = ?, tail = ? WHERE path = ?", values)
            write_stated(self._execute, commit.stated)
            write_given(self._execute, commit.given)
            if commit.adopted and (plan := read_plan(self._rows)) is not None:
                self._deploy(planned(plan), plan.background)
                write_plan(self._execute, None)
            if commit.kept is not None:
                write_kept(self._execute, self._rows, commit.kept)

    # ------------------------------------------------------------------ what is kept for explanations

    def keep(self, length: int) -> None:
        """From now on messages are kept for so long, in µs; 0: not at all, and what is kept goes."""
        with self.transaction():
            self._execute("INSERT OR REPLACE INTO meta VALUES ('keep', ?)", (str(length),))
            if not length:
                self._execute("DELETE FROM kept", ())

    def forget_kept(self) -> None:
        """What is kept goes."""
        with self.transaction():
            self._execute("DELETE FROM kept", ())

    def keeps(self) -> int:
        """How long messages are kept, in µs; 0: they are not."""
        with self.reading():
            found = self._rows("SELECT value FROM meta WHERE key = 'keep'")
            return int(found[0][0]) if found else 0

    def kept(self) -> list[KeptRow]:
        """What is kept, in order; nothing in a deployment of an older format. Raises EngineError."""
        with self.reading():
            return read_kept(self._whole) if self._has("kept") else []

    def kept_summary(self) -> KeptSummary | None:
        """How much is kept; None where nothing is."""
        with self._guarded():
            return read_kept_summary(self._rows) if self._has("kept") else None

    def kept_since(self) -> Time | None:
        """The time of the last state that is kept."""
        with self.reading():
            rows = self._rows("SELECT time FROM kept WHERE state ORDER BY id DESC LIMIT 1")
            time: Time | None = rows[0][0] if rows else None
            if type(time) not in (int, type(None)):
                raise TypeError("a time that is no number")
            return time

    def _has(self, table: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._connection.execute(query, (table,)).fetchone() is not None

    def _execute(self, statement: str, values: Sequence[Any]) -> None:
        self.disk.execute(self._connection, statement, values)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def plan(self) -> PlannedProgram | None:
        """What is deployed from a time on that has not come yet."""
        with self.reading():
            return read_plan(self._whole)

    def keep_plan(self, plan: PlannedProgram | None) -> None:
        """Deploy something from a time on, instead of what was planned before; None: nothing."""
        with self.transaction():
            write_plan(self._execute, plan)

    def given(self) -> list[str]:
        """The messages that commands gave, in order, as JSON lines."""
        with self.reading():
            return read_given(self._whole)


def _unpacked(content: bytes) -> str:
    return zlib.decompress(content).decode()
