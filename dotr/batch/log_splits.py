"""Logs as rows of (time, graph): which task reads what.

Place:   the driver lists splits; tasks of local.py and of the Spark data source read them through io/.
Method:  small files are combined into one split, large ones are cut (line_splits.py), Parquet is split by row
         groups. All files of a run must write time in one way: the driver reads the first graph, tasks check
         the others against it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.arrow_batches import graph_text, message_text
from dotr.batch.line_splits import Cuts, cuts, file_size, table_cuts, table_header
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.io.decode.compression import is_packed
from dotr.io.decode.documents import Format, format_of
from dotr.io.decode.parquet import SUFFIX, ArchiveFile
from dotr.io.decode.parsing import parse_triples
from dotr.io.error_policy import DeadLetter, ErrorPolicy
from dotr.io.files.reader import DUMPS
from dotr.io.files.sources import Bookmark, FileReader, SourceOptions, resolve

ARCHIVE_RUNG = "the archive's own time"

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
    rungs: dict[str, int] = field(default_factory=dict)
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
    `message_text`, and may insert and delete.
    """

    def __init__(self, log: LogListing, counts: ReadCounts, messages: bool = False) -> None:
        assert log.clock is not None
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
        self.counts.rungs = dict(self.extractor.rungs)
        self.counts.beside = dict(self.extractor.beside)
        self.counts.changed = dict(self.extractor.first)

    def _archive(self, piece: Piece, content: bytes | None) -> Iterator[tuple[Time, str]]:
        try:
            archive = ArchiveFile(piece.file, self.log.options.unit, content, self.log.options.reading.finer)
            if archive.clock != self.log.clock:
                raise other_time(piece.file)
            if self._messages:
                for times, parts, _ in archive.graphs(piece.first, piece.end or None):
                    self.extractor.hit(ARCHIVE_RUNG, len(times))
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
        self.extractor.hit(ARCHIVE_RUNG)
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
