"""`dotr.spark.stream`: Structured Streaming in, events in order and exactly once out.

Place:   for users with their own streaming frame, and for `dotr stream` (stream_sources.py). A running stream
         (in order, or by part: distributed.py) is the same object for its caller; cli/stream.py waits for it.
Method:  `foreachBatch` passes every micro-batch to the driver, to the engine of `dotr run` (batch/stream.py,
         which writes events and state by batch id). The workers parse documents.
         If `out` is `kafka:SERVERS/TOPIC`, events go to a topic of Kafka, by Spark's connector: a batch's
         events are one write, in order, by one task; the key is the event's id, the value its JSON line. A
         repeated batch is sent again with the same ids, by which consumers can deduplicate.
Why not: the engine in a stateful operator, as in ordered_frames.py: how documents write time is known only
         when the first has come, and late graphs and dead letters go to files beside the events.
Bad input: D4129 a frame that is not a stream · D4303 errors of the Kafka connector · D4309 Spark Connect ·
         D4312 a place that is not a topic · D5220 other rules · D5221 damaged state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.batch.choices import ORDERED
from dotr.batch.log import LogListing, is_remote, plain_path
from dotr.batch.spark import session
from dotr.batch.spark.read import READ_COLUMNS, ReadRows
from dotr.batch.spark.session import as_own_error
from dotr.batch.stream import MicroBatches, StreamOptions, Taken
from dotr.batch.work import split_lines
from dotr.core.deployment import Deployment
from dotr.errors import DotrError, UsageError
from dotr.events import Clock, Time
from dotr.io.sources import SourceOptions
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

INPUT, CLOSED, OUTPUT = "dotr", "dotr_closed", "dotr_state"
"""The names of the metrics of input, of late and refused graphs, and of output and state."""

Observed: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Metrics by their name."""

RULES_TOLD = 100
"""The limit of rules whose state is among the metrics."""

_KEPT = 200
"""How many batches keep their metrics; Spark keeps the progress of 100."""

_LOOK = 1
"""Seconds between two checks whether a query has ended."""


@dataclass(frozen=True, slots=True)
class BatchTrigger:
    """`once`: process available data, close the last instant, end. `every`: seconds between two batches."""

    once: bool = False
    every: float | None = None

    def apply(self, writer: Any) -> Any:
        """A DataStreamWriter with its trigger."""
        if self.once:
            return writer.trigger(availableNow=True)
        return writer if self.every is None else writer.trigger(processingTime=f"{self.every} seconds")


@dataclass(frozen=True, slots=True)
class State:
    """The progress of a stream: the greatest time seen, and the watermark, as the stream writes time, ""
    before the first; how many facts each rule stores.
    """

    event_time: str
    watermark: str
    sizes: Mapping[str, int]


OnBatch = Callable[[Taken, State], None]
"""Called with the counts since the last call."""


def ignore_batch(_taken: Taken, _state: State) -> None:
    """Reports nothing."""


class ObservedQuery:
    """Spark's query, with what the driver knows after each batch added to the observed metrics.

    `observe` counts rows of Spark's plan; the state of the driver's engine, and the watermark as the stream
    writes time, are not in a plan. Everything else is the query's own.
    """

    def __init__(self, query: StreamingQuery, observed: Mapping[int, Observed]) -> None:
        self._query, self._metrics = query, observed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
        """Like the query's."""
        last = self._query.lastProgress
        return None if last is None else self._with(last)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # Spark's name
        """Like the query's."""
        return [self._with(progress) for progress in self._query.recentProgress]

    def _with(self, progress: Any) -> Any:
        from pyspark.sql import Row  # noqa: PLC0415  # start-up

        observed = dict(progress["observedMetrics"] or {})
        for name, metrics in self._metrics.get(progress["batchId"], {}).items():
            known = observed[name].asDict() if name in observed else {}
            observed[name] = Row(**known, **metrics)
        progress["observedMetrics"] = observed
        return progress


class Running:
    """Owns a running query. `totals`: input and output so far in this process; `mode`: how it runs."""

    query: ObservedQuery
    mode: str
    reasons: tuple[str, ...] = ()
    """Why it runs in this mode, if that was chosen."""

    def __init__(self, on_batch: OnBatch, trigger: BatchTrigger) -> None:
        self.totals = Taken(-1)
        self._on_batch, self._trigger = on_batch, trigger
        self._error: Exception | None = None
        self._metrics: dict[int, Observed] = {}
        self._stopped = False

    def state(self) -> State:
        """Its progress."""
        raise NotImplementedError

    def _looked(self) -> None:
        """Called every second during `wait`, and when a query has ended."""

    def _close(self) -> None:
        """Close the last instant; the query has processed the available data, and ended."""
        raise NotImplementedError

    def _observe(self, batch: int, metrics: Observed) -> None:
        """Add to Spark's metrics of an unfinished batch."""
        self._metrics[batch] = metrics
        for old in sorted(self._metrics)[:-_KEPT]:
            del self._metrics[old]

    def _add(self, taken: Taken) -> None:
        totals = self.totals
        totals.number = max(totals.number, taken.number)
        totals.graphs += taken.graphs
        totals.events += taken.events
        totals.late += taken.late
        totals.refused += taken.refused
        self._on_batch(taken, self.state())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; returns whether it has ended. A query that runs once then closes its
        last instant, unless it was stopped. Raises the error that ended the query, as dotr's own.
        """
        if not self._ended(timeout):
            return False
        if self._trigger.once and not self._stopped:
            self._close()
        return True

    def with_observed(self, query: StreamingQuery) -> ObservedQuery:
        """A query of Spark that reports what `_observe` gets."""
        return ObservedQuery(query, self._metrics)

    def _ended(self, timeout: float | None = None) -> bool:
        waited = 0
        try:
            while not self.query.awaitTermination(_LOOK):  # short waits, so that Ctrl-C works
                waited += _LOOK
                self._looked()
                if timeout is not None and waited >= timeout:
                    return False
        except DotrError:
            raise
        except Exception as error:  # Py4J raises anything
            raise self._error or session.as_own_error(error) from None
        self._looked()
        return True

    def stop(self) -> None:
        """End the query; the output of its last complete batch stays, and it can be started again."""
        self._stopped = True
        self.query.stop()

    def progress(self) -> dict[str, Any]:
        """Counts of this process so far: `mode`, `batch` (its number), `graphs`, `events`, `late` and
        `refused`; `event_time` and `watermark` once known; `state`, how many facts each rule stores;
        `rows_per_second` of Spark's last micro-batch.
        """
        self._looked()
        state, totals = self.state(), self.totals
        known: dict[str, Any] = {
            "mode": self.mode,
            "batch": totals.number,
            "graphs": totals.graphs,
            "events": totals.events,
            "late": totals.late,
            "refused": totals.refused,
            "state": dict(state.sizes),
        }
        for name, time in (("event_time", state.event_time), ("watermark", state.watermark)):
            if time:
                known[name] = time
        last = self.query.lastProgress
        rate = None if last is None else dict(last).get("processedRowsPerSecond")
        return {**known, "rows_per_second": rate}


KAFKA = "kafka:"

Send = Callable[[str], None]


def topic_of(place: str, format_: str = "jsonl") -> tuple[str, str]:
    """The servers and the topic of `kafka:SERVERS/TOPIC`. Raises UsageError D4312."""
    servers, _, topic = place.removeprefix(KAFKA).rpartition("/")
    if not servers or not topic or format_ != "jsonl":
        raise UsageError.of(
            "D4312",
            f"`{place}` is not a topic that events can go to"
            if format_ == "jsonl"
            else f"events go to Kafka as JSON lines, not as {format_}",
            hint="kafka:HOST:9092/TOPIC, or kafka:HOST:9092,HOST:9092/TOPIC; --format jsonl",
        )
    return servers, topic


def write_topic(records: DataFrame, servers: str, topic: str) -> None:
    """Write records (key, value), in their order, by one task. Raises EngineError D4303."""
    try:
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", servers)
        writer.option("topic", topic).option("kafka.enable.idempotence", "true").save()
    except Exception as error:  # Py4J raises anything
        raise as_own_error(error) from None


def sender(spark: SparkSession, place: str, format_: str) -> Send | None:
    """A sender of a batch's JSON lines to `place`; None for a folder. Raises UsageError D4312."""
    if not place.startswith(KAFKA):
        return None
    servers, topic = topic_of(place, format_)

    def send(lines: str) -> None:
        rows = [(json.loads(line)["id"], line) for line in lines.splitlines()]
        if rows:
            write_topic(spark.createDataFrame(rows, "key string, value string").coalesce(1), servers, topic)

    return send


@dataclass(slots=True)
class Batch:
    """One micro-batch as graphs: the clock of its times, None without a graph; dead letters."""

    clock: Clock | None
    graphs: list[tuple[Time, list[Triple]]]
    letters: list[str] = field(default_factory=list)


Reader = Callable[["DataFrame", "Clock | None"], Batch]
"""Reads a micro-batch; takes how the stream writes time, if already known."""


def start(
    frame: DataFrame,
    read: Reader,
    deployment: Deployment,
    out: str,
    checkpoint: str,
    options: StreamOptions,
    trigger: BatchTrigger,
    on_batch: OnBatch = ignore_batch,
) -> Stream:
    """Start a query over a streaming frame. `on_batch` is called after every batch.

    Raises UsageError D4129, D4309, RefusedError D5001, D5220, EngineError D5221.
    """
    check(frame, checkpoint, out)
    session.install()
    home = plain_path(checkpoint)
    send = sender(frame.sparkSession, out, options.format_)
    batches = MicroBatches(deployment, folder_of(out, checkpoint), states_of(checkpoint), options, send)
    stream = Stream(batches, read, on_batch, trigger)
    writer = frame.writeStream.foreachBatch(stream.take).option(
        "checkpointLocation", os.path.abspath(os.path.join(home, "spark"))
    )
    stream.query = stream.with_observed(trigger.apply(writer).start())
    return stream


def check(frame: DataFrame, checkpoint: str, out: str = "") -> None:
    """Raise UsageError D4129: the frame is not a stream; D4309: over Connect; D4127: a remote folder."""
    if not frame.isStreaming:
        raise not_streaming()
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise UsageError.of(
            "D4309",
            "over Spark Connect `stream` cannot run",
            notes=("the engine that sees all of the stream is the driver's, and Connect has no driver here",),
            hint="run it with spark-submit; `detect` and `materialize` work over Connect",
        )
    for place in (checkpoint,) if out.startswith(KAFKA) else (out, checkpoint):
        if is_remote(place):
            raise UsageError.of(
                "D4127",
                f"`{place}` is not on this machine",
                hint="the driver writes events and state itself: give a folder that it can open",
            )


def states_of(checkpoint: str) -> str:
    """The folder of dotr's own state of a stream."""
    return os.path.join(plain_path(checkpoint), "dotr")


def folder_of(out: str, checkpoint: str) -> str:
    """The output folder of a stream; beside its state if events go to Kafka."""
    return os.path.join(states_of(checkpoint), "out") if out.startswith(KAFKA) else plain_path(out)


def not_streaming() -> UsageError:
    return UsageError.of(
        "D4129", "the frame is not a stream", hint="dotr.spark.detect takes frames that are complete"
    )


class Stream(Running):
    """Owns a running query and its engine."""

    mode = ORDERED

    def __init__(self, batches: MicroBatches, read: Reader, on_batch: OnBatch, trigger: BatchTrigger) -> None:
        super().__init__(on_batch, trigger)
        self.batches = batches
        self._read = read

    def take(self, frame: DataFrame, number: int) -> None:
        """Spark's callback."""
        try:
            batch = self._read(frame, self.batches.clock)
            taken = self.batches.take(number, batch.clock, batch.graphs, batch.letters)
            self._observe(number, self._observed(taken))
            self._add(taken)
        except DotrError as error:
            self._error = error
            raise RuntimeError(session.crossing(error)) from None

    def _observed(self, taken: Taken) -> Observed:
        state = self.state()
        names = [rule.name for rule in self.batches.pipeline.program.rules][:RULES_TOLD]
        output = {"events": taken.events, "watermark": state.watermark or None}
        output |= {f"state {name}": state.sizes.get(name, 0) for name in names}
        return {CLOSED: {"late": taken.late, "refused": taken.refused}, OUTPUT: output}

    def _close(self) -> None:
        closed = self.batches.close()
        if closed is not None:
            self._add(closed)

    def state(self) -> State:
        """The engine's progress."""
        pipeline = self.batches.pipeline
        clock = pipeline.clock
        times = (pipeline.latest, pipeline.watermark)
        latest, closed = ("" if clock is None or time is None else clock.text(time) for time in times)
        return State(latest, closed, pipeline.sizes())


def observed(graphs: DataFrame) -> DataFrame:
    """A frame (time, graph), with metrics in Spark's progress: graphs, and the greatest time."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    return graphs.observe(INPUT, f.count("graph").alias("graphs"), f.max("time").alias("event_time"))


def graph_reader(clock: Clock, base: str, policy: str) -> Reader:
    """Reads frames with the columns time (bigint, in the clock's unit or µs) and graph (N-Triples), which the
    workers parse.
    """
    log = LogListing((), clock, SourceOptions(base=base), policy == "fail")
    task = ReadRows(log, "the stream")

    def read(frame: DataFrame, _known: Clock | None) -> Batch:
        rows = frame.select("time", "graph").mapInArrow(session.shipped(task), READ_COLUMNS)
        return read_rows(rows, clock)

    return read


def read_rows(frame: DataFrame, clock: Clock) -> Batch:
    """The rows of read.py: (time in the clock's unit, graph, note)."""
    unit = clock.unit if clock.integer else 1
    batch = Batch(clock, [])
    for time, text, note in _rows(frame, ("time", "graph", "note")):
        if note is not None:
            batch.letters += json.loads(note)["letters"]
        else:
            batch.graphs.append((time * unit, split_lines(text)))
    return batch


def _rows(frame: DataFrame, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for batch in frame.select(*columns).toArrow().to_batches():
        yield from zip(*(batch.column(i).to_pylist() for i in range(len(columns))), strict=True)


def refuse_streaming(frame: DataFrame) -> None:
    """Raise UsageError D4129 for a stream where a complete frame is required."""
    if frame.isStreaming:
        raise UsageError.of(
            "D4129",
            "the frame is a stream, which is never complete",
            hint="dotr.spark.stream(frame, rules, out=…, checkpoint=…) takes streams",
        )
