"""Sources of a feed: graphs with positions that only their source understands.

DocumentSource   a source of any transport that delivers documents: a queue, a database, a socket with a log
FileSource       files, folders, pipes and standard input, read once or watched
FilePositions    how far every file is consumed, and for which bytes that is true
ReadyFiles       which files of watched sources are ready to be read

Method:  a position is a JSON value for each partition, as in Bytewax: the transport gives a mark with every
         document, and only at commits is the value to store for a mark requested. Transport knows nothing of
         RDF, decoding nothing of where bytes come from.
         Documents: of all partitions the earliest graph (merged_source.py). A document may have several
         graphs; the stored position is the mark of the last whole document and the number of graphs consumed
         of the next, so commits may fall anywhere.
         Files: transport and decoding are one here, since formats read blocks of bytes as it suits them. A
         thread of its own reads a live source, so that its silence is noticed. A file is known by its path
         and the hash of the bytes consumed (decompressed); while those are unchanged, feeding continues after
         them, else it is a new file. Of a stream that is read by the byte only what was added since the last
         commit is hashed; other documents are hashed once, whole.
         Ready files (`--follow`): a file is taken when it was renamed into place (last written before the
         scan in which it was not there yet) or has not grown between two scans. Only the size of a file is
         remembered.
Why not: size and modification time as identity: a copy changes them, an edit in place need not. Notifications
         of the operating system: different everywhere, and none on network file systems.
Bad input: as in files: raised, or a mark in its place, and reading goes on with the next document.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, repeat
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.errors import DataError, EngineError
from dotr.events import GraphOrMessage, Time
from dotr.io.decode.documents import (
    Format,
    format_of,
    is_packed,
    open_document,
    parts_of,
    plain_name,
    read_some,
)
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import (
    START,
    Bookmark,
    DocumentRun,
    GraphRun,
    Item,
    ReadEvent,
    ReadSoFar,
    SourceOptions,
    TimedGraph,
    mapping_for,
)
from dotr.io.merged_source import IDLE, PartitionState, PartitionStates, Silences, merged
from dotr.io.reader import FileReader
from dotr.io.sources import Sources, live, resolve
from dotr.io.tables.mapping import TableMapping
from dotr.io.time import TimestampExtractor

Position: TypeAlias = Any
"""A JSON value: how far one partition of a source is consumed. Only the source understands it."""

PositionOf: TypeAlias = Callable[[str, str], Position | None]
"""Source and partition → its position at the last commit, None before the first."""


class Document(NamedTuple):
    """The bytes of one document, and the mark after it. `place` names it in messages.

    `format`: None: that of its source. `time`: that of its graphs, whatever they state; "": their own.
    `arrival`: the time of graphs without one, in µs since 1970. `mapping`: what makes graphs of its rows.
    `each`: of JSON lines of which every one is a document of its own, place and mark of each; none is blank.
    They are given together because a hundred lines are decoded ten times as fast so.
    """

    content: bytes
    mark: Position
    place: str = ""
    format: Format | None = None
    time: str = ""
    arrival: Time | None = None
    mapping: TableMapping | None = None
    each: Sequence[tuple[str, Position]] = ()


_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function

_LINE, _TOGETHER = 64 << 10, 1 << 20
"""Bytes of a line that is taken together with others, and of those together."""


def is_line(content: bytes) -> bool:
    """Whether it may be one JSON line, and no more."""
    return 0 < len(content) < _LINE and content[0] == 0x7B and b"\n" not in content


def together(documents: Sequence[Document], lines: bool = True) -> list[Document]:
    """The same documents, those that are one JSON line each taken together. `lines`: documents that do not
    say how they are written are JSON lines.
    """
    made: list[Document] = []
    run: list[Document] = []
    size = 0

    def end() -> None:
        if len(run) > 1:
            content = b"\n".join(one.content for one in run)
            each = [(one.place, one.mark) for one in run]
            made.append(run[0]._replace(content=content, mark=run[-1].mark, each=each))
        else:
            made.extend(run)
        run.clear()

    for one in documents:
        mapping = one.mapping
        if mapping is not None:
            fits = mapping.format == "jsonl" and mapping.rows is None
        else:
            fits = lines if one.format is None else one.format is Format.JSONLINES
        if fits and not one.time and one.arrival is None and is_line(one.content):
            other = run and (run[0].format is not one.format or run[0].mapping is not mapping)
            if other or size + len(one.content) > _TOGETHER:
                end()
                size = 0
            run.append(one)
            size += len(one.content)
        else:
            end()
            size = 0
            made.append(one)
    end()
    return made


class Transport(Protocol):
    """Delivers documents as bytes, from any position on, in the same order each time.

    `name` is what its positions are stored under. A source that cannot deliver again what was not committed
    gives at-most-once at best; one that can gives exactly-once with sinks that are (service/outputs.py).
    """

    name: str

    def partitions(self) -> Sequence[str]:
        """What has positions of its own, by name."""

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """Batches of the documents after `position`; an empty one: none has come for a while. The end: none
        is there now, `open` may be called again. Raises DataError.
        """

    def position(self, partition: str, mark: Position) -> Position:
        """What is stored for the mark of the last document that was consumed; called at commits."""

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """What lies before these positions, by partition, is not asked for again; None: the beginning."""


class GraphSource(Protocol):
    """Graphs with times, in the order in which a feed takes them.

    `extractors` find times; their `clock` is set where a run has one. `live`: graphs cannot wait for others.
    `over`: nothing more can come. `waiting`: something was read that waits for what others bring. `done` of
    `total` bytes are read, None: not known.
    """

    name: str
    extractors: Sequence[TimestampExtractor]

    @property
    def live(self) -> bool: ...

    @property
    def over(self) -> bool: ...

    @property
    def waiting(self) -> bool: ...

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int | None: ...

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """What is there now after the positions; None: nothing has come for a while. Raises DataError."""

    def begun(self) -> Mapping[str, Bookmark]:
        """Where files are read on from that were begun since the last call."""

    def consumed(self, item: Item) -> None:
        """Everything up to and with this item, the last that was given, is consumed."""

    def partitions(self) -> Sequence[PartitionState]:
        """How far each partition is read."""

    def changed(self) -> Mapping[str, str]:
        """Files that are read from their beginning again → what became of the bytes that were fed."""

    def changes(self) -> Mapping[tuple[str, str], Position]:
        """The positions, by source and partition, that changed since the last commit. Raises DataError."""

    def committed(self) -> None:
        """The changes are stored."""


class Reached(NamedTuple):
    """How far a partition is consumed: after the whole document with `mark`, or, before there was one, from
    the stored `position` on; and so many items of the next document.
    """

    position: Position | None
    mark: Position | None = None
    items: int = 0


_ALONE = 16
"""Lines that are decoded one by one where one cannot be read."""


_RUN = 256
"""Graphs that are given together: between two runs a feed may commit, and stop."""


class _Lines(NamedTuple):
    """Graphs of lines that are documents, as columns, the last one: what is reached with each."""

    times: Sequence[Time]
    graphs: Sequence[GraphOrMessage]
    files: Sequence[str]
    reached: Sequence[Reached]


class _Partition:
    """Owns the reading of one partition: an iterator of items. `lines` are those among which the last one is,
    `at` is the number of the next, 0 where it was none of them; `keys`: of each the latest time up to it.
    `read`: what is reached with the last item.
    """

    def __init__(self, items: Iterator[tuple[Item, Reached] | _Lines | None]) -> None:
        self._items = items
        self.lines, self.keys, self.at = _Lines((), (), (), ()), list[Time](), 0
        self.read = Reached(None)

    def __iter__(self) -> _Partition:
        return self

    def __next__(self) -> Item | None:
        if self.at >= len(self.keys):
            found = next(self._items)
            if not isinstance(found, _Lines):
                self.at, self.keys = 0, []
                if found is None:
                    return None
                item, self.read = found
                return item
            self.lines, self.at = found, 0
            self.keys = list(accumulate(found.times, max))
        at, (times, graphs, files, reached) = self.at, self.lines
        self.at, self.read = at + 1, reached[at]
        return TimedGraph(times[at], graphs[at], files[at], 1, "document", 1)

    def before(self, key: Time, with_it: bool) -> int:
        """The number of the first line after a time, or from it on."""
        return (bisect_right if with_it else bisect_left)(self.keys, key, self.at - 1)


def _last_of(partitions: Sequence[_Partition]) -> tuple[Time, int] | None:
    """The first of the last graphs that are known of partitions, by time; None: of one only its head is."""
    if not all(one.at for one in partitions):
        return None
    return min((one.keys[-1], number) for number, one in enumerate(partitions))


class DocumentSource:
    """Owns how far each partition is consumed. `format_`: of every document; `fail`: raise what cannot be
    read. `ends`: nothing more comes after what is there. `idle`: seconds of silence after which the others do
    not wait for a partition, None: they always do. `name`: what positions are stored under, that of the
    transport if none is given.
    """

    def __init__(
        self,
        transport: Transport,
        format_: Format,
        options: SourceOptions | None = None,
        *,
        fail: bool = True,
        ends: bool = True,
        idle: float | None = IDLE,
        name: str = "",
    ) -> None:
        self.name = name or transport.name
        self.options = replace(options or SourceOptions(), growing=False)  # a document that came is whole
        self.extractor = self.options.extractor()
        self.extractor.by_name = False
        self.extractors: Sequence[TimestampExtractor] = (self.extractor,)
        self.live, self.done, self.total = False, 0, None
        self.over = False
        self._transport, self._format, self._refusals = transport, format_, ErrorPolicy(fail)
        self._ends = ends
        self._silences = Silences(idle)
        self._states = PartitionStates()
        self._given: tuple[Sequence[str], Sequence[Reached]] = ((), ())
        """Of each graph that was given last: its partition, and what is reached with it."""
        self._consumed = 0
        """How many of them are consumed."""
        self._reached: dict[str, Reached] = {}
        self._open: dict[str, _Partition] = {}
        self._heads: dict[str, Item] = {}
        self._changed: set[str] = set()
        self._last_mapped: tuple[TableMapping, SourceOptions] | None = None

    @property
    def waiting(self) -> bool:
        return bool(self._heads)

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """See `GraphSource`."""
        for found in self.runs(position_of):
            if type(found) is DocumentRun:
                yield from found.items()
            else:
                yield found  # type: ignore[misc]  # an item, or none

    def runs(self, position_of: PositionOf) -> Iterator[Item | DocumentRun | None]:
        """As `items`; graphs that are known to follow one another are together."""
        partitions = self._transport.partitions()
        for partition in partitions:
            if partition not in self._reached:
                stored, count = position_of(self.name, partition) or (None, 0)
                self._reached[partition] = Reached(stored, items=count)
            if partition not in self._open:
                self._open[partition] = _Partition(self._partition(partition))
        opened = {partition: self._open[partition] for partition in partitions}
        streams: dict[str, Iterator[Item | None]] = dict(opened)

        def together() -> Iterator[DocumentRun]:
            return self._together(opened)

        for found in merged(streams, self._heads, self._silences, lambda _name: self._ends, together):
            if found is None or isinstance(found, DocumentRun):
                yield found
                continue
            partition, item = found
            self._given, self._consumed = ((partition,), (opened[partition].read,)), 0
            yield item
        self._open = {name: opened[name] for name in streams}
        # those that have not ended hold what waits for others
        self.over = self._ends

    def _together(self, opened: Mapping[str, _Partition]) -> Iterator[DocumentRun]:
        """What is known to come next of all partitions, each of which has a head: up to the last graph that
        is known of one, which has no head then.
        """
        last = _last_of(list(opened.values()))
        if last is None:
            return
        key, at = last
        keys: list[Time] = []
        names: list[str] = []
        times: list[Time] = []
        graphs: list[GraphOrMessage] = []
        files: list[str] = []
        reached: list[Reached] = []
        for number, (name, one) in enumerate(opened.items()):
            upto = one.before(key, number <= at)
            part = slice(one.at - 1, upto)
            keys += one.keys[part]
            names += repeat(name, upto - one.at + 1)
            times += one.lines.times[part]
            graphs += one.lines.graphs[part]
            files += one.lines.files[part]
            reached += one.lines.reached[part]
            one.at = upto
            del self._heads[name]
            if upto < len(one.keys) and (head := next(one)) is not None:
                self._heads[name] = head
        if len(opened) > 1:
            order = sorted(range(len(keys)), key=keys.__getitem__)
            for column in (names, times, graphs, files, reached):
                column[:] = map(column.__getitem__, order)  # type: ignore[arg-type]
        for begin in range(0, len(times), _RUN):
            part = slice(begin, begin + _RUN)
            self._given, self._consumed = (names[part], reached[part]), 0
            yield DocumentRun(times[part], graphs[part], files[part])

    def _partition(self, name: str) -> Iterator[tuple[Item, Reached] | _Lines | None]:
        """The items of one partition, graphs of lines together."""
        reached = self._reached[name]
        for batch in self._transport.open(name, self._position(name)):
            if not batch:
                yield None
            for document in batch:
                if not document.each:
                    for one in self._document(name, document, reached):
                        reached = one[1]
                        yield one
                    continue
                if reached.items:  # of the first line
                    line, _, rest = document.content.partition(b"\n")
                    (place, mark), *each = document.each
                    alone = document._replace(content=line, place=place, mark=mark, each=())
                    yield from self._document(name, alone, reached)
                    document = document._replace(content=rest, place=each[0][0], each=each)
                yield from self._lines(name, document)
                reached = Reached(None, document.mark)

    def _document(
        self, partition: str, document: Document, before: Reached
    ) -> Iterator[tuple[Item, Reached]]:
        done = before.items
        name = document.place or f"{self.name}/{partition}"
        self.done += len(document.content)
        items, number = self._decoded(name, document), 0
        item = next(items, None)
        while item is not None:
            following, number = next(items, None), number + 1
            if number > done:
                whole = following is None
                reached = Reached(None, document.mark) if whole else before._replace(items=number)
                yield item._replace(how="document", end=number), reached
            item = following
        if number <= done:  # a document of no graph
            yield ReadEvent(None, name, "document", 0), Reached(None, document.mark)

    def _lines(self, partition: str, document: Document) -> Iterator[tuple[Item, Reached] | _Lines]:
        """The items of lines that are documents, as if each had come alone; so do some from one on that
        cannot be read.
        """
        lines, at = document.content.split(b"\n"), 0
        places, marks = zip(*document.each, strict=True)
        reached = [_tuple(Reached, row) for row in zip(repeat(None), marks, repeat(0), strict=False)]
        while at < len(lines):
            first = begun = at
            times: list[Time] = []
            graphs: list[GraphOrMessage] = []
            rest = document._replace(content=b"\n".join([*lines[at:], b""]))
            for read in self._reader(document.place, rest).runs():
                if isinstance(read, ReadEvent):
                    break
                run = read if isinstance(read, GraphRun) else read.alone
                upto = at + len(run.times)
                if (run.lines[0], run.lines[-1]) != (at - first + 1, upto - first):
                    break
                if isinstance(read, TimedGraph) and type(read.triples) is not list:  # it deletes, or the like
                    if times:
                        yield _Lines(times, graphs, places[begun:at], reached[begun:at])
                        times, graphs = [], []
                    yield TimedGraph(read.time, read.triples, places[at], 1, "document", 1), reached[at]
                    begun = upto
                else:
                    times += run.times
                    graphs += run.graphs
                at = upto
            if times:
                yield _Lines(times, graphs, places[begun:at], reached[begun:at])
            self.done += sum(map(len, lines[first:at]))
            alone = slice(at, at + _ALONE)
            for line, (place, mark) in zip(lines[alone], document.each[alone], strict=True):
                one = Document(line, mark, place, document.format, mapping=document.mapping)
                yield from self._document(partition, one, Reached(None))
                at += 1

    def _decoded(self, name: str, document: Document) -> Iterator[Item]:
        """The graphs of a document, and what was refused of it."""
        items, extractor = self._reader(name, document).items(), self.extractor
        while True:  # documents of several partitions are read by turns
            extractor.given, extractor.arrival = document.time, document.arrival
            item = next(items, None)
            extractor.given, extractor.arrival = "", None
            if item is None:
                return
            if not _is_end(item):
                yield item

    def _reader(self, name: str, document: Document) -> FileReader:
        """What reads a document."""
        options = self.options if document.mapping is None else self._mapped(document.mapping)
        return FileReader(
            name,
            options,
            self.extractor,
            self._refusals,
            content=document.content,
            format=document.format or self._format,
        )

    def _mapped(self, mapping: TableMapping) -> SourceOptions:
        """The options with a mapping for every document; they are those of the last one as a rule."""
        if self._last_mapped is None or self._last_mapped[0] is not mapping:
            options = replace(self.options, mappings=(replace(mapping, files=("*",)),))
            self._last_mapped = mapping, options
        return self._last_mapped[1]

    def begun(self) -> Mapping[str, Bookmark]:
        """See `GraphSource`."""
        return {}

    def changed(self) -> Mapping[str, str]:
        """See `GraphSource`."""
        return {}

    def partitions(self) -> Sequence[PartitionState]:
        """See `GraphSource`."""
        return self._states.of(self.name, self._transport.partitions(), self._silences)

    def consumed(self, item: Item | DocumentRun) -> None:
        """See `GraphSource`."""
        names, reached = self._given
        if type(item) is DocumentRun:
            self._states.note_run(names, item.times)
            found = dict(zip(names, reached, strict=True))
            self._reached |= found
            self._changed |= found.keys()
            return
        name = names[self._consumed]
        self._states.note(name, item)  # type: ignore[arg-type]  # no run
        self._reached[name] = reached[self._consumed]
        self._changed.add(name)
        self._consumed += 1

    def changes(self) -> Mapping[tuple[str, str], Position]:
        """See `GraphSource`."""
        changed = sorted(self._changed)
        return {(self.name, name): [self._position(name), self._reached[name].items] for name in changed}

    def _position(self, partition: str) -> Position | None:
        position, mark, _ = self._reached[partition]
        return position if mark is None else self._transport.position(partition, mark)

    def committed(self) -> None:
        """See `GraphSource`. The transport may let go of whole documents."""
        self._transport.committed({name: self._position(name) for name in sorted(self._changed)})
        self._changed.clear()


def _is_end(item: Item) -> bool:
    return not isinstance(item, TimedGraph) and item.error is None


FILES = "files"
"""What positions of files are stored under; a partition is the real path of a file."""

_PART = 1 << 20


def _hash() -> blake2b:
    return blake2b(digest_size=16)


class FilePosition(NamedTuple):
    """A position in one file: a bookmark, and the size and hash of the bytes that it is true for."""

    how: str
    end: int
    carried: str
    size: int
    hash: str
    finished: bool

    @classmethod
    def of(cls, stored: Position) -> FilePosition:
        """What was stored of one. Raises EngineError D5105."""
        try:
            how, end, carried, size, hash_, finished = stored
            if [*map(type, (how, end, carried, size, hash_))] != [str, int, str, int, str]:
                raise TypeError
        except (TypeError, ValueError):
            raise EngineError.of(
                "D5105",
                "what is stored for a file is not a position in it",
                hint="deploy again with another --dir, and feed again from the start",
            ) from None
        return cls(how, end, carried, size, hash_, bool(finished))


class ResumePlan(Struct):
    """What is left to read of some files: where to go on, and what is done."""

    files: list[str] = field(default_factory=list)
    bookmarks: dict[str, Bookmark] = field(default_factory=dict)
    limited: bool = False
    """Whether a file has more than this reading takes: read again afterwards."""


class FilePositions(Struct):
    """Owns the positions that the next commit records, and the hashes of files that are being read.

    Only regular files are kept; standard input and pipes cannot be read again.
    """

    changed: dict[str, str] = field(default_factory=dict)
    """Files that are read from their beginning again → what became of the bytes that were fed."""
    source: str = FILES
    _latest: dict[str, Item] = field(default_factory=dict)
    _growing: dict[str, tuple[blake2b, int]] = field(default_factory=dict)
    """Files read by the byte → hash of the first so many bytes."""
    _whole: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Other files being read → size and hash of all of it, as it was when reading began."""

    def plan(self, files: Sequence[str], position_of: PositionOf) -> ResumePlan:
        """What to read of `files`. Hashes the consumed bytes of each again. Raises DataError."""
        plan = ResumePlan()
        for file in files:
            position = self._position(file, position_of) if os.path.isfile(file) else None
            rest = START if position is None else self._rest(file, position)
            if rest is None:
                continue
            plan.files.append(file)
            plan.bookmarks[file] = rest
            plan.limited = plan.limited or bool(rest.limit)
        return plan

    def _position(self, file: str, position_of: PositionOf) -> FilePosition | None:
        """How far a file is consumed: by what is not committed yet, if anything, else by the last commit."""
        if file in self._latest:
            return self._row(file, self._latest[file])
        stored = position_of(self.source, _key(file))
        return None if stored is None else FilePosition.of(stored)

    def _rest(self, file: str, row: FilePosition) -> Bookmark | None:
        """Where to go on in a file that was read before; None when there is nothing left of it."""
        hashed, size = _hash(), 0
        with open_document(file) as document:
            for part in parts_of(document, row.size, file):
                hashed.update(part)
                size += len(part)
            more = bool(read_some(document, 1, file))
        if size != row.size or hashed.hexdigest() != row.hash or (row.how == "whole" and more):
            self.changed[file] = "changed"
            if size < row.size:
                self.changed[file] = "shrank" if size else "was emptied"
            return START
        if row.finished and not more:
            return None
        if row.how == "byte" and row.end == size:
            self._growing[file] = (hashed, size)
        elif not row.finished:
            self._whole[file] = (row.size, row.hash)
        limit = row.size if more and not row.finished and row.how != "byte" else 0
        return Bookmark(row.how, row.end, row.carried, limit)

    def consumed(self, item: Item) -> None:
        """Everything up to and with this item is consumed."""
        if item.file != "<stdin>":
            self._latest[item.file] = item

    def changes(self) -> Mapping[str, Position]:
        """The positions of the next commit. Reads what was consumed since the last one. Raises DataError."""
        rows = ((file, self._row(file, item)) for file, item in self._latest.items() if os.path.isfile(file))
        return {_key(file): row for file, row in rows}

    def _row(self, file: str, item: Item) -> FilePosition:
        how, end, carried = item.how, item.end, item.carried
        if how == "whole" and carried:  # the reader had all of it in hand
            return FilePosition(how, end, "", end, carried, finished=True)
        if how == "whole":  # the rest of a stream was refused
            size, digest = self._measured(file)
            return FilePosition("byte", size, "", size, digest, finished=True)
        finished = isinstance(item, ReadEvent) and item.error is None
        if how == "byte" and not is_packed(file):
            return FilePosition(how, end, carried, end, self._grown(file, end), finished)
        if isinstance(item, ReadEvent) and finished and self._whole.get(file, (0, ""))[0] != item.size:
            self._whole.pop(file, None)  # it grew while it was read
        if file not in self._whole:
            self._whole[file] = self._measured(file)
        return FilePosition(how, end, carried, *self._whole[file], finished)

    def committed(self) -> None:
        """The changes are in the journal."""
        for file, item in self._latest.items():
            if item.how == "whole" or (isinstance(item, ReadEvent) and item.error is None):
                self._growing.pop(file, None)
                self._whole.pop(file, None)
        self._latest.clear()

    def _grown(self, file: str, end: int) -> str:
        """The hash of the first `end` bytes, from that of fewer."""
        hashed, upto = self._growing.get(file, (_hash(), 0))
        if upto < end:
            with open_document(file) as document:
                document.seek(upto)
                for part in parts_of(document, end - upto, file):
                    hashed.update(part)
        self._growing[file] = (hashed, end)
        return hashed.hexdigest()

    def _measured(self, file: str) -> tuple[int, str]:
        """Size and hash of a whole file, decompressed."""
        hashed, size = _hash(), 0
        with open_document(file) as document:
            while part := read_some(document, _PART, file):
                hashed.update(part)
                size += len(part)
        return size, hashed.hexdigest()


def _key(file: str) -> str:
    return os.path.realpath(file)


def is_as_fed(file: str, position: FilePosition) -> bool:
    """Whether a file has the bytes that its position is true for."""
    hashed, size = _hash(), 0
    with open_document(file) as document:
        for part in parts_of(document, position.size, file):
            hashed.update(part)
            size += len(part)
    return size == position.size and hashed.hexdigest() == position.hash


_GRAIN = 0.05
"""Seconds by which the clock of a file system may be coarse."""


class ReadyFiles(Struct):
    """Owns what the last look saw: file → (size, time of last write), and the files handed out at
    that size.
    """

    paths: Sequence[str]
    mappings: Sequence[TableMapping] = ()
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _given: dict[str, int] = field(default_factory=dict)
    _looked: float = 0.0

    def ready(self) -> list[str]:
        """Files that may be read now: new ones, and those that grew. Folders may still be empty.

        Raises DataError for a path that does not exist.
        """
        now = time.time()
        ready: list[str] = []
        seen: dict[str, tuple[int, float]] = {}
        for file in self._files():
            if file == "-":
                if "-" not in self._given:
                    ready.append(file)
                self._given[file], seen[file] = 0, (0, 0.0)
                continue
            try:
                status = os.stat(file)
            except OSError:
                continue  # gone again
            size, written = status.st_size, status.st_mtime
            seen[file] = (size, written)
            if self._given.get(file) == size:
                continue
            before = self._seen.get(file)
            if not os.path.isfile(file) or self._by_lines(file):
                ready.append(file)  # a pipe is read as it comes, lines as they are completed
                self._given[file] = size
                continue
            renamed = before is None and file not in self._given and 0 < written < self._looked - _GRAIN
            first = not self._looked and written < now - 1
            if renamed or first or (before is not None and before == (size, written)):
                ready.append(file)
                self._given[file] = size
        self._seen, self._looked = seen, now
        self._given = {file: size for file, size in self._given.items() if file in seen}
        return ready

    def _by_lines(self, file: str) -> bool:
        """Whether a file is read on while it grows."""
        mapping = mapping_for(file, self.mappings)
        if plain_name(file) != file:
            return False
        if mapping is None:
            return format_of(file) is Format.JSONLINES
        return mapping.format_of(file) in ("csv", "tsv", "jsonl")

    @property
    def over(self) -> bool:
        """Whether nothing more can come: every source is standard input, and was handed out."""
        return bool(self._given) and all(path == "-" for path in self.paths)

    def _files(self) -> list[str]:
        files: list[str] = []
        for path in self.paths:
            try:
                files.extend(resolve([path], self.mappings))
            except DataError as error:
                if error.diagnostics[0].code != "D2009":  # an empty folder fills, a pattern comes to match
                    raise
        return files


_AHEAD = 1000
"""Graphs that may be read ahead of the pipeline from a live source."""


class FileSource:
    """Owns the reading of one feed's files. `fail`: raise what cannot be read; `follow`: each call of `items`
    takes the files that are ready by then.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: SourceOptions,
        *,
        fail: bool = True,
        follow: bool = False,
        name: str = FILES,
    ) -> None:
        self.name = name
        self.extractor = options.extractor()
        self.extractors: Sequence[TimestampExtractor] = (self.extractor,)
        self._begun: dict[str, Bookmark] = {}
        self._given = PartitionStates()
        self.live, self.waiting, self.done = False, False, 0
        self.total: int | None = None
        self._paths, self._options, self._fail = paths, options, fail
        self._watch = ReadyFiles(paths, options.mappings) if follow else None
        self._positions = FilePositions(source=name)

    @property
    def over(self) -> bool:
        """Whether every source is standard input, and has ended."""
        return self._watch is None or self._watch.over

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """See `GraphSource`. Hashes what was consumed of each file again."""
        watch = self._watch
        files = resolve(self._paths, self._options.mappings) if watch is None else watch.ready()
        plan = self._positions.plan(files, position_of)
        self._begun |= plan.bookmarks
        self.live, self.total = live(plan.files), None
        return self._read(files, plan, position_of)

    def _read(self, files: Sequence[str], plan: ResumePlan, position_of: PositionOf) -> Iterator[Item | None]:
        while plan.files:
            sources = Sources(plan.files, self._options, ErrorPolicy(self._fail), bookmarks=plan.bookmarks)
            sources.extractor = self.extractor
            yield from ahead(sources.items()) if self.live else self._counted(sources)
            if not plan.limited:
                return
            plan = self._positions.plan(files, position_of)

    def _counted(self, sources: Sources) -> Iterator[Item]:
        behind = ReadSoFar(sources.paths)
        self.total = behind.total
        for item in sources.items():
            behind.passed(item)
            self.done = behind.done
            yield item

    def begun(self) -> Mapping[str, Bookmark]:
        """See `GraphSource`."""
        begun, self._begun = self._begun, {}
        return begun

    def changed(self) -> Mapping[str, str]:
        """See `GraphSource`."""
        return self._positions.changed

    def partitions(self) -> Sequence[PartitionState]:
        """See `GraphSource`. All files are one partition: they are merged by time as they are read."""
        return self._given.of(self.name, ("",))

    def consumed(self, item: Item) -> None:
        """See `GraphSource`."""
        self._given.note("", item)
        self._positions.consumed(item)

    def changes(self) -> Mapping[tuple[str, str], Position]:
        """See `GraphSource`."""
        return {(self.name, file): position for file, position in self._positions.changes().items()}

    def committed(self) -> None:
        """See `GraphSource`."""
        self._positions.committed()


def ahead(items: Iterator[Item]) -> Iterator[Item | None]:
    """Items of a live source as they come, None whenever nothing comes for a while."""
    waiting: queue.Queue[Item | BaseException | None] = queue.Queue(_AHEAD)

    def read() -> None:
        try:
            for item in items:
                waiting.put(item)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            item = waiting.get(timeout=0.2)
        except queue.Empty:
            yield None
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item
