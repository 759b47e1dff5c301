"""The journal of a deployment: one SQLite file in which everything that must agree commits together.

Place:   below deployment.py (rules) and feed.py (streams); the only code that speaks SQL. Every change to the
         disk goes through one place, so that tests can let it fail.
Method:  write-ahead log, one transaction per commit: engine snapshot, source positions, output lengths.
         Output files are synced before the transaction and cut back to the committed length at the next
         start, so a kill at any point neither loses nor repeats an event. A second process is kept out by an
         exclusive transaction on a separate file, which the operating system ends with the process. A commit
         that follows output is synced itself, so that no power cut rolls it back to before what was written.
         Older versions of the tables are converted.
         Row sums (database.py): rows that nobody committed, and rows that are missing, are found. Nothing is
         taken from a table whose rows differ from its sum: small tables are compared when the database is
         opened, others when they are read, which reads the whole table anyway.
         Logs (logs.py): events of the outbox, dead letters and outcomes are rows of the commit's transaction.
         Lasting: a statement is one row, so that a commit writes what changed since the last one, however
         much is held. A message given by `dotr feed --insert` is kept as received, its time included: what
         the wall clock showed is data from then on. What is deployed from a later time on waits as a whole.
         Explanations: messages of the last days in the order of the feed, compressed: a state of the engine,
         then the messages after it, commit by commit. Further states follow at intervals, so that what is too
         old is dropped in whole stretches and the rest begins with a state; at most LIMIT bytes, whatever was
         asked for.
         Closed background: a row, or for a large one a file to be mapped, with its hash in its name. The row
         also has the file's size and time of writing: a file that has both is unchanged. One that has not
         (the folder was copied) is read and compared with its name.
Why not: files renamed into place: three of them do not change together. An outbox in a file of its own: a
         kill between two transactions would lose events, or repeat them.
Bad state: D5105 rows that were not committed · D5201 no deployment · D5202 damaged · D5203 another version ·
           D5204 in use · D4201 cannot be written.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from dotr.enrich.closing import Closed
from dotr.errors import NOT_WRITTEN, DataError, DotrError, EngineError, RefusedError
from dotr.events import Time
from dotr.io.feeds import FILES, Position
from dotr.io.outputs import write_whole
from dotr.io.rules_and_background import content_name, mapped
from dotr.lasting.periods import Entry
from dotr.rdf.mapped import Content
from dotr.rdf.terms import Term, Triple
from dotr.service.database import (
    SUMMED_TABLES,
    Disk,
    Execute,
    Query,
    RowSums,
    columns_in,
    digest,
    is_damage,
    locked,
)
from dotr.service.logs import (
    LOG_TABLES,
    UNBOUNDED,
    Cursor,
    NewEvents,
    NewLetters,
    Outcome,
    drop_letters,
    read_bounds,
    read_cursors,
    write_events,
    write_letters,
    write_outcomes,
)

if TYPE_CHECKING:
    from dotr.core.corrections import PeriodChange  # start-up: few deployments are corrected

LASTING_TABLES = """
CREATE TABLE stated (triple TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE given (id INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE planned (id INTEGER PRIMARY KEY CHECK (id = 1), time INTEGER NOT NULL, content TEXT NOT NULL,
                      triples BLOB NOT NULL);
"""


class PlannedProgram(NamedTuple):
    """What is deployed from a time on. `clock`: (whether times are integers, their unit), for `time`;
    `content`: files, texts, removed rules and the hash of the background; `background`: its triples as
    N-Triples.
    """

    time: Time
    clock: tuple[bool, int]
    content: Mapping[str, Any]
    background: str


def write_stated(execute: Execute, changed: Mapping[Triple, Entry | None]) -> None:
    """Take over how statements changed since the last commit."""
    for triple, entry in changed.items():
        key = " ".join(triple)
        if entry is None:
            execute("DELETE FROM stated WHERE triple = ?", (key,))
        else:
            execute("INSERT OR REPLACE INTO stated VALUES (?, ?)", (key, json.dumps(entry)))


def read_stated(query: Query) -> list[list[Any]]:
    """Every statement, as `Periods.load` takes them."""
    found = []
    for key, entry in query("SELECT * FROM stated"):
        subject, predicate, object_ = key.split(" ", 2)
        found.append([subject, predicate, object_, *json.loads(entry)])
    return found


PERIOD_TABLES = """
CREATE TABLE period (id INTEGER PRIMARY KEY, high INTEGER NOT NULL, content BLOB NOT NULL);
"""


def write_period(execute: Execute, change: PeriodChange) -> None:
    """Take over how the graphs of a period of corrections changed. `high`: the last time in a row."""
    if change.anew:
        execute("DELETE FROM period", ())
    if change.low is not None:
        execute("DELETE FROM period WHERE high < ?", (change.low,))
    if change.entries:
        high = max(time for time, *_ in change.entries)
        values = (high, zlib.compress(encode(change.entries), 1))
        execute("INSERT INTO period (high, content) VALUES (?, ?)", values)


def read_period(query: Query) -> list[Any]:
    """Every change of the graphs of the period that is kept, in order."""
    rows = sorted(query("SELECT * FROM period"))
    return [entry for *_, content in rows for entry in json.loads(_unpacked(content))]


def write_given(execute: Execute, lines: Sequence[str]) -> None:
    """Keep messages that a command gave."""
    for line in lines:
        execute("INSERT INTO given (line) VALUES (?)", (line,))


def read_given(query: Query) -> list[str]:
    """The messages that commands gave, in order, as JSON lines."""
    return [line for _, line in query("SELECT * FROM given ORDER BY id")]


def write_plan(execute: Execute, plan: PlannedProgram | None) -> None:
    """Keep a plan instead of the one before; None takes it away."""
    execute("DELETE FROM planned", ())
    if plan is not None:
        content = json.dumps({"clock": plan.clock, **plan.content})
        packed = zlib.compress(plan.background.encode(), 1)
        execute("INSERT INTO planned VALUES (1, ?, ?, ?)", (plan.time, content, packed))


def read_plan(query: Query) -> PlannedProgram | None:
    """What is deployed from a time on that has not come yet."""
    for _, time, content, packed in query("SELECT * FROM planned"):
        known = json.loads(content)
        integer, unit = known.pop("clock")
        return PlannedProgram(time, (integer, unit), known, zlib.decompress(packed).decode())
    return None


KEPT_TABLES = """
CREATE TABLE kept (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, time INTEGER, graphs INTEGER NOT NULL,
                   content BLOB NOT NULL);
"""

LIMIT = 1 << 30
"""Bytes, about, beyond which the oldest stretch goes."""


class KeptMessage(NamedTuple):
    """One message: `part` as `plain` of events.py has it. `left_out`: it came too late, or too far ahead."""

    time: Time
    part: Any
    place: str
    left_out: bool = False


class KeptCorrection(Struct, frozen=True):
    """A correction: `at` the watermark, the late messages that it took, and what became of events: (1 or -1,
    id, time).
    """

    at: Time
    late: Sequence[KeptMessage]
    changed: Sequence[tuple[int, str, Time]] = ()


class KeptRow(NamedTuple):
    """A state of the engine that holds up to `time`, or messages up to it. Where corrections are made, a
    state is one that none of them can reach any more, and messages of a row that follows it may be older than
    it is, those of one before it later: none is later than its row's time.
    """

    time: Time | None
    state: dict[str, Any] | None = None
    messages: Sequence[KeptMessage | KeptCorrection] = ()


class KeptSummary(NamedTuple):
    """What is kept: messages, bytes, and from which time on all of them; None: from the beginning."""

    graphs: int
    bytes: int
    since: Time | None


@dataclass(frozen=True, slots=True)
class KeptChange:
    """What one commit changes: `replaces`: what was kept goes. Then rows, and what is no more needed for
    times from `low` on goes.
    """

    replaces: bool = False
    rows: Sequence[KeptRow] = dataclass_field(default_factory=tuple)
    low: Time | None = None


def write_kept(execute: Execute, query: Query, change: KeptChange, limit: int = LIMIT) -> None:
    """Take over what a commit changes."""
    if change.replaces:
        execute("DELETE FROM kept", ())
    for row in change.rows:
        if row.state is not None:
            content = json.dumps(row.state, separators=(",", ":"), ensure_ascii=False).encode()
        else:
            content = encode(row.messages)  # a tenth of the time: there are many
        values = (int(row.state is not None), row.time, len(row.messages), zlib.compress(content, 1))
        execute("INSERT INTO kept (state, time, graphs, content) VALUES (?, ?, ?, ?)", values)
    states = query("SELECT id, time FROM kept WHERE state ORDER BY id")
    old = "DELETE FROM kept WHERE id < ? AND (state OR time IS NULL OR time <= ?)"
    begins = [(n, t) for n, t in states[1:] if change.low is not None and t is not None and t < change.low]
    if begins:
        execute(old, begins[-1])
    sizes = query("SELECT id, state, time, length(content) FROM kept ORDER BY id DESC")
    total = 0
    for number, state, time, size in sizes:
        total += size
        if total > limit and state and number != sizes[-1][0]:
            execute(old, (number, time))
            break


class KeptRows(Sequence[KeptRow]):
    """What is kept, in order; rows are unpacked when they are asked for, each time. `reading`: around that,
    where what cannot be understood is damage.
    """

    def __init__(
        self,
        rows: Sequence[tuple[Any, ...]],
        reading: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._rows, self._reading = rows, reading

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> KeptRow: ...
    @overload
    def __getitem__(self, place: slice) -> KeptRows: ...
    def __getitem__(self, place: int | slice) -> KeptRow | KeptRows:
        if isinstance(place, slice):
            return KeptRows(self._rows[place], self._reading)
        _, state, time, _, content = self._rows[place]
        with self._reading():
            value = json.loads(zlib.decompress(content))
            if state:
                return KeptRow(time, value)
            return KeptRow(time, None, [_message_of(one) for one in value])

    def state_before(self, time: Time) -> int | None:
        """The place of the last state of before a time; None where all are later."""
        places = [
            place for place, row in enumerate(self._rows) if row[1] and (row[2] is None or row[2] < time)
        ]
        return places[-1] if places else None

    def up_to(self, time: Time) -> KeptRows:
        """Without rows of messages that came when all up to a time had run: none of them is of then."""
        end = next(
            (n for n, row in enumerate(self._rows) if row[2] is not None and row[2] >= time), len(self._rows)
        )
        return self[: end + 1]

    @property
    def since(self) -> Time | None:
        """Up to when the first state holds; None: from the beginning on."""
        time: Time | None = next((row[2] for row in self._rows if row[1]), None)
        return time

    def mentions(self, place: int, text: str) -> bool:
        """Whether a row of messages may hold a string; cheaper than to read them."""
        return not self._rows[place][1] and text.encode() in zlib.decompress(self._rows[place][4])


def _message_of(value: Any) -> KeptMessage | KeptCorrection:
    """A message, or a correction, as JSON has it."""
    if type(value) is list:
        return KeptMessage(*value)
    late = [KeptMessage(*one) for one in value["late"]]
    return KeptCorrection(value["at"], late, [(sign, name, time) for sign, name, time in value["changed"]])


def read_kept(query: Query, reading: Callable[[], AbstractContextManager[None]] = nullcontext) -> KeptRows:
    """Everything that is kept, in order."""
    return KeptRows(query("SELECT * FROM kept ORDER BY id"), reading)


def read_kept_summary(query: Query) -> KeptSummary | None:
    """How much is kept; None where nothing is."""
    rows = query("SELECT time, graphs, length(content), state FROM kept ORDER BY id")
    if not rows:
        return None
    since = next((row[0] for row in rows if row[3]), None)
    return KeptSummary(sum(row[1] for row in rows), sum(row[2] for row in rows), since)


FORMAT = 9
"""Of the tables. Those of an older one are brought up to date (`UPDATES`), a newer one is refused."""

POSITIONS = """
CREATE TABLE positions (source TEXT NOT NULL, part TEXT NOT NULL, position TEXT NOT NULL,
                        PRIMARY KEY (source, part)) WITHOUT ROWID;
"""

TABLES = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (place INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE texts (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE removed (rule TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (rule, file)) WITHOUT ROWID;
CREATE TABLE background (id INTEGER PRIMARY KEY CHECK (id = 1), hash TEXT NOT NULL, triples BLOB NOT NULL);
CREATE TABLE closed (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL, hash BLOB NOT NULL,
                     content BLOB NOT NULL);
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), snapshot BLOB NOT NULL, status TEXT NOT NULL);
CREATE TABLE outputs (path TEXT PRIMARY KEY, format TEXT NOT NULL, length INTEGER NOT NULL,
                      tail TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
"""
    + POSITIONS
    + LASTING_TABLES
    + KEPT_TABLES
    + SUMMED_TABLES
    + LOG_TABLES
    + PERIOD_TABLES
)

_FILES = """
INSERT INTO positions
    SELECT 'files', file, json_array(how, "end", carried, size, hash, finished) FROM sources;
DROP TABLE sources;
"""

UPDATES = {
    1: """
ALTER TABLE removed RENAME TO removed_before;
CREATE TABLE removed (rule TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (rule, file)) WITHOUT ROWID;
INSERT INTO removed SELECT rule, path FROM removed_before, files;
DROP TABLE removed_before;
CREATE TABLE closed (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL, hash BLOB NOT NULL,
                     content BLOB NOT NULL);
""",
    2: LASTING_TABLES,
    3: "ALTER TABLE outputs ADD COLUMN tail TEXT NOT NULL DEFAULT '';",
    4: KEPT_TABLES,
    5: POSITIONS + _FILES,
    6: SUMMED_TABLES,
    7: LOG_TABLES,
    8: PERIOD_TABLES,
}
"""Format → the statements that make the next one of it."""


class OutputLength(NamedTuple):
    """How long an output is at a commit; `tail` as in `OutputRow`."""

    length: int
    tail: str = ""


class Prepared(NamedTuple):
    """What the transaction of a commit takes over from an output: lengths of files, by path, and rows."""

    lengths: Mapping[str, OutputLength] = {}
    events: NewEvents | None = None
    letters: NewLetters | None = None
    outcomes: Mapping[int, tuple[str, Outcome]] = {}


class OutputRow(NamedTuple):
    """An output: `tail` is the hash of the last bytes of what was committed, "" where none is known."""

    format: str
    length: int
    tail: str = ""


class Deployed(Struct, frozen=True):
    """What is deployed: root files in order, the text of every rule file, rules taken out.

    `removed`: (root file, rule name). Another file may have a rule of that name.
    """

    files: tuple[str, ...] = ()
    texts: Mapping[str, str] | None = None
    removed: frozenset[tuple[str, str]] = frozenset()
    background: str = ""
    """The hash of the background's triples."""
    functions: tuple[tuple[Term, str], ...] = ()
    """The functions of one's own that it calls, and their versions, when it last ran."""


class Commit(Struct, frozen=True):
    """What one commit of a feed changes. `positions`: of sources, by their names and those of partitions.

    `stated`: `Pipeline.stated()`, which is not in the snapshot; `given`: messages that came with the command;
    `adopted`: whether what was planned is what is deployed now; `kept`: for explanations; `period`: the
    graphs that may be corrected, which are not in the snapshot.
    """

    snapshot: Mapping[str, Any]
    status: Mapping[str, Any]
    positions: Mapping[tuple[str, str], Position]
    outputs: Sequence[Prepared]
    stated: Mapping[Triple, Entry | None] = field(default_factory=dict)
    given: Sequence[str] = ()
    adopted: bool = False
    kept: KeptChange | None = None
    period: PeriodChange | None = None


def planned(plan: PlannedProgram) -> Deployed:
    """What a plan deploys."""
    content = plan.content
    removed = frozenset((file, rule) for file, rule in content["removed"])
    functions = _pairs(content.get("functions", ()))
    return Deployed(tuple(content["files"]), content["texts"], removed, content["background"], functions)


def _pairs(found: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, version) for name, version in found)


def digest_of(deployed: Deployed) -> str:
    """A hash of what is deployed: the rules run as they were written, or not at all."""
    texts = sorted((deployed.texts or {}).items())
    content: list[Any] = [deployed.files, texts, sorted(deployed.removed), deployed.background]
    if deployed.functions:
        content.append(deployed.functions)
    return digest(json.dumps(content).encode()).hex()


ROW_LIMIT = 64 * 1024 * 1024
"""Bytes beyond which a file is better than a row."""

_FILE: Final = b"dotr file "
_NAME: Final = "closed-*.background"


def write(folder: Path, closed: Closed) -> bytes:
    """What the row is to say; a file is written instead of those that are there. Raises EngineError D4201."""
    contents = closed.contents()
    if not closed.index.large and sum(memoryview(part).nbytes for part in contents) <= ROW_LIMIT:
        return zlib.compress(b"".join(contents), 1)
    path = folder / _NAME.replace("*", content_name(contents))
    write_whole(str(path), contents)
    for other in folder.glob(_NAME):
        if other != path:
            other.unlink(missing_ok=True)  # who has it mapped keeps it
    stat = path.stat()
    return _FILE + json.dumps([path.name, stat.st_size, stat.st_mtime_ns]).encode()


def read(folder: Path, row: bytes) -> Content | None:
    """The content that a row has or names; None where it is missing or damaged."""
    if not row.startswith(_FILE):
        try:
            return zlib.decompress(row)
        except zlib.error:
            return None
    try:
        name, size, written = json.loads(row[len(_FILE) :])
        if not fnmatchcase(name, _NAME) or os.path.basename(name) != name:
            return None
        path = str(folder / name)
        content = mapped(path)
        stat = os.stat(path)
    except (DotrError, OSError, *NOT_WRITTEN):
        return None
    if (stat.st_size, stat.st_mtime_ns) != (size, written):
        return content if name == _NAME.replace("*", content_name([content])) else None
    return content


DATABASE, LOCK = "deployment.db", "lock.db"
"""The files of a deployment; beside the first stands its log."""

_LARGE: Final = 64 << 20
"""Bytes of a database beyond which pages of logs are not checked at opening: that takes 2 s for 500 MB."""

_SMALL = ("meta", "files", "texts", "removed", "outputs", "positions", "planned", "logs")
"""The tables that are compared when a deployment is opened."""


def _unfollowed(_commit: Commit | None) -> None:
    """Nobody wants to be told of commits."""


class Journal:
    """Owns the connection to a deployment's database. Use as a context; `exclusive` keeps others out. Without
    it, it is a look at the last commit: all that is read is of that one. While it is open the log grows.
    """

    def __init__(
        self, folder: str, *, create: bool = False, exclusive: bool = True, disk: Disk | None = None
    ) -> None:
        self.folder = Path(folder)
        self.disk = disk or Disk()
        self.follower: Callable[[Commit | None], None] = _unfollowed
        """Gets every commit of a feed when it is made, and None when what is deployed changed."""
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
        journal.follower = _unfollowed
        journal._connection = sqlite3.connect(":memory:", isolation_level=None)
        journal._sums = journal._summed()
        journal._open(new=True, exclusive=True)
        return journal

    def _locked(self) -> sqlite3.Connection:
        """The lock on the deployment, held until it is closed. Raises RefusedError D5204."""
        lock = locked(self.folder / LOCK)
        if lock is None:
            raise RefusedError.of(
                "D5204",
                f"the deployment in `{self.folder}` is in use by another process",
                place=str(self.folder),
                hint="wait until that feed or deploy ends, or stop it with Ctrl-C",
            )
        return lock

    def _bare(self) -> bool:
        """Whether a deploy was ended before it had made the tables."""
        return self._connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None

    def _open(self, new: bool, exclusive: bool) -> None:
        connection = self._connection
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 16777216"):
            connection.execute(f"PRAGMA {pragma}")
        if not exclusive:
            connection.execute("BEGIN")  # a look sees one commit, whatever a feed commits meanwhile
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
        whole = os.path.getsize(self.folder / DATABASE) <= _LARGE
        tables = ["1"] if whole else self._tables_to_check()
        if any(connection.execute(f"PRAGMA quick_check({one})").fetchone() != ("ok",) for one in tables):
            raise self._damaged("its pages are inconsistent")
        found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if found is None:
            raise self._damaged("its version is missing")
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

    def _tables_to_check(self) -> list[str]:
        rows = self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in rows if name not in UNBOUNDED]

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
        if is_damage(error, self.folder / DATABASE):
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
            [*found.diagnostics, *self._damaged("its rows do not match their checksum").diagnostics]
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
            hint="restore a copy, or deploy again with another --dir and feed again from the start",
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
            called = self._connection.execute("SELECT value FROM meta WHERE key = 'functions'").fetchone()
        paths = tuple(path for (path,) in files)
        deployed = Deployed(
            paths,
            dict(texts),
            # a look at a deployment of format 1, which does not say of which file a rule was taken out
            frozenset((file, rule) for rule, *of in removed for file in of or paths),
            background[0] if background else "",
            _pairs(json.loads(called[0])) if called else (),
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
        self.follower(None)

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
        self._note_digest(digest, deployed)
        packed = zlib.compress(background.encode(), 1)
        execute(connection, "INSERT INTO background VALUES (1, ?, ?)", (deployed.background, packed))
        if closed is not None:
            self._keep_closed(*closed)
        if digest_before != digest:
            execute(connection, "DELETE FROM kept")  # it was found by other rules

    def _note_digest(self, digest: str, deployed: Deployed) -> None:
        for values in (("deployed", digest), ("functions", json.dumps(deployed.functions))):
            self._execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    def keep_functions(self, functions: tuple[tuple[Term, str], ...]) -> None:
        """What is deployed calls these functions from now on, in these versions."""
        deployed = self.deployed()
        if deployed.functions != functions:
            deployed = replace(deployed, functions=functions)
            with self.transaction():
                self._note_digest(digest_of(deployed), deployed)
                self._execute("DELETE FROM kept", ())  # it was found by other functions

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
        return read(self.folder, found[1])

    def keep_closed(self, key: str, closed: Closed) -> None:
        """Keep a closed background instead of the one kept before, a large one in a file."""
        with self.transaction():
            self._keep_closed(key, closed)

    def _keep_closed(self, key: str, closed: Closed) -> None:
        row = write(self.folder, closed)
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
            if state.get("corrections") is not None and state["corrections"]["graphs"] is None:
                state["corrections"]["log"] = read_period(self._whole)
            return state

    def stated(self) -> list[list[Any]]:
        """The statements beside the background at the last commit, as `Periods.load` takes them."""
        with self.reading():
            return read_stated(self._whole) if self._has("stated") else []

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
        lengths = {path: length for output in commit.outputs for path, length in output.lengths.items()}
        grown = any(path in before and one.length != before[path].length for path, one in lengths.items())
        rows = any(output.events or output.letters or output.outcomes for output in commit.outputs)
        gone = any(source != FILES for source, _ in commit.positions)
        # neither what was written, or shown to others, nor what a source lets go outlasts what is known of it
        with self._guarded():
            execute(connection, f"PRAGMA synchronous = {'FULL' if grown or rows or gone else 'NORMAL'}")
        with self.transaction():
            execute(connection, "INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (snapshot, status))
            for (source, part), position in commit.positions.items():
                values: tuple[Any, ...] = (source, part, json.dumps(position, separators=(",", ":")))
                execute(connection, "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", values)
            for path, length in lengths.items():
                values = (*length, path)
                execute(connection, "UPDATE outputs SET length = ?, tail = ? WHERE path = ?", values)
            with self.reading():
                for output in commit.outputs:
                    self._write_rows(output)
            write_stated(self._execute, commit.stated)
            write_given(self._execute, commit.given)
            if commit.adopted and (plan := read_plan(self._rows)) is not None:
                self._deploy(planned(plan), plan.background)
                write_plan(self._execute, None)
            if commit.kept is not None:
                write_kept(self._execute, self._rows, commit.kept)
            if commit.period is not None:
                write_period(self._execute, commit.period)
        self.follower(None if commit.adopted else commit)

    def _write_rows(self, output: Prepared) -> None:
        insert = lambda statement, rows: self.disk.insert(self._connection, statement, rows)  # noqa: E731  # see `Execute`
        if output.events is not None:
            write_events(self._execute, insert, self._rows, output.events)
        if output.letters is not None:
            write_letters(self._execute, insert, self._rows, output.letters)
        write_outcomes(self._execute, self._rows, output.outcomes)

    def drop_letters(self, numbers: Sequence[int]) -> None:
        """Take dead letters away, by their numbers."""
        with self.transaction(), self.reading():
            drop_letters(self._execute, self._rows, numbers)

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

    def kept(self) -> KeptRows:
        """What is kept, in order; nothing in a deployment of an older format. Raises EngineError."""
        with self.reading():
            return read_kept(self._whole, self.reading) if self._has("kept") else KeptRows([])

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

    def digest(self) -> str:
        """A hash of what is deployed."""
        return digest_of(self.deployed())

    def last_event(self) -> int:
        """The number of the last event of the outbox, 0 before the first and in an older format."""
        with self._guarded():
            return read_bounds(self._rows, "outbox").last if self._has("outbox") else 0

    def cursors(self) -> list[Cursor]:
        """The kept outputs and how far they are; none in a deployment of an older format."""
        with self._guarded():
            return read_cursors(self._rows) if self._has("cursors") else []

    def greatest_position(self, prefix: str) -> int:
        """The greatest number that is the position of a document in sources whose names begin so."""
        with self._guarded():
            rows = self._connection.execute("SELECT source, position FROM positions").fetchall()
        found = [self._value(position) for source, position in rows if source.startswith(prefix)]
        return max((one[0] for one in found if type(one) is list and type(one[0]) is int), default=0)

    def note(self, name: str, value: str) -> None:
        """Remember something beside the deployment."""
        with self.transaction():
            self._execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str | None:
        """What was remembered under a name."""
        with self._guarded():
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return None if row is None else str(row[0])


def _unpacked(content: bytes) -> str:
    return zlib.decompress(content).decode()
