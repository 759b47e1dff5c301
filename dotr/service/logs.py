"""Logs of a deployment: events of the outbox, dead letters, and what became of documents of the inbox.

Place:   tables of the journal, which writes them in the transaction of a commit; outbox.py makes the rows and
         reads them.
Method:  events are numbered from 1 without gaps, so a row that is missing is seen by whoever reads its
         neighbours. The table `logs`, which has a sum, says from where to where they go. Every row has a
         digest. What is too old or too much goes in the transaction that adds rows, oldest first, a bounded
         part in each (so that a commit does not take longer after a change of what is kept), and no event
         that a kept cursor has not passed.
         An event is found by its id in the index of each 16,384 events, the last ones first: those that come
         and those that go are on few pages of it.
         A cursor is moved by whoever delivers, with a connection of its own, and counts from the next commit
         on. A move that a power cut takes back is a repeated delivery.
Why not: an index of all ids: 1,000 events that come among a million change almost as many of its pages, and
         so do those that go: four times the CPU time of a commit. Sums over the tables, as those of the
         journal have: to compare one would take reading the whole log. The age of an event by the wall clock:
         a replay would keep other rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

from dotr.events import Time
from dotr.service.database import Execute, Query, row_digest

LOG_TABLES = """
CREATE TABLE logs (name TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL,
                   bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox (number INTEGER PRIMARY KEY, time INTEGER NOT NULL, rule TEXT NOT NULL, id TEXT NOT NULL,
                     digest BLOB NOT NULL, line TEXT NOT NULL);
CREATE INDEX outbox_ids ON outbox (number >> 14, id);
CREATE TABLE letters (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL, time INTEGER,
                      code TEXT NOT NULL, format TEXT NOT NULL, digest BLOB NOT NULL, line TEXT NOT NULL,
                      content BLOB NOT NULL);
CREATE TABLE outcomes (number INTEGER PRIMARY KEY, source TEXT NOT NULL, digest BLOB NOT NULL,
                       content TEXT NOT NULL);
CREATE TABLE cursors (name TEXT PRIMARY KEY, number INTEGER NOT NULL, state TEXT NOT NULL,
                      digest BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO logs VALUES ('letters', 1, 0, 0), ('outbox', 1, 0, 0);
"""

UNBOUNDED: Final = ("outbox", "letters", "outcomes")
"""The tables that grow with what is fed."""

ID_SHIFT: Final = 14
"""Of a number, for its part of the index of ids."""

_SPARE: Final = 1_000
"""So many rows of a log may go at a commit, and twice as many as come."""

MAX_OUTCOMES: Final = 100_000

MAX_REFUSED: Final = 100
"""Diagnostics of one document: it is written again with each of its commits."""

Insert: TypeAlias = Callable[[str, Sequence[Sequence[Any]]], object]
"""Runs a statement with each of several rows."""


_CHANGE: Final = '{"change":'
_CORRECTED: Final = ('{"change":1,"corrected_at":', '{"change":-1,"corrected_at":')
TAKEN: Final = '{"change":-'
"""How lines begin (io/changes.py); the last, that of an event that is taken back."""


class OutboxRow(NamedTuple):
    """An event with its number; `line` is its JSON line, without an end. `time`: of the event, or when a
    correction added it or took it back.
    """

    number: int
    time: Time
    rule: str
    id: str
    line: str

    @property
    def change(self) -> int | None:
        """1, or -1 where the event is taken back; None where nothing is ever taken back."""
        if not self.line.startswith(_CHANGE):
            return None
        return -1 if self.line[len(_CHANGE)] == "-" else 1

    @property
    def corrected(self) -> bool:
        """Whether a correction added the event, or took it back."""
        return self.line.startswith(_CORRECTED)

    @property
    def key(self) -> str:
        """What names this row alone: the id of an event, and with it the number where a correction added it
        or took it back.
        """
        return f"{self.id}:{self.number}" if self.corrected else self.id


class Letter(NamedTuple):
    """A dead letter: of a document (or graph) that was `refused`, or of a graph that came `late`.

    `source` and `format`: of the document, "" where they are not known; `line`: place, code, diagnostic and
    whatever else is known, as a JSON object; `content`: the bytes.
    """

    number: int
    kind: str
    source: str
    time: Time | None
    code: str
    format: str
    line: str
    content: bytes


class Outcome(NamedTuple):
    """What became of a document of the inbox: how many graphs were taken and the spans of their times, both
    ends included; times of graphs that came late; diagnostics of what was refused, the first ones where there
    are many.
    """

    graphs: int = 0
    spans: Sequence[Sequence[Time]] = ()
    late: Sequence[Time] = ()
    refused: Sequence[str] = ()

    def joined(self, more: Outcome) -> Outcome:
        """This, and what came of later parts of the same document."""
        spans = joined_spans([*self.spans, *more.spans])
        return Outcome(
            self.graphs + more.graphs,
            spans,
            [*self.late, *more.late],
            [*self.refused, *more.refused][:MAX_REFUSED],
        )


_SPANS: Final = 64


def joined_spans(spans: Sequence[Sequence[Time]]) -> list[tuple[Time, Time]]:
    """Spans in order, none twice; all in one where they are too many."""
    found = sorted({(first, last) for first, last in spans})
    return found if len(found) <= _SPANS else [(found[0][0], max(last for _, last in found))]


class NewEvents(NamedTuple):
    """Events for the outbox: time, rule, id and line of each. Older ones go where their times are below `low`
    and where all lines together have more than `max_bytes`.
    """

    rows: Sequence[tuple[Time, str, str, str]]
    low: Time | None = None
    max_bytes: int | None = None


class NewLetters(NamedTuple):
    """Dead letters; their own numbers do not count. Older ones go beyond so many rows or bytes."""

    rows: Sequence[Letter]
    max_rows: int
    max_bytes: int


class LogBounds(NamedTuple):
    """The rows of a log: numbers from `first` to `last`, and bytes."""

    first: int
    last: int
    bytes: int


def read_bounds(query: Query, name: str) -> LogBounds:
    """Where a log begins and ends."""
    found = {of: LogBounds(*values) for of, *values in query("SELECT * FROM logs")}
    return found[name]


def write_bounds(execute: Execute, name: str, bounds: LogBounds) -> None:
    """Say where a log begins and ends."""
    execute("UPDATE logs SET first = ?, last = ?, bytes = ? WHERE name = ?", (*bounds, name))


def event_digest(row: OutboxRow) -> bytes:
    """As stored beside an event."""
    number, time, rule, id_, line = row
    return blake2b(f"{number} {time} {rule} {id_} {line}".encode(), digest_size=8).digest()


def write_events(execute: Execute, insert: Insert, query: Query, change: NewEvents) -> None:
    """Number events and append them; what is too old or too much goes."""
    bounds = read_bounds(query, "outbox")
    rows = [OutboxRow(number, *row) for number, row in enumerate(change.rows, bounds.last + 1)]
    insert(
        "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)",
        [(row.number, row.time, row.rule, row.id, event_digest(row), row.line) for row in rows],
    )
    first, last, size = bounds.first, bounds.last + len(rows), bounds.bytes
    size += sum([len(row.line.encode()) for row in rows])
    held = min((cursor.number for cursor in read_cursors(query) if not cursor.gone), default=last)
    low = change.low
    beyond = change.max_bytes is not None and size > change.max_bytes
    oldest = query(f"SELECT time FROM outbox WHERE number >= {first} ORDER BY number LIMIT 1")  # noqa: S608  # a number
    some = f"""SELECT number, time, length(CAST(line AS BLOB)) FROM outbox
        WHERE number BETWEEN {first} AND {held} ORDER BY number LIMIT {2 * len(rows) + _SPARE}"""  # noqa: S608  # numbers
    goes = beyond or any(low is not None and time < low for (time,) in oldest)
    for number, time, length in query(some) if goes else ():
        too_old = low is not None and time < low
        if not too_old and (change.max_bytes is None or size <= change.max_bytes):
            break
        first, size = number + 1, size - length
    if first > bounds.first:
        execute("DELETE FROM outbox WHERE number < ?", (first,))
    write_bounds(execute, "outbox", LogBounds(first, last, size))


def write_letters(execute: Execute, insert: Insert, query: Query, change: NewLetters) -> None:
    """Number dead letters and append them; what is too much goes."""
    first, last, size = read_bounds(query, "letters")
    rows = [row._replace(number=number) for number, row in enumerate(change.rows, last + 1)]
    insert("INSERT INTO letters VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [letter_values(row) for row in rows])
    last, size = last + len(rows), size + sum(map(letter_size, rows))
    old = query(
        f"""SELECT number, {_LETTER_SIZE} FROM letters ORDER BY number LIMIT {2 * len(rows) + _SPARE}"""  # noqa: S608  # numbers
    )
    for number, length in old:
        if size <= change.max_bytes and last - number < change.max_rows:
            break
        first, size = number + 1, size - length
    execute("DELETE FROM letters WHERE number < ?", (first,))
    write_bounds(execute, "letters", LogBounds(first, last, size))


_LETTER_SIZE: Final = "length(CAST(line AS BLOB)) + length(content)"


def letter_size(row: Letter) -> int:
    return len(row.line.encode()) + len(row.content)


def letter_values(row: Letter) -> tuple[Any, ...]:
    """The columns of a dead letter."""
    return (*row[:6], row_digest(row), row.line, row.content)


def letter_of(values: Sequence[Any]) -> Letter | None:
    """A dead letter of its columns; None where it is not as it was committed."""
    number, kind, source, time, code, format_, hashed, line, content = values
    row = Letter(number, kind, source, time, code, format_, line, content)
    return row if row_digest(row) == hashed else None


def drop_letters(execute: Execute, query: Query, numbers: Sequence[int]) -> None:
    """Take dead letters away."""
    first, last, size = read_bounds(query, "letters")
    for number in numbers:
        for (length,) in query(f"SELECT {_LETTER_SIZE} FROM letters WHERE number = {number:d}"):  # noqa: S608  # a number
            size -= length
        execute("DELETE FROM letters WHERE number = ?", (number,))
    write_bounds(execute, "letters", LogBounds(first, last, size))


def write_outcomes(execute: Execute, query: Query, outcomes: Mapping[int, tuple[str, Outcome]]) -> None:
    """Keep what became of documents, by their numbers in the inbox; of a known one, what came later, too."""
    (last,) = query("SELECT max(number) FROM outcomes")[0]
    for number, (source, outcome) in outcomes.items():
        if last is not None and number <= last:
            known = query(f"SELECT * FROM outcomes WHERE number = {number:d}")  # noqa: S608  # a number
            outcome = outcome_of(known[0]).joined(outcome) if known else outcome  # the whole of it
        content = json.dumps(outcome, separators=(",", ":"), ensure_ascii=False)
        values = (number, source, row_digest((number, source, content)), content)
        execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", values)
    if outcomes and last is not None:
        old = f"SELECT number FROM outcomes ORDER BY number DESC LIMIT 1 OFFSET {MAX_OUTCOMES:d}"  # noqa: S608  # a number
        for (beyond,) in query(old):
            execute(
                """DELETE FROM outcomes WHERE number IN
                (SELECT number FROM outcomes WHERE number <= ? ORDER BY number LIMIT ?)""",
                (beyond, 2 * len(outcomes) + _SPARE),
            )


def outcome_of(values: Sequence[Any]) -> Outcome:
    """What became of a document, of its columns. Raises ValueError where it is not as it was committed."""
    number, source, hashed, content = values
    if row_digest((number, source, content)) != hashed:
        raise ValueError(f"the outcome of document {number} is not as it was committed")
    return Outcome(*json.loads(content))


GONE: Final = "gone"
"""What the state of a cursor begins with whose output wants no more."""

FAILING: Final = "failing"
"""The same, of an output whose last delivery failed."""

ENDED: Final = "ended"
"""The same, of an output to which nothing can be delivered before the next start."""


class Cursor(NamedTuple):
    """How far a kept output has delivered the outbox; `state`: "" where it works, else one of the words
    above, for GONE also which receiver that was, and behind an end of line the error.
    """

    name: str
    number: int
    state: str = ""

    @property
    def gone(self) -> bool:
        """Whether it wants no more: nothing is kept for it."""
        return self.state.startswith(GONE)

    @property
    def word(self) -> str:
        """How the output is: `works`, or one of the words above."""
        return self.state.partition("\n")[0].partition(" ")[0] or "works"

    @property
    def error(self) -> str:
        """Why the last delivery failed; "" where it did not."""
        return self.state.partition("\n")[2]


def read_cursors(query: Query) -> list[Cursor]:
    """All cursors, by name. Raises ValueError for one that is not as it was written."""
    found = []
    for *values, hashed in query("SELECT * FROM cursors ORDER BY name"):
        if row_digest(values) != hashed:
            raise ValueError(f"the cursor `{values[0]}` is not as it was written")
        found.append(Cursor(*values))
    return found
