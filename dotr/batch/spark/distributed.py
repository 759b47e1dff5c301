"""A distributed stream: instants collected by Spark, extracted by all workers, detected part by part.

Place:   a plan of a streaming frame (stream_frames.py), if batch/stream.py chooses it.
Method:  withWatermark → group by instant (append: an instant leaves when it is closed) → extract → by place
         of parts, transformWithState → events as bytes (event_rows.py). The watermark's delay is the lateness
         and one more, so that the last instant stays open as in `dotr run`. The stream is closed by a special
         row after the last instant, in a folder that is a second source. Errors of workers reach the caller
         (session.py).
         Bundling: a task makes a bundle (batch/facts.py) of arriving graphs for every slot of instants, and
         sends its bundles when they are large, and at its end. It also counts, so that the JVM does not touch
         single graphs. Every slot gets a row from every task that has graphs: it is called with each batch,
         and knows when to wake.
         Instants: a slot's state is one bundle of all graphs of its open instants, and the time closed so
         far. It is called with every batch that has graphs, and by a timer just after the watermark whenever
         that moves, so that all slots have closed time up to the same point. Graphs for a closed instant are
         late, counted, and dropped. It has what the checkpoint belongs to, and refuses other rules before
         any part is called: a frame does not know its checkpoint earlier.
         Parts: a slot has those of one bucket of keys, or all without keys (batch/stream.py). A batch calls
         every slot once with its rows (every task of the extraction sends each part a mark), and at a timer
         for the next tick that matters. A live slot is used if this process
         holds it in the state that Spark has, recognised by a random token; otherwise it is restored. State
         is two values: the token and the bytes. An abandoned attempt leaves a token that occurs nowhere else.
Why not: one state for all: that would be one engine, with Spark around it.
         groupBy(instant).agg(collect_list): a row of state for each instant (batch/facts.py has the cost).
         A slot for each part: with other rules groups have other numbers, and states other keys.
Bad input: D5220 · D5221 · D2018 a graph without a time or its text, if that ends the stream.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from dotr.batch.choices import DISTRIBUTED
from dotr.batch.facts import APART, LETTER, REFUSED, FactRow
from dotr.batch.spark import session as shipped_files
from dotr.batch.spark.event_rows import Form, packed_events
from dotr.batch.spark.frame_stages import Extract
from dotr.batch.spark.session import Batches, Work, crossing, crossing_to_driver, shipped
from dotr.batch.spark.stream import CLOSED, INPUT
from dotr.batch.spark.stream_bundles import GRAPHS, Row, dealt, drained, packed_facts, unpacked_facts
from dotr.batch.spark.stream_bundles import packed_bundle as packed
from dotr.batch.stream import (
    LiveSlot,
    StreamOptions,
    compare,
    live_slots,
    marks_of,
    meta_of,
    places,
    slots,
    stream_layout,
)
from dotr.batch.work import Shipped, Treatment, make_job, ship
from dotr.collecting import rarely
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.errors import DotrError
from dotr.events import Clock, Time
from dotr.io.decode.parquet import column, missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EventTime(Struct, frozen=True):
    """The stream's time, in µs, as Spark's event time: `shift` µs later, as Spark drops times up to 1970."""

    shift: Time

    def closed(self, watermark: int) -> Time:
        """The last of the stream's times that a watermark of Spark, in ms, closes."""
        return watermark * 1000 - self.shift

    def timer(self, time: Time) -> int:
        """The first watermark, in ms, that closes `time`."""
        return -((-time - self.shift) // 1000)


FACT_COLUMNS = "slot bigint, part bigint, facts binary, late bigint, refused bigint"
"""A part's facts of many instants; or, if `slot` is null, counts of what was skipped."""

_NO_PART = -1


class InstantTask(Struct, frozen=True):
    """The operator's arguments. `slots`: part → what Spark groups its facts by. `meta`: what the checkpoint
    belongs to (JSON); `changing`: one of other rules goes on. `empty`: what Spark groups by without a part:
    when the rules have changed it is called once, so that it forgets parts that it had.
    """

    extract: Extract
    slots: Mapping[int, int]
    event_time: EventTime
    meta: bytes
    changing: bool
    empty: tuple[int, ...]


class InstantProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: InstantTask) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._open = handle.getValueState("open", "closed bigint, bundle binary")
        self._meta = handle.getValueState("meta", "meta binary")

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
        changed = False
        known_meta = bytes(self._meta.get()[0]) if self._meta.exists() else None
        if known_meta != task.meta:
            if known_meta is not None:
                changed = compare(json.loads(known_meta), json.loads(task.meta), "", task.changing)
            self._meta.update((task.meta,))
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
        return self._frame(packed_facts(rows), found.late, refused, task.empty if changed else ())

    def _wake(self, watermark: int) -> None:
        """One timer, after the watermark."""
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(watermark + 1)

    def _frame(self, parts: Mapping[int, bytes], late: int, refused: int, empty: Sequence[int]) -> Any:
        none = [0] * (len(parts) + len(empty))
        slots = [self._task.slots[part] for part in parts]
        return pd.DataFrame(
            {
                "slot": pd.array([*slots, *empty, None], dtype="Int64"),
                "part": [*parts, *[_NO_PART] * len(empty), _NO_PART],
                "facts": [*parts.values(), *[None] * len(empty), None],
                "late": [*none, late],
                "refused": [*none, refused],
            }
        )


FOUND = "slot bigint, events bigint, found binary, sizes string"
"""What a slot found: some events and their number (event_rows.py), in several rows; the last one has, as
JSON, how many facts it stores by rule.
"""


class Task(Struct, frozen=True):
    """The operator's arguments. `places`: what Spark groups by → place. `closing`: the stream ends with this
    run, and no tick after its last instant runs.
    """

    stream: str
    shipped: Shipped
    form: Form
    cores: int
    places: Mapping[int, int]
    event_time: EventTime
    closing: bool


class SlotProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._token = handle.getValueState("token", "token bigint")
        self._content = handle.getValueState("content", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the facts of one slot."""
        found: dict[int, list[Row]] = {}
        for frame in rows:
            for part, content in zip(frame["part"].tolist(), frame["facts"].tolist(), strict=True):
                if part != _NO_PART:
                    found.setdefault(part, []).extend(unpacked_facts(content))
        return self._take(int(key[0]), found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: a tick is closed for which the slot may not have been called."""
        return self._take(int(key[0]), {}, timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _take(self, slot: int, rows: Mapping[int, Sequence[Row]], watermark: int) -> Iterator[Any]:
        try:
            with rarely():
                yield from self._taken(self._task.places[slot], slot, rows, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(
        self, place: int, number: int, rows: Mapping[int, Sequence[Row]], watermark: int
    ) -> Iterator[Any]:
        task = self._task
        live = live_slots(task.stream, task.shipped, task.cores)
        token = int(self._token.get()[0]) if self._token.exists() else None
        slot = live.taken(place, token)
        if slot is None:
            slot = live.fresh(place)
            slot.restore(bytes(self._content.get()[0]))
        events = slot.take(rows, None if task.closing else task.event_time.closed(watermark))
        for count, content in packed_events(events, task.form.opened(task.shipped.worker().job.program)):
            yield _found(number, count, content, None)
        new = secrets.randbits(62)
        self._content.update((slot.snapshot(),))
        self._token.update((new,))
        self._wake(slot)
        live.give_back(place, new, slot)
        yield _found(number, 0, None, json.dumps(slot.sizes()))

    def _wake(self, slot: LiveSlot) -> None:
        """One timer, for the next tick that matters."""
        due = None if self._task.closing else slot.due()
        wanted = None if due is None else self._task.event_time.timer(due)
        known = list(self._handle.listTimers()) if due is not None else []
        for timer in known:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in known:
            self._handle.registerTimer(wanted)


def _found(slot: int, events: int, content: bytes | None, sizes: str | None) -> Any:
    return pd.DataFrame({"slot": [slot], "events": [events], "found": [content], "sizes": [sizes]})


COLUMNS = "slot bigint, bundle binary, last bigint, graphs bigint, refused bigint, note string"
"""`last`: the greatest time of the task's graphs, as the stream writes it. Of a task, one row alone counts
graphs, and has the task's note as in read.py.
"""

_SCHEMA = pa.schema(
    [("slot", pa.int64()), ("bundle", pa.binary())]
    + [(name, pa.int64()) for name in ("last", "graphs", "refused")]
    + [("note", pa.string())]
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
        noted, several = None, False
        for batch in batches:
            if batch.num_columns > 2:
                for note in batch.column(2).drop_null().to_pylist():
                    refused += len(json.loads(note)["letters"])
                    noted = note  # a task has one, at its end
                batch = batch.filter(batch.column(0).is_valid())  # a note is not a graph
            whole = self._whole(batch.select([0, 1]))
            refused += batch.num_rows - whole.num_rows
            waiting.append(whole.cast(GRAPHS))
            size += whole.nbytes
            if size > _MUCH:
                yield self._dealt(waiting, refused, noted)
                waiting, size, refused, noted, several = [], 0, 0, None, True
        if refused or (several and noted) or any(batch.num_rows for batch in waiting):
            yield self._dealt(waiting, refused, noted)

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with both a time and a graph. Raises DataError D2018 if all must have both."""
        for number, name in enumerate(("time", "graph")):
            if batch.column(number).null_count:
                if not self.forgiving:
                    raise missing("the stream", name)
                batch = batch.filter(batch.column(number).is_valid())
        return batch

    def _dealt(self, batches: Sequence[pa.RecordBatch], refused: int, note: str | None) -> pa.RecordBatch:
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
            [note, *[None] * (count - 1)],
        ]
        arrays = [column(found, field.type) for found, field in zip(values, _SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


_SHIFT: Time = 10**17
"""µs: integer times may be 0 or less, and Spark drops times up to 1970."""

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class Graphs:
    """A streaming frame (time: bigint in the clock's unit, or µs; graph; optionally note, as in
    read.py), or the input of `read`, which makes such rows. `base`: None if dotr wrote the graphs. `clock`:
    None if no graph has come yet that shows how times are written; a stream in order takes that of the first.
    """

    frame: DataFrame
    clock: Clock | None
    base: str | None
    read: Work | None = None

    @property
    def unit(self) -> int:
        """µs."""
        return self.clock.unit if self.clock is not None and self.clock.integer else 1

    @property
    def known_clock(self) -> Clock:
        """The clock of a stream for which it has to be known."""
        assert self.clock is not None
        return self.clock

    @property
    def noted_clock(self) -> list[Any] | None:
        """The clock as plain values."""
        return None if self.clock is None else [self.clock.integer, self.clock.unit]


class Distributed:
    """Owns the plan of a stream by part. `id`: its unique name; `cores`: tasks at once, by which parts are
    made; `ends`: the folder of the ends of the stream, a second source.

    Raises ProgramError, DataError of the program and its background.
    """

    mode = DISTRIBUTED

    def __init__(
        self,
        graphs: Graphs,
        deployment: Deployment,
        options: StreamOptions,
        form: Form,
        stream: str,
        cores: int,
    ) -> None:
        check_units(deployment.program, graphs.known_clock)
        self._graphs, self._options, self._form = graphs, options, form
        self._id, self._cores = stream, cores
        program = deployment.program
        self._step = (program.lars.step or graphs.known_clock.unit) if program.lars.rules else 0
        layout = stream_layout(deployment, cores)
        self._meta = {
            **meta_of(deployment, options, DISTRIBUTED),
            "cores": cores,
            "clock": graphs.noted_clock,
        }
        treatment = Treatment(forgiving=options.on_error != "fail", shared=False)
        place = shipped_files.place(graphs.frame.sparkSession)
        self._job = ship(make_job(deployment, graphs.known_clock, layout, treatment, place=place))
        self._places = places(layout, cores)
        self._slots = slots(self._places, cores)
        self._gathered = tuple(slots(range(cores), cores).values())
        self.event_time = EventTime(_SHIFT if graphs.known_clock.integer else 0)
        self.delay = -(-options.lateness // 1000) + 1
        """ms."""

    def found(self, ends: str | None = None, closing: bool = False) -> DataFrame:
        """What the parts find, as FOUND."""
        slots_ = SlotProcessor(self.slot_task(closing))
        facts = self._facts(ends).groupBy("slot")
        return facts.transformWithStateInPandas(slots_, FOUND, "Append", "EventTime")

    def instant_task(self) -> InstantTask:
        """The arguments of the operator that closes instants."""
        return InstantTask(
            Extract(self._job, self._graphs.unit, self._graphs.base),
            {part: self._slots[place] for place, parts in self._places.items() for part in parts},
            self.event_time,
            json.dumps(self._meta, sort_keys=True).encode(),
            self._options.change_rules,
            tuple(self._slots[place] for place, parts in self._places.items() if not parts),
        )

    def slot_task(self, closing: bool = False) -> Task:
        """The arguments of the operator that has the parts."""
        return Task(
            self._id,
            self._job,
            self._form,
            self._cores,
            {slot: place for place, slot in self._slots.items()},
            self.event_time,
            closing,
        )

    def _facts(self, ends: str | None) -> DataFrame:
        """Facts by part, of the instants that the watermark closes."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

        graphs = self._graphs
        bundles = bundled(graphs, self._gathered, self._options.on_error != "fail")
        at = f.timestamp_micros(f.col("last") * f.lit(graphs.unit) + f.lit(self.event_time.shift))
        rows = bundles.select(at.alias("at"), "slot", "bundle")
        if ends is not None:
            rows = rows.unionByName(ends_of(graphs, ends, self._gathered).drop("note"))
        closed = rows.withWatermark("at", f"{self.delay} milliseconds").select("slot", "bundle")
        instants = InstantProcessor(self.instant_task())
        facts = closed.groupBy("slot").transformWithStateInPandas(
            instants, FACT_COLUMNS, "Append", "EventTime"
        )
        facts = facts.observe(CLOSED, f.sum("late").alias("late"), f.sum("refused").alias("refused"))
        return facts.where("slot IS NOT NULL").select("slot", "part", "facts")

    def settings(self) -> dict[str, str]:
        """What a query needs when it starts."""
        return {
            "spark.sql.shuffle.partitions": str(self._cores),
            "spark.sql.streaming.stateStore.providerClass": ROCKS,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }

    # -- the end

    def end(self, watermark: int, _batch: int | None, noted: Collection[int]) -> int | None:
        """The end to note after a query that processed the available data; None if there is nothing to close.
        `watermark`: that of the last batch, in ms.
        """
        last = watermark + self.delay
        if not watermark or last in noted:
            return None  # no data, or the end was last
        exact = self._graphs.known_clock.integer and self._graphs.unit % 1000 == 0
        return self._covering(last) + self.delay + (0 if exact else 1)

    def _covering(self, last: int) -> int:
        """The end, in ms, of the point of LARS rules at which what happens at `last` is visible."""
        step = self._step
        if not step:
            return last
        time = -(-self.event_time.closed(last) // step) * step
        return max(last, self.event_time.timer(time))


def bundled(graphs: Graphs, numbers: Sequence[int], forgiving: bool) -> DataFrame:
    """Graphs as bundles for what Spark groups by, observed."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    work: Any = shipped(Bundle(numbers, forgiving, graphs.read))
    return graphs.frame.mapInArrow(work, COLUMNS).observe(
        INPUT,
        f.sum("graphs").alias("graphs"),
        f.max("last").alias("event_time"),
        f.sum("refused").alias("refused"),
    )


def ends_of(graphs: Graphs, folder: str, numbers: Sequence[int]) -> DataFrame:
    """The ends of a stream, as rows (at, slot, bundle) without a bundle."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    ends = graphs.frame.sparkSession.readStream.schema("at bigint").json(folder)
    slot = f.explode(f.expr(f"array({', '.join(f'{number}L' for number in numbers)})")).alias("slot")
    return ends.select(
        f.timestamp_millis("at").alias("at"),
        slot,
        f.lit(None).cast("binary").alias("bundle"),
        f.lit(None).cast("string").alias("note"),
    )


def quiet(spark: SparkSession) -> None:
    """Suppress the messages that Spark's Python workers print; their errors are exceptions, and Spark's log
    is written as before.
    """
    java: Any = spark.sparkContext._jvm
    java.java.lang.System.setErr(java.java.io.PrintStream(java.java.io.OutputStream.nullOutputStream()))


@contextmanager
def with_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings that a query takes when it starts; the session's own are restored afterwards."""
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
