"""The inbox of a deployment: documents of senders that cannot be asked again are on disk before the answer.

Place:   beside the journal, in a file of its own (`inbox.db`); knows nothing of rules, feeds and commits.
         Servers append, `InboxTransport` gives a feed the rows of each source as partitions, and what the
         feed has committed is forgotten.
Method:  SQLite with a write-ahead log that is synced at every commit. One thread writes. What comes while a
         commit is written goes into the next one (group commit), so many senders share one sync; a future is
         done after the commit that has its row.
         Numbers rise by one over all sources and are never used twice: the last one stands in the row `head`,
         which each transaction renews, with the last arrival (so that arrivals never go back, also when the
         clock was set back) and the sum of the rows' digests. A row has a digest over all of its values. So a
         row that is damaged, lost, or of an older state is found: the sum at opening, digests when rows are
         read.
         A key (Idempotency-Key) belongs to a source. It keeps a digest of the bytes and the number of their
         row, also after the row has gone: the same bytes get the same number, other bytes are refused.
         Going: rows up to a position go in bounded steps. Their removal need not survive a power cut, so it
         is not synced: a feed does not take again what lies before its position.
Why not: a commit a row: 4 ms each on a disk that syncs. The journal's own file: a commit of the feed would
         wait for every sender, and each sender for it. Files of appended lines: a row of one source could not
         go before those of another, and keys need an index.
Bad state: D5230 full · D5231 a key of other bytes · D5105, D5202 damaged · D5203 another version · D5204 in
           use · D4201 cannot be written.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.errors import DotrError, EngineError, RefusedError
from dotr.events import Clock
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, Position, together
from dotr.io.tables.mapping import TableMapping
from dotr.service.database import Disk, digest, is_damage, locked, row_digest
from dotr.service.outbox import Origin

DATABASE, LOCK = "inbox.db", "inbox.lock"
"""The files of an inbox; beside the first stands its log."""

FORMAT: Final = 1
"""Of the tables."""

TABLES: Final = """
CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, number INTEGER NOT NULL,
                   arrival INTEGER NOT NULL, total BLOB NOT NULL);
CREATE TABLE rows (number INTEGER PRIMARY KEY, source TEXT NOT NULL, format TEXT NOT NULL, time TEXT NOT NULL,
                   arrival INTEGER NOT NULL, key TEXT NOT NULL, mapping TEXT NOT NULL, size INTEGER NOT NULL,
                   digest BLOB NOT NULL, content BLOB NOT NULL);
CREATE INDEX rows_of_sources ON rows (source, number);
CREATE TABLE keys (source TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, number INTEGER NOT NULL,
                   until INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (source, key)) WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (until);
"""

_HOUR: Final = 3_600_000_000
_SIZE: Final = 16
_ALL: Final = 1 << 8 * _SIZE

GROUP_ROWS, GROUP_BYTES = 1_000, 16 << 20
"""At most so much goes into one commit."""

_ROOM: Final = 1 << 18
"""Bytes that a commit may need beside its documents."""

_STEP: Final = 1_000
"""So many rows, and keys, go in one transaction."""


class Received(NamedTuple):
    """What became of an append: the number of the row that has it. `duplicate`: it was there before."""

    number: int
    duplicate: bool = False


class Row(NamedTuple):
    """One document. `format`: a content type or the value of a `Format`; `time`: as the sender gave it beside
    the document, "" for none; `arrival`: µs since 1970, never below that of the row before; `mapping`: the
    name of the mapping of a table.
    """

    number: int
    source: str
    content: bytes
    format: str
    time: str
    arrival: int
    key: str
    mapping: str = ""


class Incoming(NamedTuple):
    """A document of one source that is to be a row; see `Row`. `renew`: the key is this document's from now
    on, whatever it was used for.
    """

    content: bytes
    format: str
    time: str = ""
    key: str = ""
    mapping: str = ""
    renew: bool = False


class SourceCount(NamedTuple):
    """What an inbox has of one source."""

    rows: int
    bytes: int


Answers: TypeAlias = "list[Received | DotrError]"
"""What became of each document that was accepted together with others."""


class _Append(Struct):
    """What waits for the next commit; the numbers of `rows` are not known yet. `size`: bytes of their
    contents; `renewed`: places of rows whose keys are theirs from now on; `future` gets all answers, or,
    where `alone`, the only one.
    """

    rows: Sequence[Row]
    size: int
    future: Future[Any]
    renewed: Collection[int] = ()
    alone: bool = False


class _Added(NamedTuple):
    """Values of rows of the tables `rows` and `keys` that are to be inserted."""

    rows: list[tuple[Any, ...]]
    keys: list[tuple[Any, ...]]


class _Head(Struct):
    """What the row `head` says, or is going to say."""

    number: int
    arrival: int
    total: int


class Inbox:
    """Owns the file, the thread that writes to it, and the counts of its rows. Use as a context.

    `after`: numbers begin above this one (the greatest that a feed has committed), also where the file was
    removed or is an older copy.
    """

    def __init__(
        self,
        folder: str,
        *,
        max_rows: int = 100_000,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
        key_hours: float = 24,
        after: int = 0,
    ) -> None:
        self.folder, self.path = Path(folder), Path(folder) / DATABASE
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._clock, self._disk = clock, disk or Disk()
        self._key_time = round(key_hours * _HOUR)
        self._mutex = threading.Lock()
        self._work = threading.Condition(self._mutex)  # for the thread that writes
        self._arrived = threading.Condition(self._mutex)  # for those that read
        self._reading = threading.Lock()
        self._waiting: deque[_Append] = deque()
        self._forgotten: dict[str, int] = {}
        self._released: list[tuple[str, str]] = []
        self._counts: dict[str, SourceCount] = {}
        self._rows = self._bytes = 0  # what waits counts, too
        self._closing = False
        self._opened: list[sqlite3.Connection] = []
        self._head = _Head(0, 0, 0)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._opened.append(self._locked())
            self._connection = self._connected("FULL")
            with self._guarded():
                self._begin(after)
            self._reader = self._connected("NORMAL")
        except (OSError, sqlite3.Error) as error:
            self._release()
            raise self._failure(error) from None
        except BaseException:
            self._release()
            raise
        self.failure: DotrError | None = None
        """Why documents cannot be written now."""
        self._failed_size = 0
        self.last = self._head.number
        """The number of the last row that is committed."""
        self._writer = threading.Thread(target=self._write_all, name="dotr-inbox", daemon=True)
        self._writer.start()

    # ------------------------------------------------------------------ opening

    def _locked(self) -> sqlite3.Connection:
        """The lock on the inbox, which ends with the process. Raises RefusedError D5204."""
        lock = locked(self.folder / LOCK)
        if lock is None:
            raise RefusedError.of(
                "D5204",
                f"the inbox in `{self.folder}` is in use by another process",
                place=str(self.folder),
                hint="stop the other server first, or give this one another --dir",
            )
        return lock

    def _connected(self, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=10, check_same_thread=False)
        self._opened.append(connection)
        for pragma in (
            "page_size = 16384",  # documents of 64 kB take a third less time than with 4 kB
            "journal_mode = WAL",
            f"synchronous = {synchronous}",
            "journal_size_limit = 67108864",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _begin(self, after: int) -> None:
        """Make the tables, or compare them with what was committed."""
        execute, connection = self._disk.execute, self._connection
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            execute(connection, "BEGIN IMMEDIATE")
            for statement in TABLES.split(";")[:-1]:
                execute(connection, statement)
            execute(connection, "INSERT INTO head VALUES (1, ?, ?, 0, ?)", (FORMAT, after, bytes(_SIZE)))
            execute(connection, "COMMIT")
            self._head.number = after
            return
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged("its pages are inconsistent")
        head = connection.execute("SELECT format, number, arrival, total FROM head").fetchone()
        if head is None or [type(value) for value in head] != [int, int, int, bytes]:
            raise self._damaged("its last number is missing")
        if head[0] != FORMAT:
            raise EngineError.of(
                "D5203",
                f"the inbox in `{self.folder}` has format {head[0]}; this dotr writes {FORMAT}",
                place=str(self.path),
                notes=("nothing was changed",),
                hint="use the dotr that wrote it",
            )
        self._head = _Head(max(head[1], after), head[2], int.from_bytes(head[3], "little"))
        total = 0
        for number, source, size, hashed in connection.execute(
            "SELECT number, source, size, digest FROM rows"
        ):
            if number > head[1] or type(size) is not int or type(hashed) is not bytes:
                raise self._damaged(f"row {number} was not committed")
            total += int.from_bytes(hashed, "little")
            self._count(source, 1, size)
        if total % _ALL != self._head.total:
            raise self._damaged("its rows do not match their checksum")
        self._rows = sum(count.rows for count in self._counts.values())
        self._bytes = sum(count.bytes for count in self._counts.values())

    # ------------------------------------------------------------------ what servers do

    def append(
        self,
        source: str,
        content: bytes,
        *,
        format: str,  # noqa: A002  # what rows call it
        time: str = "",
        key: str = "",
        mapping: str = "",
        arrival: int | None = None,
    ) -> Future[Received]:
        """Give a document to the next commit, and return at once; the future is done after the commit. It
        raises RefusedError D5231, EngineError D4201 or D5202. `arrival`: µs, instead of the clock's.

        Raises RefusedError D5230 where the inbox is full, UnicodeEncodeError for a lone surrogate.
        """
        return self._accept(source, [Incoming(content, format, time, key, mapping)], arrival, alone=True)

    def append_all(self, source: str, documents: Sequence[Incoming]) -> Future[Answers]:
        """Give the first of some documents, as many as there is room for, to one commit, and return at once.
        The future is done after the commit, with an answer for each that was accepted, in their order. The
        refusal of one (D5231) is its answer; the future raises EngineError D4201 or D5202.

        Raises RefusedError D5230 where there is no room for the first, UnicodeEncodeError for a lone
        surrogate.
        """
        return self._accept(source, documents)

    def _accept(
        self, source: str, documents: Sequence[Incoming], arrival: int | None = None, *, alone: bool = False
    ) -> Future[Any]:
        if arrival is None:
            arrival = int(self._clock() * 1_000_000)
        rows = [Row(0, source, one[0], one[1], one[2], arrival, one[3], one[4]) for one in documents]
        for row in rows:  # else nobody's document could be written
            "".join((row.source, row.format, row.time, row.key, row.mapping)).encode()
        renewed = {place for place, one in enumerate(documents) if one.renew}
        future: Future[Any] = Future()
        with self._mutex:
            if self._closing:
                raise self._unwritable("it is closed")
            size, accepted = 0, 0
            for row in rows[: max(0, self._max_rows - self._rows)]:
                if self._bytes + size + len(row.content) > self._max_bytes:
                    break
                size += len(row.content)
                accepted += 1
            if not accepted:
                raise self._is_full()
            self._rows += accepted
            self._bytes += size
            self._waiting.append(_Append(rows[:accepted], size, future, renewed, alone))
            self._work.notify()
        return future

    def keys_of(self, source: str) -> list[str]:
        """The keys of a source that mean something, oldest first."""
        with self._reading, self._guarded():
            rows = self._reader.execute("SELECT key FROM keys WHERE source = ? ORDER BY number", (source,))
            return [key for (key,) in rows]

    def release(self, source: str, keys: Iterable[str]) -> None:
        """Keys of a source mean nothing any more, soon: their senders will not repeat them."""
        with self._mutex:
            self._released += [(source, key) for key in keys]
            self._work.notify()

    @property
    def full(self) -> bool:
        """Whether the next document would be refused, however small it is."""
        return self._rows >= self._max_rows or self._bytes >= self._max_bytes

    @property
    def filled(self) -> float:
        """The part of what it may have that is there, 1 where it is full."""
        return max(self._rows / self._max_rows, self._bytes / self._max_bytes)

    def source_of(self, number: int) -> str | None:
        """The source of a row, None where it is not there: not committed yet, or forgotten."""
        with self._reading, self._guarded():
            found = self._reader.execute("SELECT source FROM rows WHERE number = ?", (number,)).fetchone()
        return None if found is None else str(found[0])

    def counts(self) -> dict[str, SourceCount]:
        """What is there of each source: committed, and not forgotten yet."""
        with self._mutex:
            return {name: count for name, count in sorted(self._counts.items()) if count.rows}

    def _count(self, source: str, rows: int, size: int) -> None:
        there = self._counts.get(source, SourceCount(0, 0))
        self._counts[source] = SourceCount(there.rows + rows, there.bytes + size)

    # ------------------------------------------------------------------ what a feed does

    def read(self, source: str, after: int, limit: int = 256, max_bytes: int = 4 << 20) -> list[Row]:
        """The first committed rows of a source behind a number: at most so many, and, but for the first, so
        many bytes. Raises EngineError D5105 for a row that was not committed so.
        """
        found: list[Row] = []
        query = """SELECT number, source, content, format, time, arrival, key, mapping, digest FROM rows
            WHERE source = ? AND number > ? ORDER BY number LIMIT ?"""
        with self._reading, self._guarded():
            for *values, hashed in self._reader.execute(query, (source, after, limit)):
                row = Row(*values)
                if type(row.content) is not bytes or row_digest(row) != hashed:
                    raise self._other_row(row.number)
                max_bytes -= len(row.content)
                if found and max_bytes < 0:
                    break
                found.append(row)
        return found

    def wait(self, seconds: float, after: int) -> None:
        """Return when a row behind that number is committed, at once where there is one; at most so long."""
        with self._arrived:
            self._arrived.wait_for(lambda: self.last > after or self._closing, seconds)

    def forget(self, positions: Mapping[str, int]) -> None:
        """The rows of sources up to these numbers go, soon."""
        with self._mutex:
            for source, number in positions.items():
                self._forgotten[source] = max(number, self._forgotten.get(source, 0))
            self._work.notify()

    # ------------------------------------------------------------------ the thread that writes

    def _write_all(self) -> None:
        stale, failed = time.monotonic() + 60, False
        while True:
            with self._mutex:
                while not (self._waiting or (self._goes and not failed) or self._closing):
                    self._work.wait(1.0 if failed or self.failure is not None else None)
                    failed = False
                    if self.failure is not None and not self._waiting:
                        break
                if self._closing and not self._waiting:
                    return
                group = self._group()
                forgotten, released = dict(self._forgotten), self._released[:_STEP]
            if group:
                self._commit(group)
            elif self.failure is not None:
                self._try_again()
            if forgotten or released or time.monotonic() > stale:
                failed = not self._remove(forgotten, released)
                stale = time.monotonic() + 60

    @property
    def _goes(self) -> bool:
        """Whether something is to go."""
        return bool(self._forgotten or self._released)

    def _try_again(self) -> None:
        """Whether there is room again for what could not be written."""
        path = self.folder / "inbox.probe"
        try:
            with open(path, "wb", buffering=0) as file:
                written = file.write(bytes(self._failed_size))
                os.fsync(file.fileno())
            if written == self._failed_size:
                self.failure = None
        except OSError:
            pass
        finally:
            with suppress(OSError):
                path.unlink()

    def _group(self) -> list[_Append]:
        """What goes into the next commit: of what waits, as much as is allowed and not cancelled."""
        group: list[_Append] = []
        count = size = 0
        while self._waiting and count < GROUP_ROWS and size < GROUP_BYTES:
            one = self._waiting.popleft()
            if one.future.set_running_or_notify_cancel():
                group.append(one)
                count += len(one.rows)
                size += one.size
            else:
                self._rows -= len(one.rows)
                self._bytes -= one.size
        return group

    def _commit(self, group: Sequence[_Append]) -> None:
        """Write a group in one transaction, and tell everybody who waits."""
        head = _Head(self._head.number, self._head.arrival, self._head.total)
        answers: list[Answers] = []
        failure: DotrError | None = None
        try:
            with self._transaction("FULL"):
                added = _Added([], [])
                for one in group:
                    answers.append(
                        [self._put(row, head, n in one.renewed, added) for n, row in enumerate(one.rows)]
                    )
                self._insert(added)
                self._save(head)
        except Exception as error:  # whoever waits must not wait for ever
            failure = error if isinstance(error, DotrError) else self._unwritable(str(error))
            head = self._head
            self._failed_size = sum(one.size for one in group) + _ROOM
        self.failure = failure
        with self._mutex:
            self._settle(group, [[] for _ in group] if failure else answers)
            self._head, self.last = head, head.number
            self._arrived.notify_all()
        for place, one in enumerate(group):
            found = answers[place][0] if failure is None and one.alone else failure
            if isinstance(found, DotrError):
                one.future.set_exception(found)
            else:
                one.future.set_result(found or answers[place])

    def _settle(self, group: Sequence[_Append], answers: Sequence[Answers]) -> None:
        """Count what is committed; what is not, counts no more."""
        for one, found in zip(group, answers, strict=True):
            rows = [
                len(row.content)
                for row, answer in zip(one.rows, found, strict=False)
                if isinstance(answer, Received) and not answer.duplicate
            ]
            size = sum(rows)
            if rows:
                self._count(one.rows[0].source, len(rows), size)
            self._rows -= len(one.rows) - len(rows)
            self._bytes -= one.size - size

    def _put(self, row: Row, head: _Head, renew: bool, added: _Added) -> Received | DotrError:
        """A row that is to be inserted, unless its key is known."""
        if row.key and not renew:
            self._insert(added)  # one of them may have the key
            known = self._known(row, digest(row.content), max(head.arrival, row.arrival))
            if known is not None:
                return known
        head.number += 1
        head.arrival = max(head.arrival, row.arrival)
        _, source, content, format_, stamp, _, key, mapping = row
        number, arrival = head.number, head.arrival
        hashed = row_digest((number, source, content, format_, stamp, arrival, key, mapping))
        head.total += int.from_bytes(hashed, "little")
        added.rows.append(
            (number, source, format_, stamp, arrival, key, mapping, len(content), hashed, content)
        )
        if key:
            values = (source, key, digest(content), number, arrival + self._key_time)
            added.keys.append((*values, row_digest(values)))
        return Received(number)

    def _insert(self, added: _Added) -> None:
        """Insert what is to be."""
        if added.rows:
            self._disk.insert(
                self._connection, "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", added.rows
            )
            added.rows.clear()
        if added.keys:
            self._disk.insert(
                self._connection, "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)", added.keys
            )
            added.keys.clear()

    def _known(self, row: Row, body: bytes, now: int) -> Received | DotrError | None:
        """The answer for a key that was used before."""
        found = self._connection.execute(
            "SELECT * FROM keys WHERE source = ? AND key = ?", (row.source, row.key)
        ).fetchone()
        if found is None:
            return None
        *values, hashed = found
        if row_digest(values) != hashed:
            return self._damaged(f"the key `{row.key}` was not committed so")
        if values[4] < now:
            return None
        if values[2] == body:
            return Received(values[3], duplicate=True)
        return RefusedError.of(
            "D5231",
            f"the key `{row.key}` was used for another document of `{row.source}`",
            notes=(f"that is row {values[3]}",),
            hint="send the same bytes with it, or other bytes with a new key",
        )

    def _remove(self, forgotten: Mapping[str, int], released: Sequence[tuple[str, str]]) -> bool:
        """A bounded part of the rows that are forgotten, and of keys that are released or too old, goes.
        Whether that could be written; if not, it goes later.
        """
        head = _Head(self._head.number, self._head.arrival, self._head.total)
        gone: list[tuple[str, int, int]] = []
        done: list[str] = []
        try:
            with self._transaction("NORMAL"):
                for source, last in forgotten.items():
                    rows = self._connection.execute(
                        """SELECT number, size, digest FROM rows WHERE source = ? AND number <= ?
                        ORDER BY number LIMIT ?""",
                        (source, last, _STEP),
                    ).fetchall()
                    if len(rows) < _STEP:
                        done.append(source)
                    if rows:
                        self._disk.execute(
                            self._connection,
                            "DELETE FROM rows WHERE source = ? AND number <= ?",
                            (source, rows[-1][0]),
                        )
                        gone.append((source, len(rows), sum(size for _, size, _ in rows)))
                        head.total -= sum(int.from_bytes(hashed, "little") for *_, hashed in rows)
                if released:
                    self._disk.insert(
                        self._connection, "DELETE FROM keys WHERE source = ? AND key = ?", released
                    )
                self._disk.execute(
                    self._connection,
                    """DELETE FROM keys WHERE (source, key) IN
                    (SELECT source, key FROM keys WHERE until < ? ORDER BY until LIMIT ?)""",
                    (head.arrival, _STEP),
                )
                self._save(head)
        except Exception:  # whatever it is, documents are still to be taken
            return False
        with self._mutex:
            self._head = head
            del self._released[: len(released)]
            for source, rows_gone, size in gone:
                self._count(source, -rows_gone, -size)
                self._rows -= rows_gone
                self._bytes -= size
            for source in done:
                if self._forgotten.get(source) == forgotten[source]:
                    del self._forgotten[source]
        return True

    def _save(self, head: _Head) -> None:
        total = (head.total % _ALL).to_bytes(_SIZE, "little")
        self._disk.execute(
            self._connection,
            "UPDATE head SET number = ?, arrival = ?, total = ?",
            (head.number, head.arrival, total),
        )

    @contextmanager
    def _transaction(self, synchronous: str) -> Iterator[None]:
        """All or nothing; FULL: also after a power cut. Raises EngineError."""
        execute, connection = self._disk.execute, self._connection
        with self._guarded():
            execute(connection, f"PRAGMA synchronous = {synchronous}")
            execute(connection, "BEGIN IMMEDIATE")
            try:
                yield
                execute(connection, "COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------ the end, and errors

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, and let go."""
        with self._mutex:
            self._closing = True
            self._work.notify_all()
            self._arrived.notify_all()
        self._writer.join()
        with self._reading:
            self._release()

    def _release(self) -> None:
        for connection in reversed(self._opened):
            with suppress(sqlite3.Error):
                connection.close()
        self._opened.clear()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> EngineError:
        """An error of SQLite or the operating system, as a diagnostic."""
        if is_damage(error, self.path):
            return self._damaged(str(error))
        return self._unwritable((error.strerror if isinstance(error, OSError) else None) or str(error))

    def _unwritable(self, reason: str) -> EngineError:
        return EngineError.of(
            "D4201",
            f"cannot write the inbox in `{self.folder}`: {reason.lower()}",
            place=str(self.folder),
            notes=("nothing that was accepted is lost",),
            hint="free space or make it writable, then send the document again",
        )

    def is_older(self, position: int) -> EngineError:
        """A feed has committed a position that this inbox has not reached."""
        return self._damaged(f"it ends with row {self.last}, and row {position} of it was fed already")

    def _is_full(self) -> RefusedError:
        return RefusedError.of(
            "D5230",
            f"the inbox in `{self.folder}` is full",
            place=str(self.folder),
            label=f"{self._rows:,} documents, {self._bytes:,} bytes",
            notes=(f"it may have {self._max_rows:,} documents and {self._max_bytes:,} bytes",),
            hint="send it again in a while; if the inbox stays full, the feed stands still, or is too slow",
        )

    def _other_row(self, number: int) -> EngineError:
        """A row that was not committed as it is."""
        found = EngineError.of(
            "D5105", f"row {number} of the inbox is not as it was committed", place=str(self.path)
        )
        return EngineError(
            [*found.diagnostics, *self._damaged("a row does not match its digest").diagnostics]
        )

    def _damaged(self, found: str) -> EngineError:
        return EngineError.of(
            "D5202",
            f"the inbox in `{self.folder}` is damaged",
            place=str(self.path),
            label=found,
            notes=("nothing was changed",),
            hint=f"restore a copy; to go on without what it has, remove {DATABASE} and its log",
        )


# ---------------------------------------------------------------------- what a feed reads

TimeMode: TypeAlias = str
"""Where the time of a source's graphs is: `event` in them, `arrival`, `header` beside the document, or
`event-or-arrival`: in them, else the arrival.
"""

TIME_MODES: Final = ("event", "arrival", "header", "event-or-arrival")

_WALL: Final = Clock(integer=False)

MEDIA_TYPES: Final[Mapping[str, Format]] = {
    "text/turtle": Format.TURTLE,
    "application/trig": Format.TRIG,
    "application/n-triples": Format.NTRIPLES,
    "application/n-quads": Format.NQUADS,
    "application/ld+json": Format.JSONLD,
    "application/rdf+xml": Format.RDFXML,
    "application/x-ndjson": Format.JSONLINES,
    "application/jsonl": Format.JSONLINES,
    "application/rdf-patch": Format.PATCH,
    "application/x-jelly-rdf": Format.JELLY,
}
"""Content types of documents."""


TABLE_TYPES: Final[Mapping[str, str]] = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "csv": "csv",
    "tsv": "tsv",
    "jsonl": "jsonl",
}
"""Content types and names of tables → how they are written; others are JSON."""


@lru_cache(256)
def format_called(name: str) -> Format | None:
    """The format with a content type (parameters do not count) or a name of ours; None for all others."""
    known = MEDIA_TYPES.get(name.partition(";")[0].strip().lower())
    return known or next((one for one in Format if one.value == name), None)


class InboxTransport:
    """The rows of an inbox as the documents of partitions, one a source. A position is the number of a row;
    rows go when a feed has committed behind them. `sources`: name → where their times are (`TIME_MODES`);
    what a sender gives beside a document comes first. `mappings`: by the names that rows have. `lines`:
    documents that do not say how they are written are JSON lines, one each as a rule.
    """

    name = "inbox"

    def __init__(
        self,
        inbox: Inbox,
        sources: Mapping[str, TimeMode],
        mappings: Mapping[str, TableMapping] | None = None,
        lines: bool = False,
    ) -> None:
        self._inbox, self.sources, self.mappings = inbox, dict(sources), dict(mappings or {})
        self._lines = lines
        self._seen = inbox.last
        self._whole: tuple[Origin, Origin] | None = None
        self.fed: dict[str, int] = {}
        """Source → the number of the last row that a commit has."""

    def partitions(self) -> Sequence[str]:
        """See `Transport`."""
        self._seen = self._inbox.last  # what comes from now on may be overlooked in this round
        return list(self.sources)

    def wait(self, seconds: float) -> None:
        """Return when there is a row that the last round may have overlooked; at most so long."""
        self._inbox.wait(seconds, self._seen)

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """See `Transport`. Raises EngineError where the inbox is not the one that the position is of."""
        after = position or 0
        if after > self._inbox.last:
            raise self._inbox.is_older(after)
        while rows := self._inbox.read(partition, after):
            yield together([self._document(row) for row in rows], self._lines)
            after = rows[-1].number

    def _document(self, row: Row) -> Document:
        mode, stamp = self.sources[row.source], row.time
        if mode == "arrival" and not stamp:
            stamp = _WALL.text(row.arrival)
        return Document(
            row.content,
            row.number,
            f"{row.source}@{row.number}",
            format_called(row.format),
            stamp,
            row.arrival if mode == "event-or-arrival" else None,
            self._mapping(row),
        )

    def _mapping(self, row: Row) -> TableMapping | None:
        """What makes graphs of a row; how its table is written is known from the row, if it does not say."""
        mapping = self.mappings.get(row.mapping)
        if mapping is None or mapping.format:
            return mapping
        return replace(mapping, format=TABLE_TYPES.get(row.format.partition(";")[0].strip().lower(), "json"))

    def position(self, partition: str, mark: Position) -> Position:
        """See `Transport`."""
        return mark

    def origin(self, place: str) -> Origin | None:
        """The document that a place is in, as messages call it; None where it is not one of these."""
        source, at, rest = place.rpartition("@")
        number = rest.partition(":")[0].partition(",")[0]
        if not at or source not in self.sources or not number.isdecimal():
            return None
        return Origin(source, int(number))

    def whole_origin(self, place: str) -> Origin | None:
        """As `origin`, with all that is known while the row is there."""
        found = self.origin(place)
        if found is None:
            return None
        if self._whole is None or self._whole[0] != found:  # a document may have many bad lines
            self._whole = found, self._of_row(found)
        return self._whole[1]

    def _of_row(self, found: Origin) -> Origin:
        rows = self._inbox.read(found.source, found.number - 1, 1)
        there = rows and rows[0].number == found.number
        if not there:
            return found
        return found._replace(format=rows[0].format, time=rows[0].time, mapping=rows[0].mapping)

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """See `Transport`."""
        self.fed |= {name: number for name, number in positions.items() if number}
        self._inbox.forget(self.fed)
