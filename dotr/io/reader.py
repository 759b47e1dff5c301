"""Read one file as graphs and marks, in the order in which they stand.

Place:   under sources.py, which orders what readers deliver; formats are in documents.py, quads.py,
         json_lines.py, messages.py and parquet.py, the time of a graph in time.py.
Bad input: what cannot be read is raised, or reported by a mark in its place, and reading goes on after it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING

from dotr.errors import DataError
from dotr.events import GraphOrMessage, Time, all_triples, stamped_part
from dotr.io.decode.documents import (
    QUAD_FORMATS,
    SNIFF,
    Format,
    Unpacked,
    content_hash,
    decode,
    format_of,
    guess,
    is_jelly,
    is_packed,
    line_at,
    line_format,
    open_document,
    read_bounded,
    read_some,
    too_large,
    unknown_format,
    unreadable,
)
from dotr.io.decode.jelly import JellyText
from dotr.io.decode.limits import no_memory, quiet_limit, says_nothing
from dotr.io.decode.messages import Carried, MessageReader, is_message_log
from dotr.io.decode.quads import QuadBlock, group_whole, refused_lines
from dotr.io.decode.rdf import parse_runs, parse_triples
from dotr.io.errors import ErrorPolicy, graphs_alone
from dotr.io.graphs import (
    BEGUN,
    START,
    Bookmark,
    GraphRun,
    Headed,
    Item,
    Originals,
    ReadEvent,
    SourceOptions,
    StreamReader,
    TimedGraph,
    WantedForm,
    all_of,
    first_bytes,
    is_table,
    one_by_one,
    original_of,
    standard_input,
)
from dotr.io.time import TimestampExtractor, UndecidedTimeError

if TYPE_CHECKING:
    from dotr.io.decode.json_lines import Line, Said
    from dotr.io.decode.quads import QuadRun
    from dotr.io.decode.rdf_patch import Patches
    from dotr.io.parse_workers import ParseWorkers
    from dotr.io.tables.mapping import TableMapping
    from dotr.io.tables.rows import TableReader, Undecided

DUMPS = (*QUAD_FORMATS, Format.TURTLE, Format.NTRIPLES, Format.RDFXML)
_ONE_GRAPH = (Format.TURTLE, Format.NTRIPLES)
_OWN_TIME = "the line's own time"
_QUIET_ROW = 64
"""Bytes besides its own that a header or prefix outside of a transaction of patches is counted for."""
_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function


@dataclass(slots=True)
class FileReader:
    """Owns the reading of one file as graphs and marks, in the order in which they stand.

    Where `refusals.fail`, what cannot be read is raised; else it is a mark, and reading goes on after it.
    """

    file: str
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    stdin: IO[bytes] | None = None
    bookmark: Bookmark = START
    content: bytes | None = None
    """All of the file, compressed or not, where somebody else fetched it: `file` is then only its name."""
    format: Format | None = None
    """Where it is known; None: the name says it."""
    workers: ParseWorkers | None = None
    """What parses JSON lines of a file that is not compressed."""
    wanted: WantedForm | None = None
    """Which forms of graphs are given as columns."""
    numbered: bool = True
    """Whether lines count from the beginning of the file, which is read for it; else from the bookmark on."""
    name: str = field(default="", init=False)
    """The file as messages call it."""
    _last: Time | None = field(default=None, init=False)
    _prefixes: str = field(default="", init=False)
    _left: int = field(default=0, init=False)
    _infers: bool = field(default=False, init=False)
    """Whether the order of the rows says what a local time is that came twice."""

    def __post_init__(self) -> None:
        self.name = "<stdin>" if self.file == "-" else self.file
        mapping, reading = self.options.mapping_for(self.file), self.options.reading
        self._infers = (reading if mapping is None else mapping.reading(reading)).ambiguous == "infer"
        if BEGUN in self.bookmark.carried and not self._infers:  # it was another choice
            self.bookmark = self.bookmark._replace(carried=self.bookmark.carried.partition(BEGUN)[0])

    def graphs(self) -> Iterator[TimedGraph]:
        """See `graphs_alone`."""
        return graphs_alone(self.items(), self.refusals)

    def items(self) -> Iterator[Item]:
        """The graphs and marks; the mark of the end comes last. Raises DataError."""
        return one_by_one(self.runs())

    def runs(self) -> Iterator[Item | GraphRun]:
        """As `items`, graphs that were read at once together."""
        try:
            if self._infers:
                yield from self._decided()
            else:
                yield from self._items()  # type: ignore[misc]  # nothing is undecided
        except MemoryError:
            yield self._refused(no_memory(self.name), b"", "whole", 0)
        finally:
            for what, count in self.options.choices.taken().items():
                self.extractor.note((what,), self.name, count)

    def _decided(self) -> Iterator[Item | GraphRun]:
        from dotr.io.tables.rows import begun_at, decided  # noqa: PLC0415  # start-up: a rare choice

        self.bookmark, begun = begun_at(self.bookmark)
        return decided(self._items(), self.bookmark, begun, self.options.growing)

    def _timed(self, make: Callable[[], Item], end: int) -> Item | Undecided:
        """What `make` gives, or what waits for the rows after it."""
        try:
            return make()
        except UndecidedTimeError as error:
            from dotr.io.tables.rows import undecided  # noqa: PLC0415  # start-up: a rare choice

            return undecided(error.local, make, self.extractor, end)

    def _items(self) -> Iterator[Item | GraphRun | Undecided]:
        mapping = self.options.mapping_for(self.file)
        table = None if mapping is None else self._table(mapping)
        if self.file == "-":
            stdin = self.stdin if self.stdin is not None else standard_input()
            stream = StreamReader(stdin, self.name)
            yield from self._read(stream, None) if table is None else table.lines(stream, 1)
            return
        format_ = self.format or format_of(self.file)
        if table is not None and table.columnar:
            yield from table.columns(self.content)
            return
        if table is None and format_ is None and self._regular:
            if is_table(self.file):
                from dotr.io.tables.rows import without_mapping  # noqa: PLC0415  # start-up: most runs have no tables

                raise without_mapping(self.file)
            raise unknown_format(self.file, streamed=True)
        if table is None and format_ is Format.PARQUET:
            yield from self._archive()
            return
        try:
            file = open_document(self.file, self.content)
        except DataError as error:
            yield self._refused(error, b"", "whole", 0)
            return
        with file:
            if (
                table is None
                and not self.options.split
                and format_ in _ONE_GRAPH
                and type(file) is io.BytesIO
                and self.bookmark == START
            ):
                content = file.read()  # the hot path of folders
                if not is_message_log(content[:SNIFF]) and not is_packed(self.file):
                    yield self._document(content, format_)
                    return
                file.seek(0)
            how, end, _carried, limit = self.bookmark
            start = end if how == "byte" else 0
            try:
                file.seek(start) if start else None
            except (OSError, EOFError) as error:
                raise unreadable(self.file, OSError(*error.args)) from None
            if isinstance(file, JellyText):
                format_ = Format.NQUADS if file.quads else Format.NTRIPLES
            fence = self.options.max_document if isinstance(file, Unpacked | JellyText) else 0
            stream = StreamReader(file, self.name, start, limit, fence)
            yield from (
                self._read(stream, format_) if table is None else table.lines(stream, self._line(start))
            )

    def _table(self, mapping: TableMapping) -> TableReader:
        from dotr.io.tables.rows import TableReader  # noqa: PLC0415  # start-up: most runs have no tables

        where = self.name, mapping, self.options, self.extractor, self.refusals, self.bookmark
        return TableReader(*where, None if self._infers else self.wanted)

    @property
    def _regular(self) -> bool:
        """Whether the whole file is there, and ends; not so with a pipe."""
        return self.content is not None or os.path.isfile(self.file)

    def _refused(self, error: DataError, content: bytes, how: str, end: int, carried: str = "") -> ReadEvent:
        if self.refusals.fail:
            raise error
        return ReadEvent(self._last, self.name, how, end, carried, error, content)

    def _graph(
        self, time: Time, triples: GraphOrMessage, line: int, how: str, end: int, carried: str = ""
    ) -> TimedGraph:
        self._last = time
        return _tuple(TimedGraph, (time, triples, self.name, line, how, end, carried))

    def _dump(self, stream: StreamReader, head: bytes, format_: Format) -> Iterator[Item]:
        """A dump, taken apart. What it is compressed to is not bounded: it goes to disk."""
        from dotr.io.dumps import DumpReader  # noqa: PLC0415  # start-up: most runs have no dumps

        stream.fence = 0
        reader = DumpReader(self.name, self.options, self.extractor, self.refusals, self.bookmark)
        yield from reader.items(Headed(head, stream), format_)

    def _read(self, stream: StreamReader, format_: Format | None) -> Iterator[Item | GraphRun | Undecided]:
        """Choose the reader by name, or by the first bytes where there is no name."""
        start, carried = stream.count, self.bookmark.carried
        head = b""
        if format_ not in (Format.JSONLINES, Format.PATCH, Format.RDFXML, Format.JSONLD) and not start:
            head = first_bytes(stream, self.file)
        if format_ is None and is_jelly(head):
            text = JellyText(Headed(head, stream), self.name)
            format_ = Format.NQUADS if text.quads else Format.NTRIPLES
            stream = StreamReader(text, self.name, fence=self.options.max_document)
            head = first_bytes(stream, self.file)
        how = "byte"
        items: Iterator[Item | GraphRun | Undecided]
        format_ = format_ or guess(head)
        if self.options.split and format_ in DUMPS and not (carried or is_message_log(head)):
            yield from self._dump(stream, head, format_)
            return
        if format_ is Format.PATCH:
            items = self._patches(stream, head)
        elif carried or (head and is_message_log(head)):
            by_lines = format_ in (Format.NTRIPLES, Format.NQUADS)
            items = self._messages(stream, head, format_ if by_lines else line_format(head))
        elif format_ is Format.JSONLINES:
            yield from self._json_lines(stream, head)
            return
        elif format_ is Format.NQUADS:
            items = self._quads(stream, head, format_)
        elif format_ is Format.TRIG and (b"{" in head or format_of(self.file) is not None):
            how, items = "graph", self._quads(stream, head, format_)
        else:
            yield from self._whole(stream, head, format_)
            return
        number = 0
        for item in items:
            stream.settled() if type(item) is not ReadEvent else stream.refused()
            yield item
            if isinstance(item, ReadEvent) and item.how == "whole":
                return  # the rest of the file was refused
            number = item.ends[-1] if isinstance(item, GraphRun) else item.end
        yield self._ended(stream, how, max(number, self.bookmark.end))

    def _ended(self, stream: StreamReader, how: str, number: int = 0) -> ReadEvent:
        """The mark after the last item of a file, of which that has `number`."""
        end = stream.count - self._left if how == "byte" else number
        return ReadEvent(self._last, self.name, how, end, self._prefixes, size=stream.count)

    def _whole(self, stream: StreamReader, head: bytes, format_: Format) -> Iterator[Item | Undecided]:
        """A document of one graph; TriG and JSON-LD of unknown make may turn out to have named graphs."""
        content = head
        blocks: list[QuadBlock] = []
        try:
            content += self._rest(stream, len(head), format_)
            if format_ in (Format.JSONLD, Format.TRIG):
                runs = parse_runs(
                    decode(content, self.name), format_, self.name, self.options.base, self.options.choices
                )
                triples = list(dict.fromkeys([triple for _g, rows in runs for triple in rows]))
                if any(graph for graph, _rows in runs):
                    blocks = list(group_whole(((g, rows, 0, 0) for g, rows in runs), self.name))
                else:
                    time = self.extractor.time(triples, self.file, self.name)
        except DataError as error:
            yield self._refused(error, content, "whole", len(content), content_hash(content))
            return
        if format_ not in (Format.JSONLD, Format.TRIG):
            yield self._document(content, format_)
            return
        if not blocks:
            yield self._graph(time, triples, 0, "whole", len(content), content_hash(content))
            return
        for number, block in enumerate(blocks, 1):
            block.whole, block.end = True, number
            if number > self.bookmark.end:
                yield self._stamped_block(block)
        yield ReadEvent(self._last, self.name, "graph", len(blocks), size=stream.count)

    def _document(self, content: bytes, format_: Format) -> Item:
        """A document of one graph in a format that has no others."""
        hashed = content_hash(content)
        try:
            text, options = decode(content, self.name), self.options
            triples = parse_triples(text, format_, self.name, options.base, choices=options.choices)
            time = self.extractor.time(triples, self.file, self.name)
        except DataError as error:
            return self._refused(error, content, "whole", len(content), hashed)
        return self._graph(time, triples, 0, "whole", len(content), hashed)

    def _rest(self, stream: StreamReader, taken: int, format_: Format) -> bytes:
        if stream.fence > 0 or not self._regular:
            return read_bounded(stream, self.name, self.options.max_document, format_, taken)
        parts: list[bytes] = []
        while part := read_some(stream, -1, self.name):
            parts.append(part)
        return b"".join(parts)

    def _quads(
        self, stream: StreamReader, head: bytes, format_: Format
    ) -> Iterator[Item | GraphRun | Undecided]:
        from dotr.io.decode.quads import QuadRun, quad_parts  # noqa: PLC0415  # start-up: one format of many

        start, options = stream.count - len(head), self.options
        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        whole = options.whole if self._regular else 0
        place = self._line(start), start, not self.refusals.fail, options.choices
        parts = quad_parts(
            stream, format_, self.name, options.base, options.max_document, head, whole, *place
        )
        originals = None if self.refusals.fail else Originals(stream, head, format_, self.name, options.base)
        try:
            for part in parts:
                if isinstance(part, QuadRun):
                    passed = max(0, skip + 1 - part.ends[0]) if part.whole else 0
                    yield from self._quad_run(part.behind(passed) if passed else part, originals)
                    continue
                if not part.whole or part.end > skip:
                    yield self._stamped_block(part, originals)
                if originals is not None:
                    originals.passed(part)
        except DataError as error:
            content = all_of(self.file, self.content, self.options.max_document)
            yield self._refused(error, content, "whole", len(content))

    def _quad_run(self, run: QuadRun, originals: Originals | None) -> Iterator[Item | GraphRun | Undecided]:
        while run.names:
            times = self.extractor.stamped_times(run.stamps)
            if times is not None:
                self._last = times[-1]
                columns = times, run.graphs, self.name, run.lines, run.ends
                yield GraphRun(*columns, "graph" if run.whole else "byte")
                if originals is not None:
                    originals.passed(run.behind(len(times) - 1).blocks()[0])
                return
            count = 1 if self.extractor.clock is None else len(run.names)
            for block in run.blocks()[:count]:
                yield self._stamped_block(block, originals)
                if originals is not None:
                    originals.passed(block)
            run = run.behind(count)

    def _stamped_block(self, block: QuadBlock, originals: Originals | None = None) -> Item | Undecided:
        triples, how, end = block.triples, "graph" if block.whole else "byte", block.end
        if len(triples) > 1:
            triples = list(dict.fromkeys(triples))
        if block.spoiled:
            return self._refused(
                refused_lines(block, self.name), original_of(block, originals), how, block.end
            )
        stamped = self.extractor.stamped(block.about, block.name)
        if stamped is not None:
            return self._graph(stamped, triples, block.line, how, end)
        place = f"{self.name}:{block.line}" if block.line else f"{self.name}, graph {block.name}"
        original = original_of(block, originals) if self._infers else None

        def make() -> Item:
            try:
                time = self.extractor.time(triples, self.file, place, about=block.about, names=(block.name,))
                part = stamped_part(block.name, triples, block.about, place)
            except UndecidedTimeError:
                raise
            except DataError as error:
                content = original_of(block, originals) if original is None else original
                return self._refused(error, content, how, block.end)
            return self._graph(time, part, block.line, how, block.end)

        return self._timed(make, block.end)

    def _json_lines(self, stream: StreamReader, head: bytes) -> Iterator[Item | GraphRun | Undecided]:
        from dotr.io.decode.json_lines import Lines, line_batches  # noqa: PLC0415  # start-up: see `_quads`

        start = stream.count - len(head)
        parser = Lines(self.name, self.options.base, self.options.choices)
        limit = self.options.max_document
        try:
            batches = line_batches(stream, self.name, limit, head, self._line(start), start)
            ahead = self.workers if self._regular and not stream.fence else None
            parsed = map(parser.batch, batches) if ahead is None else ahead.parsed(batches)
            for batch, found in parsed:
                if self.options.growing and not batch.complete:
                    self._left = len(batch.contents[-1])
                    break
                times = None if found is None else self.extractor.own_times(_OWN_TIME, found[1])
                if found is not None and times is not None:
                    stream.settled()
                    self._last = times[-1]
                    yield GraphRun(times, found[0], self.name, batch.numbers, batch.ends)
                    continue
                lines = batch.lines()
                for line, one in zip(lines, parser.parse(lines), strict=True):
                    item = self._timed(partial(self._json_line, line, one), line.end)
                    stream.settled() if type(item) is not ReadEvent else stream.refused()
                    yield item
        except DataError as error:
            yield self._refused(error, b"", "whole", stream.count)
            return
        yield self._ended(stream, "byte")

    def _json_line(self, line: Line, found: tuple[GraphOrMessage, Said] | DataError) -> Item:
        try:
            if isinstance(found, DataError):
                raise found
            part, said = found
            own = None if said is None else (_OWN_TIME, said)
            time = self.extractor.time(all_triples(part), self.file, f"{self.name}:{line.number}", own)
        except UndecidedTimeError:
            raise
        except DataError as error:
            return self._refused(error, line.content, "byte", line.end)
        return self._graph(time, part, line.number, "byte", line.end)

    def _patches(self, stream: StreamReader, head: bytes) -> Iterator[Item | Undecided]:
        from dotr.io.decode.json_lines import raw_lines  # noqa: PLC0415  # start-up: see `_quads`
        from dotr.io.decode.rdf_patch import Patches, content_of  # noqa: PLC0415  # start-up: see `_quads`

        start = stream.count - len(head)
        patches = Patches(self.name, self.options.base).resumed(self.bookmark.carried)
        self._prefixes = patches.bookmark
        end = last_message = start
        rows = 0
        limit = self.options.max_document
        most = quiet_limit(limit)
        try:
            for lines in raw_lines(stream, self.name, limit, head, self._line(start), start, comments=True):
                for line in lines:
                    try:
                        done = patches.take(line)
                    except DataError as error:
                        yield self._refused(error, line.content, "byte", line.end, patches.bookmark)
                        last_message, rows = line.end, 0
                        continue
                    if done is not None:
                        yield self._patch(done, patches)
                        last_message, rows = line.end, 0
                    elif patches.open:
                        if line.end - last_message > limit:
                            raise too_large(f"{self.name}:{line.number}", limit)
                        rows = 0
                    else:
                        rows += 1
                        if line.end - last_message + rows * _QUIET_ROW > most:
                            raise says_nothing(f"{self.name}:{line.number}", most)
                    end = line.end if not patches.open else end
        except DataError as error:
            yield self._refused(error, b"", "whole", stream.count)
            return
        self._prefixes = patches.bookmark
        if patches.open and self.options.growing:
            self._left = stream.count - end
        elif patches.open:
            yield self._refused(patches.unfinished(), content_of(patches.open), "byte", stream.count)

    def _patch(self, lines: Sequence[Line], patches: Patches) -> Item | Undecided:
        """The message of a transaction."""
        from dotr.io.decode.rdf_patch import content_of  # noqa: PLC0415  # start-up: see `_quads`

        end, place = lines[-1].end, f"{self.name}:{lines[0].number}"
        try:
            part = patches.part(lines)
        except DataError as error:
            return self._refused(error, content_of(lines), "byte", end, patches.bookmark)
        carried = patches.bookmark
        own = None if patches.time is None else ("the patch's own time", patches.time)

        def make() -> Item:
            try:
                time = self.extractor.time(all_triples(part), self.file, place, own)
            except UndecidedTimeError:
                raise
            except DataError as error:
                return self._refused(error, content_of(lines), "byte", end, carried)
            return self._graph(time, part, lines[0].number, "byte", end, carried)

        return self._timed(make, end)

    def _messages(
        self, stream: StreamReader, head: bytes, format_: Format
    ) -> Iterator[Item | GraphRun | Undecided]:
        start = stream.count - len(head)
        base, choices = self.options.base, self.options.choices
        carried = Carried(base, choices=choices)
        if start:
            carried = Carried.resumed(self.bookmark.carried, choices)
        log = MessageReader(self.file, self.name, self.options, self.extractor, self.refusals, carried)
        try:
            yield from log.items(stream, head, format_, self._line(start), start)
        finally:
            self._last, self._prefixes = log.last, log.prefixes

    def _archive(self) -> Iterator[Item | GraphRun]:
        """The rows of a Parquet archive."""
        from dotr.io.decode.parquet import ArchiveFile  # noqa: PLC0415  # pyarrow is 0.3 s that few runs need

        number = self.bookmark.end if self.bookmark.how == "graph" else 0
        try:
            archive = ArchiveFile(self.file, self.options.unit, self.content, self.options.reading.finer)
            cut = 0
            if self.extractor.clock is None:
                self.extractor.clock = archive.clock
            number = min(number, archive.length)
            group, behind = archive.place_of(number)
            for times, parts, place in archive.graphs(group, behind=behind):
                self.extractor.accept(archive.clock.integer, place)
                ends = range(number + 1, number + len(times) + 1)
                number = ends[-1]
                if archive.cut > cut:
                    self.extractor.note(("cut",), place, archive.cut - cut)
                    cut = archive.cut
                self.extractor.hit("the archive's own time", len(times))
                self._last = times[-1]
                if len(times) == 1:
                    yield self._graph(times[0], parts[0], 0, "graph", number)
                    continue
                yield GraphRun(times, parts, self.name, [0] * len(times), ends, "graph")
        except DataError as error:
            yield self._refused(error, b"", "whole", 0)
            return
        yield ReadEvent(self._last, self.name, "graph", number, size=archive.size)

    def _line(self, start: int) -> int:
        return line_at(self.file, start, self.name, self.content) if self.numbered else 1
