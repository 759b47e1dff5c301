"""A distributed stream: instants collected by Spark, extracted by all workers, detected part by part.

Place:   runs `dotr stream` and `dotr.spark.stream` if stream_modes.py chooses it.
Method:  withWatermark → group by instant (append: an instant leaves when it is closed) → extract → by part,
         transformWithState (part_processor.py) → the events of a batch, sorted by (time, rule, id), in a file
         named by its number. The watermark's delay is the lateness and one more, so that the last instant
         stays open as in `dotr run`. The stream is closed by a special row after the last instant, in a
         folder of the checkpoint that is a second source.
Why not: one state for all: that would be one engine, with Spark around it.
Bad input: D4311 · D5220 · D5221, and errors of workers (failures.py).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dotr.batch.extracting import Treatment
from dotr.batch.job import make_job, ship
from dotr.batch.live_parts import merged
from dotr.batch.locations import plain_path
from dotr.batch.spark import failures, shipped_files
from dotr.batch.spark.bundling import COLUMNS, Bundle
from dotr.batch.spark.event_time import EventTime
from dotr.batch.spark.failures import Work, crossing, shipped
from dotr.batch.spark.frame_stages import Extract
from dotr.batch.spark.instant_processor import FACT_COLUMNS, InstantProcessor, InstantTask
from dotr.batch.spark.kafka_out import Send, sender
from dotr.batch.spark.part_processor import OUT_COLUMNS, Found, PartProcessor, Task, unpacked_events
from dotr.batch.spark.placing import parallelism
from dotr.batch.spark.running import (
    CLOSED,
    INPUT,
    OUTPUT,
    RULES_TOLD,
    BatchTrigger,
    OnBatch,
    Running,
    State,
    ignore_batch,
)
from dotr.batch.spark.streams import check, folder_of, states_of
from dotr.batch.stream_folder import (
    DISTRIBUTED,
    StreamFolder,
    StreamOptions,
    Taken,
    batch_name,
)
from dotr.batch.stream_modes import parts_of, slots, stream_layout
from dotr.core.deployment import Deployment
from dotr.core.time_units import check_units
from dotr.errors import DataError, DotrError, RefusedError
from dotr.events import Clock, Time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SHIFT: Time = 10**17
"""µs: integer times may be 0 or less, and Spark drops times up to 1970."""

_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_OPERATORS = 2
"""The version of Spark's query and its states. Version 1 kept a row of state for every instant."""


@dataclass(frozen=True, slots=True)
class Graphs:
    """A streaming frame (time: bigint in the clock's unit, or µs; graph; optionally note, as in
    read_tasks.py), or the input of `read`, which makes such rows. `base`: None if dotr wrote the graphs.
    """

    frame: DataFrame
    clock: Clock
    base: str | None
    read: Work | None = None

    @property
    def unit(self) -> int:
        """µs."""
        return self.clock.unit if self.clock.integer else 1


def start(
    graphs: Graphs,
    deployment: Deployment,
    out: str,
    checkpoint: str,
    options: StreamOptions,
    trigger: BatchTrigger,
    on_batch: OnBatch = ignore_batch,
    cores: int | None = None,
) -> DistributedStream:
    """Start a query over a streaming frame. `cores`: tasks at once, if Spark does not know.

    Raises UsageError D4127, D4129, D4309, RefusedError D5001, D5220, DataError D2102.
    """
    check(graphs.frame, out, checkpoint)
    failures.install()
    send = sender(graphs.frame.sparkSession, out, options.format_)
    places = folder_of(out, checkpoint), plain_path(checkpoint)
    stream = DistributedStream(graphs, deployment, *places, options, trigger, on_batch, cores, send)
    stream.start()
    return stream


class DistributedStream(Running):
    """Owns a running query, its output, and what is known of its parts."""

    mode = DISTRIBUTED

    def __init__(
        self,
        graphs: Graphs,
        deployment: Deployment,
        out: str,
        checkpoint: str,
        options: StreamOptions,
        trigger: BatchTrigger,
        on_batch: OnBatch = ignore_batch,
        cores: int | None = None,
        send: Send | None = None,
    ) -> None:
        super().__init__(on_batch, trigger)
        check_units(deployment.program, graphs.clock)
        self._graphs, self._options = graphs, options
        self._rules = [rule.name for rule in deployment.program.rules]
        self._spark_state = os.path.abspath(os.path.join(checkpoint, "spark"))
        self._own = os.path.abspath(states_of(checkpoint))
        clock = graphs.clock
        noted: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "cores": parallelism(graphs.frame.sparkSession, cores),
            "clock": [clock.integer, clock.unit],
            "operators": _OPERATORS,
        }
        self._folder = StreamFolder(deployment, out, self._own, options, DISTRIBUTED, noted, send)
        noted = self._folder.noted
        if noted.get("operators") != _OPERATORS:
            raise _other_operators(self._own)
        if noted["clock"] != [clock.integer, clock.unit]:
            raise DataError.of(
                "D2102",
                "this stream writes time differently from before",
                hint="give the --time-unit it was started with, or another --checkpoint and --out",
            )
        self._id, self._cores = noted["id"], noted["cores"]
        layout = stream_layout(deployment, self._cores)
        treatment = Treatment(forgiving=options.on_error == "skip", shared=False)
        place = shipped_files.place(graphs.frame.sparkSession)
        self._job = ship(make_job(deployment, clock, layout, treatment, place=place))
        self._slots = slots(parts_of(layout), self._cores)
        self._gathered = tuple(slots(range(self._cores), self._cores).values())
        self._event_time = EventTime(_SHIFT if clock.integer else 0)
        self._delay = -(-options.lateness // 1000) + 1
        self._sizes: dict[int, dict[str, int]] = {}
        self._watermark = 0
        self._latest: int | None = None
        self._counted: set[tuple[str, int]] = set()
        self._ends = os.path.join(self._own, "ends")
        os.makedirs(self._ends, exist_ok=True)

    def start(self) -> None:
        self.query = self.with_observed(self._started(closing=self._is_closing()))

    # -- the query

    def _started(self, closing: bool) -> StreamingQuery:
        spark = self._graphs.frame.sparkSession
        task = Task(
            self._id,
            self._job,
            self._options.format_,
            {slot: part for part, slot in self._slots.items()},
            self._event_time,
            closing,
        )
        events = self._facts().groupBy("slot")
        found = events.transformWithStateInPandas(PartProcessor(task), OUT_COLUMNS, "Append", "EventTime")
        writer = self._observed(found).writeStream.outputMode("append").foreachBatch(self.take)
        with _settings(spark, self._cores):
            return self._trigger.apply(writer.option("checkpointLocation", self._spark_state)).start()  # type: ignore[no-any-return]  # the writer is untyped

    def _facts(self) -> DataFrame:
        """Facts by part, of the instants that the watermark closes."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

        graphs = self._graphs
        bundles = self._bundles()
        bundles = bundles.observe(
            INPUT,
            f.sum("graphs").alias("graphs"),
            f.max("last").alias("event_time"),
            f.sum("refused").alias("refused"),
        )
        at = f.timestamp_micros(f.col("last") * f.lit(graphs.unit) + f.lit(self._event_time.shift))
        ends = graphs.frame.sparkSession.readStream.schema("at bigint").json(self._ends)
        numbers = f.explode(f.array(*map(f.lit, self._gathered)))
        rows = bundles.select(at.alias("at"), "slot", "bundle").unionByName(
            ends.select(
                f.timestamp_millis("at").alias("at"),
                numbers.alias("slot"),
                f.lit(None).cast("binary").alias("bundle"),
            )
        )
        closed = rows.withWatermark("at", f"{self._delay} milliseconds").select("slot", "bundle")
        task = InstantTask(Extract(self._job, graphs.unit, graphs.base), self._slots, self._event_time)
        facts = closed.groupBy("slot").transformWithStateInPandas(
            InstantProcessor(task), FACT_COLUMNS, "Append", "EventTime"
        )
        facts = facts.observe(CLOSED, f.sum("late").alias("late"), f.sum("refused").alias("refused"))
        return facts.where("slot IS NOT NULL").select("slot", "facts")

    def _bundles(self) -> DataFrame:
        graphs = self._graphs
        work = Bundle(self._gathered, self._options.on_error == "skip", graphs.read)
        return graphs.frame.mapInArrow(shipped(work), COLUMNS)

    def _observed(self, found: DataFrame) -> DataFrame:
        """The output, with the metrics that Spark shows in its progress: events, and facts by rule."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

        sizes = f.from_json("sizes", "map<string,bigint>")
        metrics = [f.sum("events").alias("events")]
        metrics += [
            f.sum(f.try_element_at(sizes, f.lit(rule))).alias(f"state {rule}")
            for rule in self._rules[:RULES_TOLD]
        ]
        return found.observe(OUTPUT, *metrics)

    # -- its results

    def take(self, frame: DataFrame, number: int) -> None:
        """Spark's callback: the events of a batch."""
        events: list[Found] = []
        for row in frame.select("part", "found", "sizes").collect():
            events += unpacked_events(row.found)
            self._sizes[row.part] = json.loads(row.sizes)
        events.sort()
        try:
            self._folder.write_batch(batch_name(number), "".join([event[3] for event in events]))
        except DotrError as error:
            self._error = error
            raise RuntimeError(crossing(error)) from None
        self._watermark = self._read_watermark(f"offsets/{number}", "batchWatermarkMs") or self._watermark
        self._observe(number, {OUTPUT: {"watermark": self.state().watermark or None}})
        self._add(Taken(number, events=len(events)))

    def state(self) -> State:
        """As reported by the parts."""
        clock, unit = self._graphs.clock, self._graphs.unit
        closed = self._event_time.closed(self._watermark) // unit * unit
        return State(
            "" if self._latest is None else clock.text(self._latest * unit),
            clock.text(closed) if self._watermark else "",
            merged(self._sizes.values()),
        )

    def _looked(self) -> None:
        """Add what Spark counted in the batches that have ended."""
        for progress in self.query.recentProgress:
            reported: Any = progress
            name = str(reported["runId"]), int(reported["batchId"])
            observed = reported["observedMetrics"] or {}
            if name in self._counted or INPUT not in observed:
                continue
            self._counted.add(name)
            came, closed = observed[INPUT].asDict(), observed[CLOSED].asDict()
            late = int(closed["late"] or 0)
            times = {self._latest, came["event_time"]} - {None}
            self._latest = max(times, default=None)
            refused = int(came["refused"] or 0) + int(closed["refused"] or 0)
            if came["graphs"] or refused or late:
                self._add(Taken(name[1], graphs=int(came["graphs"] or 0), late=late, refused=refused))

    # -- the end

    def _close(self) -> None:
        watermark = self._committed()
        last = watermark + self._delay
        if not watermark or last in self._noted_ends():
            return  # no data, or the end was last
        exact = self._graphs.clock.integer and self._graphs.unit % 1000 == 0
        end = last + self._delay + (0 if exact else 1)
        self._folder.write_state(f"ends/{end}.json", json.dumps({"at": end}).encode())
        self.query = self.with_observed(self._started(closing=True))
        self._ended()

    def _is_closing(self) -> bool:
        """Whether an end is written that no batch has processed: the stream was killed while closing."""
        return any(end > self._committed() + self._delay for end in self._noted_ends())

    def _noted_ends(self) -> set[int]:
        return {int(name.removesuffix(".json")) for name in os.listdir(self._ends) if name.endswith(".json")}

    def _committed(self) -> int:
        """The watermark (ms) after the last finished batch; 0 before the first."""
        folder = os.path.join(self._spark_state, "commits")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        last = max((int(name) for name in names if name.isdigit()), default=None)
        return 0 if last is None else self._read_watermark(f"commits/{last}", "nextBatchWatermarkMs")

    def _read_watermark(self, name: str, field_: str) -> int:
        """One of Spark's notes: a version, then JSON by line."""
        try:
            with open(os.path.join(self._spark_state, name), encoding="utf-8") as file:
                lines = file.read().splitlines()[1:2]
            return int(json.loads(lines[0]).get(field_, 0)) if lines else 0
        except (OSError, ValueError):
            return 0


def _other_operators(place: str) -> RefusedError:
    return RefusedError.of(
        "D5220",
        "the checkpoint belongs to the query of another release of dotr",
        place=place,
        notes=("Spark keeps what is open by operator, and the operators differ",),
        hint="end the stream with the release that began it (`--once`), then start with another "
        "--checkpoint and --out",
    )


def quiet(spark: SparkSession) -> None:
    """Suppress the messages that Spark's Python workers print; their errors are exceptions, and Spark's log
    is written as before.
    """
    java: Any = spark.sparkContext._jvm
    java.java.lang.System.setErr(java.java.io.PrintStream(java.java.io.OutputStream.nullOutputStream()))


@contextmanager
def _settings(spark: SparkSession, cores: int) -> Iterator[None]:
    """Settings that a query takes when it starts; the session's own are restored afterwards."""
    wanted = {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": _ROCKS,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
