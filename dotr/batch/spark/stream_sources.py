"""Sources of a Spark stream: a growing folder, Kafka, a clock for demonstrations, a user's frame.

Place:   cli/stream.py takes the sources; `dotr.spark.stream` takes a streaming frame of graphs from users
         with their own session, and gives a streaming frame of events, or writes them (stream_frames.py).
Method:  each source has a streaming frame, and says how workers read it. Files are read by Spark's
         binaryFile, so that their names and bytes reach the usual readers; a record of Kafka is a JSON line.
         A file is read as soon as it is listed: rename it into place. How documents write time is found in
         the first ones before the query starts, if there are any (`sampled`).
Bad input: D2009 no such folder · D4303 a source that Spark cannot start.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from dotr.batch.choices import STREAM_FORMATS
from dotr.batch.log import LogListing, is_remote, plain_path
from dotr.batch.spark import frame_stages, stream_frames
from dotr.batch.spark.distributed import Graphs
from dotr.batch.spark.event_rows import Form, Terms, Typed
from dotr.batch.spark.frames import Rules, clock_of_frame, deployed, graphs_of
from dotr.batch.spark.read import CLOCK_COLUMNS, FindClocks, ReadContents, ReadLines
from dotr.batch.spark.session import Work, as_own_error, install, shipped
from dotr.batch.spark.stream import BatchTrigger, check, not_streaming, states_of
from dotr.batch.spark.stream_frames import FrameStream
from dotr.batch.spark.typed import check_typed, of_rule
from dotr.batch.stream import StreamOptions, choose, known_mode
from dotr.budget import BUDGET
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.errors import DataError, Diagnostic, DotrError, UsageError
from dotr.events import Clock
from dotr.io.decode.documents import STREAM_BASE, SUFFIXES
from dotr.io.python_values import duration
from dotr.io.sources import SourceOptions
from dotr.io.typed_events import Types, columns_of, refuse_alike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "path string, modificationTime timestamp, length bigint, content binary"
_SAMPLE = 16
"""The limit of documents that are read to find how a stream writes time."""

_XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True, slots=True)
class StreamSource:
    """`graphs`: the streaming frame, and how workers read it, given how the stream writes time, if known.
    `sampled` finds that in the available data, or None.
    """

    sampled: Callable[[], Clock | None]
    graphs: Callable[[Clock | None], Graphs]


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

    def sampled() -> Clock | None:
        there = spark.read.format("binaryFile").schema(_FILE).option("recursiveFileLookup", "true")
        there = there.option("pathGlobFilter", pattern)
        oldest = there.load(place).orderBy("modificationTime", "path").limit(_SAMPLE)
        return _first_clock(oldest, options, policy == "fail")

    return StreamSource(sampled, lambda clock: _parsed(frame, clock, options, policy, ReadContents))


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

    def sampled() -> Clock | None:
        return None if some is None else _first_clock(_lines(some()), options, policy == "fail")

    return StreamSource(sampled, lambda clock: _parsed(frame, clock, options, policy, ReadLines))


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
    return StreamSource(lambda: clock, lambda _clock: Graphs(frame, clock, STREAM_BASE))


def _parsed(
    frame: DataFrame,
    clock: Clock | None,
    options: SourceOptions,
    policy: str,
    task: Callable[[LogListing], Work],
) -> Graphs:
    work = task(LogListing((), clock, options, policy == "fail"))
    return Graphs(frame, clock, None, work)


def _first_clock(frame: DataFrame, options: SourceOptions, fails: bool) -> Clock | None:
    documents = frame.select("path", "content")
    try:
        rows = documents.mapInArrow(shipped(FindClocks(options, fails)), CLOCK_COLUMNS).collect()
    except Exception as error:  # Py4J raises anything
        raise as_own_error(error) from None
    if not rows:
        return None
    first = min(rows, key=lambda row: str(row.file))
    return Clock(first.integer, first.unit)


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
    out: str | PathLike[str] | None,
    checkpoint: str | PathLike[str] | None,
    foreach_batch: Callable[[DataFrame, int], None] | None,
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
    change_rules: bool,
    schema: str,
    types: Types | None,
) -> FrameStream | DataFrame:
    """The events of `log`, a streaming frame with the columns `time` and `graph` as in `detect`: a streaming
    frame, or a running query if there is an `out` or a `foreach_batch`.

    `out`: the folder of the events, one file per micro-batch with events, or `kafka:SERVERS/TOPIC`;
    `foreach_batch`: a function that gets the events of each micro-batch as a frame, and its number.
    `checkpoint`: the folder of Spark's checkpoint and of the engine's states; of a streaming frame it is that
    of the query that the caller starts. `lateness`: how much out of order the stream may be. `late`:
    "drop", "fail", or "keep" in `out/_late`; `on_error`: "fail", "skip", or "keep" in `out/_letters`. `once`:
    process the available data, close the last instant when `wait` is called, and end; else a micro-batch at
    the interval `every`. `mode`: "ordered" (one engine, as `dotr run`), "distributed" (parts on all workers,
    the same set of events) or "auto": see `mode` and `reasons` of a query. `parallelism`: tasks at once, if
    Spark does not know, and how many parts there are. `change_rules`: a checkpoint of other rules goes on:
    rules that are the same keep their state. `schema` and `types` as in `detect`, for frames.

    Raises ProgramError, DataError (background), UsageError D4122, D4123, D4129 (no stream), D4309 (Connect),
    UsageError D4311 (cannot be distributed),
    RefusedError D5001, D5220 (the checkpoint belongs to other rules), EngineError D5221. A streaming frame
    cannot know its checkpoint before its query runs: that raises D5220 and D5221 then.
    """
    if not log.isStreaming:
        raise not_streaming()
    clock = clock_of_frame(log, time_unit)
    allowed = (("late", late, ("drop", "keep", "fail")), ("on_error", on_error, ("fail", "skip", "keep")))
    for name, value, known in (*allowed, ("format", format_, STREAM_FORMATS)):
        if value not in known:
            hint = f"one of {', '.join(known)}"
            raise UsageError.of("D4123", f"{name} cannot be `{value}`", hint=hint)
    given = {
        "checkpoint": checkpoint is not None,
        "once": once,
        "every": every is not None,
        "format": format_ != "jsonl",
        'late="keep"': late == "keep",
        'on_error="keep"': on_error == "keep",
        "schema": schema != "typed",
        "types": types is not None,
    }
    _check_output(out, foreach_batch, given)
    deployment = deployed(rules, text, background, base, budget)
    check_units(deployment.program, clock)
    for diagnostic in deployment.program.warnings:
        python_warnings.warn(diagnostic.render(), UserWarning, stacklevel=4)
    jump = None if max_jump is None else duration(max_jump)
    options = StreamOptions(format_, duration(lateness), late, on_error, jump, change_rules)
    trigger = BatchTrigger(once, None if every is None else duration(every) / 1e6)
    cores = frame_stages.parallelism(log.sparkSession, parallelism)
    home = None if checkpoint is None else fspath(checkpoint)
    choice = choose(mode, None if home is None else known_mode(states_of(home)), deployment, options, cores)
    source = Graphs(graphs_of(log, clock), clock, base or STREAM_BASE)
    if out is None:
        form = _form(log, deployment, clock, schema, types)
        if foreach_batch is None:
            check(log, "")
            install()
            found: Any = stream_frames.frame(choice.mode, source, deployment, options, form, cores)
            found.rule = partial(of_rule, found, deployment.program)
            return found  # type: ignore[no-any-return]  # a frame
        running = stream_frames.start_function(
            choice.mode,
            source,
            deployment,
            form,
            foreach_batch,
            home or "",
            options,
            trigger,
            cores,
        )
    else:
        running = stream_frames.start(
            choice.mode, source, deployment, fspath(out), home or "", options, trigger, cores=cores
        )
    running.reasons = choice.reasons
    return running


_OF_QUERIES = ("checkpoint", "once", "every")
_OF_FILES = ("format", 'late="keep"', 'on_error="keep"')
_OF_FRAMES = ("schema", "types")


def _check_output(out: object, foreach_batch: object, given: Mapping[str, bool]) -> None:
    """Raise UsageError D4123 for arguments of `stream` that do not fit together. `given`: whether each of the
    others is.
    """
    if out is not None and foreach_batch is not None:
        raise UsageError.of("D4123", "events go to either `out` or `foreach_batch`", hint="leave one out")
    frame = out is None and foreach_batch is None
    wrong = [
        (name, owner, hint)
        for names, refused, owner, hint in (
            (_OF_QUERIES, frame, "a query that dotr starts", 'give it to events.writeStream, or out="fires"'),
            (_OF_FILES, out is None, "a folder of events", 'out="fires"'),
            (_OF_FRAMES, out is not None, "a frame of events", "leave `out` out, or foreach_batch=…"),
        )
        for name in names
        if refused and given[name]
    ]
    for name, owner, hint in wrong:
        raise UsageError.of("D4123", f"`{name}` belongs to {owner}", hint=hint)
    if not frame and not given["checkpoint"]:
        raise UsageError.of("D4123", "a query needs a `checkpoint`", hint='checkpoint="fires.state"')


def _form(log: DataFrame, deployment: Deployment, clock: Clock, schema: str, types: Types | None) -> Form:
    """How events become rows. Raises UsageError D4123."""
    check_typed(log, schema, types, ())
    if isinstance(types, str):
        hint = 'types={"celsius": "double"}'
        raise UsageError.of("D4123", f'types="{types}" runs the rules over a log that has an end', hint=hint)
    if schema == "terms":
        return Terms(clock)
    columns = columns_of(deployment.program, clock, types)
    if log.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        refuse_alike(columns)
    return Typed(columns.with_kinds({}))
