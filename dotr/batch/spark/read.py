"""Spark tasks that read a log: files, fetched documents, lines, rows and row groups of archives.

Place:   the command line opens logs that only Spark can reach here; cluster.py maps the tasks. Needs no
         SparkContext.
Method:  every task yields rows (time in the log's unit, graph, note); its last row has a note instead of a
         graph: dead letters, and how times were found.
         Logs that only Spark can reach (hdfs://…, s3a://… and whatever else its configuration knows): Spark
         lists the files and fetches them, small ones whole, for the usual readers with the usual diagnostics;
         JSON lines and archives beyond WHOLE through Spark's readers, which split them. Tables, and dumps to
         be split, are fetched whole, whatever their size. The driver reads the first graph, as with local
         files.
         Parquet archives: a row of the task's frame names the row groups that it reads. Unless the statistics
         of row groups show that no two tasks share a time (batch/archives.py), a first task reads only the
         times. A second extracts the instants that are whole in its row groups. Only graphs of times that
         several tasks have are shuffled.
         Consecutive graphs of one time in a task become one row: most logs are in order of time, so that a
         task reads the graphs of an instant consecutively. Only instants whose graphs are in several places,
         of one task or of several, are shuffled.
Why not: a client of each store in Python: Spark already has the libraries, settings and credentials. Parquet
         read by Spark: graphs are by far the largest data of a log, and would cross from JVM to Python only
         to become a few facts. All graphs of a time collected within a task: they would stay in memory until
         its end.
Bad input: D2003 no such path · D2006 a document too large to be fetched · D2008 unknown format · D2009
         nothing there · D4305 a store that is unknown to Spark, or does not answer.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.archives import rows_of, slice_events, slice_of, times_of, whole_instants
from dotr.batch.facts import COUNTED, INSTANTS, FactRow
from dotr.batch.log import (
    LogListing,
    Piece,
    ReadCounts,
    Reading,
    Remote,
    RemoteFile,
    as_path,
    clock_of,
    other_time,
)
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark import session
from dotr.batch.spark.frame_stages import pieces_of
from dotr.batch.spark.session import Batches, Work, crossing_to_driver, shipped
from dotr.batch.work import Detecting, Instant, Shipped, Worker, extract, fact_batches, graph_text
from dotr.errors import DataError, DotrError, EngineError
from dotr.events import Clock, Composite, Time, all_triples
from dotr.io.decode.documents import ENDINGS, SUFFIXES, Format, format_of, is_packed, unknown_format
from dotr.io.decode.json_lines import Line, Lines
from dotr.io.decode.parquet import UNIT_NOTE, integers, missing, no_archive, texts
from dotr.io.decode.plain import MANY
from dotr.io.errors import dead_letter
from dotr.io.graphs import mapping_for
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from dotr.io.tables.mapping import TableMapping

Rows = Iterator[tuple[Time, str]]

READ_COLUMNS = "time bigint, graph string, note string"

_ROWS = 1024
_CHARACTERS = 4_000_000


def _noted(log: LogListing, rows_of: Callable[[Reading], Rows]) -> Batches:
    """Rows in batches, then the note of the task. Without a clock times are in µs."""
    unit = log.clock.unit if log.clock is not None and log.clock.integer else 1
    counts = ReadCounts()
    reading = Reading(log, counts)
    times: list[int] = []
    graphs: list[str] = []
    size = 0
    for time, graph in rows_of(reading):
        times.append(time // unit)
        graphs.append(graph)
        size += len(graph)
        if len(times) >= _ROWS or size > _CHARACTERS:
            yield _batch(times, graphs, [None] * len(times))
            times, graphs, size = [], [], 0
    clock = reading.extractor.clock
    note = json.dumps(
        {
            "letters": counts.letters,
            "time_sources": counts.time_sources,
            "beside": counts.beside,
            "clock": None if clock is None else [clock.integer, clock.unit],
        }
    )
    yield _batch([*times, None], [*graphs, None], [*([None] * len(times)), note])


def _batch(times: list[Any], graphs: list[Any], notes: list[Any]) -> pa.RecordBatch:
    columns = [integers(times), texts(graphs), texts(notes)]
    return pa.RecordBatch.from_arrays(columns, names=["time", "graph", "note"])


@dataclass(frozen=True, slots=True)
class ReadSplits:
    """Reads pieces of files."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        for piece in pieces_of(batches):
            yield from reading.rows(piece)


@dataclass(frozen=True, slots=True)
class ReadContents:
    """Reads whole files: (path, content)."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        for batch in batches:
            for path, content in zip(batch.column(0), batch.column(1), strict=True):
                yield from reading.rows(Piece(path.as_py()), content.as_py())


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Reads lines of JSON: (path as a URI, byte at which the block of the line begins, the line's bytes).

    Spark passes a file's block to one task, in order. Only lines of the first block are numbered from the
    head of the file; elsewhere the place names the byte after which they are counted.
    """

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        block, number = ("", 0), 0
        for batch in batches:
            rows = zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)
            for found, group in groupby(rows, key=itemgetter(0, 1)):
                if found != block:
                    block, number = found, 0
                lines = [Line(row[2], number + place, 0) for place, row in enumerate(group, 1)]
                number = lines[-1].number
                yield from self._lines(reading, block, [line for line in lines if line.content.strip()])

    def _lines(self, reading: Reading, block: tuple[str, int], lines: Sequence[Line]) -> Rows:
        path, start = unquote(block[0]), block[1]
        name = f"{path}, after byte {start}" if start else path
        parser = Lines(name, self.log.options.base, self.log.options.choices)
        for first in range(0, len(lines), MANY):
            some = lines[first : first + MANY]
            for line, found in zip(some, parser.parse(some), strict=True):
                try:
                    if isinstance(found, DataError):
                        raise found
                    triples, said = found
                    own = None if said is None else ("the line's own time", said)
                    time = reading.extractor.time(all_triples(triples), path, f"{name}:{line.number}", own)
                except DataError as error:
                    reading.refusals.take(error, line.content)
                    continue
                reading.counts.graphs += 1
                yield time, graph_text(triples)
        reading.counts.time_sources = reading.extractor.time_sources


class _Names(dict[str, str]):
    """The URI of a file → its name; each is computed once."""

    def __missing__(self, uri: str) -> str:
        self[uri] = found = as_path(uri)
        return found


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Reads the rows of archives that Spark opened: (time in the clock's unit, graph, and the URI of the
    file, if it is not always `file`).
    """

    log: LogListing
    file: str

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        clock, names = self.log.clock or Clock(), _Names()
        unit = clock.unit if clock.integer else 1
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            files = repeat(self.file) if self.file else map(names.__getitem__, columns[2])
            for time, graph, file in zip(*columns[:2], files):  # noqa: B905  # `files` may have no end
                place = f"{file}, a graph at {time}"
                try:
                    micros = frames.micros(time, unit)
                    if graph is None:
                        raise missing(place, "graph")
                except DataError as error:
                    reading.refusals.take(error, (graph or "").encode())
                    continue
                for row in reading.graph(micros, graph, place):
                    reading.counts.graphs += 1
                    yield row
        reading.counts.time_sources = reading.extractor.time_sources


COLUMNS = "time bigint, graphs array<string>, note string"

MOST = 10_000
"""The approximate limit of buffered graphs of one time."""

_GRAPHS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Together:
    """The rows of `read`, (time, graph, note), as COLUMNS. Notes stay separate rows."""

    read: Work

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: together(self.read(batches)))


def together(batches: Batches) -> Batches:
    waiting: list[pa.RecordBatch] = []  # graphs of one time; more may follow
    for batch in batches:
        noted = batch.column(2).is_valid()
        if batch.column(2).null_count < batch.num_rows:
            yield _notes(batch.filter(noted).column(2))
            batch = batch.filter(batch.column(2).is_null())
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([*waiting, batch.select([0, 1])]).combine_chunks()
        times = rows.column(0).to_numpy()
        starts = np.concatenate(([0], np.flatnonzero(times[1:] != times[:-1]) + 1))
        done = int(starts[-1]) if len(times) - starts[-1] < MOST else len(times)
        if done:
            yield _instants(rows.slice(0, done), starts[starts < done])
        waiting = rows.slice(done).to_batches()
    if waiting:
        yield _instants(pa.Table.from_batches(waiting), np.zeros(1, np.int64))


def _instants(rows: pa.Table, starts: np.ndarray) -> pa.RecordBatch:
    """Rows (time, graph) whose runs of one time begin at `starts`."""
    rows = rows.combine_chunks()
    times, graphs = (rows.column(i).chunk(0) for i in range(2))
    ends = pa.py_buffer(array("i", [*starts.tolist(), rows.num_rows]))
    offsets = pa.Array.from_buffers(pa.int32(), len(starts) + 1, [None, ends])
    found = pa.Array.from_buffers(pa.int64(), len(starts), [None, pa.py_buffer(times.to_numpy()[starts])])
    return _batch_together(
        found, pa.ListArray.from_arrays(offsets, graphs), pa.nulls(len(starts), pa.string())
    )


def _notes(notes: pa.Array) -> pa.RecordBatch:
    return _batch_together(pa.nulls(len(notes), pa.int64()), pa.nulls(len(notes), _GRAPHS), notes)


def _batch_together(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=["time", "graphs", "note"])


WHOLE = 64 * 1024 * 1024
"""Bytes up to which any file is fetched whole."""

_FETCHED = (1 << 31) - (1 << 20)
"""Bytes that Spark can fetch whole."""

_FOOTERS = 16
"""Archives that are inspected together."""

_HEAD = 1000
"""Lines of a file that are searched for a graph."""

_GLOB = re.compile(r"([{}\[\]*?\\^])")


class _Kinds(Struct, frozen=True):
    """The files of a log by how they are read: whole (`large`: beyond WHOLE), by lines, by row groups;
    `empty` ones, which Spark would skip.
    """

    small: tuple[RemoteFile, ...]
    large: tuple[RemoteFile, ...]
    empty: tuple[RemoteFile, ...]
    lines: tuple[RemoteFile, ...]
    archives: tuple[RemoteFile, ...]


def open_remote(spark: SparkSession, places: Sequence[str], log: LogListing) -> LogListing:
    """`log` with the files of some URIs; if it has no graph of its own, theirs determine how time is written.

    Reads one graph. Raises DataError, EngineError D4305.
    """
    files = list_files(spark, places, log.options.mappings)
    clock = log.clock or _first_clock(spark, files, log.options, log.fail)
    fetched = _by_kind(files, log.options.mappings).large
    whole = (
        (file.file, "of remote files, several tasks read only JSON lines and Parquet") for file in fetched
    )
    return replace(log, clock=clock, remote=Remote(tuple(places), files), whole=(*log.whole, *whole))


def list_files(
    spark: SparkSession, places: Sequence[str], mappings: Sequence[TableMapping] = ()
) -> tuple[RemoteFile, ...]:
    """The RDF files of URIs, folders and globs, and the tables of a mapping, by name. Raises DataError,
    EngineError D4305.
    """

    def is_read(path: str) -> bool:
        return format_of(path) is not None or mapping_for(path, mappings, listed=True) is not None

    found: dict[str, RemoteFile] = {}
    for place, sizes, empty in _listed(spark, places):
        known = {path: size for path, size in sizes.items() if is_read(path)}
        known |= {path: 0 for path in empty if is_read(path)}
        others = {*sizes, *empty} - known.keys()
        if not known and len(others) == 1 and PurePath(*others).name == PurePath(place).name:
            if mapping_for(place, mappings) is None:
                raise unknown_format(place, streamed=True)
            known = dict(sizes) or dict.fromkeys(others, 0)
        if not known:
            raise DataError.of("D2009", f"`{place}` has no RDF file", place=place, hint="check the path")
        found |= {path: RemoteFile(path, size) for path, size in known.items()}
    files = tuple(found[path] for path in sorted(found))
    for file in files:
        if file.size > _FETCHED and not _parted(file, mappings):
            raise DataError.of(
                "D2006",
                f"`{file.file}` is too large to be read from there",
                place=file.file,
                label=f"{file.size} bytes",
                hint="`dotr convert` it to Parquet or JSON lines, which many tasks read together",
            )
    return files


def _listed(spark: SparkSession, places: Sequence[str]) -> Iterator[tuple[str, dict[str, int], set[str]]]:
    """(place, its files with their sizes, its empty files), by one scan of all places."""
    frames: list[DataFrame] = []
    listed: list[set[str]] = []
    sizes: list[dict[str, int]] = [{} for _ in places]
    for number, place in enumerate(places):
        try:
            frame = _binary(spark).load([place])
            listed.append({as_path(uri) for uri in frame.inputFiles()})
        except Exception as error:  # Py4J and gRPC raise anything
            raise _unreachable(place, error) from None
        frames.append(frame.selectExpr(f"{number} AS place", "path", "length"))
    try:
        for row in union(frames).collect() if frames else ():
            sizes[row.place][row.path] = row.length
    except Exception as error:  # as above
        raise _unreachable(places[0], error) from None
    for place, files, found in zip(places, listed, sizes, strict=True):
        yield place, found, files - found.keys()


def _unreachable(place: str, error: Exception) -> DotrError:
    text = str(error)
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    if "PATH_NOT_FOUND" in text:
        return DataError.of("D2003", f"there is no `{place}`", place=place, hint="check the path")
    cause = next((line.strip(": ") for line in text.splitlines() if "Exception:" in line), first)
    return EngineError.of(
        "D4305",
        f"Spark cannot read `{place}`",
        place=place,
        label=cause[:300],
        hint="the store must be known to Spark: settings in $SPARK_CONF_DIR/spark-defaults.conf",
    )


def _first_clock(
    spark: SparkSession, files: Sequence[RemoteFile], options: SourceOptions, fail: bool
) -> Clock | None:
    """How the first graph of the files writes time: reads one file, then eight, then more."""
    first, count = 0, 1
    while first < len(files):
        kinds = _by_kind(files[first : first + count], options.mappings)
        found = {file: clock for file, clock in _clocks(spark, kinds, options, fail) if clock is not None}
        if found:
            return found[min(found)]
        first, count = first + count, min(count * 8, 512)
    return None


def _clocks(
    spark: SparkSession, kinds: _Kinds, options: SourceOptions, fail: bool
) -> Iterator[tuple[str, Clock | None]]:
    heads = [_named(spark, file) for file in kinds.small + kinds.large]
    heads += [_lines(spark, [file]).select("path", "content").limit(_HEAD) for file in kinds.lines]
    if kinds.empty:
        heads.append(_nothing(spark, kinds.empty))
    if heads:
        try:
            look = FindClocks(options, fail)
            rows = union(heads).mapInArrow(shipped(look), CLOCK_COLUMNS).collect()
        except Exception as error:  # Py4J and gRPC raise anything
            raise session.as_own_error(error) from None
        yield from ((row.file, Clock(row.integer, row.unit)) for row in rows)
    for file in kinds.archives:
        try:
            yield file.file, _archive_clock(_archive(spark, file), file, options.unit)
        except DataError:
            if fail:
                raise


CLOCK_COLUMNS = "file string, integer boolean, unit bigint"


class FindClocks(Struct, frozen=True):
    """(path, content) to CLOCK_COLUMNS; no row for a file without a graph."""

    options: SourceOptions
    fail: bool

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(lambda: self._found(batches))

    def _found(self, batches: Batches) -> Batches:
        for batch in batches:
            found: dict[str, Clock] = {}
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                clock = clock_of(path, self.options, self.fail, content.as_py())
                if clock is not None:
                    found.setdefault(path, clock)
            arrays = [
                texts(list(found)),
                pa.array([clock.integer for clock in found.values()], pa.bool_()),
                integers([clock.unit for clock in found.values()]),
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=["file", "integer", "unit"])


def read_remote(spark: SparkSession, log: LogListing) -> list[DataFrame]:
    """Frames of COLUMNS that read `log.remote` together. Raises DataError under the policy `fail`."""
    assert log.clock is not None
    if log.remote is None:
        return []
    kinds = _by_kind(log.remote.files, log.options.mappings)
    contents = [_named(spark, file) for file in kinds.large]
    if kinds.small:
        contents.append(_small(spark, log.remote.places, kinds.small, log.options.mappings))
    if kinds.empty:
        contents.append(_nothing(spark, kinds.empty))
    made = [_read(frame, ReadContents(log)) for frame in contents]
    if kinds.lines:
        made.append(_read(_lines(spark, kinds.lines), ReadLines(log)))
    return [*made, *_archives(spark, kinds.archives, log)]


def _read(frame: DataFrame, task: Work) -> DataFrame:
    return frame.mapInArrow(shipped(Together(task)), COLUMNS)


def _archives(spark: SparkSession, files: Sequence[RemoteFile], log: LogListing) -> Iterator[DataFrame]:
    """Frames that read archives: one for all with the same column types."""
    assert log.clock is not None
    alike: dict[str, list[RemoteFile]] = {}
    letters: list[str] = []
    for file, frame in _opened(spark, files):
        try:
            if isinstance(frame, DataError):
                raise frame
            if _archive_clock(frame, file, log.options.unit) != log.clock:
                raise other_time(file.file)
        except DataError as error:
            if log.fail:
                raise
            letters.append(dead_letter(error, b""))
            continue
        alike.setdefault(f"time {frame.schema['time'].dataType.simpleString()}, graph string", []).append(
            file
        )
    if letters:
        note = json.dumps({"letters": letters, "time_sources": {}})
        yield spark.createDataFrame([(None, None, note)], COLUMNS)
    time = "time" if log.clock.integer else "unix_micros(time) AS time"
    for columns, some in alike.items():
        frame = spark.read.schema(columns).parquet(*map(_literally, some))
        if len(some) == 1:
            yield _read(frame.selectExpr(time, "graph"), ReadRows(log, some[0].file))
        else:
            yield _read(frame.selectExpr(time, "graph", "_metadata.file_path AS file"), ReadRows(log, ""))


def _opened(
    spark: SparkSession, files: Sequence[RemoteFile]
) -> Iterator[tuple[RemoteFile, DataFrame | DataError]]:
    """Archives as separate frames, by their footers; Spark inspects several at a time."""

    def opened(file: RemoteFile) -> DataFrame | DataError:
        try:
            return _archive(spark, file)
        except DataError as error:
            return error

    with ThreadPoolExecutor(_FOOTERS) as pool:
        yield from zip(files, pool.map(opened, files), strict=True)


def union(made: Sequence[DataFrame]) -> DataFrame:
    """All rows of frames of the same columns."""
    return reduce(lambda one, other: one.unionByName(other), made)


def _by_kind(files: Sequence[RemoteFile], mappings: Sequence[TableMapping]) -> _Kinds:
    some = [file for file in files if file.size]
    large = [file for file in some if file.size > WHOLE]
    parted = [file for file in large if _parted(file, mappings)]
    lines = tuple(file for file in parted if format_of(file.file) is Format.JSONLINES)
    return _Kinds(
        small=tuple(file for file in some if file.size <= WHOLE),
        large=tuple(file for file in large if file not in parted),
        empty=tuple(file for file in files if not file.size),
        lines=lines,
        archives=tuple(file for file in parted if file not in lines),
    )


def _parted(file: RemoteFile, mappings: Sequence[TableMapping]) -> bool:
    """Whether Spark's readers can split the file."""
    plain = not is_packed(file.file) and mapping_for(file.file, mappings) is None
    return plain and format_of(file.file) in (Format.JSONLINES, Format.PARQUET)


def _binary(spark: SparkSession) -> DataFrameReader:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true")


def _small(
    spark: SparkSession, places: Sequence[str], files: Sequence[RemoteFile], mappings: Sequence[TableMapping]
) -> DataFrame:
    """(path, content) of all RDF files of up to WHOLE bytes; their folders are listed again, which is much
    faster than passing thousands of names. Tables are selected by name.
    """
    reader = _binary(spark)
    if not mappings:
        rdf, packed = (",".join(map(_any_case, endings)) for endings in (SUFFIXES, ENDINGS))
        reader = reader.option("pathGlobFilter", f"*{{{rdf}}}{{,{packed}}}")
    found = reader.load(list(places)).where(f"length <= {WHOLE}").select("path", "content")
    return found.where(found["path"].isin([file.file for file in files])) if mappings else found


def _any_case(ending: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in ending)


def _literally(file: RemoteFile) -> str:
    return _GLOB.sub(r"\\\1", file.file)


def _named(spark: SparkSession, file: RemoteFile) -> DataFrame:
    return spark.read.format("binaryFile").load(_literally(file)).select("path", "content")


def _nothing(spark: SparkSession, files: Sequence[RemoteFile]) -> DataFrame:
    rows = [(file.file, bytearray()) for file in files]
    return spark.createDataFrame(rows, "path string, content binary")


def _lines(spark: SparkSession, files: Sequence[RemoteFile]) -> DataFrame:
    """(path, start of the block, content of the line), whose bytes are those of the file."""
    frame = spark.read.option("lineSep", "\n").text([_literally(file) for file in files])
    return frame.selectExpr(
        "_metadata.file_path AS path",
        "_metadata.file_block_start AS start",
        "CAST(value AS BINARY) AS content",
    )


def _archive(spark: SparkSession, file: RemoteFile) -> DataFrame:
    try:
        return spark.read.parquet(_literally(file))
    except Exception as error:  # Py4J and gRPC raise anything
        raise no_archive(file.file, str(error).splitlines()[0][:200]) from None


def _archive_clock(frame: DataFrame, file: RemoteFile, unit: int) -> Clock:
    """Like `archive_clock`, from Spark's columns."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    found = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    if kinds.get("graph") != "string" or kinds.get("time") not in (
        "byte",
        "short",
        "integer",
        "long",
        "timestamp",
    ):
        raise no_archive(file.file, found)
    if kinds["time"] == "timestamp":
        return Clock(integer=False)
    noted = frame.schema["time"].metadata.get(UNIT_NOTE)
    return Clock(integer=True, unit=UNITS.get(str(noted), unit))


_ARCHIVE_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The times of a task's row groups, each with its number of graphs."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(lambda: self._times(batches))

    def _times(self, batches: Batches) -> Batches:
        counts = pc.value_counts(times_of(self.log, pieces_of(batches)))
        table = pa.Table.from_arrays([counts.field("values"), counts.field("counts")], names=["time", "n"])
        yield from table.to_batches(_ARCHIVE_ROWS)


@dataclass(frozen=True, slots=True)
class ExtractArchives:
    """The facts of every instant except `again`, those of which several tasks have graphs. `counted`: the
    last row has the number of instants (INSTANTS).
    """

    log: LogListing
    shipped: Shipped
    again: frozenset[Time]
    counted: bool

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(lambda: fact_batches(self._facts(batches)))

    def _facts(self, batches: Batches) -> Iterator[FactRow]:
        count = 0

        def counted() -> Iterator[Instant]:
            nonlocal count
            for instant in whole_instants(self.log, list(pieces_of(batches)), self.again):
                count += 1
                yield instant

        yield from extract(self.shipped.worker(), counted())
        if self.counted:
            yield COUNTED, 0, json.dumps({INSTANTS: count})


@dataclass(frozen=True, slots=True)
class ReadSlices:
    """The events of slices (archives.py), whose texts are rows. A `Detection`."""

    log: LogListing

    def __call__(self, worker: Worker, batches: Batches) -> tuple[Detecting, Iterator[Composite]]:
        detecting = worker.detecting()
        texts_ = (text for batch in batches for text in batch.column(0).to_pylist())
        found = (slice_events(worker, detecting, self.log, slice_of(text)) for text in texts_)
        return detecting, chain.from_iterable(found)


@dataclass(frozen=True, slots=True)
class ReadGraphs:
    """The graphs of the instants `again`; all graphs if it is empty."""

    log: LogListing
    again: frozenset[Time]

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(lambda: self._graphs(batches))

    def _graphs(self, batches: Batches) -> Batches:
        times: list[Time] = []
        graphs: list[str] = []
        for time, graph, _place in rows_of(self.log, pieces_of(batches)):
            if not self.again or time in self.again:
                times.append(time)
                graphs.append(graph)
                if len(times) >= _ARCHIVE_ROWS:
                    yield _archive_batch(times, graphs)
                    times, graphs = [], []
        yield _archive_batch(times, graphs)


def _archive_batch(times: list[Time], graphs: list[str]) -> pa.RecordBatch:
    columns = [integers(times), texts(graphs)]
    return pa.RecordBatch.from_arrays(columns, names=["time", "graph"])
