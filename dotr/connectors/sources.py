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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, NamedTuple, TypeVar

from dotr.connectors.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    decode,
    format_of,
    open_document,
    parse_quads,
    parse_triples,
    read_bytes,
    read_some,
    too_large,
    unknown_format,
)
from dotr.connectors.jsonlines import Line, parse_line, raw_lines
from dotr.connectors.messages import Carried, Message, is_message_log, split_messages
from dotr.connectors.quads import WHOLE, Block, group_whole, quad_blocks
from dotr.connectors.refusals import Refusals
from dotr.connectors.times import UNITS, Ladder
from dotr.errors import DataError, Diagnostic
from dotr.events import Clock, Time
from dotr.rdf.terms import Term, Triple

CACHE = 16 * 1024 * 1024
"""Bytes of documents whose graphs are kept between the look for times and the replay."""

_SNIFF = 1 << 16
_THREE_TERMS = (
    rb'^[ \t]*(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)[ \t]*'
)
_TRIPLE_LINE = re.compile(_THREE_TERMS + rb"\.\s*(?:#.*)?$")
_QUAD_LINE = re.compile(_THREE_TERMS + rb'(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*\.\s*$', re.MULTILINE)


Part = TypeVar("Part", Line, Message)


class TimedGraph(NamedTuple):
    """One time-annotated graph as read.

    `triples` are canonical, without repeats, blank nodes labelled as the document has them. `line` is 0
    where it is unknown. `end` says how many bytes (for TriG: how many graphs) of the file are consumed with
    it, and `carried` what a reader that goes on behind it must know.
    """

    time: Time
    triples: list[Triple]
    file: str
    line: int = 0
    end: int = 0
    carried: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}:{self.line}" if self.line else self.file


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


@dataclass(slots=True)
class Sources:
    """Owns the reading of one run's sources: iterate once over it for TimedGraphs in time order.

    Iteration raises DataError; what was yielded before stays right. After the first graph `clock` says how
    this run writes time; `ladder.rungs` counts how times were found, `refusals.count` what was left out.
    """

    paths: Sequence[str]
    options: SourceOptions = field(default_factory=SourceOptions)
    refusals: Refusals = field(default_factory=Refusals)
    stdin: IO[bytes] | None = None
    ladder: Ladder = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        self.ladder = Ladder(options.time_path, options.unit, options.base)

    @property
    def clock(self) -> Clock | None:
        return self.ladder.clock

    def __iter__(self) -> Iterator[TimedGraph]:
        files = resolve(self.paths)
        if len(files) == 1:
            return self._reader(files[0]).graphs()
        return self._replay(files)

    def _reader(self, file: str, quiet: bool = False) -> Reader:
        if (
            quiet
        ):  # the second look at a file counts nothing again and has already been refused what it would be
            ladder = replace(self.ladder, rungs={})
            return Reader(file, self.options, ladder, Refusals(fail=False), self.stdin)
        return Reader(file, self.options, self.ladder, self.refusals, self.stdin)

    def _replay(self, files: Sequence[str]) -> Iterator[TimedGraph]:
        """All graphs of several files by time; among equals in the order of the files."""
        heap: list[tuple[Time, int, int, TimedGraph | None, Iterator[TimedGraph]]] = []
        budget = self.options.cache
        for number, file in enumerate(files):
            if not os.path.isfile(file):  # a pipe can be looked at once only
                heap.extend(_head(self._reader(file).graphs(), number))
                continue
            look = _look(self._reader(file).graphs(), min(budget, _size(file) * 4))
            if look is None:
                continue
            budget -= look.cost
            if look.graphs is not None:
                heap.extend(_head(iter(sorted(look.graphs, key=_time)), number))
            else:
                heap.append((look.first, number, 0, None, self._again(file, look.ordered)))
        heapq.heapify(heap)
        turn = 0
        while heap:
            _at, number, _turn, graph, rest = heapq.heappop(heap)
            if graph is not None:
                yield graph
            following = next(rest, None)
            if following is not None:
                turn += 1
                heapq.heappush(heap, (following.time, number, turn, following, rest))

    def _again(self, file: str, ordered: bool) -> Iterator[TimedGraph]:
        graphs = self._reader(file, quiet=True).graphs()
        if ordered:
            yield from graphs
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
        yield from sorted(graphs, key=_time)


def _time(graph: TimedGraph) -> Time:
    return graph.time


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError:
        return 0


def _head(
    graphs: Iterator[TimedGraph], number: int
) -> Iterator[tuple[Time, int, int, TimedGraph | None, Iterator[TimedGraph]]]:
    for graph in graphs:
        yield graph.time, number, 0, graph, graphs
        return


@dataclass(slots=True)
class _Look:
    first: Time
    ordered: bool
    graphs: list[TimedGraph] | None
    cost: int


def _look(graphs: Iterator[TimedGraph], budget: int) -> _Look | None:
    """Read a file for its times; keep its graphs while they cost at most `budget` bytes. None without
    graphs.
    """
    kept: list[TimedGraph] | None = []
    cost, last, look = 0, None, None
    for graph in graphs:
        if look is None:
            look = _Look(graph.time, True, None, 0)
        look.first = min(look.first, graph.time)
        look.ordered = look.ordered and (last is None or last <= graph.time)
        last = graph.time
        if kept is not None:
            cost += 100 + sum(len(s) + len(p) + len(o) for s, p, o in graph.triples)
            if cost > budget:
                kept, cost = None, 0
            else:
                kept.append(graph)
    if look is not None:
        look.graphs, look.cost = kept, cost
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


@dataclass(slots=True)
class Reader:
    """Reads one file as TimedGraphs, in the order in which they stand.

    `start`, `line` and `carried` continue behind a graph that was read before (its `end`, a line number, its
    `carried`).
    """

    file: str
    options: SourceOptions
    ladder: Ladder
    refusals: Refusals
    stdin: IO[bytes] | None = None
    start: int = 0
    line: int = 1
    carried: str = ""

    @property
    def name(self) -> str:
        return "<stdin>" if self.file == "-" else self.file

    def graphs(self) -> Iterator[TimedGraph]:
        """The graphs. Raises DataError, or hands it to the refusals and goes on behind the bad document."""
        if self.file == "-":
            stdin = self.stdin if self.stdin is not None else sys.stdin.buffer
            yield from self._read(stdin, None)
            return
        format_ = format_of(self.file)
        if format_ is None and os.path.isfile(self.file):
            raise unknown_format(self.file)
        try:
            file = open_document(self.file)
        except DataError as error:
            self.refusals.take(error, b"")
            return
        with file:
            yield from self._read(file, format_)

    def _read(self, file: IO[bytes], format_: Format | None) -> Iterator[TimedGraph]:
        """Choose the reader by name, or by the first bytes where there is no name."""
        if format_ in (Format.RDFXML, Format.JSONLD):
            yield from self._whole(file, b"", format_)
            return
        head = b""
        if format_ is not Format.JSONLINES and not self.start:
            head = self._sniffed(file)
        if self.carried or (head and is_message_log(head)):
            line_format = format_ if format_ in (Format.NTRIPLES, Format.NQUADS) else None
            yield from self._messages(file, head, line_format or _line_format(head))
            return
        if format_ is None:
            format_ = _guess(head)
            if format_ is Format.TRIG and b"{" not in head:
                yield from self._whole(file, head, format_)
                return
        match format_:
            case Format.JSONLINES:
                yield from self._json_lines(file, head)
            case Format.NQUADS | Format.TRIG:
                yield from self._quads(file, head, format_)
            case _:
                yield from self._whole(file, head, format_)

    def _sniffed(self, file: IO[bytes]) -> bytes:
        """The first bytes of a file: enough to see how it is written, a first line at least."""
        head = b""
        while len(head) < _SNIFF and _undecided(head, self.file):
            read = getattr(file, "read1", file.read)
            try:
                more = read(_SNIFF)
            except (OSError, EOFError):
                more = read_some(file, 1, self.name)  # tells what is wrong
            if not more:
                break
            head += more
        return head

    def _whole(self, file: IO[bytes], head: bytes, format_: Format) -> Iterator[TimedGraph]:
        """A document of one graph; TriG and JSON-LD of unknown make may turn out to have named graphs."""
        content = head
        try:
            content += self._rest(file, len(head))
            text = decode(content, self.name)
            if format_ in (Format.JSONLD, Format.TRIG):
                quads = parse_quads(text, format_, self.name, self.options.base)
                if any(quad[3] for quad in quads):
                    for block in group_whole(((quad, 0, 0) for quad in quads), self.name):
                        yield from self._stamped_block(block)
                    return
                triples = list(dict.fromkeys((s, p, o) for s, p, o, _g in quads))
            else:
                triples = parse_triples(text, format_, self.name, self.options.base)
            time = self.ladder.time(triples, self.file, self.name)
        except DataError as error:
            self.refusals.take(error, content)
            return
        yield TimedGraph(time, triples, self.name, 0, len(content))

    def _rest(self, file: IO[bytes], taken: int) -> bytes:
        limit = self.options.max_document
        bounded = self.file.lower().endswith(".gz") or not os.path.isfile(self.file)
        content = read_some(file, limit + 1 - taken if bounded else -1, self.name)
        if bounded and len(content) + taken > limit:
            raise too_large(self.name, limit)
        return content

    def _quads(self, file: IO[bytes], head: bytes, format_: Format) -> Iterator[TimedGraph]:
        skip = self.start if format_ is Format.TRIG else 0
        if format_ is Format.NQUADS and self.start:
            file.seek(self.start)
        blocks = quad_blocks(
            file,
            format_,
            self.name,
            self.options.base,
            self.options.max_document,
            head,
            self.options.whole,
            line=self.line,
            offset=self.start if format_ is Format.NQUADS else 0,
        )
        for number, block in enumerate(self._guarded(blocks), 1):
            if number <= skip:
                continue
            if format_ is Format.TRIG:
                block.end = number
            yield from self._stamped_block(block)

    def _guarded(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Blocks until an error, which refuses the rest of the file."""
        try:
            yield from blocks
        except DataError as error:
            self.refusals.take(error, self._original())

    def _original(self) -> bytes:
        """All of a refused file, as far as one document may go."""
        try:
            return read_bytes(self.file, self.options.max_document) if os.path.isfile(self.file) else b""
        except DataError:
            return b""

    def _stamped_block(self, block: Block) -> Iterator[TimedGraph]:
        triples = list(dict.fromkeys(block.triples)) if len(block.triples) > 1 else block.triples
        place = f"{self.name}:{block.line}" if block.line else f"{self.name}, graph {block.name}"
        try:
            time = self.ladder.time(triples, self.file, place, about=block.about, names=(block.name,))
        except DataError as error:
            self.refusals.take(error, block.text().encode())
            return
        yield TimedGraph(time, triples, self.name, block.line, block.end)

    def _json_lines(self, file: IO[bytes], head: bytes) -> Iterator[TimedGraph]:
        if self.start:
            file.seek(self.start)
        lines = raw_lines(file, self.name, self.options.max_document, head, self.line, self.start)
        for line in self._until_broken(lines):
            try:
                triples, said = parse_line(line, self.name, self.options.base)
                place = f"{self.name}:{line.number}"
                own = None if said is None else ("the line's own time", said)
                time = self.ladder.time(triples, self.file, place, own)
            except DataError as error:
                self.refusals.take(error, line.content)
                continue
            yield TimedGraph(time, triples, self.name, line.number, line.end)

    def _messages(self, file: IO[bytes], head: bytes, format_: Format) -> Iterator[TimedGraph]:
        carried = Carried(self.options.base)
        if self.start:
            file.seek(self.start)
            base, _, carried.prefixes = self.carried.partition("\n")
            carried.base = base
        messages = split_messages(file, self.name, self.options.max_document, head, self.line, self.start)
        for message in self._until_broken(messages):
            try:
                triples, about, names = carried.parse(message, format_, self.name)
                if not triples and not about:
                    continue  # a heartbeat: it says no time, so no instant is closed by it
                line = message.line + _leading_lines(message.text)
                place = f"{self.name}:{line}"
                time = self.ladder.time(triples, self.file, place, about=about, names=names)
            except DataError as error:
                self.refusals.take(error, message.text.encode())
                continue
            after = f"{carried.base or ''}\n{carried.prefixes}"
            yield TimedGraph(time, triples, self.name, line, message.end, after)

    def _until_broken(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Parts until the file itself breaks off (a damaged archive, an endless line)."""
        try:
            yield from parts
        except DataError as error:
            self.refusals.take(error, b"")


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
