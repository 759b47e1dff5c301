"""Sources of a Spark stream: a growing folder, Kafka, a clock for demonstrations, a user's frame.

Place:   cli/stream.py takes the sources; `dotr.spark.stream` takes a streaming frame of graphs from users
         with their own session, and writes files of events.
Method:  each source has a streaming frame and the reader of its micro-batches. Files are read by Spark's
         binaryFile, so that their names and bytes reach the usual readers, on the workers; a record of Kafka
         is a JSON line. A file is read as soon as it is listed: rename it into place.
Bad input: D2009 no such folder · D4303 a source that Spark cannot start.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING

from dotr.batch.choices import ORDERED, STREAM_FORMATS
from dotr.batch.log import LogListing, is_remote, plain_path
from dotr.batch.spark import distributed, frame_stages
from dotr.batch.spark.distributed import Graphs
from dotr.batch.spark.frames import Rules, clock_of_frame, deployed, graphs_of
from dotr.batch.spark.read import READ_COLUMNS, FindClocks, ReadContents, ReadLines
from dotr.batch.spark.session import Work, as_own_error, shipped
from dotr.batch.spark.stream import (
    Batch,
    BatchTrigger,
    Reader,
    Running,
    graph_reader,
    not_streaming,
    observed,
    read_rows,
    start,
    states_of,
)
from dotr.batch.stream import StreamOptions, choose, known_mode
from dotr.budget import BUDGET
from dotr.core.instants import check_units
from dotr.errors import DataError, Diagnostic, DotrError, UsageError
from dotr.events import Clock
from dotr.io.decode.documents import STREAM_BASE, SUFFIXES
from dotr.io.python_values import duration
from dotr.io.sources import SourceOptions

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


def stream(
    log: DataFrame,
    rules: Rules,
    *,
    out: str | PathLike[str],
    checkpoint: str | PathLike[str],
    text: str | None,
    background: Sequence[str | PathLike[str]],
    time_unit: str | None,
    lateness: timedelta | str | None,
    late: str,
    on_error: str,
    format_: str,
    base: str | None,
    max_jump: timedelta | str | None,
    budget: int = BUDGET,
    once: bool,
    every: timedelta | str | None,
    mode: str,
    parallelism: int | None,
) -> Running:
    """Start a query over `log`, a streaming frame with the columns `time` and `graph` as in `detect`.

    `out`: the folder of the events, one file per micro-batch with events; `checkpoint`: the folder of Spark's
    checkpoint and of the engine's states. `lateness`: how much out of order the stream may be. `late`:
    "drop", "fail", or "keep" in `out/_late`; `on_error`: "fail", "skip", or "keep" in `out/_letters`. `once`:
    process the available data, close the last instant when `wait` is called, and end; else a micro-batch at
    the interval `every`. `mode`: "ordered" (one engine, the bytes of `dotr run`), "distributed" (parts on all
    workers, the same set of events, sorted by time, rule and id) or "auto": see `mode` and `reasons` of the
    result. `parallelism`: tasks at once, if Spark does not know.

    Raises ProgramError, DataError (background), UsageError D4122, D4123, D4129 (no stream), D4309 (Connect),
    UsageError D4311 (cannot be distributed),
    RefusedError D5001, D5220 (the checkpoint belongs to other rules), EngineError D5221.
    """
    if not log.isStreaming:
        raise not_streaming()
    clock = clock_of_frame(log, time_unit)
    allowed = (("late", late, ("drop", "keep", "fail")), ("on_error", on_error, ("fail", "skip", "keep")))
    for name, value, known in (*allowed, ("format", format_, STREAM_FORMATS)):
        if value not in known:
            hint = f"one of {', '.join(known)}"
            raise UsageError.of("D4123", f"{name} cannot be `{value}`", hint=hint)
    deployment = deployed(rules, text, background, base, budget)
    check_units(deployment.program, clock)
    for diagnostic in deployment.program.warnings:
        python_warnings.warn(diagnostic.render(), UserWarning, stacklevel=4)
    options = StreamOptions(
        format_, duration(lateness), late, on_error, None if max_jump is None else duration(max_jump)
    )
    trigger = BatchTrigger(once, None if every is None else duration(every) / 1e6)
    home, cores = fspath(checkpoint), frame_stages.parallelism(log.sparkSession, parallelism)
    choice = choose(mode, known_mode(states_of(home)), deployment, options, cores)
    graphs, found = graphs_of(log, clock), base or STREAM_BASE
    if choice.mode == ORDERED:
        read = graph_reader(clock, found, on_error)
        running: Running = start(observed(graphs), read, deployment, fspath(out), home, options, trigger)
    else:
        source = Graphs(graphs, clock, found)
        running = distributed.start(source, deployment, fspath(out), home, options, trigger, cores=cores)
    running.reasons = choice.reasons
    return running
