"""The outbox of a deployment: its events as numbered rows, from which every live output is read.

Place:   `Outbox`, `DeadLetterRows` and `Outcomes` are outputs of a feed; the journal takes their rows over in
         the transaction of the commit. `OutboxReader` and `Cursors` have connections of their own and are
         used by the threads of a server.
Method:  an event is there when the commit that found it is, and keeps its number: a reader that remembers the
         last number it has seen misses nothing and repeats nothing (`Last-Event-ID`, a page's `next`). Times
         never go back along the numbers, so a time is found by bisection: that of an event that a correction
         added or took back is when that was.
         Every row has a digest, and numbers have no gaps: a row that is damaged or missing is reported by
         whoever reads it. A reading is one transaction, so what goes meanwhile does not look missing.
         Waiting: in the process of the feed, `Outbox.confirm` wakes those who wait; in another one they look
         every 20 ms.
         An output that is kept by us (a webhook, a broker) is a cursor: the last number that it has
         delivered. Rows behind the last cursor stay; `Cursors.held` says how many, so that the feed can stop
         before it is too many.
Why not: a queue in memory for each reader: it is gone after a crash, and grows with the slowest. A sum over
         all rows, as other tables of the journal have one: to compare it would take reading all of them.
Bad state: D5105, D5202 damaged · D5201 no deployment.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from dotr.errors import NOT_WRITTEN, DataError, DotrError, EngineError
from dotr.events import Clock, Composite, Time
from dotr.io.events import formatter
from dotr.service.database import is_damage, row_digest
from dotr.service.journal import DATABASE, Prepared
from dotr.service.logs import (
    ID_SHIFT,
    MAX_REFUSED,
    TAKEN,
    Cursor,
    Letter,
    LogBounds,
    NewEvents,
    NewLetters,
    OutboxRow,
    Outcome,
    event_digest,
    joined_spans,
    letter_of,
    outcome_of,
    read_bounds,
    read_cursors,
)

LOOK: Final = 0.02
"""Seconds between two looks of those who wait in another process than the feed."""

_EVENT: Final = "number, time, rule, id, line, digest"

_SCAN: Final = 20_000
"""Rows that are looked at for those of some rules, in one reading."""

_MARKS: Final = 500
"""Values of one statement."""


class Outbox(Struct):
    """Owns the events since the last commit. See `Sink`.

    `keep`: how long events are kept, in µs of event time, or `max_bytes` of lines; None: for ever.
    `committed` gets to know that there are more. `changes`: lines have a sign, as corrections need it.
    """

    keep: Time | None = None
    max_bytes: int | None = None
    committed: Callable[[], None] = lambda: None
    changes: bool = False
    exactly_once: bool = True
    _format: Callable[[Sequence[Composite], Clock], str] = field(
        default_factory=lambda: formatter("jsonl", {})[1]
    )
    _rows: list[tuple[Time, str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.changes:
            from dotr.io.changes import changes_formatter  # noqa: PLC0415  # start-up: few feeds correct

            self._format = changes_formatter("jsonl", {})[1]

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        """See `Sink`."""
        lines = self._format(events, clock).split("\n")
        self._rows += [
            (event.time if event.correction is None else event.correction.at, event.rule, event.id, line)
            for event, line in zip(events, lines, strict=False)
        ]

    def resume(self, commit: int) -> None:
        """What is there is what the journal has."""
        self._rows.clear()

    def prepare(self, commit: int) -> Prepared:
        """The rows for the journal."""
        if not self._rows:
            return Prepared()
        low = None if self.keep is None else self._rows[-1][0] - self.keep
        return Prepared(events=NewEvents(self._rows, low, self.max_bytes))

    def confirm(self, commit: int) -> None:
        """The journal has the rows."""
        if self._rows:
            self._rows = []
            self.committed()

    def close(self) -> None:
        """Drop what no commit has."""
        self._rows.clear()


class Origin(NamedTuple):
    """Where a document came from: its source, its number in the inbox and, if that was asked for, its format
    (a content type or a name), and the time and the name of the mapping that its sender gave beside it.
    """

    source: str
    number: int
    format: str = ""
    time: str = ""
    mapping: str = ""


class DeadLetterRows(Struct):
    """Owns the dead letters (`refused`), or the late graphs (`late`), since the last commit. See
    `LetterOutput`. `origin`: the document that a place is in, None for another place.
    """

    kind: str
    origin: Callable[[str], Origin | None] = lambda _place: None
    max_rows: int = 100_000
    max_bytes: int = 1 << 28
    exactly_once: bool = True
    codes: dict[str, int] = field(default_factory=dict)
    """How many there were of each code."""
    _rows: list[Letter] = field(default_factory=list)

    def letter(self, line: str, place: str = "", time: Time | None = None) -> None:
        """See `LetterOutput`."""
        said: dict[str, Any] = json.loads(line)
        place = place or said.get("place", "")
        origin = self.origin(place) or Origin("", 0)
        format_ = origin.format
        beside = {"at": origin.time, "map": origin.mapping}
        if "document" in said:
            content = said.pop("document").encode()
        elif "base64" in said:
            content = base64.b64decode(said.pop("base64"))
        else:  # a graph with its time is a line of a source
            graph = {name: value for name, value in said.items() if name not in _ABOUT}
            content = json.dumps(graph, ensure_ascii=False, separators=(",", ":")).encode()
            format_, beside = "application/x-ndjson", {}
        code = said.get("code", "D2301")
        self.codes[code] = self.codes.get(code, 0) + 1
        about = {"place": place, **said, **{name: value for name, value in beside.items() if value}}
        self._rows.append(
            Letter(
                0,
                self.kind,
                origin.source,
                time,
                code,
                format_,
                json.dumps(about, ensure_ascii=False, separators=(",", ":")),
                content,
            )
        )

    def resume(self, commit: int) -> None:
        """What is there is what the journal has."""
        self._rows.clear()

    def prepare(self, commit: int) -> Prepared:
        """The rows for the journal."""
        return Prepared(letters=NewLetters(self._rows, self.max_rows, self.max_bytes) if self._rows else None)

    def confirm(self, commit: int) -> None:
        """The journal has the rows."""
        self._rows = []

    def close(self) -> None:
        """Drop what no commit has."""
        self._rows.clear()


_ABOUT: Final = ("place", "code", "diagnostic")


class _Growing(Struct):
    """What became of one document since the last commit."""

    source: str
    graphs: int = 0
    times: set[Time] = field(default_factory=set)
    late: list[Time] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Outcomes(Struct):
    """Owns what became of documents of the inbox since the last commit; the feed tells it. `origin`: the
    document that a place is in, None for what is not of the inbox. See `CommittedOutput`.
    """

    origin: Callable[[str], Origin | None]
    exactly_once: bool = True
    _found: dict[int, _Growing] = field(default_factory=dict)
    _place: str = ""
    _last: _Growing | None = None
    """Of the document that is at `_place`."""

    def _of(self, place: str) -> _Growing | None:
        if place != self._place:
            self._place, self._last = place, None
            origin = self.origin(place)
            if origin is not None:
                self._last = self._found.setdefault(origin.number, _Growing(origin.source))
        return self._last

    def taken(self, place: str, time: Time) -> None:
        """A graph with a time was read there."""
        found = self._of(place)
        if found is not None:
            found.graphs += 1
            found.times.add(time)

    def taken_run(self, places: Sequence[str], times: Sequence[Time]) -> None:
        """Graphs were read there, all of one source."""
        if self.origin(places[0]) is not None:
            for place, time_ in zip(places, times, strict=True):
                self.taken(place, time_)

    def passed(self, place: str, error: DotrError | None) -> None:
        """A document without a graph was read there, or something that cannot be read."""
        if error is not None:
            self.refused(place, error)
        else:
            self._of(place)

    def late(self, place: str, time: Time) -> None:
        """The graph that was read last came late."""
        found = self._of(place)
        if found is not None:
            found.late.append(time)

    def refused(self, place: str, error: DotrError) -> None:
        """Something there was refused, at once or with its instant."""
        found = self._of(place)
        if found is not None and len(found.refused) < MAX_REFUSED:
            found.refused.append(str(error))

    def resume(self, commit: int) -> None:
        """What is there is what the journal has."""
        self.close()

    def prepare(self, commit: int) -> Prepared:
        """The rows for the journal."""
        return Prepared(
            outcomes={
                number: (
                    one.source,
                    Outcome(
                        one.graphs, joined_spans([(time, time) for time in one.times]), one.late, one.refused
                    ),
                )
                for number, one in self._found.items()
            }
        )

    def confirm(self, commit: int) -> None:
        """The journal has the rows."""
        self.close()

    def close(self) -> None:
        """Drop what no commit has, or what one has."""
        self._found, self._place, self._last = {}, "", None


class _Connections:
    """Owns the connections of one process to a deployment's database: as many as threads that use one at the
    same time.
    """

    def __init__(self, folder: str, *, writes: bool = False) -> None:
        self.folder, self.path = Path(folder), Path(folder) / DATABASE
        if not self.path.exists():
            raise DataError.of(
                "D5201", f"there is no deployment in `{folder}`", place=folder, hint="dotr deploy RULES"
            )
        self._mode = "rw" if writes else "ro"
        self._mutex = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """A connection, in a transaction. What does not understand what it read has found damage. Raises
        EngineError.
        """
        connection: sqlite3.Connection | None = None
        try:
            with self._mutex:
                connection = self._idle.pop() if self._idle else None
            connection = connection or self._opened()
            connection.execute("BEGIN" if self._mode == "ro" else "BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise self._failure(error) from None
        except NOT_WRITTEN as error:
            raise self.damaged(str(error)[:200]) from error
        finally:
            self._done(connection)

    def _opened(self) -> sqlite3.Connection:
        where = f"{self.path.absolute().as_uri()}?mode={self._mode}"
        connection = sqlite3.connect(
            where, uri=True, isolation_level=None, timeout=10, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _done(self, connection: sqlite3.Connection | None) -> None:
        if connection is None:
            return
        with self._mutex:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Let go of those that are not in use; those in use go when they are not."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _failure(self, error: Exception) -> EngineError:
        if is_damage(error, self.path):
            return self.damaged(str(error))
        return EngineError.of(
            "D4201",
            f"cannot use the deployment in `{self.folder}`: {str(error).lower()}",
            place=str(self.folder),
        )

    def damaged(self, found: str) -> EngineError:
        """What was read is not what was committed."""
        return EngineError.of(
            "D5202",
            f"the deployment in `{self.folder}` is damaged",
            place=str(self.path),
            label=found,
            notes=("nothing was changed",),
            hint="restore a copy, or deploy again with another --dir and feed again from the start",
        )


class OutboxPage(NamedTuple):
    """Rows, the number up to which the outbox was looked at for them, and that of the first event kept."""

    rows: list[OutboxRow]
    upto: int
    first: int


class OutboxReader:
    """Reads what a deployment has committed: events, dead letters, outcomes. For any number of threads; use
    as a context. `look`: seconds between two looks at the file of those who wait; None: `notify` wakes them.
    """

    def __init__(self, folder: str, *, look: float | None = LOOK) -> None:
        """Raises DataError D5201."""
        self._connections = _Connections(folder)
        self._look = look
        self._changed = threading.Condition()
        self._told = 0
        self._closed = False

    def __enter__(self) -> OutboxReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wake those who wait, and let go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._connections.close()

    # ------------------------------------------------------------------ events

    def after(self, number: int, limit: int = 1_000, rules: Sequence[str] | None = None) -> list[OutboxRow]:
        """The first events behind a number, at most so many, of all rules or of these."""
        rows: list[OutboxRow] = []
        while True:
            page = self.page(number, limit - len(rows), rules)
            rows += page.rows
            if len(rows) >= limit or page.upto <= number or page.upto >= self.last():
                return rows
            number = page.upto

    def page(self, number: int, limit: int = 1_000, rules: Sequence[str] | None = None) -> OutboxPage:
        """As `after`, in one reading: of a rule that has few events it may find fewer than there are, and
        `upto` is where to go on. Raises EngineError D5202 for a row that is missing or not as committed.
        """
        with self._connections.using() as connection:
            first, last, _ = _bounds(connection, "outbox")
            begin = max(number + 1, first)
            upto = min(last, begin + _SCAN - 1) if rules is not None else last
            some = "" if rules is None else f"AND rule IN ({', '.join('?' * len(rules))})"
            found = connection.execute(
                f"""SELECT {_EVENT} FROM outbox
                WHERE number BETWEEN ? AND ? {some} ORDER BY number LIMIT ?""",  # noqa: S608  # question marks
                (begin, upto, *(rules or ()), limit),
            ).fetchall()
            rows = [self._row(values) for values in found]
            if rules is None:
                wanted = min(limit, last - begin + 1)
                if [row.number for row in rows] != list(range(begin, begin + wanted)):
                    raise self._connections.damaged(f"events from {begin} on are missing")
            if len(rows) == limit:
                upto = rows[-1].number if rows else number
            return OutboxPage(rows, max(upto, number), first)

    def page_before(self, number: int, limit: int = 1_000, rules: Sequence[str] | None = None) -> OutboxPage:
        """As `page`, the other way: the events before a number, the last one first. `upto` is the number
        before which to go on; it is `first` where nothing is left.
        """
        with self._connections.using() as connection:
            first, last, _ = _bounds(connection, "outbox")
            end = min(number, last + 1)
            begin = max(first, end - _SCAN) if rules is not None else first
            some = "" if rules is None else f"AND rule IN ({', '.join('?' * len(rules))})"
            found = connection.execute(
                f"""SELECT {_EVENT} FROM outbox
                WHERE number >= ? AND number < ? {some} ORDER BY number DESC LIMIT ?""",  # noqa: S608  # question marks
                (begin, end, *(rules or ()), limit),
            ).fetchall()
            rows = [self._row(values) for values in found]
            if rules is None and [row.number for row in rows] != list(range(end - 1, begin - 1, -1)[:limit]):
                raise self._connections.damaged(f"events before {end} are missing")
            upto = rows[-1].number if rows and len(rows) == limit else begin
            return OutboxPage(rows, max(upto, first), first)

    def counts(
        self, after: int, before: int, begin: Time, width: Time, changes: bool = False
    ) -> list[tuple[str, int, int, int]]:
        """(rule, bucket, how many, how many that are taken back) of the events between two numbers, neither
        included; a bucket is so many µs, the first one begins at a time. `changes`: events have signs.
        Cost: the rows between.
        """
        sign = f"substr(line, 1, {len(TAKEN)}) = '{TAKEN}'" if changes else "0"
        query = f"""SELECT rule, (time - ?) / ?, sum(NOT gone), sum(gone)
            FROM (SELECT number, rule, time, {sign} AS gone FROM outbox)
            WHERE number > ? AND number < ? GROUP BY 1, 2 ORDER BY 1, 2"""  # noqa: S608  # a constant
        with self._connections.using() as connection:
            return connection.execute(query, (begin, width, after, before)).fetchall()

    def _row(self, values: Sequence[Any]) -> OutboxRow:
        row = OutboxRow(*values[:5])
        if event_digest(row) != values[5]:
            raise self._connections.damaged(f"event {row.number} is not as it was committed")
        return row

    def last(self) -> int:
        """The number of the last event, 0 before the first."""
        return self.bounds().last

    def first(self) -> int:
        """The number of the first event that is still there; one more than the last where none is."""
        return self.bounds().first

    def bounds(self) -> LogBounds:
        """From where to where events go, and how many bytes their lines have."""
        with self._connections.using() as connection:
            return _bounds(connection, "outbox")

    def times(self, numbers: Sequence[int]) -> dict[int, Time]:
        """The times of some events, of those that are still there."""
        found: dict[int, Time] = {}
        with self._connections.using() as connection:
            for begin in range(0, len(numbers), _MARKS):
                some = numbers[begin : begin + _MARKS]
                marks = ", ".join("?" * len(some))
                query = f"SELECT number, time FROM outbox WHERE number IN ({marks})"  # noqa: S608  # question marks
                found.update(connection.execute(query, some).fetchall())
        return found

    def by_id(self, id_: str) -> OutboxRow | None:
        """The event with an id, while it is kept; of one that corrections changed, the last row."""
        query = f"""SELECT {_EVENT} FROM outbox WHERE number >> {ID_SHIFT} = ? AND id = ?
            ORDER BY number DESC LIMIT 1"""  # noqa: S608  # columns
        with self._connections.using() as connection:
            first, last, _ = _bounds(connection, "outbox")
            for part in range(last >> ID_SHIFT, (first >> ID_SHIFT) - 1, -1):
                values = connection.execute(query, (part, id_)).fetchone()
                if values is not None:
                    return self._row(values)
        return None

    def since(self, time: Time) -> int:
        """The number behind which the events of a time and later stand, of those that are still there."""
        with self._connections.using() as connection:
            first, last, _ = _bounds(connection, "outbox")
            low, high = first, last + 1
            while low < high:
                middle = (low + high) // 2
                found = connection.execute("SELECT time FROM outbox WHERE number = ?", (middle,)).fetchone()
                if found is None:
                    raise self._connections.damaged(f"event {middle} is missing")
                if found[0] < time:
                    low = middle + 1
                else:
                    high = middle
            return low - 1

    def notify(self) -> None:
        """There is more; the feed calls it after a commit."""
        last = self.last()
        with self._changed:
            self._told = max(last, self._told)
            self._changed.notify_all()

    def wait(self, seconds: float, after: int) -> None:
        """Return when there is an event behind that number, at once where there is one; at most so long."""
        until = time.monotonic() + seconds
        while self.last() <= after:
            left = until - time.monotonic()
            if left <= 0 or self._closed:
                return
            with self._changed:
                self._changed.wait_for(
                    lambda: self._told > after or self._closed,
                    left if self._look is None else min(left, self._look),
                )

    # ------------------------------------------------------------------ dead letters, outcomes

    def letters(self, after: int = 0, limit: int = 100, kind: str = "") -> list[Letter]:
        """Dead letters behind a number, at most so many, of both kinds or of one."""
        some = "AND kind = ?" if kind else ""
        query = f"SELECT * FROM letters WHERE number > ? {some} ORDER BY number LIMIT ?"  # noqa: S608  # one of two
        with self._connections.using() as connection:
            values = (after, kind, limit) if kind else (after, limit)
            return [self._letter(row) for row in connection.execute(query, values)]

    def letter(self, number: int) -> Letter | None:
        """One dead letter, while it is there."""
        with self._connections.using() as connection:
            row = connection.execute("SELECT * FROM letters WHERE number = ?", (number,)).fetchone()
            return None if row is None else self._letter(row)

    def _letter(self, values: Sequence[Any]) -> Letter:
        found = letter_of(values)
        if found is None:
            raise self._connections.damaged(f"dead letter {values[0]} is not as it was committed")
        return found

    def outcome(self, number: int) -> Outcome | None:
        """What became of a document of the inbox; None before a commit has it, and when it is too old."""
        with self._connections.using() as connection:
            row = connection.execute("SELECT * FROM outcomes WHERE number = ?", (number,)).fetchone()
            return None if row is None else outcome_of(row)

    def cursors(self) -> list[Cursor]:
        """The kept outputs and how far they are."""
        with self._connections.using() as connection:
            return read_cursors(_query(connection))


def _query(connection: sqlite3.Connection) -> Callable[[str], list[tuple[Any, ...]]]:
    return lambda query: connection.execute(query).fetchall()


def _bounds(connection: sqlite3.Connection, name: str) -> LogBounds:
    return read_bounds(_query(connection), name)


class Cursors:
    """Owns the numbers up to which kept outputs have delivered the outbox, one a name. For any number of
    threads; use as a context.
    """

    def __init__(self, folder: str) -> None:
        """Raises DataError D5201, EngineError."""
        self._connections = _Connections(folder, writes=True)
        self._mutex = threading.Lock()
        with self._connections.using() as connection:
            self._known = {cursor.name: cursor for cursor in read_cursors(_query(connection))}

    def __enter__(self) -> Cursors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go."""
        self._connections.close()

    def all(self) -> Mapping[str, Cursor]:
        """Every cursor by its name."""
        with self._mutex:
            return dict(self._known)

    def begin(self, name: str, number: int = 0) -> Cursor:
        """The cursor of an output; a new one has delivered everything up to that number."""
        with self._mutex:
            found = self._known.get(name)
            return found if found is not None else self._put(Cursor(name, number))

    def move(self, name: str, number: int, state: str = "") -> None:
        """An output has delivered everything up to that number. Raises EngineError."""
        with self._mutex:
            self._put(Cursor(name, number, state))

    def _put(self, cursor: Cursor) -> Cursor:
        with self._connections.using() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?)", (*cursor, row_digest(cursor))
            )
        self._known[cursor.name] = cursor
        return cursor

    def drop(self, name: str) -> None:
        """An output is not kept any more."""
        with self._mutex:
            with self._connections.using() as connection:
                connection.execute("DELETE FROM cursors WHERE name = ?", (name,))
            self._known.pop(name, None)

    def held(self, last: int) -> int:
        """How many events up to the `last` one wait for the slowest output."""
        with self._mutex:
            return max((last - cursor.number for cursor in self._known.values()), default=0)
