"""`dotr.spark.stream`: Structured Streaming in, events in order and exactly once out.

Place:   for users with their own streaming frame, and for `dotr stream` (stream_sources.py).
Method:  `foreachBatch` passes every micro-batch to the driver, to the engine of `dotr run` (micro_batches.py,
         which writes events and state by batch id). The workers parse documents.
Why not: a stateful operator of Spark: it sees one key and no order between keys; consuming, chaining and
         ticks need all of an instant, in order.
Bad input: D4129 a frame that is not a stream · D4309 Spark Connect · D5220 other rules · D5221 damaged state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dotr.batch.job import split_lines
from dotr.batch.locations import is_remote, plain_path
from dotr.batch.log_splits import LogListing
from dotr.batch.micro_batches import MicroBatches
from dotr.batch.spark import failures
from dotr.batch.spark.kafka_out import KAFKA, sender
from dotr.batch.spark.read_tasks import READ_COLUMNS, ReadRows
from dotr.batch.spark.running import (
    CLOSED,
    INPUT,
    OUTPUT,
    RULES_TOLD,
    BatchTrigger,
    Observed,
    OnBatch,
    Running,
    State,
    ignore_batch,
)
from dotr.batch.stream_folder import ORDERED, StreamOptions, Taken
from dotr.core.deployment import Deployment
from dotr.errors import DotrError, UsageError
from dotr.events import Clock, Time
from dotr.io.files.sources import SourceOptions
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    check(frame, out, checkpoint)
    failures.install()
    home = plain_path(checkpoint)
    send = sender(frame.sparkSession, out, options.format_)
    batches = MicroBatches(deployment, folder_of(out, checkpoint), states_of(checkpoint), options, send)
    stream = Stream(batches, read, on_batch, trigger)
    writer = frame.writeStream.foreachBatch(stream.take).option(
        "checkpointLocation", os.path.abspath(os.path.join(home, "spark"))
    )
    stream.query = stream.with_observed(trigger.apply(writer).start())
    return stream


def check(frame: DataFrame, out: str, checkpoint: str) -> None:
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
            raise RuntimeError(failures.crossing(error)) from None

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
        rows = frame.select("time", "graph").mapInArrow(failures.shipped(task), READ_COLUMNS)
        return read_rows(rows, clock)

    return read


def read_rows(frame: DataFrame, clock: Clock) -> Batch:
    """The rows of read_tasks.py: (time in the clock's unit, graph, note)."""
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
