"""Tables as graphs and marks: one row, one graph, through a mapping.

Place:   reader.py hands files to it that a mapping is for; what it gives is what every reader gives.
Method:  of CSV and JSON lines the position behind a row is its byte, and a bookmark carries the header, so a
         file that grows is read on; rows of Parquet and Arrow are counted. A row in error is a mark in its
         place, and the row behind it is read.
Bad input: D2402 to D2408, and what times say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, islice, repeat
from typing import Any, Protocol

from msgspec.structs import replace

from dotr.core.parts import Part, all_triples
from dotr.errors import DataError
from dotr.events import Time
from dotr.io.decode.documents import Format, read_bounded, read_some, too_large
from dotr.io.decode.json_lines import Line, raw_lines
from dotr.io.decode.line_blocks import line_blocks
from dotr.io.decode.quiet_bytes import quiet_limit, says_nothing
from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.repeated_hours import Undecided, undecided
from dotr.io.graphs import Bookmark, Item, Mark, SourceOptions, TimedGraph
from dotr.io.tables.arrow_files import open_columns
from dotr.io.tables.cells import CellError, RepeatedCellError
from dotr.io.tables.compiled_mapping import CompiledMapping, Row, cell_error, cells_used, compile_mapping
from dotr.io.tables.csv_rows import CsvRows, Dialect, TableRow, header_text, ragged
from dotr.io.tables.json_rows import JsonRow, JsonRows, value_of
from dotr.io.tables.mapping import TableMapping
from dotr.io.time_reading import TimeReading
from dotr.io.timestamps import TimestampExtractor, UndecidedTimeError

RUNG = "the mapping's time"

_BLOCK = 1 << 18
_TOGETHER = 1 << 9
"""Rows that are made together; more are not cheaper."""
_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function


class CountingFile(Protocol):
    """An open file that counts what is read of it, as reader.py's Tap."""

    count: int

    def read(self, size: int = -1, /) -> bytes: ...

    def settled(self) -> None: ...

    def refused(self) -> None: ...


@dataclass(slots=True)
class RefusedRows:
    """Owns the count of rows of the table `name` that are refused one after the other, where a few bytes are
    any number of rows. `limit`: bytes of a document.
    """

    name: str
    limit: int
    _count: int = field(default=0, init=False)

    def begin(self) -> None:
        """Rows come that are not of the same bytes."""
        self._count = 0

    def count(self, item: Item | Undecided) -> None:
        """The next row. Raises DataError D2023."""
        self._count = self._count + 1 if type(item) is Mark else 0
        most = self.limit >> 12
        if self._count > most:
            raise says_nothing(self.name, most, "rows that are refused")


@dataclass(slots=True)
class TableReader:
    """Owns the reading of one table as graphs and marks. `name`: the table as messages call it."""

    name: str
    mapping: TableMapping
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    bookmark: Bookmark
    _last: Time | None = field(default=None, init=False)
    _head: bytes = field(default=b"", init=False)
    """The first lines of a table that has a header."""
    _carried: str = field(default="", init=False)
    _names: Sequence[str] = field(default=(), init=False)
    """The columns of the rows."""
    _passes: dict[tuple[tuple[str, str], ...], CompiledMapping] = field(default_factory=dict, init=False)

    # ------------------------------------------------------------------ text

    def lines(self, tap: CountingFile, line: int) -> Iterator[Item | Undecided]:
        """The rows of a CSV, TSV or JSON lines file, open at the bookmark; its next line is `line`."""
        form = self.mapping.format_of(self.name)
        left = [tap.count]
        try:
            if form == "json" or self.mapping.rows is not None:
                yield from self._counted(tap, form)
                return
            rows = self._json(tap, line, left) if form == "jsonl" else self._csv(tap, line, left)
            yield from rows
        except DataError as error:
            _raise_of_mapping(error)
            yield self._refused(error, b"", "whole", tap.count)
            return
        end = left[0] if self.options.growing else tap.count
        yield Mark(self._last, self.name, "byte", end, self._carried, size=tap.count)

    def _csv(self, tap: CountingFile, line: int, left: list[int]) -> Iterator[Item | Undecided]:
        mapping = self.mapping
        tabbed = mapping.format_of(self.name) == "tsv"
        dialect = Dialect(mapping.delimiter or ("\t" if tabbed else ","), mapping.quoted, mapping.encoding)
        source = CsvRows(dialect, line, tap.count)
        columns = self._columns()
        compiled = self._compiled(columns) if columns else None
        for rows in self._rows(source, tap):
            if compiled is None and rows:
                try:
                    columns = self._header(rows[0])
                    compiled = self._compiled(columns)
                except DataError as error:
                    raise _perhaps_json(error, self._head) from None
                left[0] = rows.pop(0).end
            if compiled is not None:
                width = len(columns)
                filled = (_of_width(row, width) for row in rows if row.cells)
                for item in self._together(filled, "byte", compiled):
                    yield item
                    tap.settled() if type(item) is not Mark else tap.refused()
                    left[0] = item.end
            left[0] = source.offset

    def _columns(self) -> list[str]:
        """The columns as far as they are known before the table is read."""
        if self.bookmark.carried:
            self._carried = self.bookmark.carried
            found: list[str] = json.loads(self.bookmark.carried)
            return found
        return list(self.mapping.columns)

    def _header(self, row: TableRow) -> list[str]:
        try:
            self._carried = header_text(row)
        except CellError as error:
            raise cell_error(error, f"{self.name}:{row.line}") from None
        columns: list[str] = json.loads(self._carried)
        return columns

    def _rows(self, source: CsvRows, tap: CountingFile) -> Iterator[list[TableRow]]:
        """The rows of each block: of what a pipe gives at once."""
        limit = self.options.max_document
        most = quiet_limit(limit)
        first, blank = tap.count == 0, 0
        blocks = line_blocks(
            lambda size: read_some(tap, size, self.name),
            _BLOCK,
            b"",
            limit,
            lambda: too_large(self.name, limit),
        )
        for block in blocks:
            if first:
                _refuse_wide(block, self.name)
                self._head = block
            first = False
            if self.options.growing and not block.endswith(b"\n"):
                return
            blank = blank + len(block) if block.isspace() else 0
            if blank > most:
                raise says_nothing(self.name, most)
            yield list(source.feed(block))
        if not self.options.growing:
            yield list(source.finish())

    def _json(self, tap: CountingFile, line: int, left: list[int]) -> Iterator[Item | Undecided]:
        columns = list(cells_used(self.mapping))
        compiled, found = self._compiled(columns), JsonRows(columns, None, self.mapping.name)
        try:
            for lines in raw_lines(tap, self.name, self.options.max_document, b"", line, tap.count):
                if self.options.growing and not lines[-1].complete:
                    return
                rows = (
                    TableRow(next(self._json_rows(one.content, found)), one.content, one.number, one.end)
                    for one in lines
                )
                for item in self._together(rows, "byte", compiled):
                    yield item
                    tap.settled() if type(item) is not Mark else tap.refused()
                    left[0] = item.end
        finally:
            self._note_missing(found)

    def _json_rows(self, content: bytes, found: JsonRows, what: str = "line") -> Iterator[JsonRow]:
        """The rows of a line or document."""
        try:
            text = content.decode(self.mapping.encoding).removeprefix("\ufeff")
            value = value_of(text, what)
        except CellError as error:
            yield error
        except UnicodeDecodeError as error:
            byte = content[error.start]
            yield CellError(f"this {what} is not {self.mapping.encoding}: byte 0x{byte:02X}", "", "D2405")
        else:
            yield from found.of(value, what)

    def _note_missing(self, found: JsonRows) -> None:
        for finding in found.missing(self.name):
            self.extractor.columns_missing.setdefault(finding.message, finding)

    def _counted(self, tap: CountingFile, form: str) -> Iterator[Item | Undecided]:
        """The rows of a document of JSON, or of lines that have any number of them: these are counted."""
        columns = list(cells_used(self.mapping))
        number = skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        ends = count(1)
        bound = RefusedRows(self.name, self.options.max_document)
        compiled = self._compiled(columns)
        found = JsonRows(columns, self.mapping.rows, self.mapping.name)
        try:
            for lines in self._texts(tap, form):
                made = chain.from_iterable(
                    map(self._placed_rows, lines, repeat(found), repeat(form), repeat(bound))
                )
                rows = (row._replace(end=end) for row, end in zip(made, ends, strict=False))
                for item in self._together((row for row in rows if row.end > skip), "graph", compiled):
                    yield item
                    number = item.end
                    tap.settled() if type(item) is not Mark else tap.refused()
                    bound.count(item)
        finally:
            self._note_missing(found)
        yield Mark(self._last, self.name, "graph", number, size=tap.count)

    def _texts(self, tap: CountingFile, form: str) -> Iterator[list[Line]]:
        limit = self.options.max_document
        if form == "json":
            content = read_bounded(tap, self.name, limit, Format.JSONLD)
            yield [Line(content, 1, len(content))]
            return
        for lines in raw_lines(tap, self.name, limit):
            if self.options.growing and not lines[-1].complete:
                return
            yield lines

    def _placed_rows(self, line: Line, found: JsonRows, form: str, bound: RefusedRows) -> Iterator[TableRow]:
        """Rows with their lines; of a document with their numbers in it."""
        bound.begin()
        whole = form == "json"
        rows = self._json_rows(line.content, found, "document" if whole else "line")
        for number, row in enumerate(rows, 1):
            content = b"" if not isinstance(row, CellError) or whole else line.content
            yield TableRow(row, content, number if whole else line.number, 0)

    # ------------------------------------------------------------------ Arrow

    @property
    def columnar(self) -> bool:
        """Whether the table is a file of columns, which is not read as lines."""
        return self.mapping.format_of(self.name) in ("parquet", "arrow")

    def columns(self, content: bytes | None = None) -> Iterator[Item | Undecided]:
        """The rows of a Parquet or Arrow file, whose bytes are `content` where somebody else fetched them."""
        try:
            form = self.mapping.format_of(self.name)
            opened = open_columns(self.name, self.name if content is None else content, form)
            yield from self.batches(*opened)
        except DataError as error:
            _raise_of_mapping(error)
            yield self._refused(error, b"", "whole", 0)

    def batches(self, schema: Any, batches: Iterable[Any]) -> Iterator[Item | Undecided]:
        """The rows of Arrow batches of one schema. Raises DataError."""
        from dotr.io.tables.arrow_rows import columns_of, rows  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        bound = RefusedRows(self.name, self.options.max_document)
        self._compiled(columns_of(schema))  # says what is not there
        used = list(cells_used(self.mapping))
        compiled = self._compiled(used)
        found = rows(batches, used, self.name)
        number = sum(1 for _ in islice(found, skip))
        left = (TableRow(row, b"", n, n) for n, row in enumerate(found, number + 1))
        for item in self._together(left, "graph", compiled):
            yield item
            number = item.end
            bound.count(item)
        yield Mark(self._last, self.name, "graph", number, size=self._size())

    def _size(self) -> int:
        return os.path.getsize(self.name) if os.path.isfile(self.name) else 0

    # ------------------------------------------------------------------ rows

    def _settings(self) -> tuple[int, str, str, TimeReading]:
        return self.options.unit, self.options.zone, self.name, self.options.reading

    def _compiled(self, columns: Sequence[str]) -> CompiledMapping:
        self._names = tuple(columns)
        return compile_mapping(self.mapping, columns, *self._settings())

    def _together(
        self, rows: Iterable[TableRow], how: str, compiled: CompiledMapping
    ) -> Iterator[Item | Undecided]:
        """The items of rows, some of which are made together; those before an error come before it."""
        left = iter(rows)
        failed: DataError | None = None
        while failed is None:
            some: list[TableRow] = []
            try:
                some.extend(islice(left, _TOGETHER))
            except DataError as error:
                failed = error
            if not some:
                break
            cells = [row.cells for row in some if not isinstance(row.cells, CellError)]
            parts = iter(list(compiled.parts(cells)))
            own = compiled.time_at < 0 or self.extractor.time_path is not None
            times = iter(() if own else compiled.instants([row[compiled.time_at] for row in cells]))
            changes = compiled.changes
            for row in some:
                part = row.cells if isinstance(row.cells, CellError) else next(parts)
                time = None if own or part is row.cells else next(times)
                if isinstance(part, RepeatedCellError) or isinstance(time, RepeatedCellError):
                    yield self._undecided(row, time is None, how, compiled)
                    continue
                try:
                    item = self._row(row, part, time, how)
                except UndecidedTimeError as error:
                    make = partial(self._row, row, part, time, how)
                    yield undecided(error.local, make, self.extractor, row.end)
                    continue
                if changes and type(item) is TimedGraph:
                    self._note(row, compiled)
                yield item
        if failed is not None:
            raise failed

    def _undecided(self, row: TableRow, own: bool, how: str, compiled: CompiledMapping) -> Undecided:
        """A row with local times of which the rows behind it say what they are; `own`: its graph says its
        time.
        """
        cells: Row = row.cells  # type: ignore[assignment]  # they were read

        def made(passes: Mapping[str, str]) -> Item:
            one = self._of_passes(passes)
            time = None if own else one.instants([cells[one.time_at]])[0]
            item = self._row(row, next(one.parts([cells])), time, how)
            if type(item) is TimedGraph:
                self._note(row, one)
            return item

        return Undecided(compiled.repeated(cells), made, row.end)

    def _note(self, row: TableRow, compiled: CompiledMapping) -> None:
        """Count what reading the times of a row changed."""
        notes = compiled.notes(row.cells)  # type: ignore[arg-type]  # it made a graph
        self.extractor.note(notes, f"{self.name}:{row.line}")

    def _of_passes(self, passes: Mapping[str, str]) -> CompiledMapping:
        """The mapping for rows whose repeated local times are of these passes."""
        key = tuple(sorted(passes.items()))
        if key not in self._passes:
            self._passes[key] = compile_mapping(self.mapping, self._names, *self._settings(), passes)
        return self._passes[key]

    def _row(
        self, row: TableRow, part: Part | CellError, found: tuple[Time, bool] | CellError | None, how: str
    ) -> Item:
        """`found`: the time of the row's cell; None where the graph says it."""
        try:
            if isinstance(part, CellError):
                raise part
            if isinstance(found, CellError):
                raise found
            if found is None:
                time = self.extractor.time(all_triples(part), "", f"{self.name}:{row.line}")
            else:
                time = self._accepted(row, *found)
        except CellError as error:
            refused = cell_error(error, f"{self.name}:{row.line}")
        except UndecidedTimeError:
            raise
        except DataError as error:
            refused = error
        else:
            self._last = time
            return _tuple(TimedGraph, (time, part, self.name, row.line, how, row.end, self._carried))
        return self._refused(refused, row.content or _as_json(row.cells), how, row.end)

    def _accepted(self, row: TableRow, time: Time, integer: bool) -> Time:
        extractor = self.extractor
        if extractor.clock is None or extractor.clock.integer is not integer:
            extractor.accept(integer, f"{self.name}:{row.line}")
        extractor.hit(RUNG)
        return time

    def _refused(self, error: DataError, content: bytes, how: str, end: int) -> Mark:
        if self.refusals.fail:
            raise error
        return Mark(self._last, self.name, how, end, self._carried, error, content)


def _of_width(row: TableRow, columns: int) -> TableRow:
    if isinstance(row.cells, CellError) or len(row.cells) == columns:
        return row
    return row._replace(cells=ragged(row.cells, columns))


def _raise_of_mapping(error: DataError) -> None:
    """What is wrong with a mapping is wrong with every table: no policy for documents passes over it."""
    if error.diagnostics[0].code == "D2401":
        raise error


def _perhaps_json(error: DataError, head: bytes) -> DataError:
    """What is wrong with the header of a table, of which JSON has none."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return error
    try:
        lines = isinstance(value_of(text.split(b"\n", 1)[0].decode()), dict)
    except (CellError, UnicodeDecodeError):
        lines = False
    hint = f"it begins like JSON, and is read as CSV: # format: {'jsonl' if lines else 'json'} in the mapping"
    return DataError([replace(one, hint=hint) for one in error.diagnostics])


def _as_json(cells: Row | CellError) -> bytes:
    return b"" if isinstance(cells, CellError) else json.dumps(list(cells), ensure_ascii=False).encode()


def _refuse_wide(block: bytes, name: str) -> None:
    """Raise DataError D2002 for UTF-16."""
    if block[:2] in (b"\xff\xfe", b"\xfe\xff") or (block[:200].count(b"\0") * 3 > len(block[:200])):
        hint = "convert it: iconv -f utf-16 -t utf-8"
        raise DataError.of("D2002", f"`{name}` is UTF-16", place=f"{name}:1", hint=hint)


def without_mapping(path: str) -> DataError:
    """A table, and no mapping for it."""
    return DataError.of(
        "D2407",
        f"`{path}` is a table, and no mapping says what its rows mean",
        place=path,
        hint=f"dotr map new {path} > readings.map proposes one; then add --map readings.map "
        "(in a file of tests `map: readings.map` behind `from:`)",
    )
