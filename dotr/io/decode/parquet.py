"""Parquet archives of logs, and columns of Arrow.

Place:   archives are written by `dotr convert` and read as streams, by the batch engines and by Spark itself;
         event_tables.py lays out events with the same functions.
Method:  an archive has the columns `time` and `graph`, and `insert` and `delete` where messages have such
         parts. `time` is a 64-bit integer (its unit is noted in the file: `dotr.unit` = s, ms or us) or a
         timestamp with a zone; `graph` is N-Triples, blank nodes as the document had them. Engines read row
         groups in parallel, and times can be read without the graphs.
         Integers and UTF-8 are laid out here as Arrow's columnar format has them: values, offsets, and a bit
         for each value that is present.
Why not: `pyarrow.array`: its first call in a process loads pandas to see whether pandas made the values,
         which takes longer (0.9 s) than everything else that a worker loads.
Bad input: D2017 not such a file · D2018 a row without time or graph.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby
from typing import Any, NamedTuple

from dotr.errors import DataError, UnsupportedError
from dotr.events import Clock, GraphOrMessage, Message, Time, message_of
from dotr.io.arrow import pa, pc, pq
from dotr.io.decode.documents import Format
from dotr.io.decode.plain import LONG, MANY, PlainGraphs
from dotr.io.decode.rdf import parse_triples
from dotr.io.time import UNITS


def integers(values: Sequence[int | None], kind: Any = None) -> Any:
    """A column of 64 bits: `kind` is int64 (the default) or a timestamp in microseconds."""
    there, bits = _there(values)
    if bits is not None:
        values = [value or 0 for value in values]
    content = pa.py_buffer(array("q", values))  # type: ignore[type-var]  # None is replaced above
    return pa.Array.from_buffers(kind or pa.int64(), len(values), [bits, content], null_count=there)


def doubles(values: Sequence[float | None]) -> Any:
    """A column of 64 bits with a floating point."""
    there, bits = _there(values)
    content = pa.py_buffer(array("d", [0.0 if value is None else value for value in values]))
    return pa.Array.from_buffers(pa.float64(), len(values), [bits, content], null_count=there)


def texts(values: Sequence[str | None], kind: Any = None) -> Any:
    """A column of text: `kind` is string (the default) or large_string. Raises OverflowError when more than
    2 GiB go into a string column.
    """
    kind = kind or pa.string()
    try:
        content = "".join(values)  # type: ignore[arg-type]  # a None is an error
    except TypeError:
        content = ""
    if content.isascii() and content:
        return _column(kind, len(values), map(len, values), content.encode(), 0, None)  # type: ignore[arg-type]  # none is None
    return _parts(values, [b"" if value is None else value.encode() for value in values], kind)


def binaries(values: Sequence[bytes | None]) -> Any:
    """A column of bytes. Raises OverflowError for more than 2 GiB."""
    return _parts(values, [value or b"" for value in values], pa.binary())


def _parts(values: Sequence[object], parts: Sequence[bytes], kind: Any) -> Any:
    return _column(kind, len(parts), map(len, parts), b"".join(parts), *_there(values))


def _column(kind: Any, rows: int, lengths: Iterable[int], content: bytes, missing: int, bits: Any) -> Any:
    offsets = array("q" if pa.types.is_large_string(kind) else "i", accumulate(lengths, initial=0))
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, rows, buffers, null_count=missing)


def column(values: Sequence[Any], kind: Any) -> Any:
    """A column of any kind; of integers, timestamps, text and bytes as above."""
    if pa.types.is_int64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        return integers(values, kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return texts(values, kind)
    if pa.types.is_binary(kind):
        return binaries(values)
    if pa.types.is_float64(kind):
        return doubles(values)
    return pa.array(values, kind)


def _there(values: Sequence[object]) -> tuple[int, Any]:
    """(values that are missing, a bit for each that is not; None where none is missing)."""
    missing = values.count(None)
    if not missing:
        return 0, None
    bits = bytearray((len(values) + 7) // 8)
    for place, value in enumerate(values):
        if value is not None:
            bits[place >> 3] |= 1 << (place & 7)
    return missing, pa.py_buffer(bytes(bits))


SUFFIX = ".parquet"
ROWS = 32_768
"""Graphs of one row group: enough for columns to compress, few enough for a small log to have several."""

PART = 32 * 1024 * 1024
"""Bytes of one file of an archive in parts, about: what one task can fetch whole."""

UNIT_NOTE = "dotr.unit"

PLAIN = ("graph",)
PARTS = ("graph", "insert", "delete")
"""Columns of what came: of graphs alone, and of messages with other parts."""

_UNIT = UNIT_NOTE.encode()
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def archive_schema(clock: Clock, columns: Sequence[str] = PLAIN) -> pa.Schema:
    """The columns of an archive whose times are written as `clock` says; `columns` are those of parts."""
    texts_ = [(name, pa.string()) for name in columns]
    if not clock.integer:
        return pa.schema([("time", pa.timestamp("us", tz="UTC")), *texts_])
    name = next(name for name, size in UNITS.items() if size == clock.unit)
    # Spark hands on what a file says about itself only in its own words
    time = {"name": "time", "type": "long", "nullable": True, "metadata": {UNIT_NOTE: name}}
    graphs = [{"name": c, "type": "string", "nullable": True, "metadata": {}} for c in columns]
    spark = json.dumps({"type": "struct", "fields": [time, *graphs]})
    return pa.schema([("time", pa.int64()), *texts_], metadata={_UNIT: name, _SPARK: spark})


def archive_clock(schema: pa.Schema, place: str, unit: int, utc: bool = False) -> Clock:
    """How times are written in a file with this schema; `unit` where the file does not say. `utc`: whether
    timestamps without a zone are known to be UTC.

    Raises DataError D2017 for other columns, D2103 for timestamps without a zone.
    """
    if {"time", "graph"} - set(schema.names):
        raise no_archive(place, f"columns {', '.join(schema.names)}")
    time = schema.field("time").type
    for name in PARTS:
        kind = schema.field(name).type if name in schema.names else pa.string()
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise no_archive(place, f"`{name}` is {kind}")
    if pa.types.is_integer(time):
        noted = (schema.metadata or {}).get(_UNIT, b"").decode("utf-8", "replace")
        return Clock(integer=True, unit=UNITS.get(noted, unit))
    if not pa.types.is_timestamp(time):
        raise no_archive(place, f"`time` is {time}")
    if time.tz is None and not utc:
        raise DataError.of("D2103", "the timestamps have no time zone", place=place, hint="write them in UTC")
    return Clock(integer=False)


def no_archive(place: str, found: str) -> DataError:
    """A file, or the columns `found` in it, that are not a log."""
    return DataError.of(
        "D2017",
        f"`{place}` is not a log of graphs",
        place=place,
        label=found,
        hint="a log has the columns time (bigint, or timestamp with zone) and graph (N-Triples); "
        "rows of another table are read with --map, and `dotr map new FILE` proposes a mapping",
    )


class RowBatch(NamedTuple):
    """Rows that stand together: their times, the texts of their parts by column, their row group, and how
    many of its rows are before them. `whole`: each has a time, and says a graph and nothing else.
    """

    times: list[Time | None]
    columns: list[list[str | None]]
    group: int
    before: int
    whole: bool

    def part(self, start: int, end: int) -> RowBatch:
        """Some of them."""
        columns = [column[start:end] for column in self.columns]
        return self._replace(times=self.times[start:end], columns=columns, before=self.before + start)

    def between(self, since: Time, until: Time) -> Iterator[RowBatch]:
        """Those whose time is in `[since, until)`, or that have none, as far as they follow each other."""
        inside = [time is None or since <= time < until for time in self.times]
        for taken, rows in groupby(range(len(inside)), key=inside.__getitem__):
            first = next(rows)
            if taken:
                yield self.part(first, first + 1 + sum(1 for _ in rows))


class ArchiveFile:
    """One open Parquet file. Raises DataError D2017 when it is not one, D2003 when it cannot be read.

    `content`: all of it, where it is in memory already; `path` is then only its name. `finer`: whether times
    finer than a microsecond are cut, or refused (D2105); `cut` counts those that were cut.
    """

    def __init__(self, path: str, unit: int, content: bytes | None = None, finer: str = "cut") -> None:
        self.path = path
        self.cut = 0
        self._content, self._finer = content, finer
        try:
            source = path if content is None else pa.BufferReader(content)
            self._file = pq.ParquetFile(
                source, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            schema, utc, rows = self._file.schema_arrow, self._is_int96(), self._file.metadata
            names = schema.names
            stated = sum(rows.row_group(group).num_rows for group in range(rows.num_row_groups))
            if stated != rows.num_rows:
                raise OSError(f"{stated} of {rows.num_rows} rows are there")
        except pa.ArrowInvalid as error:
            raise no_archive(path, str(error).splitlines()[0]) from None
        except _damage() as error:
            raise _damaged(path, error) from None
        self.clock = archive_clock(schema, path, unit, utc)
        self._columns = [name for name in PARTS if name in names]

    def _is_int96(self) -> bool:
        """Whether times are written as Spark writes timestamps unless stated otherwise: 96 bits, in UTC."""
        columns = self._file.schema
        found = [columns.column(i) for i in range(len(columns))]
        return any(column.path == "time" and column.physical_type == "INT96" for column in found)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.path.getsize(self.path) if self._content is None else len(self._content)

    @property
    def groups(self) -> int:
        return int(self._file.num_row_groups)

    @property
    def length(self) -> int:
        """How many rows the file has, as it says."""
        return int(self._file.metadata.num_rows)

    def count(self, group: int) -> int:
        """How many rows a row group has, as the file says."""
        return int(self._file.metadata.row_group(group).num_rows)

    def unpacked(self, group: int) -> int:
        """Bytes of a row group without compression, as the file says."""
        return int(self._file.metadata.row_group(group).total_byte_size)

    def span(self, group: int) -> tuple[Time, Time] | None:
        """The least and the greatest time of a row group in µs, by the file's statistics; None where they do
        not say.
        """
        row_group = self._file.metadata.row_group(group)
        columns = (row_group.column(i) for i in range(row_group.num_columns))
        found = next((c.statistics for c in columns if c.path_in_schema == "time"), None)
        if found is None or not (found.has_min_max and found.has_null_count) or found.null_count:
            return None
        low, high = found.min_raw, found.max_raw
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        unit = self.clock.unit
        if not self.clock.integer:
            unit = _MICROS.get(self._file.schema_arrow.field("time").type.unit, 0)
        known = unit and max(abs(low * unit), abs(high * unit)) < 2**63
        return (low * unit, high * unit) if known else None

    def rows(self, first: int = 0, end: int | None = None) -> Iterator[tuple[Time, str, str]]:
        """(time in µs, N-Triples, place) of the row groups `[first, end)`, in file order.

        Raises UnsupportedError D4160 for a message with other parts than a graph.
        """
        for time, texts_, place in self.messages(first, end):
            if any(text is not None for text in texts_[1:]):
                raise not_there(place)
            yield time, texts_[0] or "", place

    def messages(
        self, first: int = 0, end: int | None = None
    ) -> Iterator[tuple[Time, tuple[str | None, ...], str]]:
        """(time in µs, the N-Triples of each part or None, place) of row groups, in file order."""
        for batch in self._batches(first, end):
            yield from self._rows_of(batch)

    def _batches(self, first: int, end: int | None, behind: int = 0) -> Iterator[RowBatch]:
        """`behind`: how many rows of the first row group are left out."""
        try:
            for group in range(first, self.groups if end is None else end):
                number, left_out = 0, behind if group == first else 0
                chosen = self._file.iter_batches(4096, row_groups=[group], columns=["time", *self._columns])
                for batch in chosen:
                    if number < left_out:
                        passed = min(batch.num_rows, left_out - number)
                        batch, number = batch.slice(passed), number + passed
                    if not batch.num_rows:
                        continue
                    times = batch_times(batch.column("time"), self.clock, self._finer)
                    self.cut += finer_times(batch.column("time"))
                    columns = [batch.column(name) for name in self._columns]
                    alone = all(column.null_count == len(times) for column in columns[1:])
                    whole = alone and not columns[0].null_count and None not in times
                    yield RowBatch(times, [column.to_pylist() for column in columns], group, number, whole)
                    number += len(times)
                self._complete(group, number)
        except _damage() as error:
            raise _damaged(self.path, error) from None

    def _place(self, batch: RowBatch, row: int) -> str:
        return f"{self.path}, row group {batch.group}, row {batch.before + row + 1}"

    def _rows_of(self, batch: RowBatch) -> Iterator[tuple[Time, tuple[str | None, ...], str]]:
        for row, (time, *texts_) in enumerate(zip(batch.times, *batch.columns, strict=True)):
            place = self._place(batch, row)
            if time is None or not any(text is not None for text in texts_):
                raise missing(place, "time" if time is None else "graph")
            yield time, tuple(texts_), place

    def times(self, first: int = 0, end: int | None = None) -> Iterator[list[Time]]:
        """The times in µs of the row groups `[first, end)`, without looking at graphs. Raises DataError."""
        try:
            for group in range(first, self.groups if end is None else end):
                column = self._file.read_row_group(group, columns=["time"]).column("time")
                times = batch_times(column, self.clock, self._finer)
                if None in times:
                    raise missing(f"{self.path}, row group {group}, row {times.index(None) + 1}", "time")
                self._complete(group, len(times))
                yield [time for time in times if time is not None]
        except _damage() as error:
            raise _damaged(self.path, error) from None

    def _complete(self, group: int, rows: int) -> None:
        """Raise OSError unless a row group had the rows that the file says it has."""
        stated = self.count(group)
        if rows != stated:
            raise OSError(f"{rows} of {stated} rows of row group {group} are there")

    def place_of(self, row: int) -> tuple[int, int]:
        """(row group, how many of its rows are before it) of a row of the file, counted from 0."""
        for group in range(self.groups):
            if row < self.count(group):
                return group, row
            row -= self.count(group)
        return self.groups, 0

    def graphs(
        self,
        first: int = 0,
        end: int | None = None,
        span: tuple[Time, Time] | None = None,
        behind: int = 0,
    ) -> Iterator[tuple[list[Time], list[GraphOrMessage], str]]:
        """(times in µs, what came at each, the place of the first) of rows that stand together, parsed; all
        of the row groups `[first, end)` in file order but the first `behind` rows, or those with a time in
        `[since, until)`, the `span`. Raises DataError.
        """
        plain = PlainGraphs(lines=True)
        batches = self._batches(first, end, behind)
        if span is not None:
            batches = chain.from_iterable(batch.between(*span) for batch in batches)
        for batch in batches:
            if not batch.whole:
                yield from map(self._parsed, self._rows_of(batch))
                continue
            for start in range(0, len(batch.times), MANY):
                texts_ = batch.columns[0][start : start + MANY]
                found = plain.parse(texts_) if max(map(len, texts_)) < LONG else None  # type: ignore[arg-type]  # whole: none is None
                if found is not None:
                    yield batch.times[start : start + MANY], found, self._place(batch, start)  # type: ignore[misc]  # so are the times
                    continue
                yield from map(self._parsed, self._rows_of(batch.part(start, start + MANY)))

    def _parsed(
        self, row: tuple[Time, tuple[str | None, ...], str]
    ) -> tuple[list[Time], list[GraphOrMessage], str]:
        time, texts_, place = row
        graph, *others = (None if t is None else parse_triples(t, Format.NTRIPLES, place) for t in texts_)
        parts = dict(zip(self._columns[1:], others, strict=True))
        return [time], [message_of(graph, parts.get("insert"), parts.get("delete"), place)], place


_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def batch_times(column: Any, clock: Clock, finer: str = "cut") -> list[Time | None]:
    """A time column in microseconds, what is finer cut off, towards the past. Raises DataError D2105 beyond
    64 bits, and for what is finer if `finer` refuses it.
    """
    if not clock.integer:
        if column.type.unit == "ns":
            if finer == "refuse" and finer_times(column):
                hint = "round the times, or let them be cut: --sub-microsecond cut"
                raise DataError.of("D2105", "a time is finer than a microsecond", hint=hint)
            column = _whole_micros(column)
        try:
            return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
        except pa.ArrowInvalid:
            hint = "check the times"
            raise DataError.of("D2105", "a time lies beyond 64 bits of microseconds", hint=hint) from None
    unit = clock.unit
    times = [None if time is None else time * unit for time in column.to_pylist()]
    bad = next((time for time in times if time is not None and abs(time) >= 2**63), None)
    if bad is not None:
        raise DataError.of(
            "D2105", f"`{bad // unit}` lies beyond 64 bits of microseconds", hint="check --time-unit"
        )
    return times


def finer_times(column: Any) -> int:
    """How many times of a column are finer than a microsecond."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return 0
    exact = _nanoseconds(column)
    return pc.sum(pc.not_equal(exact, _whole_micros(exact))).as_py() or 0


def _nanoseconds(column: Any) -> Any:
    """Times as UTC: clocks of other zones are changed."""
    return column.cast(pa.timestamp("ns", tz="UTC"))


def _whole_micros(column: Any) -> Any:
    """Nanoseconds rounded down to microseconds, as UTC."""
    return pc.floor_temporal(_nanoseconds(column), unit="microsecond")


def not_there(place: str) -> UnsupportedError:
    """A message that changes what lasts, where instants are examined apart from each other."""
    return UnsupportedError.of(
        "D4160",
        "this message inserts or deletes, which is not supported here",
        place=place,
        hint="replay the log in one process: dotr run",
    )


def missing(place: str, what: str) -> DataError:
    return DataError.of("D2018", f"a row has no {what}", place=place, hint="leave such rows out")


def _damage() -> tuple[type[Exception], ...]:
    """What pyarrow raises over a file that is cut off or whose bytes were changed."""
    return OSError, pa.ArrowException, ValueError, SystemError, OverflowError, LookupError


def _damaged(path: str, error: Exception) -> DataError:
    reason = (getattr(error, "strerror", None) or str(error).partition("\n")[0]).lower()
    return DataError.of("D2003", f"cannot read `{path}`: {reason}", place=path)


class ArchiveWriter:
    """Owns one Parquet file that is being written; `close` completes it.

    It has columns of graphs alone until a message with other parts comes: then it is written again with those
    columns, which every row before has empty.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._unit = clock.unit if clock.integer else 1
        self._open(PLAIN)
        self._times: list[Time] = []
        self._texts: list[list[str | None]] = [[] for _ in PARTS]
        self._size = 0

    def _open(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._schema = archive_schema(self._clock, columns)
        self._writer = pq.ParquetWriter(self.path, self._schema, compression="zstd", write_page_checksum=True)

    def add(self, time: Time, part: GraphOrMessage) -> bool:
        """Append a graph or message; its time is in microseconds. Returns whether it ended a row group."""
        if isinstance(part, Message) and self._columns is PLAIN:
            self._widen()
        self._times.append(time // self._unit)
        parts = part if isinstance(part, Message) else (part, None, None)
        for column, triples in zip(self._texts, parts, strict=True):
            text = None if triples is None else "".join([f"{s} {p} {o} .\n" for s, p, o in triples])
            column.append(text)
            self._size += len(text or "")
        if len(self._times) < ROWS and self._size < 1 << 27:
            return False
        self._flush()
        return True

    def _widen(self) -> None:
        """Begin the file again with all columns."""
        self._writer.close()
        narrow = f"{self.path}~"
        os.replace(self.path, narrow)
        self._open(PARTS)
        file = pq.ParquetFile(narrow)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            nothing = [texts([None] * table.num_rows) for _ in PARTS[1:]]
            arrays = [*(column.combine_chunks() for column in table.columns), *nothing]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        file.close()
        os.remove(narrow)

    def _flush(self) -> None:
        columns = [texts(column) for column in self._texts[: len(self._columns)]]
        arrays = [integers(self._times, self._schema.field(0).type), *columns]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._times, self._texts, self._size = [], [[] for _ in PARTS], 0

    def close(self) -> None:
        if self._times:
            self._flush()
        self._writer.close()


class ArchiveParts:
    """Owns an archive in parts that is being written to a folder: files of about PART bytes, in time order
    if the graphs come so. `close` completes the last; `files` are their names. Without graphs there is one
    empty file, which is a log.
    """

    def __init__(self, folder: str, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._open: ArchiveWriter | None = None
        self.files: list[str] = []

    def add(self, time: Time, part: GraphOrMessage) -> None:
        """As `ArchiveWriter.add`."""
        file = self._open = self._open or self._next()
        if file.add(time, part) and os.path.getsize(file.path) >= PART:
            self.close()

    def _next(self) -> ArchiveWriter:
        self.files.append(f"{len(self.files):05}{SUFFIX}")
        return ArchiveWriter(os.path.join(self._folder, self.files[-1]), self._clock)

    def close(self) -> None:
        if not self.files:
            self._open = self._next()
        if self._open is not None:
            self._open.close()
            self._open = None


def write_solutions(path: str, variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
    """The solutions of a query as a Parquet file: a column of N-Triples terms a variable, null where it is
    unbound. Raises OSError.
    """
    columns = [column([row[at] for row in rows], pa.string()) for at in range(len(variables))]
    pq.write_table(pa.Table.from_arrays(columns, names=list(variables)), path, compression="zstd")
