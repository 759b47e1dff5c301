"""The log of a batch: where it is, how it is split among tasks, and its rows of (time, graph).

Place:   the driver lists splits; tasks of local.py and of the Spark data source read them through io/.
Method:  small files are combined into one split, large ones are cut, Parquet is split by row groups. All
         files of a run must write time in one way: the driver reads the first graph, tasks check the others
         against it. JSON lines are cut at any line. N-Quads are cut between graphs: adjacent lines belong
         together if they are quads of one graph or, in the default graph, its stamp; a file is cut only if
         each graph at its beginning is contiguous. A table is cut at any line if every line is a row: the
         whole table is searched for cells with line ends.
         Logs and outputs are paths of this machine, or URIs that only Spark can open; `file:` URIs are paths.
         A URI has a scheme of two letters or more (`C:/log` is a path on some machines), and no file of that
         name exists. Rows between the rounds of a local batch are Arrow streams in a scratch folder.
Why not: cut at any line and repair in a shuffle: that would shuffle graphs, the largest data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.work import graph_text, message_text
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.io.arrow import pa
from dotr.io.decode.documents import Format, format_of, is_packed
from dotr.io.decode.parquet import SUFFIX, ArchiveFile, column
from dotr.io.decode.rdf import parse_triples
from dotr.io.errors import DeadLetter, ErrorPolicy
from dotr.io.reader import DUMPS
from dotr.io.sources import Bookmark, FileReader, SourceOptions, resolve
from dotr.io.tables.rows import LONGEST_ROW, CsvRows, Dialect, header_text, one_row_a_line

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping

SHAPE = 1 << 20
"""How many bytes at the beginning of a file are inspected."""

_REACH = 1 << 24
_BLOCK = 1 << 22
_QUAD = re.compile(
    rb'[ \t]*(<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)'
    rb"[ \t]*(<[^<>\"\s]*>|_:[^\s<]+)?[ \t]*\."
)


COMPRESSED = "a compressed file is read from its beginning"
_LINE_END = "a cell has a line end, so it is unknown where rows begin"
_SCATTERED = "quads of one graph are in several places of it"


class Cuts(Struct, frozen=True):
    """Byte offsets, ascending, between 0 and a file's size. `why`: why one task reads a file that is large
    enough to be cut; "" if it is cut, small, or unreadable.
    """

    at: tuple[int, ...] = ()
    why: str = ""


def cuts(path: str, size: int, piece: int) -> Cuts:
    """Where to cut a file of lines into pieces of about `piece` bytes."""
    format_ = format_of(path)
    if size < 2 * piece:
        return Cuts()
    if is_packed(path):
        return Cuts(why=COMPRESSED)
    if format_ not in (Format.JSONLINES, Format.NQUADS):
        name = "what it is" if format_ is None else format_.value
        return Cuts(why=f"{name} is not cut; `dotr convert` it to N-Quads or Parquet, which are")
    quads = format_ is Format.NQUADS
    try:
        with open(path, "rb") as file:
            if quads and not _in_one_piece(file.read(SHAPE)):
                return Cuts(why=_SCATTERED)
            found: list[int] = []
            for number in range(1, size // piece):
                cut = _next_cut(file, number * piece, quads)
                if cut is not None and cut < size and (not found or cut > found[-1]):
                    found.append(cut)
            return Cuts(tuple(found))
    except (OSError, DataError):
        return Cuts()  # the reader reports the error


def table_cuts(path: str, size: int, piece: int, mapping: TableMapping) -> Cuts:
    """`cuts` for a table; none for Parquet and Arrow, nor for CSV in which a cell has a line end, since row
    starts then depend on everything before. Reads the file, as rows if it has quotes.
    """
    form = mapping.format_of(path)
    if size < 2 * piece:
        return Cuts()
    if form in ("parquet", "arrow"):
        return Cuts(why="tables of Parquet and Arrow are not cut")
    if form == "json" or mapping.rows is not None:
        return Cuts(why="documents of JSON, and lines of several rows, are not cut")
    if is_packed(path):
        return Cuts(why=COMPRESSED)
    try:
        if not rows_are_lines(path, mapping):
            return Cuts(why=_LINE_END)
        with open(path, "rb") as file:
            found = [_next_cut(file, number * piece, quads=False) for number in range(1, size // piece)]
        return Cuts(tuple(sorted({cut for cut in found if cut is not None and cut < size})))
    except (OSError, DataError):
        return Cuts()  # the reader reports the error


def table_header(path: str, mapping: TableMapping) -> str:
    """What a bookmark after the header of a CSV file carries: its columns. "" if not needed."""
    if mapping.columns or mapping.format_of(path) in ("jsonl", "json"):
        return ""
    rows = CsvRows(_dialect(path, mapping))
    with open(path, "rb") as file:
        for line in file:
            for row in rows.feed(line):
                return header_text(row)
    return ""


def _dialect(path: str, mapping: TableMapping) -> Dialect:
    usual = "\t" if mapping.format_of(path) == "tsv" else ","
    return Dialect(mapping.delimiter or usual, mapping.quoted, mapping.encoding)


def rows_are_lines(path: str, mapping: TableMapping) -> bool:
    """Whether no cell of a table of text has a line end. Reads the file, up to the first that has one."""
    if mapping.format_of(path) == "jsonl" or not mapping.quoted:
        return True
    with open(path, "rb") as file:
        return _no_line_ends(file, _dialect(path, mapping))


def _no_line_ends(file: IO[bytes], dialect: Dialect) -> bool:
    left = b""
    while block := file.read(_BLOCK):
        block = left + block
        cut = block.rfind(b"\n") + 1
        left = block[cut:]
        if b'"' in block[:cut] and not one_row_a_line(block[:cut], dialect):
            return False
        if len(left) > LONGEST_ROW:
            return False
    return b'"' not in left or one_row_a_line(left, dialect)


def graph_of(line: bytes) -> bytes | None:
    """The graph of a line of N-Quads: its name or, in the default graph, its subject. None: no quad."""
    quad = _QUAD.match(line)
    return None if quad is None else quad[2] or quad[1]


def _in_one_piece(head: bytes) -> bool:
    """Whether every graph of these lines is contiguous. An excerpt's last line does not count."""
    seen: set[bytes] = set()
    last: bytes | None = None
    for line in head.split(b"\n")[:-1]:
        graph = graph_of(line)
        if graph is None or graph == last:
            continue
        if graph in seen:
            return False
        seen.add(graph)
        last = graph
    return last is not None


def _next_cut(file: IO[bytes], offset: int, quads: bool) -> int | None:
    """The first place after `offset` where a line (for quads: a graph) begins; None if none is near."""
    file.seek(offset)
    file.readline()
    if not quads:
        return file.tell()
    last: bytes | None = None
    while (at := file.tell()) < offset + _REACH:
        line = file.readline()
        if not line:
            return None
        graph = graph_of(line)
        if graph is None:
            continue
        if last is not None and graph != last:
            return at
        last = graph
    return None


def cut_after(path: str, offset: int) -> int:
    """Where the next line begins after a byte of a file. Raises OSError."""
    with open(path, "rb") as file:
        file.seek(offset)
        file.readline()
        return file.tell()


def file_size(path: str) -> int:
    """Bytes of a file, 0 if unknown."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


ARCHIVE_TIME = "the archive's own time"

SPLIT = 32 * 1024 * 1024
"""Approximate bytes of documents that one task reads."""

PACK = 128 * 1024 * 1024
"""The limit of uncompressed bytes of row groups that one task reads, unless one is larger."""

_FOOTERS = 16
"""Files of an archive that are inspected together."""


class Piece(Struct, frozen=True):
    """A part `[first, end)` of a file: bytes, or row groups of Parquet; `end` 0 is all of it.

    `graphs`: their number, if the file states it; `size`: uncompressed bytes; 0 is unknown. `span`: its least
    and greatest time, if the file states them.
    """

    file: str
    first: int = 0
    end: int = 0
    graphs: int = 0
    size: int = 0
    span: tuple[Time, Time] | None = None


class Split(Struct, frozen=True):
    """What one task reads, in order."""

    pieces: tuple[Piece, ...]


class RemoteFile(Struct, frozen=True):
    """A file that Spark reads: its URI as Spark writes it, and its bytes."""

    file: str
    size: int


class Remote(Struct, frozen=True):
    """Files that only Spark can reach, and the requested URIs: files, folders and globs."""

    places: tuple[str, ...]
    files: tuple[RemoteFile, ...]


class LogListing(Struct, frozen=True):
    """A log as the driver knows it before anything runs."""

    splits: tuple[Split, ...]
    clock: Clock | None
    """None: there is no graph."""
    options: SourceOptions
    fail: bool = True
    remote: Remote | None = None
    """What only Spark can reach, in addition to the splits."""
    whole: tuple[tuple[str, str], ...] = ()
    """(file, why) of large ones that one task reads."""

    @property
    def known(self) -> int:
        """The number of graphs, as far as its files state it."""
        return sum(piece.graphs for split in self.splits for piece in split.pieces)


class ReadCounts(Struct):
    """What a task read: graphs, refused documents with their dead letters, how times were found."""

    graphs: int = 0
    letters: list[str] = field(default_factory=list)
    time_sources: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    """Where reading changed something first, as the extractor of times knows it."""


def open_log(paths: Sequence[str], options: SourceOptions, fail: bool = True) -> LogListing:
    """List a log and determine how it writes time. Reads one graph. Raises DataError."""
    files = resolve(paths, options.mappings)
    clock = next((found for file in files if (found := clock_of(file, options, fail)) is not None), None)
    whole: list[tuple[str, str]] = []
    splits = tuple(_splits(files, options, fail, whole))
    return LogListing(splits, clock, options, fail, whole=tuple(whole))


def absolute(log: LogListing) -> LogListing:
    """The log with full paths, for processes with another working directory."""
    splits = (
        Split(tuple(replace(piece, file=os.path.abspath(piece.file)) for piece in split.pieces))
        for split in log.splits
    )
    return replace(log, splits=tuple(splits))


def clock_of(file: str, options: SourceOptions, fail: bool, content: bytes | None = None) -> Clock | None:
    """How the first graph of a file writes time; None without one. `content` as in `Reading.rows`."""
    try:
        if is_archive(file, options):
            return ArchiveFile(file, options.unit, content).clock
        extractor = options.extractor()
        for _graph in FileReader(file, options, extractor, ErrorPolicy(fail=fail), content=content).graphs():
            return extractor.clock
    except DataError:
        if fail:
            raise
    return None


def _splits(
    files: Sequence[str], options: SourceOptions, fail: bool, whole: list[tuple[str, str]]
) -> Iterator[Split]:
    """The splits; large files that are not cut are added to `whole`, with the reason."""
    together: list[Piece] = []
    size = 0
    archives = [file for file in files if is_archive(file, options)]
    with ThreadPoolExecutor(min(_FOOTERS, max(1, len(archives)))) as pool:
        footers = pool.map(lambda file: _row_groups(file, options, fail), archives)
        row_groups = dict(zip(archives, footers, strict=True))
    for file in files:
        if file in row_groups:
            yield from (Split((piece,)) for piece in row_groups[file])
            continue
        bytes_ = file_size(file)
        found = _cuts(file, bytes_, options)
        if found.why:
            whole.append((file, found.why))
        if found.at:
            ends = zip([0, *found.at], [*found.at, bytes_], strict=True)
            yield from (Split((Piece(file, start, end),)) for start, end in ends)
            continue
        together.append(Piece(file))
        size += bytes_ * (8 if is_packed(file) else 1)
        if size >= SPLIT:
            yield Split(tuple(together))
            together, size = [], 0
    if together:
        yield Split(tuple(together))


_IN_ORDER = "the order of all its rows says which local times are meant"


def _cuts(file: str, size: int, options: SourceOptions) -> Cuts:
    mapping, reading = options.mapping_for(file), options.reading
    if (reading if mapping is None else mapping.reading(reading)).ambiguous == "infer":
        return Cuts(why=_IN_ORDER if size >= 2 * SPLIT else "")
    if mapping is not None:
        return table_cuts(file, size, SPLIT, mapping)
    if options.split and format_of(file) in DUMPS:
        why = "a file under --split is read as a whole"
        return Cuts(why=why if size >= 2 * SPLIT else "")
    return cuts(file, size, SPLIT)


def is_archive(file: str, options: SourceOptions) -> bool:
    """Whether a file is an archive of graphs, not a table."""
    return file.lower().endswith(SUFFIX) and options.mapping_for(file) is None


def _row_groups(file: str, options: SourceOptions, fail: bool) -> list[Piece]:
    try:
        archive = ArchiveFile(file, options.unit)
        groups: list[tuple[int, int, tuple[Time, Time] | None]] = [
            (archive.count(group), archive.unpacked(group), archive.span(group))
            for group in range(archive.groups)
        ]
    except DataError:
        if fail:
            raise
        groups = [(0, 0, None)]  # the task that reads it makes the dead letter
    return [Piece(file, number, number + 1, *found) for number, found in enumerate(groups)]


def packed(splits: Sequence[Split], tasks: int) -> tuple[Split, ...]:
    """Splits of row groups, neighbours combined to about half of PACK to PACK bytes; to less if there would
    be fewer than `tasks`. Consecutive row groups of one file are one piece.
    """
    pieces = [piece for split in splits for piece in split.pieces]
    goal = min(PACK, -(-sum(piece.size for piece in pieces) // max(1, tasks)))
    found: list[Split] = []
    waiting: list[Piece] = []
    size = 0
    for piece in pieces:
        if waiting and (size >= goal or size + piece.size > PACK):
            found.append(Split(tuple(waiting)))
            waiting, size = [], 0
        size += piece.size
        last = waiting[-1] if waiting else None
        if last is not None and last.file == piece.file and last.end == piece.first:
            graphs, bytes_ = last.graphs + piece.graphs, last.size + piece.size
            spans = [span for span in (last.span, piece.span) if span is not None]
            span = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None
            waiting[-1] = Piece(piece.file, last.first, piece.end, graphs, bytes_, span)
        else:
            waiting.append(piece)
    if waiting:
        found.append(Split(tuple(waiting)))
    return tuple(found)


def spread(splits: Sequence[Split], tasks: int) -> tuple[Split, ...]:
    """The splits with the small files divided into at least `tasks`, if there are enough."""
    found: list[Split] = []
    for split in splits:
        pieces = split.pieces
        share = max(1, -(-len(pieces) // tasks)) if len(splits) < tasks else len(pieces)
        found += [Split(pieces[i : i + share]) for i in range(0, len(pieces), share)]
    return tuple(found)


class Reading:
    """Owns the counts of one reading task: how it found times, and what it refused.

    Its methods yield (time in µs, graph as dotr's N-Triples) and count in `counts`, which is complete when
    they have ended. They raise DataError under the policy `fail`. `messages`: rows are in the form of
    `message_text`, and may insert and delete. A log without a clock gets that of the first graph.
    """

    def __init__(self, log: LogListing, counts: ReadCounts, messages: bool = False) -> None:
        self.log, self.counts = log, counts
        self._text = message_text if messages else graph_text
        self._messages = messages
        letters: DeadLetter = counts.letters.append
        self.refusals = ErrorPolicy(fail=log.fail, sink=letters)
        self.extractor = log.options.extractor(log.clock)

    def rows(self, piece: Piece, content: bytes | None = None) -> Iterator[tuple[Time, str]]:
        """The graphs of a piece of a file; `content` is the whole file if already fetched."""
        if is_archive(piece.file, self.log.options):
            rows = self._archive(piece, content)
        else:
            mapping = self.log.options.mapping_for(piece.file) if piece.first else None
            carried = "" if mapping is None else table_header(piece.file, mapping)
            part = Bookmark("byte", piece.first, carried, limit=piece.end)
            reader = FileReader(
                piece.file, self.log.options, self.extractor, self.refusals, bookmark=part, content=content
            )
            rows = ((graph.time, self._text(graph.triples)) for graph in reader.graphs())
        for row in rows:
            self.counts.graphs += 1
            yield row
        self.counts.time_sources = dict(self.extractor.time_sources)
        self.counts.beside = dict(self.extractor.beside)
        self.counts.changed = dict(self.extractor.first)

    def _archive(self, piece: Piece, content: bytes | None) -> Iterator[tuple[Time, str]]:
        try:
            archive = ArchiveFile(piece.file, self.log.options.unit, content, self.log.options.reading.finer)
            if self.extractor.clock is None:
                self.extractor.clock = archive.clock
            if archive.clock != self.extractor.clock:
                raise other_time(piece.file)
            if self._messages:
                for times, parts, _ in archive.graphs(piece.first, piece.end or None):
                    self.extractor.hit(ARCHIVE_TIME, len(times))
                    yield from zip(times, map(self._text, parts), strict=True)
            else:
                for time, graph, place in archive.rows(piece.first, piece.end or None):
                    yield from self.graph(time, graph, place)
            if archive.cut:
                self.extractor.note(("cut",), piece.file, archive.cut)
        except DataError as error:
            self.refusals.take(error, b"")

    def graph(self, time: Time, graph: str, place: str) -> Iterator[tuple[Time, str]]:
        """One row of an archive; empty if its graph was refused."""
        try:
            triples = parse_triples(graph, Format.NTRIPLES, place, self.log.options.base)
        except DataError as error:
            self.refusals.take(error, graph.encode())
            return
        self.extractor.hit(ARCHIVE_TIME)
        yield time, graph_text(triples)


def read_split(
    log: LogListing, split: Split, counts: ReadCounts, messages: bool = False
) -> Iterator[tuple[Time, str]]:
    """(time in µs, graph as dotr's N-Triples) of one split. Raises DataError under the policy `fail`, and
    UnsupportedError D4160 for insertions and deletions, unless rows may be `messages`.
    """
    reading = Reading(log, counts, messages)
    for piece in split.pieces:
        yield from reading.rows(piece)


def other_time(place: str) -> DataError:
    """An archive whose times are written differently from those of the log's first graph."""
    return DataError.of(
        "D2102",
        "this file writes time differently from the graphs before it",
        place=place,
        notes=("one run uses one kind of time, and one unit",),
        hint="convert it again from its source",
    )


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def plain_path(place: str) -> str:
    """`file:///a%20b` as a path; anything else as it is."""
    if not place.lower().startswith("file:/"):
        return place
    return unquote(urlsplit(place).path)


def is_remote(place: str) -> bool:
    """Whether `place` is a URI of another scheme than `file`: hdfs://…, s3a://…"""
    return _URI.match(place) is not None and plain_path(place) == place and not os.path.exists(place)


def as_path(uri: str) -> str:
    """A path in the form of the column `path`, from one of `inputFiles`: `file:/a b` from `file:///a%20b`."""
    scheme, rest = unquote(uri).split(":", 1)
    return f"{scheme}:{rest[2:] if rest.startswith('///') else rest}"


@cache
def graph_columns() -> pa.Schema:
    """A message by column."""
    return pa.schema([("time", pa.int64()), ("graph", pa.large_string())])


_CHUNK = 4_000_000


def load(scratch: str, prefix: str, schema: pa.Schema) -> pa.Table:
    """All rows of the files with a prefix."""
    tables = []
    for name in sorted(os.listdir(scratch)):
        if name.startswith(prefix):
            with pa.OSFile(os.path.join(scratch, name)) as file:
                tables.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


class Files:
    """Owns one Arrow stream for each number that got a row; closes them together."""

    def __init__(self, scratch: str, name: str, schema: pa.Schema) -> None:
        self._scratch, self._name, self._schema = scratch, name, schema
        self._rows: dict[int, list[tuple[Any, ...]]] = {}
        self._writers: dict[int, tuple[Any, Any]] = {}
        self._size = 0

    def add(self, number: int, row: tuple[Any, ...], size: int) -> None:
        self._rows.setdefault(number, []).append(row)
        self._size += size + 50
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        for number, rows in self._rows.items():
            if number not in self._writers:
                file = pa.OSFile(os.path.join(self._scratch, self._name.format(number)), "wb")
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writers[number] = file, pa.ipc.new_stream(file, self._schema, options=options)
            columns = [column(c, f.type) for c, f in zip(zip(*rows, strict=True), self._schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            self._writers[number][1].write_batch(batch)
        self._rows, self._size = {}, 0

    def close(self) -> None:
        self._flush()
        for file, writer in self._writers.values():
            writer.close()
            file.close()
