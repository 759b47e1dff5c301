"""Where `dotr stream` reads from: a folder that grows, Kafka, or a clock for demonstrations.

Place:   used by cli/stream.py; each has a streaming frame and the reader of its micro-batches.
Method:  files are read by Spark's binaryFile, so that their names and bytes reach the usual readers, on the
         workers; a record of Kafka is a JSON line. A listed file is read: rename it into place.
Bad input: D2009 no such folder · D4303 a source that Spark cannot start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dotr.batch.locations import is_remote, plain_path
from dotr.batch.log_splits import LogListing
from dotr.batch.spark.distributed import Graphs
from dotr.batch.spark.failures import Work, as_own_error, shipped
from dotr.batch.spark.read_tasks import READ_COLUMNS, ReadContents, ReadLines
from dotr.batch.spark.remote_logs import FindClocks
from dotr.batch.spark.streams import Batch, Reader, graph_reader, read_rows
from dotr.errors import DataError, Diagnostic, DotrError
from dotr.events import Clock
from dotr.io.decode.documents import STREAM_BASE, SUFFIXES
from dotr.io.files.sources import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "path string, modificationTime timestamp, length bigint, content binary"
_SAMPLE = 16
"""The limit of documents that are read to find how a stream writes time."""

_XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A streaming frame, and how its batches become graphs: `read` in the driver, `parsed` on all workers,
    once it is known how the stream writes time. `sampled` finds that in the available data, or None.
    """

    frame: DataFrame
    read: Reader
    sampled: Callable[[], Clock | None]
    parsed: Callable[[Clock], Graphs]


def files(
    spark: SparkSession, folder: str, options: SourceOptions, policy: str, most: int | None
) -> StreamSource:
    """The RDF files of a folder and those below it, oldest first, at most `most` in a batch."""
    place = plain_path(folder)
    if not is_remote(place) and not os.path.isdir(place):
        raise DataError.of(
            "D2009", f"`{folder}` is not a folder", place=folder, hint="files appear in a folder"
        )
    suffixes = ",".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in end) for end in SUFFIXES)
    reader = spark.readStream.format("binaryFile").schema(_FILE)
    reader = reader.option("recursiveFileLookup", "true")
    pattern = f"*{{{suffixes}}}{{,.[gG][zZ]}}"
    reader = reader.option("pathGlobFilter", pattern)
    if most is not None:
        reader = reader.option("maxFilesPerTrigger", str(most))
    place = place if is_remote(place) else os.path.abspath(place)
    frame = reader.load(place).select("path", "content")

    def read(batch: DataFrame, clock: Clock | None) -> Batch:
        return _documents(batch, clock, options, policy, ReadContents)

    def sampled() -> Clock | None:
        there = spark.read.format("binaryFile").schema(_FILE).option("recursiveFileLookup", "true")
        there = there.option("pathGlobFilter", pattern)
        oldest = there.load(place).orderBy("modificationTime", "path").limit(_SAMPLE)
        return _first_clock(oldest, options, policy == "fail")

    return StreamSource(
        frame, read, sampled, lambda clock: _parsed(frame, clock, options, policy, ReadContents)
    )


def kafka(
    spark: SparkSession, servers: str, topic: str, options: SourceOptions, policy: str, most: int | None
) -> StreamSource:
    """The records of a topic from its beginning on, each a JSON line, at most `most` in a batch."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    if most is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(most))
    try:
        records = reader.load()
    except Exception as error:  # Py4J raises anything
        raise _no_kafka(error) from None
    there = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return from_records(records, options, policy, lambda: there.load().limit(_SAMPLE))


def from_records(
    records: DataFrame,
    options: SourceOptions,
    policy: str,
    some: Callable[[], DataFrame] | None = None,
) -> StreamSource:
    """Records as Kafka's connector gives them: topic, partition, offset, and value, a JSON line in bytes.
    `some`: a few available ones.
    """
    frame = _lines(records)

    def read(batch: DataFrame, clock: Clock | None) -> Batch:
        return _documents(batch, clock, options, policy, ReadLines)

    def sampled() -> Clock | None:
        return None if some is None else _first_clock(_lines(some()), options, policy == "fail")

    return StreamSource(frame, read, sampled, lambda clock: _parsed(frame, clock, options, policy, ReadLines))


def _lines(records: DataFrame) -> DataFrame:
    return records.selectExpr(
        "concat('kafka:', topic, '/', partition, '.jsonl') AS path", "offset AS start", "value AS content"
    )


def rate(spark: SparkSession, rows: int) -> StreamSource:
    """`rate` graphs per second, of one triple each: for demonstrations."""
    frame = spark.readStream.format("rate").option("rowsPerSecond", str(rows)).load()
    literal = f'"%d"^^<{_XSD_INTEGER}>'
    graph = f"format_string('<urn:dotr:rate> <urn:dotr:value> {literal} .', value)"
    frame = frame.selectExpr("unix_micros(timestamp) AS time", f"{graph} AS graph")
    clock = Clock(integer=False)
    read = graph_reader(clock, STREAM_BASE, "fail")
    return StreamSource(frame, read, lambda: clock, lambda clock: Graphs(frame, clock, STREAM_BASE))


def _parsed(
    frame: DataFrame, clock: Clock, options: SourceOptions, policy: str, task: Callable[[LogListing], Work]
) -> Graphs:
    work = task(LogListing((), clock, options, policy == "fail"))
    return Graphs(frame, clock, None, work)


def _documents(
    frame: DataFrame,
    clock: Clock | None,
    options: SourceOptions,
    policy: str,
    task: Callable[[LogListing], Work],
) -> Batch:
    """Read documents by tasks. The clock is that of the first graph of the first batch that has one."""
    fails = policy == "fail"
    try:
        if clock is None:
            clock = _first_clock(frame, options, fails)
        if clock is None:
            if fails:
                return Batch(None, [])
            clock = Clock()  # nothing of it can be read: only its dead letters count
            log = LogListing((), clock, options, fails)
            found = read_rows(frame.mapInArrow(shipped(task(log)), READ_COLUMNS), clock)
            return Batch(None, [], found.letters)
        log = LogListing((), clock, options, fails)
        return read_rows(frame.mapInArrow(shipped(task(log)), READ_COLUMNS), clock)
    except DotrError:
        raise
    except Exception as error:  # Py4J raises anything
        raise as_own_error(error) from None


def _first_clock(frame: DataFrame, options: SourceOptions, fails: bool) -> Clock | None:
    documents = frame.select("path", "content")
    rows = documents.mapInArrow(shipped(FindClocks(options, fails)), "file string, unit bigint").collect()
    if not rows:
        return None
    first = min(rows, key=lambda row: str(row.file))
    return Clock(bool(first.unit), first.unit or 1)


def _no_kafka(error: Exception) -> DotrError:
    found = as_own_error(error)
    if "kafka" not in str(error).lower():
        return found
    return type(found)(
        Diagnostic(
            "D4303",
            "Spark has no connector for Kafka",
            notes=tuple(str(error).splitlines()[:1]),
            hint="--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, with the version of Spark",
        )
    )
