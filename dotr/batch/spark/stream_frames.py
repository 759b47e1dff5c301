"""Streams as streaming frames of events, and the queries that dotr runs over them.

Place:   `dotr.spark.stream` (stream_sources.py) gives users a streaming frame, which any sink of Spark takes;
         `dotr stream` and `dotr.spark.stream` with a folder, a topic or a function start a query over one.
Method:  `frame` is what a plan (distributed.py, ordered_frames.py) finds, as rows. `FrameStream` hands every
         batch to a sink: the workers keep what they found until it is done (persist), so that a sink may read
         it several times without running an operator twice. A folder gets a file for each batch with events,
         written by one task; a topic gets the same lines in one write. In order, lines come as the engine
         reports them; by part they are sorted by (time, rule, id). Late graphs and dead letters that are kept
         go to files of their own, from the same rows.
         A query that runs once is closed by a row in a folder of the checkpoint, which is a second source of
         the frame, and a second query.
Bad input: D2102 · D4127 · D4129 · D4309 · D4312 · D5001 · D5220 · D5221 · what a user's function raises.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from dotr.batch.choices import DISTRIBUTED, ORDERED
from dotr.batch.log import plain_path
from dotr.batch.spark import session as failures
from dotr.batch.spark.distributed import Distributed, Graphs, with_settings
from dotr.batch.spark.event_rows import Form, Lines, rows_of
from dotr.batch.spark.frame_stages import parallelism
from dotr.batch.spark.ordered_frames import KEPT, Ordered
from dotr.batch.spark.session import Batches, crossing, crossing_to_driver, shipped
from dotr.batch.spark.stream import (
    CLOSED,
    INPUT,
    KAFKA,
    OUTPUT,
    RULES_TOLD,
    BatchTrigger,
    Observed,
    ObservedQuery,
    OnBatch,
    State,
    check,
    folder_of,
    ignore_batch,
    states_of,
    topic_of,
    write_topic,
)
from dotr.batch.stream import StreamFolder, StreamOptions, Taken, merged
from dotr.core.deployment import Deployment
from dotr.errors import DataError, DotrError
from dotr.io.decode.parquet import integers
from dotr.io.outputs import unwritable, write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Sink: TypeAlias = Callable[["DataFrame", int], None]
"""Takes the events of a batch, and its number; a batch may come again."""


class Plan(Protocol):
    """How a stream finds events: by part, or in order."""

    def found(self, ends: str | None = None, closing: bool = False) -> DataFrame:
        """slot, events, found, sizes and, in order, what ordered_frames.py adds."""

    def settings(self) -> dict[str, str]:
        """What a query needs when it starts."""

    def end(self, watermark: int, batch: int | None, noted: Collection[int]) -> int | None:
        """The end to note, or None."""


def planned(
    mode: str,
    graphs: Graphs,
    deployment: Deployment,
    options: StreamOptions,
    form: Form,
    stream: str,
    cores: int,
) -> Plan:
    """The plan of a mode."""
    if mode == DISTRIBUTED:
        return Distributed(graphs, deployment, options, form, stream, cores)
    return Ordered(graphs, deployment, options, form, stream)


def frame(
    mode: str, graphs: Graphs, deployment: Deployment, options: StreamOptions, form: Form, cores: int
) -> DataFrame:
    """The events of a stream as a streaming frame. Sets RocksDB as the store of the session's states if parts
    need it. Raises ProgramError, DataError.
    """
    plan = planned(mode, graphs, deployment, options, form, secrets.token_hex(8), cores)
    for name, value in plan.settings().items():
        if "stateStore" in name:
            graphs.frame.sparkSession.conf.set(name, value)
    return rows_of(observed(plan.found(), deployment), form)


def observed(found: DataFrame, deployment: Deployment) -> DataFrame:
    """With the metrics that Spark shows in its progress: events, and facts by rule."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    sizes = f.from_json("sizes", "map<string,bigint>")
    metrics = [f.sum("events").alias("events")]
    metrics += [
        f.sum(f.try_element_at(sizes, f.lit(rule.name))).alias(f"state {rule.name}")
        for rule in deployment.program.rules[:RULES_TOLD]
    ]
    return found.observe(OUTPUT, *metrics)


# ------------------------------------------------------------------ sinks


@dataclass(frozen=True, slots=True)
class WriteLines:
    """Lines, in order, to a file, which is complete or absent; a row of output, or none without a line."""

    path: str

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._written(batches))

    def _written(self, batches: Batches) -> Batches:
        lines = (line.encode() for batch in batches for line in batch.column(0).to_pylist())
        first = next(lines, None)
        if first is not None:
            try:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            except OSError as error:
                raise unwritable(self.path, error) from None
            write_whole(self.path, chain([first], lines))
            yield pa.RecordBatch.from_arrays([integers([0])], names=["done"])


def write_lines(lines: DataFrame, path: Path) -> None:
    """A file with the lines of the only column, in one partition; none without a line."""
    work: Any = shipped(WriteLines(os.path.abspath(path)))
    if not lines.mapInArrow(work, "done bigint").collect():
        path.unlink(missing_ok=True)  # of an attempt with other rules


def lines_in_one(rows: DataFrame, mode: str) -> DataFrame:
    """The lines of a batch (event_rows.py) in one partition: in the engine's order, or sorted."""
    one = rows.coalesce(1)
    return one if mode == ORDERED else one.sortWithinPartitions("time", "rule", "id")


def to_folder(folder: StreamFolder, mode: str) -> Sink:
    """A file for each batch with events."""

    def write(rows: DataFrame, number: int) -> None:
        write_lines(lines_in_one(rows, mode).select("line"), folder.file(number))

    return write


def to_topic(place: str, mode: str) -> Sink:
    """A record for each event."""
    servers, topic = topic_of(place)

    def write(rows: DataFrame, _number: int) -> None:
        records = lines_in_one(rows, mode).selectExpr("id AS key", "left(line, length(line) - 1) AS value")
        write_topic(records, servers, topic)

    return write


def start(
    mode: str,
    graphs: Graphs,
    deployment: Deployment,
    out: str,
    checkpoint: str,
    options: StreamOptions,
    trigger: BatchTrigger,
    on_batch: OnBatch = ignore_batch,
    cores: int | None = None,
) -> FrameStream:
    """Start a query with a folder or a topic of events. `cores`: tasks at once, if Spark does not know.

    Raises UsageError D4127, D4129, D4309, D4312, RefusedError D5001, D5220, DataError D2102.
    """
    check(graphs.frame, checkpoint, out)
    form = Lines(graphs.clock, options.format_)
    sink = None
    if out.startswith(KAFKA):
        topic_of(out, options.format_)
        sink = to_topic(out, mode)
    folder = folder_of(out, checkpoint)
    stream = FrameStream(
        mode, graphs, deployment, form, checkpoint, options, trigger, on_batch, cores, sink, folder
    )
    stream.start()
    return stream


def start_function(
    mode: str,
    graphs: Graphs,
    deployment: Deployment,
    form: Form,
    sink: Sink,
    checkpoint: str,
    options: StreamOptions,
    trigger: BatchTrigger,
    cores: int,
) -> FrameStream:
    """Start a query whose batches a function gets.

    Raises UsageError D4127, D4129, D4309, RefusedError D5220, DataError D2102.
    """
    check(graphs.frame, checkpoint)
    stream = FrameStream(
        mode, graphs, deployment, form, checkpoint, options, trigger, ignore_batch, cores, sink, None
    )
    stream.start()
    return stream


_KEPT = 200
"""How many batches keep their metrics; Spark keeps the progress of 100."""

_LOOK = 1
"""Seconds between two checks whether a query has ended."""


class FrameStream:
    """Owns a running query, its output, and what is known of its parts. `totals`: input and output so far in
    this process; `mode`: how it runs. `sink` None: the folder gets the events, as lines.
    """

    query: ObservedQuery
    reasons: tuple[str, ...] = ()
    """Why it runs in this mode, if that was chosen."""

    def __init__(
        self,
        mode: str,
        graphs: Graphs,
        deployment: Deployment,
        form: Form,
        checkpoint: str,
        options: StreamOptions,
        trigger: BatchTrigger,
        on_batch: OnBatch,
        cores: int | None,
        sink: Sink | None,
        folder: str | None,
    ) -> None:
        failures.install()
        self.mode, self.totals = mode, Taken(-1)
        self._on_batch, self._trigger = on_batch, trigger
        self._error: Exception | None = None
        self._metrics: dict[int, Observed] = {}
        self._stopped = False
        self._graphs, self._deployment, self._form = graphs, deployment, form
        home = plain_path(checkpoint)
        self._spark_state = os.path.abspath(os.path.join(home, "spark"))
        own = os.path.abspath(states_of(home))
        noted: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "cores": parallelism(graphs.frame.sparkSession, cores),
            "clock": graphs.noted_clock,
        }
        self._folder = StreamFolder(deployment, folder, own, options, mode, noted)
        noted = self._folder.noted
        if None not in (noted["clock"], graphs.clock) and noted["clock"] != graphs.noted_clock:
            raise DataError.of(
                "D2102",
                "this stream writes time differently from before",
                hint="give the --time-unit it was started with, or another --checkpoint and --out",
            )
        self._sink = to_folder(self._folder, mode) if sink is None else sink
        places = (("late", options.late), ("letter", options.on_error))
        self._kept = [f"{name}_lines" for name, policy in places if policy == "keep"]
        self._plan = planned(mode, graphs, deployment, options, form, noted["id"], noted["cores"])
        self._sizes: dict[int, dict[str, int]] = {}
        self._watermark = 0
        self._event_time, self._closed, self._open = "", "", False  # of a stream in order
        self._latest: int | None = None
        self._counted: set[tuple[str, int]] = set()
        self._ends = os.path.join(own, "ends")
        os.makedirs(self._ends, exist_ok=True)

    def start(self) -> None:
        """Start the query."""
        self.query = self._started(closing=self._is_closing())

    def _started(self, closing: bool) -> ObservedQuery:
        found = observed(self._plan.found(self._ends, closing), self._deployment)
        writer: Any = found.writeStream.outputMode("append").foreachBatch(self.take)
        writer = writer.option("checkpointLocation", self._spark_state)
        with with_settings(self._graphs.frame.sparkSession, self._plan.settings()):
            query: StreamingQuery = self._trigger.apply(writer).start()
        return ObservedQuery(query, self._metrics)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; returns whether it has ended. A query that runs once then closes its
        last instant, unless it was stopped. Raises the error that ended the query, as dotr's own.
        """
        if not self._ended(timeout):
            return False
        if self._trigger.once and not self._stopped:
            self._close()
        return True

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
            raise self._error or failures.as_own_error(error) from None
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

    # -- its results

    def take(self, found: DataFrame, number: int) -> None:
        """Spark's callback: a batch."""
        try:
            found = found.persist()
            try:
                events = self._take(found, number)
            finally:
                found.unpersist()
        except Exception as error:  # Py4J and a user's function may raise anything
            of_user = self._folder.out is None and failures.own(str(error)) is None
            self._error = error if of_user else failures.as_own_error(error)
            raise RuntimeError(crossing(error) if isinstance(error, DotrError) else str(error)) from error
        self._watermark = self._read_watermark(f"offsets/{number}", "batchWatermarkMs") or self._watermark
        self._observe(number, {OUTPUT: {"watermark": self.state().watermark or None}})
        self._add(Taken(number, events=events))

    def _take(self, found: DataFrame, number: int) -> int:
        events = 0
        for row in found.drop("found", *KEPT).collect():
            events += row.events
            if row.sizes is not None:
                self._sizes[row.slot] = json.loads(row.sizes)
                if self.mode == ORDERED:
                    self._event_time, self._closed, self._open = json.loads(row.times)
        self._sink(rows_of(found, self._form), number)
        for column in self._kept:
            lines = found.where(f"{column} IS NOT NULL").select(column).coalesce(1)
            write_lines(lines, self._folder.kept(KEPT[column], number))
        return events

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

    def state(self) -> State:
        """Its progress, as the operators reported it."""
        sizes = merged(self._sizes.values())
        if isinstance(self._plan, Ordered):
            return State(self._event_time, self._closed, sizes)
        assert isinstance(self._plan, Distributed)
        clock, unit = self._graphs.known_clock, self._graphs.unit
        closed_at = self._plan.event_time.closed(self._watermark) // unit * unit
        return State(
            "" if self._latest is None else clock.text(self._latest * unit),
            clock.text(closed_at) if self._watermark else "",
            sizes,
        )

    def _looked(self) -> None:
        """Add what Spark counted in the batches that have ended."""
        for progress in self.query.recentProgress:
            reported: Any = progress
            name = str(reported["runId"]), int(reported["batchId"])
            observed_ = reported["observedMetrics"] or {}
            if name in self._counted or INPUT not in observed_:
                continue
            self._counted.add(name)
            came, closed = observed_[INPUT].asDict(), observed_[CLOSED].asDict()
            late = int(closed["late"] or 0)
            times = {self._latest, came["event_time"]} - {None}
            self._latest = max(times, default=None)
            refused = int(came["refused"] or 0) + int(closed["refused"] or 0)
            if came["graphs"] or refused or late:
                self._add(Taken(name[1], graphs=int(came["graphs"] or 0), late=late, refused=refused))

    # -- the end

    def _close(self) -> None:
        """Close the last instant; the query has processed the available data, and ended."""
        noted = () if self._open else self._noted_ends()  # graphs may have come beside an end
        end = self._plan.end(self._committed(), self._last_batch(), noted)
        if end is None:
            return
        self._folder.write_state(f"ends/{end}.json", json.dumps({"at": end}).encode())
        self.query = self._started(closing=True)
        self._ended()

    def _is_closing(self) -> bool:
        """Whether an end is written that no batch has processed: the stream was killed while closing."""
        if not isinstance(self._plan, Distributed):
            return False  # the engine sees it
        return any(end > self._committed() + self._plan.delay for end in self._noted_ends())

    def _noted_ends(self) -> set[int]:
        return {int(name.removesuffix(".json")) for name in os.listdir(self._ends) if name.endswith(".json")}

    def _last_batch(self) -> int | None:
        """The number of the last finished batch."""
        folder = os.path.join(self._spark_state, "commits")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _committed(self) -> int:
        """The watermark (ms) after the last finished batch; 0 before the first."""
        last = self._last_batch()
        return 0 if last is None else self._read_watermark(f"commits/{last}", "nextBatchWatermarkMs")

    def _read_watermark(self, name: str, field_: str) -> int:
        """One of Spark's notes: a version, then JSON by line."""
        try:
            with open(os.path.join(self._spark_state, name), encoding="utf-8") as file:
                lines = file.read().splitlines()[1:2]
            return int(json.loads(lines[0]).get(field_, 0)) if lines else 0
        except (OSError, ValueError):
            return 0
