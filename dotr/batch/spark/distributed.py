"""A distributed stream: instants collected by Spark, extracted by all workers, detected part by part.

Place:   runs `dotr stream` and `dotr.spark.stream` if batch/stream.py chooses it.
Method:  withWatermark → group by instant (append: an instant leaves when it is closed) → extract → by part,
         transformWithState → the events of a batch, sorted by (time, rule, id), in a file named by its
         number. The watermark's delay is the lateness and one more, so that the last instant stays open as in
         `dotr run`. The stream is closed by a special row after the last instant, in a folder of the
         checkpoint that is a second source. Errors of workers reach the caller (session.py).
         Bundling: a task makes a bundle (batch/facts.py) of arriving graphs for every slot of instants, and
         sends its bundles when they are large, and at its end. It also counts, so that the JVM does not touch
         single graphs. Every slot gets a row from every task that has graphs: it is called with each batch,
         and knows when to wake.
         Instants: a slot's state is one bundle of all graphs of its open instants, and the time closed so
         far. It is called with every batch that has graphs, and by a timer just after the watermark whenever
         that moves, so that all slots have closed time up to the same point. Graphs for a closed instant are
         late, counted, and dropped.
         Parts: a batch calls every part once with its rows (every task of the extraction sends each a mark),
         and at a timer for the next tick that matters. A live part (batch/stream.py) is used if this process
         holds it in the state that Spark has, recognised by a random token; otherwise it is restored. State
         is two values: the token and the bytes. An abandoned attempt leaves a token that occurs nowhere else.
Why not: one state for all: that would be one engine, with Spark around it.
         groupBy(instant).agg(collect_list): a row of state for each instant (batch/facts.py has the cost).
Bad input: D4311 · D5220 · D5221 · D2018 a graph without a time or its text, if that ends the stream.
"""

from __future__ import annotations

import json
import marshal
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from dotr.batch.choices import DISTRIBUTED
from dotr.batch.facts import (
    APART,
    GRAPHS,
    LETTER,
    REFUSED,
    FactRow,
    Row,
    dealt,
    drained,
    packed_facts,
    unpacked_facts,
)
from dotr.batch.facts import packed_bundle as packed
from dotr.batch.log import plain_path
from dotr.batch.spark import session as failures
from dotr.batch.spark import session as shipped_files
from dotr.batch.spark.frame_stages import Extract, parallelism
from dotr.batch.spark.session import Batches, Work, crossing, crossing_to_driver, shipped
from dotr.batch.spark.stream import (
    CLOSED,
    INPUT,
    OUTPUT,
    RULES_TOLD,
    BatchTrigger,
    OnBatch,
    Running,
    Send,
    State,
    check,
    folder_of,
    ignore_batch,
    sender,
    states_of,
)
from dotr.batch.stream import (
    LivePart,
    StreamFolder,
    StreamOptions,
    Taken,
    batch_name,
    live_parts,
    marks_of,
    merged,
    parts_of,
    slots,
    stream_layout,
)
from dotr.batch.work import Shipped, Treatment, make_job, ship
from dotr.collecting import rarely
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.errors import DataError, DotrError, RefusedError
from dotr.events import Clock, Time
from dotr.io.decode.parquet import column, missing
from dotr.io.events import formatter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class EventTime(Struct, frozen=True):
    """The stream's time, in µs, as Spark's event time: `shift` µs later, as Spark drops times up to 1970."""

    shift: Time

    def closed(self, watermark: int) -> Time:
        """The last of the stream's times that a watermark of Spark, in ms, closes."""
        return watermark * 1000 - self.shift

    def timer(self, time: Time) -> int:
        """The first watermark, in ms, that closes `time`."""
        return -((-time - self.shift) // 1000)


FACT_COLUMNS = "slot bigint, facts binary, late bigint, refused bigint"
"""A part's facts of many instants; or, if `slot` is null, counts of what was skipped."""


class InstantTask(Struct, frozen=True):
    """The operator's arguments. `slots`: part → what Spark groups its facts by."""

    extract: Extract
    slots: Mapping[int, int]
    event_time: EventTime


class InstantProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: InstantTask) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._open = handle.getValueState("open", "closed bigint, bundle binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the rows of one slot."""
        found = [bundle for frame in rows for bundle in frame["bundle"].tolist() if bundle]
        yield self._called(found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the watermark has moved without rows."""
        yield self._called([], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _called(self, bundles: Iterable[bytes], watermark: int) -> Any:
        try:
            with rarely():
                return self._taken(bundles, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(self, bundles: Iterable[bytes], watermark: int) -> Any:
        task = self._task
        unit = task.extract.unit
        closed = task.event_time.closed(watermark) // unit
        before, known = None, b""
        if self._open.exists():
            before, content = self._open.get()
            known = bytes(content)
        found = drained([known, *bundles], before, closed)
        self._open.update((closed, packed(found.open)))
        self._wake(watermark)
        rows: list[FactRow] = []
        refused = 0
        for row in task.extract.rows(found.instants):
            if row[0] > APART:
                rows.append(row)
            else:
                refused += row[0] in (REFUSED, LETTER)
        if found.instants:
            first, last = found.instants[0][0], found.instants[-1][0]
            rows += marks_of(task.slots, first * unit, last * unit)
        return self._frame(packed_facts(rows), found.late, refused)

    def _wake(self, watermark: int) -> None:
        """One timer, after the watermark."""
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(watermark + 1)

    def _frame(self, parts: Mapping[int, bytes], late: int, refused: int) -> Any:
        none = [0] * len(parts)
        slots = [self._task.slots[part] for part in parts]
        return pd.DataFrame(
            {
                "slot": pd.array([*slots, None], dtype="Int64"),
                "facts": [*parts.values(), None],
                "late": [*none, late],
                "refused": [*none, refused],
            }
        )


OUT_COLUMNS = "part bigint, events bigint, found binary, sizes string"
"""The result of one part: the number of events, the events (`unpacked_events`), and, as JSON, how many facts
it stores by rule.
"""

Found = tuple[Time, str, str, str]
"""(time, rule, id, line) of an event."""

_MARSHAL = 4


class Task(Struct, frozen=True):
    """The operator's arguments. `slots`: what Spark groups by → part. `closing`: the stream ends with this
    run, and no tick after its last instant runs.
    """

    stream: str
    shipped: Shipped
    format_: str
    slots: Mapping[int, int]
    event_time: EventTime
    closing: bool


class PartProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._token = handle.getValueState("token", "token bigint")
        self._content = handle.getValueState("content", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the facts of one part."""
        found: list[Row] = []
        for frame in rows:
            for content in frame["facts"].tolist():
                found += unpacked_facts(content)
        yield self._take(int(key[0]), found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: a tick is closed for which the part may not have been called."""
        yield self._take(int(key[0]), [], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _take(self, slot: int, rows: Sequence[Row], watermark: int) -> Any:
        try:
            with rarely():
                return self._taken(self._task.slots[slot], rows, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(self, number: int, rows: Sequence[Row], watermark: int) -> Any:
        task = self._task
        parts = live_parts(task.stream, task.shipped)
        token = int(self._token.get()[0]) if self._token.exists() else None
        part = parts.taken(number, token)
        if part is None:
            part = parts.fresh(number)
            part.restore(bytes(self._content.get()[0]))
        events = part.take(rows, None if task.closing else task.event_time.closed(watermark))
        new = secrets.randbits(62)
        self._content.update((part.snapshot(),))
        self._token.update((new,))
        self._wake(part)
        parts.give_back(number, new, part)
        job = task.shipped.worker().job
        _, write = formatter(task.format_, job.program.prefixes, job.program.rules)
        found = [(event.time, event.rule, event.id, write([event], job.clock)) for event in events]
        return pd.DataFrame(
            {
                "part": [number],
                "events": [len(found)],
                "found": [marshal.dumps(found, _MARSHAL)],
                "sizes": [json.dumps(part.sizes())],
            }
        )

    def _wake(self, part: LivePart) -> None:
        """One timer, for the next tick that matters."""
        due = None if self._task.closing else part.due()
        wanted = None if due is None else self._task.event_time.timer(due)
        known = list(self._handle.listTimers()) if due is not None else []
        for timer in known:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in known:
            self._handle.registerTimer(wanted)


def unpacked_events(content: bytes) -> list[Found]:
    """The events of a part."""
    return marshal.loads(content)  # type: ignore[no-any-return]  # noqa: S302  # plain values of our own


COLUMNS = "slot bigint, bundle binary, last bigint, graphs bigint, refused bigint"
"""`last`: the greatest time of the task's graphs, as the stream writes it. Of a task, one row alone counts
graphs.
"""

_SCHEMA = pa.schema(
    [("slot", pa.int64()), ("bundle", pa.binary())]
    + [(name, pa.int64()) for name in ("last", "graphs", "refused")]
)
_MUCH = 32_000_000
"""Approximate bytes of buffered graphs."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """(time, graph), optionally with a note as in read.py, to COLUMNS. `slots`: what Spark groups by.
    `read` makes such rows if the source has documents. `forgiving`: a row without a time or a graph is
    skipped and counted.
    """

    slots: Sequence[int]
    forgiving: bool
    read: Work | None = None

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._bundles(batches if self.read is None else self.read(batches)))

    def _bundles(self, batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        size = refused = 0
        for batch in batches:
            if batch.num_columns > 2:
                notes = batch.column(2).drop_null().to_pylist()
                refused += sum(len(json.loads(note)["letters"]) for note in notes)
                batch = batch.filter(batch.column(0).is_valid())  # a note is not a graph
            whole = self._whole(batch.select([0, 1]))
            refused += batch.num_rows - whole.num_rows
            waiting.append(whole.cast(GRAPHS))
            size += whole.nbytes
            if size > _MUCH:
                yield self._dealt(waiting, refused)
                waiting, size, refused = [], 0, 0
        if refused or any(batch.num_rows for batch in waiting):
            yield self._dealt(waiting, refused)

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with both a time and a graph. Raises DataError D2018 if all must have both."""
        for number, name in enumerate(("time", "graph")):
            if batch.column(number).null_count:
                if not self.forgiving:
                    raise missing("the stream", name)
                batch = batch.filter(batch.column(number).is_valid())
        return batch

    def _dealt(self, batches: Sequence[pa.RecordBatch], refused: int) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches, GRAPHS).combine_chunks()
        count = len(self.slots)
        rest = [0] * (count - 1)
        last = pc.max(table.column(0)).as_py()
        values: list[Sequence[Any]] = [
            self.slots,
            [packed(some) for some in dealt(table, count)],
            [last] * count,
            [table.num_rows, *rest],
            [refused, *rest],
        ]
        arrays = [column(found, field.type) for found, field in zip(values, _SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


_SHIFT: Time = 10**17
"""µs: integer times may be 0 or less, and Spark drops times up to 1970."""

_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_OPERATORS = 2
"""The version of Spark's query and its states. Version 1 kept a row of state for every instant."""


@dataclass(frozen=True, slots=True)
class Graphs:
    """A streaming frame (time: bigint in the clock's unit, or µs; graph; optionally note, as in
    read.py), or the input of `read`, which makes such rows. `base`: None if dotr wrote the graphs.
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
        program = deployment.program
        self._rules = [rule.name for rule in program.rules]
        self._step = (program.lars.step or graphs.clock.unit) if program.lars.rules else 0
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
        last = self._covering(last)
        end = last + self._delay + (0 if exact else 1)
        self._folder.write_state(f"ends/{end}.json", json.dumps({"at": end}).encode())
        self.query = self.with_observed(self._started(closing=True))
        self._ended()

    def _covering(self, last: int) -> int:
        """The end, in ms, of the point of LARS rules at which what happens at `last` is visible."""
        step = self._step
        if not step:
            return last
        time = -(-self._event_time.closed(last) // step) * step
        return max(last, self._event_time.timer(time))

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
