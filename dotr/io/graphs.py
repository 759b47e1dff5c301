"""What readers of streams deliver: graphs with their times, marks, and bookmarks to resume from.

Place:   between the readers and what consumes their graphs (runs, feeds, conversions, Spark's tasks).
Method:  one named tuple per graph; every graph and every event is itself the bookmark of the place after it.
         A `StreamReader` is an open file as it is read: counted, bounded, and kept where a graph may be
         refused.
         `ReadSoFar` counts the bytes read, for progress bars: a place in an uncompressed text counts as it
         stands, any other file counts when its end is reached.
Bad input: D2006 more bytes than a document may have without completing a graph.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from os.path import basename, splitext
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias, overload

from msgspec import Struct

from dotr.errors import DataError
from dotr.events import Clock, GraphOrMessage, Time
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    SNIFF,
    STREAM_BASE,
    Format,
    Readable,
    is_jelly,
    plain_name,
    read_bytes,
    read_some,
    too_large,
    undecided,
)
from dotr.io.decode.quads import WHOLE, QuadBlock
from dotr.io.decode.rdf import STRICT, ParseChoices
from dotr.io.time import UNITS, TimestampExtractor
from dotr.io.time_reading import EXACT, TimeReading
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.extract.forms import Form, FormRun
    from dotr.io.decode.quads import RawBytes
    from dotr.io.tables.mapping import TableMapping

TABLES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Ending of a name → format of the table."""


def table_format(file: str) -> str:
    """How the name of a file says that its table is written; CSV where it says nothing."""
    return TABLES.get(splitext(plain_name(file))[1].lower(), "csv")


def is_table(file: str) -> bool:
    """Whether a name says that a file is a table, and no other thing dotr reads."""
    return TABLES.get(splitext(plain_name(file))[1].lower()) in ("csv", "tsv", "arrow")


def mapping_for(file: str, mappings: Sequence[TableMapping], *, listed: bool = False) -> TableMapping | None:
    """The mapping that a file is read through: by its name, one with `# files:` before one without; or else,
    unless the file was `listed` in a folder, one that declares how such a file is written. Raises DataError
    D2415 where two mappings are equally for it.
    """
    fitting = [mapping for mapping in mappings if mapping.fits(file)]
    if not fitting and not listed:
        fitting = [mapping for mapping in mappings if mapping.declares(file)]
    fitting = [mapping for mapping in fitting if mapping.files] or fitting
    other = next((mapping for mapping in fitting if mapping != fitting[0]), None)
    if other is not None:
        message = f"two mappings are for one file: `{fitting[0].name}` and `{other.name}`"
        hint = f"# files: declares which of them `{basename(plain_name(file))}` is read through"
        raise DataError.of("D2415", message, place=file, hint=hint)
    return fitting[0] if fitting else None


_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function

CACHE = 16 * 1024 * 1024
"""Bytes of documents whose graphs are kept between the look for times and the replay."""


MEMORY = 64 << 20
"""Bytes of the lines of a dump that are held before they are written to disk."""


class Bookmark(NamedTuple):
    """How far a file is consumed, for a reader that goes on there.

    `how` says what `end` counts: "byte"s and "graph"s of the document, graphs in time order of a document
    that is "sorted" before it is replayed, bytes of a "whole" document of one graph. `carried` is what a
    message log carries on (base and prefixes). `limit`: only so many bytes of the file belong to what was
    begun; 0 is all.
    """

    how: str
    end: int
    carried: str = ""
    limit: int = 0


START = Bookmark("byte", 0)

BEGUN = "\x1f"
"""What parts `carried` from the repeated hours in which reading stands (tables/rows.py)."""


class TimedGraph(NamedTuple):
    """One time-annotated graph as read.

    `triples` are canonical, without repeats, blank nodes labelled as the document has them; a Message where
    the document says more than what graph came. `line` is 0 where
    it is unknown. `how`, `end` and `carried` are the bookmark after it; of a "whole" document `carried` is
    the content's hash.
    """

    time: Time
    triples: GraphOrMessage
    file: str
    line: int = 0
    how: str = "byte"
    end: int = 0
    carried: str = ""

    @property
    def part(self) -> GraphOrMessage:
        """What came."""
        return self.triples

    @property
    def place(self) -> str:
        """Where it stands, for messages: `log.jsonl:17`, `log.trig, graph 17` where lines are unknown."""
        if self.line:
            return f"{self.file}:{self.line}"
        return f"{self.file}, graph {self.end}" if self.how == "graph" else self.file

    @property
    def alone(self) -> GraphRun:
        """A run of one, which is no Message."""
        columns = [self.time], [self.triples], self.file, [self.line], [self.end]
        return GraphRun(*columns, self.how, self.carried)


class ReadEvent(NamedTuple):
    """What a reader gives besides graphs: a document was refused (`error`), or the file is read to its end.

    `time` is that of the graph before it in the file (None at the head); `content` are the refused bytes;
    `size` the bytes read so far.
    """

    time: Time | None
    file: str
    how: str
    end: int
    carried: str = ""
    error: DataError | None = None
    content: bytes = b""
    size: int = 0


Item: TypeAlias = TimedGraph | ReadEvent


class LazyGraphs(Sequence[GraphOrMessage]):
    """Graphs that are made when they are asked for. `make`: those of a range, which are right."""

    def __init__(self, make: Callable[[int, int], list[GraphOrMessage]], count: int) -> None:
        self._make, self._count = make, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> GraphOrMessage: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[GraphOrMessage]: ...
    def __getitem__(self, place: int | slice) -> GraphOrMessage | Sequence[GraphOrMessage]:
        numbers = range(self._count)[place]
        if isinstance(numbers, int):
            return self._make(numbers, numbers + 1)[0]
        start, make = numbers.start, self._make
        return LazyGraphs(lambda first, end: make(start + first, start + end), len(numbers))

    def __iter__(self) -> Iterator[GraphOrMessage]:
        return iter(self._make(0, self._count))


class GraphRun(NamedTuple):
    """Graphs that follow one another in one file, as columns: of each what `TimedGraph` says, `how` and
    `carried` being those of all. There is one at least, and none is a Message. `columns`: the same graphs as
    terms, in order of time, where a reader was asked for them; then `graphs` are made on demand.
    """

    times: Sequence[Time]
    graphs: Sequence[GraphOrMessage]
    file: str
    lines: Sequence[int]
    ends: Sequence[int]
    how: str = "byte"
    carried: str = ""
    columns: FormRun | None = None

    def part(self, start: int, end: int) -> GraphRun:
        """Some of them, one by one."""
        columns = self.times[start:end], self.graphs[start:end], self.file
        return GraphRun(*columns, self.lines[start:end], self.ends[start:end], self.how, self.carried)

    def items(self) -> list[TimedGraph]:
        """Each by itself."""
        name, how, carried = repeat(self.file), repeat(self.how), repeat(self.carried)
        rows = zip(self.times, self.graphs, name, self.lines, how, self.ends, carried, strict=False)
        return [_tuple(TimedGraph, row) for row in rows]

    def behind(self, count: int) -> GraphRun:
        """Without the first `count`."""
        return self.part(count, len(self.times))

    @property
    def last(self) -> TimedGraph:
        """The last one."""
        row = self.times[-1], self.graphs[-1], self.file, self.lines[-1]
        return TimedGraph(*row, self.how, self.ends[-1], self.carried)


class DocumentRun(NamedTuple):
    """Graphs of documents that have one each and follow one another in a source, as columns. There is one at
    least, and none is a Message.
    """

    times: Sequence[Time]
    graphs: Sequence[GraphOrMessage]
    files: Sequence[str]

    def items(self) -> list[TimedGraph]:
        """Each by itself."""
        one, how, carried = repeat(1), repeat("document"), repeat("")
        rows = zip(self.times, self.graphs, self.files, one, how, one, carried, strict=False)
        return [_tuple(TimedGraph, row) for row in rows]


def one_by_one(runs: Iterable[Item | GraphRun]) -> Iterator[Item]:
    """Items, those of runs among them."""
    for item in runs:
        if type(item) is GraphRun:
            yield from item.items()
        else:
            yield item  # type: ignore[misc]  # a graph or a mark


WantedForm: TypeAlias = "Callable[[Form], bool]"
"""Whether graphs of a form are taken as columns, now."""


class SourceOptions(Struct, frozen=True):
    """How sources are read. `time_path` is an IRI term; `unit` is microseconds of one unit of integer
    time.
    """

    base: str = STREAM_BASE
    time_path: Term | None = None
    unit: int = UNITS["s"]
    max_document: int = MAX_DOCUMENT
    cache: int = CACHE
    whole: int = WHOLE
    zone: str = ""
    """The zone of dateTimes that say none; "" refuses them."""
    reading: TimeReading = EXACT
    """What is done about times that are no instant as they stand."""
    choices: ParseChoices = STRICT
    """What documents may say beyond RDF 1.1 and beyond themselves."""
    mappings: tuple[TableMapping, ...] = ()
    """What makes graphs of the rows of tables; the first that is for a file is taken."""
    split: Term = ""
    """The class or property of the subjects that a dump is taken apart by; "" leaves documents whole."""
    shared: bool = False
    """Whether what several subjects of a dump refer to goes into the graph of each."""
    split_memory: int = MEMORY
    """Bytes of a dump that are held in memory, about."""
    growing: bool = False
    """Whether files are being written: then a JSON line without its end is left for the next reading."""

    def mapping_for(self, file: str) -> TableMapping | None:
        """The mapping that a file is read through; None for documents of RDF."""
        return mapping_for(file, self.mappings) if self.mappings else None

    def extractor(self, clock: Clock | None = None) -> TimestampExtractor:
        """What finds the times of one run's graphs. Raises TimeError D2110."""
        return TimestampExtractor(
            self.time_path, self.unit, self.base, clock, zone=self.zone, reading=self.reading
        )


_REFUSED = 1 << 12
"""Bytes that a refused document, or a message that says nothing, is counted for besides its own."""


class StreamReader:
    """Owns the count of bytes read from a file, and reads no further than `limit` (0: to the end).

    `read` may give less than asked before the end: what a pipe has now is read now. It raises DataError D2006
    when more than `fence` bytes came since `settled` was called (0: never).
    """

    def __init__(self, file: Readable, name: str, count: int = 0, limit: int = 0, fence: int = 0) -> None:
        self._file = file
        self._some = getattr(file, "read1", file.read)
        self.count = count
        self.tape: RawBytes | None = None
        self.ended = False
        self._limit = limit
        self.fence = fence
        self.name, self._settled = name, count

    def settled(self) -> None:
        """A graph came of what was read."""
        self._settled = self.count

    def refused(self) -> None:
        """Nothing came of what was read, which costs more than its bytes say."""
        self._settled -= _REFUSED

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._some(size) if size > 0 and not self._limit else self._limited(size)
        self.count += len(content)
        self.ended = not content
        if self.fence and self.count - self._settled > self.fence:
            raise too_large(self.name, self.fence)
        if self.tape is not None:
            self.tape.take(content)
        return content

    def _limited(self, size: int) -> bytes:
        allowed = self._allowed(size)
        return self._file.read() if allowed < 0 else self._some(allowed)

    def _allowed(self, size: int) -> int:
        if not self._limit:
            return size
        left = max(0, self._limit - self.count)
        return left if size < 0 else min(size, left)


def first_bytes(stream: StreamReader, file: str) -> bytes:
    """The first bytes of a file: enough to see how it is written, a first line at least."""
    head = b""
    while len(head) < SNIFF and not is_jelly(head) and undecided(head, file):
        try:
            more = stream.read(SNIFF)
        except (OSError, EOFError):
            more = read_some(stream, 1, stream.name)  # raises what says what is wrong
        if not more:
            break
        head += more
    return head


class Headed:
    """Owns the first bytes of a file that were read already, in front of the rest."""

    def __init__(self, head: bytes, file: StreamReader) -> None:
        self._head, self._file = head, file

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._file.read(size)
        found = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(found) :]
        return found


class Originals:
    """Owns what is needed to find the original bytes of a refused graph of a quad document."""

    def __init__(self, stream: StreamReader, head: bytes, format_: Format, name: str, base: str) -> None:
        from dotr.io.decode.quads import RawBytes  # noqa: PLC0415  # start-up: most runs refuse nothing

        self._before = stream.count - len(head)
        self._tape = stream.tape = RawBytes(self._before, WHOLE if format_ is Format.TRIG else 0)
        self._tape.take(head)
        self._stream = stream
        self._pieces: dict[Term, bytes] | None = None
        self._document = format_, name, base

    def passed(self, block: QuadBlock) -> None:
        """A block is through."""
        if not block.whole:
            self._before = block.end
            self._tape.passed(block.end)

    def of(self, block: QuadBlock) -> bytes | None:
        """The bytes of a block, None if they cannot be separated from others, or the document is too long."""
        if not block.whole:
            return self._tape.between(self._before, block.end)
        if self._pieces is None and self._stream.ended:
            from dotr.io.decode.quads import pieces  # noqa: PLC0415  # start-up: see above

            content = self._tape.everything()
            self._pieces = {} if content is None else pieces(content, *self._document)
        return (self._pieces or {}).get(block.name)


def original_of(block: QuadBlock, originals: Originals | None) -> bytes:
    """The bytes of a refused graph as they stand in its document, else the graph as N-Quads."""
    found = None if originals is None else originals.of(block)
    return block.text().encode("utf-8", "surrogateescape") if found is None else found


def all_of(file: str, content: bytes | None, limit: int) -> bytes:
    """All of a refused file, as far as one document may go; `content` where it is in memory."""
    if content is not None:
        return content
    try:
        return read_bytes(file, limit) if os.path.isfile(file) else b""
    except DataError:
        return b""


def standard_input() -> IO[bytes]:
    """Standard input without a buffer, whose lock a reading thread would keep at the end of the process."""
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError):  # something in memory stands in for it
        return sys.stdin.buffer


class ReadSoFar:
    """Owns the count, `done` of `total` bytes.

    `total` is None where it is not known: a pipe, or one compressed file alone.
    """

    __slots__ = ("_behind", "_sizes", "done", "total")

    def __init__(self, files: Sequence[str]) -> None:
        self._sizes: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        self.done = 0
        self.total: int | None = 0
        for file in files:
            try:
                found = os.stat(file)
            except OSError:
                found = None
            if found is None or not stat.S_ISREG(found.st_mode):
                self.total = None
                return
            self._sizes[file] = found.st_size
        packed = len(files) == 1 and files[0].endswith((".gz", ".bz2", ".zst", ".zip"))
        self.total = None if packed else sum(self._sizes.values())

    def passed(self, item: Item) -> None:
        """An item of a source has been read."""
        size = self._sizes.get(item.file)
        if size is None:
            return
        if item.how == "whole" or (isinstance(item, ReadEvent) and item.error is None):
            reached = size
        elif item.how == "byte":
            reached = min(item.end, size)
        else:
            return
        self.done += reached - self._behind.get(item.file, 0)
        self._behind[item.file] = reached
