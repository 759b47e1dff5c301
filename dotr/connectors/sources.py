"""Sources: files, folders, globs and standard input become time-annotated graphs in time order.

Place:   what `dotr run`, `dotr feed`, `dotr convert` and Engine.feed read; formats are in documents.py,
         quads.py, jsonlines.py and messages.py, the time of a graph in times.py.
Method:  one stream alone is read as it stands. Several files are first looked through for their times:
         graphs of one file each are sorted by time, files of many graphs are merged by the time of their
         heads (those that are not in order themselves are read whole and sorted). Up to CACHE bytes of
         documents are kept from the first look; beyond that they are read a second time, so memory does not
         grow with a folder.
Why not: sort everything in memory: a folder may be larger than it; trust the order of names: 10.ttl < 9.ttl.
Bad input: D2003 no such file · D2008 unknown format · D2009 nothing there · D2016 an unsorted file too large
           to sort.
"""

from __future__ import annotations

import glob
import heapq
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, NamedTuple, TypeAlias

from dotr.connectors.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    content_hash,
    decode,
    format_of,
    open_document,
    parse_quads,
    parse_triples,
    read_bytes,
    read_some,
    too_large,
    unknown_format,
    unreadable,
)
from dotr.connectors.jsonlines import parse_line, raw_lines
from dotr.connectors.messages import Carried, Message, is_message_log, split_messages
from dotr.connectors.quads import WHOLE, Block, group_whole, quad_blocks, refused_lines
from dotr.connectors.refusals import Refusals
from dotr.connectors.times import UNITS, Ladder
from dotr.errors import DataError, Diagnostic
from dotr.events import Clock, Time
from dotr.rdf.terms import Term, Triple

CACHE = 16 * 1024 * 1024
"""Bytes of documents whose graphs are kept between the look for times and the replay."""

_SNIFF = 1 << 16
_PART = 1 << 20
_THREE_TERMS = (
    rb'^[ \t]*(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)[ \t]*'
)
_TRIPLE_LINE = re.compile(_THREE_TERMS + rb"\.\s*(?:#.*)?$")
_QUAD_LINE = re.compile(_THREE_TERMS + rb'(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*\.\s*$', re.MULTILINE)


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


_START = Bookmark("byte", 0)


class TimedGraph(NamedTuple):
    """One time-annotated graph as read.

    `triples` are canonical, without repeats, blank nodes labelled as the document has them. `line` is 0 where
    it is unknown. `how`, `end` and `carried` are the bookmark behind it; of a "whole" document `carried` is
    the content's hash.
    """

    time: Time
    triples: list[Triple]
    file: str
    line: int = 0
    how: str = "byte"
    end: int = 0
    carried: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Mark(NamedTuple):
    """What a reader says beside graphs: a document was refused (`error`), or the file is read to its end.

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


Item: TypeAlias = TimedGraph | Mark


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How sources are read. `time_path` is an IRI term; `unit` is microseconds of one unit of integer
    time.
    """

    base: str = STREAM_BASE
    time_path: Term | None = None
    unit: int = UNITS["s"]
    max_document: int = MAX_DOCUMENT
    cache: int = CACHE
    whole: int = WHOLE
    growing: bool = False
    """Whether files are being written: then a JSON line without its end is left for the next reading."""


@dataclass(slots=True)
class Sources:
    """Owns the reading of one run's sources: iterate once over it for TimedGraphs in time order.

    Iteration raises DataError; what was yielded before stays right. After the first graph `clock` says how
    this run writes time; `ladder.rungs` counts how times were found, `refusals.count` what was left out.
    `bookmarks` say, by file as `resolve` names it, where to go on.
    """

    paths: Sequence[str]
    options: SourceOptions = field(default_factory=SourceOptions)
    refusals: Refusals = field(default_factory=Refusals)
    stdin: IO[bytes] | None = None
    bookmarks: Mapping[str, Bookmark] = field(default_factory=dict)
    ladder: Ladder = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        self.ladder = Ladder(options.time_path, options.unit, options.base)

    @property
    def clock(self) -> Clock | None:
        return self.ladder.clock

    def __iter__(self) -> Iterator[TimedGraph]:
        for item in self.items():
            if isinstance(item, TimedGraph):
                yield item
            elif item.error is not None:
                self.refusals.take(item.error, item.content)

    def items(self) -> Iterator[Item]:
        """Graphs in time order, refused documents (unless refusing is fatal), and the ends of files."""
        files = resolve(self.paths)
        if len(files) == 1 and self._bookmark(files[0]).how != "sorted":
            return self._reader(files[0]).items()
        return self._replay(files)

    def _bookmark(self, file: str) -> Bookmark:
        return self.bookmarks.get(file, _START)

    def _reader(self, file: str, again: bool = False) -> Reader:
        ladder = (
            replace(self.ladder, rungs={}) if again else self.ladder
        )  # a second look counts nothing twice
        return Reader(file, self.options, ladder, self.refusals, self.stdin, self._bookmark(file))

    def _replay(self, files: Sequence[str]) -> Iterator[Item]:
        """All graphs of several files by time; among equals in the order of the files."""
        heap: list[tuple[Time, int, Item | None, Iterator[Item]]] = []
        budget = self.options.cache
        for number, file in enumerate(files):
            if not os.path.isfile(file):  # a pipe can be looked at once only
                heap.extend(_head(self._reader(file).items(), number))
                continue
            look = _look(self._reader(file).items(), min(budget, _size(file) * 4 + 1000))
            budget -= look.cost
            ordered = look.ordered and self._bookmark(file).how != "sorted"
            if look.kept is None:
                rest = self._again(file, ordered)
            elif ordered:
                rest = iter(look.kept)
            else:
                rest = _sorted(look.kept, self._bookmark(file))
            heap.append((look.first, number, None, rest))
        heapq.heapify(heap)
        reached = -(2**63)
        while heap:
            reached, number, item, rest = heapq.heappop(heap)
            if item is not None:
                yield item
            following = next(rest, None)
            if following is not None:
                time = reached if following.time is None else max(reached, following.time)
                if isinstance(following, TimedGraph):
                    time = following.time
                heapq.heappush(heap, (time, number, following, rest))

    def _again(self, file: str, ordered: bool) -> Iterator[Item]:
        items = self._reader(file, again=True).items()
        if ordered:
            yield from items
            return
        if _size(file) > self.options.max_document:
            raise DataError(
                Diagnostic(
                    "D2016",
                    f"`{file}` is not in time order and too large to be sorted here",
                    place=file,
                    label=f"{_size(file)} bytes",
                    hint="sort it, feed it alone with --lateness, or raise --max-document",
                )
            )
        yield from _sorted(list(items), self._bookmark(file))


def _sorted(items: Sequence[Item], bookmark: Bookmark) -> Iterator[Item]:
    """A file's graphs by time, each with its number in that order; what was refused first, the end last."""
    skip = bookmark.end if bookmark.how == "sorted" else 0
    marks = [item for item in items if isinstance(item, Mark)]
    graphs = sorted((item for item in items if isinstance(item, TimedGraph)), key=_time)
    refused = [mark._replace(time=None) for mark in marks if mark.error is not None]
    everything: list[Item] = [*refused, *graphs]
    for number, item in enumerate(everything, 1):
        if number > skip:
            yield item._replace(how="sorted", end=number)
    yield from (mark for mark in marks if mark.error is None)


def _time(graph: TimedGraph) -> Time:
    return graph.time


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError:
        return 0


def _head(items: Iterator[Item], number: int) -> Iterator[tuple[Time, int, Item | None, Iterator[Item]]]:
    for item in items:
        yield (-(2**63) if item.time is None else item.time), number, item, items
        return


@dataclass(slots=True)
class _Look:
    first: Time = -(2**63)
    ordered: bool = True
    kept: list[Item] | None = None
    cost: int = 0


def _look(items: Iterator[Item], budget: int) -> _Look:
    """Read a file for its times; keep what it has while that costs at most `budget` bytes.

    A refused document follows the graph before it in its file at once, or comes before all graphs.
    """
    kept: list[Item] | None = []
    look = _Look()
    last: Time | None = None
    headed = (
        False  # whether a mark comes first: then the file is due at once, now and when reading is resumed
    )
    for item in items:
        headed = headed or (last is None and isinstance(item, Mark))
        if isinstance(item, TimedGraph):
            if last is None and not headed:
                look.first = item.time
            elif not headed:
                look.first = min(look.first, item.time)
            look.ordered = look.ordered and (last is None or last <= item.time)
            last = item.time
        if kept is None:
            continue
        look.cost += 100
        if isinstance(item, TimedGraph):
            look.cost += sum(len(s) + len(p) + len(o) for s, p, o in item.triples)
        else:
            look.cost += len(item.content)
        if look.cost > budget:
            kept, look.cost = None, 0
        else:
            kept.append(item)
    look.kept = kept
    return look


def resolve(paths: Sequence[str]) -> list[str]:
    """Files of the sources in the order given, folders and globs spelled out in name order. Raises
    DataError.
    """
    files: list[str] = []
    for path in paths:
        if path == "-" or os.path.isfile(path):
            files.append(path)
        elif os.path.isdir(path):
            found = files_below(path)
            if not found:
                raise DataError(
                    Diagnostic(
                        "D2009", f"the folder `{path}` has no RDF file", place=path, hint="check the path"
                    )
                )
            files.extend(found)
        elif os.path.exists(path):
            files.append(path)
        elif glob.has_magic(path):
            matched = sorted(f for f in glob.glob(path, recursive=True) if os.path.isfile(f))
            if not matched:
                raise DataError(
                    Diagnostic("D2009", f"no file matches `{path}`", place=path, hint="check the pattern")
                )
            files.extend(matched)
        else:
            raise DataError(Diagnostic("D2003", f"there is no `{path}`", place=path, hint="check the path"))
    return files


def files_below(folder: str) -> list[str]:
    """Every RDF file below a folder, in name order; hidden files and folders are left out."""
    found: list[str] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found.extend(
            os.path.join(where, name)
            for name in sorted(names)
            if not name.startswith(".") and format_of(name) is not None
        )
    return found


class Tap:
    """Owns the count of bytes read from a file, and reads no further than `limit` (0: to the end).

    `read` may give less than asked before the end: what a pipe has now is read now.
    """

    def __init__(self, file: IO[bytes], count: int = 0, limit: int = 0) -> None:
        self._file = file
        self._some = getattr(file, "read1", file.read)
        self.count = count
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._some(size) if size > 0 and not self._limit else self._limited(size)
        self.count += len(content)
        return content

    def _limited(self, size: int) -> bytes:
        allowed = self._allowed(size)
        return self._file.read() if allowed < 0 else self._some(allowed)

    def _allowed(self, size: int) -> int:
        if not self._limit:
            return size
        left = max(0, self._limit - self.count)
        return left if size < 0 else min(size, left)


@dataclass(slots=True)
class Reader:
    """Owns the reading of one file as graphs and marks, in the order in which they stand.

    Where `refusals.fail`, what cannot be read is raised; else it is a mark, and reading goes on behind it.
    """

    file: str
    options: SourceOptions
    ladder: Ladder
    refusals: Refusals
    stdin: IO[bytes] | None = None
    bookmark: Bookmark = _START
    _last: Time | None = field(default=None, init=False)
    _prefixes: str = field(default="", init=False)
    _left: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        return "<stdin>" if self.file == "-" else self.file

    def graphs(self) -> Iterator[TimedGraph]:
        """The graphs alone; what is refused goes to the refusals."""
        for item in self.items():
            if isinstance(item, TimedGraph):
                yield item
            elif item.error is not None:
                self.refusals.take(item.error, item.content)

    def items(self) -> Iterator[Item]:
        """The graphs and marks; the mark of the end comes last. Raises DataError."""
        if self.file == "-":
            yield from self._read(Tap(self.stdin if self.stdin is not None else _standard_input()), None)
            return
        format_ = format_of(self.file)
        if format_ is None and os.path.isfile(self.file):
            raise unknown_format(self.file)
        if format_ is Format.PARQUET:
            yield from self._archive()
            return
        try:
            file = open_document(self.file)
        except DataError as error:
            yield self._refused(error, b"", "whole", 0)
            return
        with file:
            how, end, _carried, limit = self.bookmark
            start = end if how == "byte" else 0
            try:
                file.seek(start) if start else None
            except (OSError, EOFError) as error:
                raise unreadable(self.file, OSError(*error.args)) from None
            yield from self._read(Tap(file, start, limit), format_)

    def _refused(self, error: DataError, content: bytes, how: str, end: int, carried: str = "") -> Mark:
        if self.refusals.fail:
            raise error
        return Mark(self._last, self.name, how, end, carried, error, content)

    def _graph(
        self, time: Time, triples: list[Triple], line: int, how: str, end: int, carried: str = ""
    ) -> TimedGraph:
        self._last = time
        return TimedGraph(time, triples, self.name, line, how, end, carried)

    def _read(self, tap: Tap, format_: Format | None) -> Iterator[Item]:
        """Choose the reader by name, or by the first bytes where there is no name."""
        start, carried = tap.count, self.bookmark.carried
        head = b""
        if format_ not in (Format.JSONLINES, Format.RDFXML, Format.JSONLD) and not start:
            head = self._sniffed(tap)
        how = "byte"
        items: Iterator[Item]
        format_ = format_ or _guess(head)
        if carried or (head and is_message_log(head)):
            by_lines = format_ in (Format.NTRIPLES, Format.NQUADS)
            items = self._messages(tap, head, format_ if by_lines else _line_format(head))
        elif format_ is Format.JSONLINES:
            items = self._json_lines(tap, head)
        elif format_ is Format.NQUADS:
            items = self._quads(tap, head, format_)
        elif format_ is Format.TRIG and (b"{" in head or format_of(self.file) is not None):
            how, items = "graph", self._quads(tap, head, format_)
        else:
            yield from self._whole(tap, head, format_)
            return
        number = 0
        for item in items:
            number = item.end
            yield item
            if isinstance(item, Mark) and item.how == "whole":
                return  # the rest of the file was refused
        end = tap.count - self._left if how == "byte" else max(number, self.bookmark.end)
        yield Mark(self._last, self.name, how, end, self._prefixes, size=tap.count)

    def _sniffed(self, tap: Tap) -> bytes:
        """The first bytes of a file: enough to see how it is written, a first line at least."""
        head = b""
        while len(head) < _SNIFF and _undecided(head, self.file):
            try:
                more = tap.read(_SNIFF)
            except (OSError, EOFError):
                more = read_some(tap, 1, self.name)  # tells what is wrong
            if not more:
                break
            head += more
        return head

    def _whole(self, tap: Tap, head: bytes, format_: Format) -> Iterator[Item]:
        """A document of one graph; TriG and JSON-LD of unknown make may turn out to have named graphs."""
        content = head
        blocks: list[Block] = []
        try:
            content += self._rest(tap, len(head))
            text = decode(content, self.name)
            if format_ in (Format.JSONLD, Format.TRIG):
                quads = parse_quads(text, format_, self.name, self.options.base)
                if any(quad[3] for quad in quads):
                    blocks = list(group_whole(((quad, 0, 0) for quad in quads), self.name))
                triples = list(dict.fromkeys((s, p, o) for s, p, o, _g in quads))
            else:
                triples = parse_triples(text, format_, self.name, self.options.base)
            if not blocks:
                time = self.ladder.time(triples, self.file, self.name)
        except DataError as error:
            yield self._refused(error, content, "whole", len(content), content_hash(content))
            return
        if not blocks:
            yield self._graph(time, triples, 0, "whole", len(content), content_hash(content))
            return
        for number, block in enumerate(blocks, 1):
            block.whole, block.end = True, number
            if number > self.bookmark.end:
                yield self._stamped_block(block)
        yield Mark(self._last, self.name, "graph", len(blocks), size=tap.count)

    def _rest(self, tap: Tap, taken: int) -> bytes:
        limit = self.options.max_document
        bounded = self.file.lower().endswith(".gz") or not os.path.isfile(self.file)
        parts: list[bytes] = []
        while part := read_some(tap, _PART if bounded else -1, self.name):
            parts.append(part)
            taken += len(part)
            if bounded and taken > limit:
                raise too_large(self.name, limit)
        return b"".join(parts)

    def _quads(self, tap: Tap, head: bytes, format_: Format) -> Iterator[Item]:
        start, options = tap.count - len(head), self.options
        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        line = self._line(start)
        whole = options.whole if os.path.isfile(self.file) else 0
        blocks = quad_blocks(
            tap,
            format_,
            self.name,
            options.base,
            options.max_document,
            head,
            whole,
            line,
            start,
            forgiving=not self.refusals.fail,
        )
        try:
            for block in blocks:
                if not block.whole or block.end > skip:
                    yield self._stamped_block(block)
        except DataError as error:
            content = self._original()
            yield self._refused(error, content, "whole", len(content))

    def _original(self) -> bytes:
        """All of a refused file, as far as one document may go."""
        try:
            return read_bytes(self.file, self.options.max_document) if os.path.isfile(self.file) else b""
        except DataError:
            return b""

    def _stamped_block(self, block: Block) -> Item:
        triples = list(dict.fromkeys(block.triples)) if len(block.triples) > 1 else block.triples
        how = "graph" if block.whole else "byte"
        if block.spoiled:
            content = block.text().encode("utf-8", "surrogateescape")
            return self._refused(refused_lines(block, self.name), content, how, block.end)
        stamped = self.ladder.stamped(block.about, block.name)
        if stamped is not None:
            self._last = stamped
            return TimedGraph(stamped, triples, self.name, block.line, how, block.end)
        place = f"{self.name}:{block.line}" if block.line else f"{self.name}, graph {block.name}"
        try:
            time = self.ladder.time(triples, self.file, place, about=block.about, names=(block.name,))
        except DataError as error:
            return self._refused(error, block.text().encode(), how, block.end)
        return self._graph(time, triples, block.line, how, block.end)

    def _json_lines(self, tap: Tap, head: bytes) -> Iterator[Item]:
        start = tap.count - len(head)
        lines = raw_lines(tap, self.name, self.options.max_document, head, self._line(start), start)
        try:
            for line in lines:
                if self.options.growing and not line.complete:
                    self._left = len(line.content)
                    return
                try:
                    triples, said = parse_line(line, self.name, self.options.base)
                    place = f"{self.name}:{line.number}"
                    own = None if said is None else ("the line's own time", said)
                    time = self.ladder.time(triples, self.file, place, own)
                except DataError as error:
                    yield self._refused(error, line.content, "byte", line.end)
                else:
                    yield self._graph(time, triples, line.number, "byte", line.end)
        except DataError as error:
            yield self._refused(error, b"", "whole", tap.count)

    def _messages(self, tap: Tap, head: bytes, format_: Format) -> Iterator[Item]:
        start, carried = tap.count - len(head), Carried(self.options.base)
        if start:
            carried.base, _, carried.prefixes = self.bookmark.carried.partition("\n")
            carried.base = carried.base or None
        line = self._line(start)
        messages = split_messages(tap, self.name, self.options.max_document, head, line, start)
        try:
            for message in messages:
                yield from self._message(message, carried, format_)
                self._prefixes = f"{carried.base or ''}\n{carried.prefixes}"
        except DataError as error:
            yield self._refused(error, b"", "whole", tap.count)

    def _message(self, message: Message, carried: Carried, format_: Format) -> Iterator[Item]:
        try:
            triples, about, names = carried.parse(message, format_, self.name)
            if not triples and not about:
                return  # a heartbeat: it says no time, so no instant is closed by it
            line = message.line + _leading_lines(message.text)
            place = f"{self.name}:{line}"
            time = self.ladder.time(triples, self.file, place, about=about, names=names)
        except DataError as error:
            after = f"{carried.base or ''}\n{carried.prefixes}"
            yield self._refused(error, message.text.encode(), "byte", message.end, after)
        else:
            after = f"{carried.base or ''}\n{carried.prefixes}"
            yield self._graph(time, triples, line, "byte", message.end, after)

    def _archive(self) -> Iterator[Item]:
        """The rows of a Parquet archive."""
        from dotr.connectors.parquet import ArchiveFile  # noqa: PLC0415  # pyarrow is 0.3 s that few runs need

        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        number = 0
        try:
            archive = ArchiveFile(self.file, self.options.unit)
            if self.ladder.clock is None:
                self.ladder.clock = archive.clock
            for number, (time, triples, place) in enumerate(archive.graphs(), 1):
                self.ladder.accept(archive.clock.integer, place)
                if number > skip:
                    self.ladder.hit("the archive's own time")
                    yield self._graph(time, list(dict.fromkeys(triples)), 0, "graph", number)
        except DataError as error:
            yield self._refused(error, b"", "whole", 0)
            return
        yield Mark(self._last, self.name, "graph", number, size=_size(self.file))

    def _line(self, start: int) -> int:
        """The number of the line at byte `start`. Reads what is before it."""
        if not start:
            return 1
        with open_document(self.file) as file:
            return 1 + sum(part.count(b"\n") for part in parts_of(file, start, self.name))


def _standard_input() -> IO[bytes]:
    """Standard input without a buffer, whose lock a reading thread would keep at the end of the process."""
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError):  # something in memory stands in for it
        return sys.stdin.buffer


def parts_of(file: IO[bytes], end: int, name: str) -> Iterator[bytes]:
    """The first `end` bytes of a file, in parts."""
    while end > 0 and (part := read_some(file, min(end, 1 << 20), name)):
        end -= len(part)
        yield part


def _leading_lines(text: str) -> int:
    return text.count("\n", 0, len(text) - len(text.lstrip()))


def _undecided(head: bytes, file: str) -> bool:
    """Whether more must be seen: a line at least, and without a name a line that is not also a plain
    triple.
    """
    lines = head.lstrip().split(b"\n")[:-1]
    if not lines or format_of(file) is not None:
        return not lines
    return all(not line.strip() or line.lstrip()[:1] == b"#" or _TRIPLE_LINE.match(line) for line in lines)


def _guess(head: bytes) -> Format:
    """How standard input is written: JSON lines, N-Quads, or some Turtle (read as TriG)."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb'\{\s*(?:"|\})', start):
        return Format.JSONLINES
    return _line_format(head)


def _line_format(head: bytes) -> Format:
    """N-Quads when a line has a graph name, else TriG, of which Turtle and N-Triples are part."""
    return Format.NQUADS if _QUAD_LINE.search(head) else Format.TRIG


def live(paths: Sequence[str]) -> bool:
    """Whether graphs may still be on their way: a source is standard input or a pipe."""
    return any(
        path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))
        for path in paths
    )
