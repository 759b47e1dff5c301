"""Logs that only Spark can reach: hdfs://…, s3a://… and whatever else its configuration knows.

Place:   the command line opens such a log; cluster.py reads it. Needs no SparkContext.
Method:  Spark lists the files and fetches them: small ones whole, for the usual readers with the usual
         diagnostics; JSON lines and archives beyond WHOLE through Spark's readers, which split them. Tables,
         and dumps to be split, are fetched whole, whatever their size. The driver reads the first graph, as
         with local files.
Why not: a client of each store in Python: Spark already has the libraries, settings and credentials.
Bad input: D2003 no such path · D2006 a document too large to be fetched · D2008 unknown format · D2009
           nothing there · D4305 a store that is unknown to Spark, or does not answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import PurePath
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.locations import as_path
from dotr.batch.log_splits import LogListing, Remote, RemoteFile, clock_of, other_time
from dotr.batch.spark import failures
from dotr.batch.spark.failures import Batches, Work, shipped
from dotr.batch.spark.read_tasks import ReadContents, ReadLines, ReadRows
from dotr.batch.spark.together import COLUMNS, Together
from dotr.errors import DataError, DotrError, EngineError
from dotr.events import Clock
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.compression import ENDINGS, is_packed
from dotr.io.decode.documents import SUFFIXES, Format, format_of, unknown_format
from dotr.io.decode.parquet import UNIT_NOTE, no_archive
from dotr.io.error_policy import dead_letter
from dotr.io.files.sources import SourceOptions
from dotr.io.tables.names import mapping_for
from dotr.io.timestamps import UNITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from dotr.io.tables.mapping import TableMapping

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
        return format_of(path) is not None or mapping_for(path, mappings) is not None

    found: dict[str, RemoteFile] = {}
    for place, sizes, empty in _listed(spark, places):
        known = {path: size for path, size in sizes.items() if is_read(path)}
        known |= {path: 0 for path in empty if is_read(path)}
        others = {*sizes, *empty} - known.keys()
        if not known and len(others) == 1 and PurePath(*others).name == PurePath(place).name:
            raise unknown_format(place)
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
            rows = union(heads).mapInArrow(shipped(look), "file string, unit bigint").collect()
        except Exception as error:  # Py4J and gRPC raise anything
            raise failures.as_own_error(error) from None
        yield from ((row.file, Clock(bool(row.unit), row.unit or 1)) for row in rows)
    for file in kinds.archives:
        try:
            yield file.file, _archive_clock(_archive(spark, file), file, options.unit)
        except DataError:
            if fail:
                raise


class FindClocks(Struct, frozen=True):
    """(path, content) to (file, unit in µs; 0 means dateTimes); no row for a file without a graph."""

    options: SourceOptions
    fail: bool

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._found(batches))

    def _found(self, batches: Batches) -> Batches:
        for batch in batches:
            found: dict[str, int] = {}
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                clock = clock_of(path, self.options, self.fail, content.as_py())
                if clock is not None:
                    found.setdefault(path, clock.unit if clock.integer else 0)
            arrays = [texts(list(found)), integers(list(found.values()))]
            yield pa.RecordBatch.from_arrays(arrays, names=["file", "unit"])


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
        note = json.dumps({"letters": letters, "rungs": {}})
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
