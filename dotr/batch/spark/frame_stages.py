"""The stages as DataFrames: instants → facts → events. Nothing here needs a SparkContext.

Place:   `dotr.spark.detect` and cluster.py build their jobs from these.
Method:  one scan of the time column (no graphs) yields first, last, quantiles, and whether any time occurs
         twice. Only graphs of repeated times are shuffled, unless these are most. Facts are few and small;
         they are shuffled once, by part. A part's number determines its partition, which Spark takes
         unchanged: no two heavy parts meet by chance of a hash, and adaptive execution, which would join
         small partitions, leaves such an exchange alone. A reading task is a row that carries its own pieces.
Why not: group all graphs by time: they are by far the largest data in the job. The list of all pieces and a
         number in every task: for 10⁹ graphs every task would unpickle all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dotr.batch.facts import APART, COUNTED, GRAPHS_READ, LETTER, REFUSED, FactRow, Layout, bundled
from dotr.batch.log import Piece, Split
from dotr.batch.runs import PARTS, batched, write_detected
from dotr.batch.spark.session import Batches, crossing_to_driver, shipped
from dotr.batch.time_cuts import MANY_GAPS, Gap
from dotr.batch.work import (
    Detecting,
    Instant,
    Job,
    Shipped,
    Worker,
    extract,
    fact_batches,
    fact_rows,
    split_lines,
)
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.decode.documents import Format
from dotr.io.decode.parquet import integers, missing, texts
from dotr.io.decode.rdf import parse_triples
from dotr.io.errors import dead_letter
from dotr.io.event_tables import EventBatches, Kind, event_schema, joined_kinds
from dotr.io.events import EVENT_FORMATS, formatter
from dotr.io.typed_events import Kinds, TypedBatches, TypedColumns, kinds_in
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

FACT_COLUMNS = "part bigint, time bigint, facts binary"

_GUESSED = 128
"""The limit of cores assumed for a cluster of unknown size."""


def parallelism(spark: SparkSession, asked: int | None = None) -> int:
    """Tasks that can run at once: as requested, else as Spark reports.

    Over Connect, which does not report it, `spark.default.parallelism`, else a guess from the number of
    shuffle partitions.
    """
    if asked is not None:
        return max(1, asked)
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Connect raises several of its own kinds
        known = spark.conf.get("spark.default.parallelism", None)
    if known is not None:
        return max(1, int(known))
    return min(_GUESSED, max(1, int(spark.conf.get("spark.sql.shuffle.partitions") or 200) // 8))


def pieces_of(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The pieces of the rows of `one_task_each`."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield from (Piece(*piece) for piece in json.loads(text))


def one_task_each(spark: SparkSession, splits: Sequence[Split]) -> DataFrame:
    """One row per split, each in its own partition: (pieces: JSON)."""
    pieces = [[[p.file, p.first, p.end, p.graphs, p.size] for p in split.pieces] for split in splits]
    return task_rows(spark, list(map(json.dumps, pieces)))


def task_rows(spark: SparkSession, texts: Sequence[str]) -> DataFrame:
    """One row per text, each in its own partition."""
    rows: list[Any] = list(enumerate(texts))
    frame = spark.createDataFrame(rows, "slot int, task string")
    return frame.repartitionById(len(rows), "slot").select("task")


def by_part(facts: DataFrame, marks: Sequence[FactRow], layout: Layout, first: Time, cores: int) -> DataFrame:
    """Bundles of facts, and marks, grouped by part and in order of their first times; parts are distributed
    to tasks in turn. `first`: the first instant of the log.
    """
    if marks:
        spark: SparkSession = facts.sparkSession
        rows = [row for bundles in bundled(marks) for row in bundles]
        facts = facts.unionByName(spark.createDataFrame(rows, FACT_COLUMNS))
    parts, added = layout.numbered(first)
    tasks = max(1, min(parts, cores * PARTS))
    return facts.repartitionById(tasks, _slot(added, tasks)).sortWithinPartitions("part", "time")


def _slot(added: Sequence[int], tasks: int) -> Column:
    """The partition of a part; other rows go to the first."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    groups = len(added)
    shift = (
        f"element_at(array({', '.join(f'{number}L' for number in added)}), int(pmod(part, {groups}L)) + 1)"
    )
    number = f"(part - pmod(part, {groups}L)) DIV {groups}L"
    return f.expr(f"IF(part <= {APART}L, 0, int(pmod({number} + {shift}, {tasks}L)))")


FEW = 100_000
"""The limit of repeated times that are sent to every worker, instead of shuffling all graphs."""

EVENT_COLUMNS = (
    "rule string, id string, bindings map<string,string>, match string, graph string, "
    "lists map<string,array<string>>"
)
LINE_COLUMNS = "value string, note string"
WRITTEN = ["file", "counts", "dropped", "parts", "letters", "refused", "findings", "left_out"]
WRITTEN += ["counted", "weights"]
WRITTEN_COLUMNS = (
    "file string, counts string, dropped bigint, parts bigint, letters string, refused bigint"
    ", findings string, left_out string, counted string, weights string"
)

Stamped: TypeAlias = tuple[int | None, Sequence[str | None]]
"""A time in the frame's unit, and the graphs of that time."""

_WIDEST = 2**62
_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Look:
    """Statistics of the time column. Times are in microseconds; `repeated` counts times of several rows.
    `instants` None: not counted yet.
    """

    graphs: int
    instants: int | None
    repeated: int
    first: Time | None
    last: Time | None
    quantiles: tuple[Time, ...]


def look(frame: DataFrame, unit: int, pieces: int, distinct: bool = False) -> Look:
    """One job over the column `time` (bigint, in `unit` µs) of a frame of graphs, or of times with their
    number of graphs in a column `n`. `distinct`: each time stands in one row; they are not compared.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    shares = [i / pieces for i in range(pieces)]
    number = f.sum("n") if "n" in frame.columns else f.count("*")
    if distinct:
        counted_times = frame.select("time", f.lit(1).alias("n"), f.lit(1).alias("rows"))
    else:
        counted_times = frame.groupBy("time").agg(number.alias("n"), f.count("*").alias("rows"))
    row = counted_times.agg(
        f.sum("n").alias("graphs"),
        f.count("*").alias("instants"),
        f.count_if(f.col("rows") > 1).alias("repeated"),
        f.min("time").alias("first"),
        f.max("time").alias("last"),
        f.percentile_approx("time", shares, 10_000).alias("quantiles"),
    ).first()
    assert row is not None  # an aggregate without groups has one row
    if row["first"] is None and row.graphs:
        raise missing("", "time")
    if row["first"] is None:
        return Look(row.graphs or 0, 0, 0, None, None, ())
    quantiles = tuple(sorted({time * unit for time in row.quantiles}))
    return Look(row.graphs, row.instants, row.repeated, row["first"] * unit, row["last"] * unit, quantiles)


def counted(log: DataFrame) -> DataFrame:
    """(time, graphs) as (time, n), for `look`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    return log.select("time", f.size("graphs").alias("n"))


def thinned(quantiles: Sequence[Time], pieces: int) -> list[Time]:
    """An even selection of the quantiles."""
    count = min(pieces, len(quantiles))
    return [quantiles[i * len(quantiles) // count] for i in range(count)]


def instants(frame: DataFrame, repeated: int) -> DataFrame:
    """(time, graph), or (time, graphs) with several rows per instant, as (time, graphs) with one row per
    instant. `repeated` as in Look.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    alone = frame if "graphs" in frame.columns else frame.select("time", f.array("graph").alias("graphs"))
    if repeated == 0:
        return alone
    if repeated > FEW:
        return gathered(frame)
    times = frame.groupBy("time").agg(f.count("*").alias("n")).where("n > 1").select("time")
    several = gathered(frame.join(f.broadcast(times), "time", "left_semi"))
    return alone.join(f.broadcast(times), "time", "left_anti").unionByName(several)


def several_times(graphs: DataFrame, repeated: int) -> list[int] | None:
    """The times of several rows, None if they are more than FEW. Reads the column `time` if there are any."""
    if repeated > FEW:
        return None
    return repeated_times(graphs.select("time")) if repeated else []


def facts_of_graphs(
    graphs: DataFrame,
    several: Sequence[int] | None,
    job: Shipped,
    clock: Clock,
    base: str,
    distinct: bool,
    counts: bool = False,
) -> DataFrame:
    """Facts of (time, graph), whose rows are read once. `distinct`: a time of two rows in a row is an error.
    `counts`: graphs are counted. `several` as by `several_times`: the graphs of these
    times wait until a shuffle has brought those of one time together, which the facts of the others pass.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    unit = clock.unit if clock.integer else 1
    extract_ = Extract(job, unit, base, distinct and not several, counts)
    if several is None:
        return gathered(graphs).mapInArrow(shipped(extract_), FACT_COLUMNS)
    alone = graphs.select("time", f.array("graph").alias("graphs"))
    if not several:
        return alone.mapInArrow(shipped(extract_), FACT_COLUMNS)
    times = graphs.sparkSession.createDataFrame(
        [(time, True) for time in several], "time bigint, waits boolean"
    )
    marked = alone.join(f.broadcast(times), "time", "left")
    read = marked.mapInArrow(shipped(_Extraction(extract_, _alone)), FACT_COLUMNS)
    together = read.repartition("time").sortWithinPartitions(f.col("part") != _WAITS, "time")
    return together.mapInArrow(shipped(_Extraction(extract_, _together)), FACT_COLUMNS)


def gathered(frame: DataFrame) -> DataFrame:
    """`instants` by a shuffle of all graphs."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    whole = "graphs" in frame.columns
    graphs = f.flatten(f.collect_list("graphs")) if whole else f.collect_list("graph")
    return frame.groupBy("time").agg(graphs.alias("graphs"))


def gaps(times: DataFrame, unit: int, stride: Time, some: int = 0) -> Iterator[Gap]:
    """The gaps wider than `stride` in a column `time` (bigint, in `unit` µs), in time order. `some`: not all
    need to be found; the width of cells, in `unit` µs.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # start-up
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    width = stride // unit + 1
    cell = f.col("time") - f.pmod("time", f.lit(min(max(width, some), _WIDEST)))
    cells = times.groupBy(cell.alias("cell")).agg(f.min("time").alias("first"), f.max("time").alias("last"))
    before = f.lag("last").over(Window.orderBy("first")).cast("decimal(38,0)")
    found = cells.select(before.alias("before"), "first").where(
        f.col("first") - f.col("before") >= Decimal(width)
    )
    if some:
        widest = (f.col("first") - f.col("before")).desc(), f.xxhash64("first")
        found = found.orderBy(*widest).limit(MANY_GAPS)
    for row in found.orderBy("first").toLocalIterator():
        yield int(row.before) * unit, row["first"] * unit


def gaps_to_cut_at(times: DataFrame, unit: int, gap: Time, look: Look) -> list[Gap]:
    """Some of the gaps wider than `gap`, in time order: at most MANY_GAPS, without those inside a cell of a
    millionth of the log, since one task sorts all cells.
    """
    assert look.first is not None
    assert look.last is not None
    return list(gaps(times, unit, gap, max(1, (look.last - look.first) // unit // _CELLS)))


def repeated_times(times: DataFrame) -> list[Time]:
    """The times that occur more than once, at most FEW."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    found = times.groupBy("time").agg(f.count("*").alias("n")).where("n > 1").select("time").collect()
    return [row.time for row in found]


def facts(instants: DataFrame, job: Shipped, clock: Clock, base: str | None = None) -> DataFrame:
    """Enrich and extract. `base` None: the graphs were written by dotr; else they are parsed as N-Triples."""
    return instants.mapInArrow(shipped(Extract(job, clock.unit if clock.integer else 1, base)), FACT_COLUMNS)


def first_accepted(
    instants: DataFrame, job: Shipped, clock: Clock, first: Time, base: str | None = None
) -> Time | None:
    """The first instant not in error, where ticks begin, from `first` on, or None. Extracts it and those
    before it.
    """
    unit = clock.unit if clock.integer else 1
    while True:
        found = facts(instants.where(f"time = {first // unit}"), job, clock, base)
        if found.where(found.part == REFUSED).first() is None:
            return first
        later = instants.where(f"time > {first // unit}").agg({"time": "min"}).first()
        if later is None or later[0] is None:
            return None
        first = later[0] * unit


def letters(facts: DataFrame, clock: Clock) -> DataFrame:
    """The dead letters among rows of facts: (time as in events, letter: a JSON line)."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    unit = clock.unit if clock.integer else 1
    time = f.expr(f"time DIV {unit}L") if clock.integer else f.timestamp_micros("time")
    found = facts.where(f.col("part").isin([REFUSED, LETTER]))
    return found.select(time.alias("time"), f.decode("facts", "UTF-8").alias("letter"))


def undated(frame: DataFrame, clock: Clock) -> DataFrame:
    """Dead letters of rows of (time, graph) without a time."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    letter = dead_letter(missing("a row of the log", "time"), None)
    graph = f.expr("substring(to_json(named_struct('document', coalesce(graph, ''))), 2)")
    letter_text = f.concat(f.lit(f"{letter[:-1]},"), graph)
    time = f.lit(None).cast("bigint" if clock.integer else "timestamp")
    return frame.where("time IS NULL").select(time.alias("time"), letter_text.alias("letter"))


def observed(events: DataFrame, observation: Any, rules: Sequence[str]) -> DataFrame:
    """Events that report their number to an Observation of Spark, all and by rule; and what tasks counted, if
    they have the column COUNTS.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    has_counts = COUNTS in events.columns
    counters = [
        f.coalesce(f.sum(f.get_json_object(COUNTS, f"$.{name}").cast("bigint")), f.lit(0)).alias(name)
        if has_counts
        else f.max(f.lit(None).cast("bigint")).alias(name)
        for name in COUNTERS
    ]
    counters.append(f.count("rule").alias("events"))
    counters += [f.count_if(f.col("rule") == name).alias(f"events {name}") for name in rules]
    found = events.observe(observation, *counters)
    return found.where(f.col(COUNTS).isNull()).drop(COUNTS) if has_counts else found


def spark_schema(columns: TypedColumns) -> StructType:
    """The schema of typed events."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  # start-up

    return from_arrow_schema(columns.schema())


def kinds_of_data(placed: DataFrame, job: Shipped) -> Kinds:
    """The kinds of the values of all events: one run of the rules."""
    return collected_kinds(placed.mapInArrow(shipped(_FindKinds(job)), KINDS))


KINDS: Final = "owner string, name string, kind string"
"""The columns of kinds that tasks found."""


def collected_kinds(found: DataFrame) -> Kinds:
    """What the tasks found, together."""
    kinds: dict[tuple[str, str], Kind] = {}
    for row in found.collect():
        key = row.owner, row["name"]
        kinds[key] = joined_kinds(kinds.get(key, ""), row.kind)
    return kinds


def events(
    placed: DataFrame, job: Shipped, clock: Clock, columns: TypedColumns | None, counts: bool = False
) -> DataFrame:
    """Detect over rows placed by `by_part`: one row per event, typed if `columns` are given. `counts`: in
    addition one row per task that has nothing but the column COUNTS.
    """
    from pyspark.sql import types as t  # noqa: PLC0415  # start-up

    schema: Any = t.StructType.fromDDL(event_columns(clock)) if columns is None else spark_schema(columns)
    if counts:
        schema = schema.add(COUNTS, "string")
    return placed.mapInArrow(shipped(_Detect(job, columns, counts)), schema)


COUNTS: Final = "_counts"
"""The column of what a task counted: JSON with COUNTERS."""

COUNTERS: Final = ("graphs", "facts", "refused")


def no_events(spark: SparkSession, clock: Clock, columns: TypedColumns | None = None) -> DataFrame:
    """The result for an empty log."""
    return spark.createDataFrame([], event_columns(clock) if columns is None else spark_schema(columns))


def _time_column(clock: Clock) -> str:
    return f"time {'bigint' if clock.integer else 'timestamp'}"


def event_columns(clock: Clock) -> str:
    """The columns of a frame of events."""
    return f"{_time_column(clock)}, {EVENT_COLUMNS}"


Detection: TypeAlias = Callable[[Worker, Batches], tuple[Detecting, Iterator[Composite]]]
"""The events of a task's batches, and their source."""


def of_facts(worker: Worker, batches: Batches) -> tuple[Detecting, Iterator[Composite]]:
    """The events over rows placed by `by_part`."""
    detecting = worker.detecting()
    return detecting, detecting.events(fact_rows(batches))


def written(
    tasks: DataFrame, job: Shipped, folder: str, format_: str, detect: Detection = of_facts
) -> DataFrame:
    """Detect and write: one row per task, WRITTEN_COLUMNS."""
    return tasks.mapInArrow(shipped(_WriteEvents(job, detect, folder, format_)), WRITTEN_COLUMNS)


def noted_columns(format_: str, clock: Clock) -> str:
    """The columns of `noted`: those of an event, or its text, and a note."""
    return f"{event_columns(clock)}, note string" if EVENT_FORMATS[format_].columns else LINE_COLUMNS


def noted(
    tasks: DataFrame, job: Shipped, format_: str, clock: Clock, detect: Detection = of_facts
) -> DataFrame:
    """Detect: one row per event, as Spark's writers need it, and one per task with a note (JSON: counts,
    dropped, parts) and null elsewhere.
    """
    return tasks.mapInArrow(shipped(_Note(job, detect, format_)), noted_columns(format_, clock))


@dataclass(frozen=True, slots=True)
class Extract:
    """Instants (time in `unit` µs, graphs) to facts; `base`, `distinct`, `counts` as in `facts`,
    `facts_of_graphs`.
    """

    shipped: Shipped
    unit: int
    base: str | None
    distinct: bool = False
    counts: bool = False

    def __call__(self, batches: Batches) -> Batches:
        read = _distinct if self.distinct else _stamped
        return crossing_to_driver(lambda: fact_batches(self.rows(read(batches))))

    def rows(self, stamped: Iterable[Stamped]) -> Iterator[FactRow]:
        """Rows of facts, and further reports."""
        worker = self.shipped.worker()
        letters: list[FactRow] = []
        graphs = 0

        def counted_graphs(stamped: Iterable[Stamped]) -> Iterator[Stamped]:
            nonlocal graphs
            for stamp, found in stamped:
                graphs += len(found)
                yield stamp, found

        stamped = counted_graphs(stamped) if self.counts else stamped
        instants = self._instants(stamped)
        if worker.job.treatment.forgiving and self.base is not None:
            instants = self._readable(stamped, letters)
        yield from extract(worker, instants)
        yield from letters
        if self.counts:
            yield COUNTED, 0, json.dumps({GRAPHS_READ: graphs})

    def _instants(self, stamped: Iterable[Stamped]) -> Iterator[Instant]:
        """Times in µs, graphs parsed."""
        read = self._parsed if self.base is not None else _trusted
        for stamp, graphs in stamped:
            time = micros(stamp, self.unit)
            yield time, [read(graph, time) for graph in graphs]

    def _readable(self, stamped: Iterable[Stamped], letters: list[FactRow]) -> Iterator[Instant]:
        """Like `_instants`, of what can be read; `letters` gets the rest."""
        for stamp, graphs in stamped:
            found: list[list[Triple]] = []
            wrong: list[str] = []
            time = 0
            for graph in graphs:
                try:
                    time = micros(stamp, self.unit)
                    found.append(self._parsed(graph, time))
                except DataError as error:
                    wrong.append(dead_letter(error, (graph or "").encode()))
            letters += ((LETTER if found else REFUSED, time, letter) for letter in wrong)
            if found:
                yield time, found

    def _parsed(self, graph: str | None, time: Time) -> list[Triple]:
        place = f"the graph at {time} µs"
        if graph is None:
            raise missing(place, "graph")
        return parse_triples(graph, Format.NTRIPLES, place, self.base)


def _stamped(batches: Batches) -> Iterator[Stamped]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _distinct(batches: Batches) -> Iterator[Stamped]:
    """Raises UsageError D4123 for a time that follows itself; equal times further apart are not seen."""
    before = None
    for stamp, graphs in _stamped(batches):
        if stamp is not None and stamp == before:
            raise UsageError.of(
                "D4123", f"the time {stamp} of the frame stands in several rows", hint='times="any"'
            )
        yield stamp, graphs
        before = stamp


def trusted_instants(batches: Batches, unit: int) -> Iterator[Instant]:
    """Instants of (time in `unit` µs, graphs as dotr wrote them)."""
    for batch in batches:
        for time, graphs in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            yield micros(time, unit), [split_lines(graph) for graph in graphs]


def micros(time: int | None, unit: int) -> Time:
    """A time column's value in microseconds. Raises DataError D2018, D2105."""
    if time is None:
        raise missing("", "time")
    if abs(time * unit) >= 2**63:
        raise DataError.of("D2105", f"`{time}` lies beyond 64 bits of microseconds", hint="check time_unit")
    return time * unit


def _trusted(graph: str | None, _time: Time) -> list[Triple]:
    assert graph is not None  # dotr wrote it
    return split_lines(graph)


_WAITS = -(2**62)
"""The part of a graph whose time stands in several rows, until they are together: no part has it."""


@dataclass(frozen=True, slots=True)
class _Extraction:
    """`extract` over some of the rows of a task: `of` chooses them, and passes on the others."""

    extract: Extract
    of: Callable[[Extract, Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self.of(self.extract, batches))


def _alone(extract: Extract, batches: Batches) -> Batches:
    """(time, graphs, waits) to facts, and rows of graphs that wait."""
    waiting: list[pa.RecordBatch] = []

    def alone() -> Iterator[Stamped]:
        for batch in batches:
            waits = batch.column(2).fill_null(False)
            found = batch.filter(waits)
            if found.num_rows:
                waiting.append(found)
            yield from _stamped(iter([batch.filter(pc.invert(waits))]))

    for made in fact_batches(extract.rows(alone())):
        yield made
        while waiting:
            yield _held(waiting.pop())
    for batch in waiting:
        yield _held(batch)


def _held(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Graphs that wait, as rows of facts."""
    graphs = batch.column(1).flatten().cast(pa.binary())
    columns = [integers([_WAITS] * batch.num_rows), batch.column(0), graphs]
    return pa.RecordBatch.from_arrays(columns, names=["part", "time", "facts"])


def _together(extract: Extract, batches: Batches) -> Batches:
    """Rows of facts, before them those that wait, by time, to facts."""
    passing: list[pa.RecordBatch] = []

    def waiting() -> Iterator[tuple[int, str | None]]:
        for batch in batches:
            waits = pc.equal(batch.column(0), _WAITS)
            held = batch.filter(waits)
            passing.append(batch.filter(pc.invert(waits)))
            graphs = held.column(2).cast(pa.string())
            yield from zip(held.column(1).to_pylist(), graphs.to_pylist(), strict=True)
            if not held.num_rows:
                return  # what waits is first

    def instants() -> Iterator[Stamped]:
        for time, rows in groupby(waiting(), key=itemgetter(0)):
            yield time, [graph for _, graph in rows]

    yield from fact_batches(extract.rows(instants()))
    yield from passing
    yield from batches


@dataclass(frozen=True, slots=True)
class _FindKinds:
    """Rows placed by `by_part` to (position or "", variable, kind) of their events."""

    shipped: Shipped

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._kinds(batches))

    def _kinds(self, batches: Batches) -> Batches:
        yield kinds_batch(self.shipped.worker().detecting().events(fact_rows(batches)))


def kinds_batch(events: Iterable[Composite]) -> pa.RecordBatch:
    """The kinds of the values of events, as rows of KINDS."""
    rows = [(owner, name, kind) for (owner, name), kind in kinds_in(events).items()]
    columns = [texts([row[n] for row in rows]) for n in range(3)]
    return pa.RecordBatch.from_arrays(columns, names=["owner", "name", "kind"])


@dataclass(frozen=True, slots=True)
class _Detect:
    shipped: Shipped
    columns: TypedColumns | None = None
    counts: bool = False

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._events(batches))

    def _events(self, batches: Batches) -> Batches:
        worker = self.shipped.worker()
        detecting, clock = worker.detecting(), worker.job.clock
        of = EventBatches(clock).of if self.columns is None else TypedBatches(self.columns).of
        for events in batched(detecting.events(fact_rows(batches))):
            found = of(events)
            yield with_text(found.columns, None, found.schema, COUNTS) if self.counts else found
        if self.counts:
            schema = event_schema(clock) if self.columns is None else self.columns.schema()
            nothing = [pa.nulls(1, field.type) for field in schema]
            yield with_text(nothing, _counts(detecting), schema, COUNTS)


def _counts(detecting: Detecting) -> str:
    """COUNTERS of a task, as JSON."""
    counted, done = dict(detecting.done.streams), detecting.done
    graphs = counted.pop(GRAPHS_READ, 0)
    return json.dumps(
        {"graphs": graphs, "facts": sum(filter(None, counted.values())), "refused": len(done.letters)}
    )


def with_text(columns: Sequence[Any], text: str | None, schema: pa.Schema, name: str) -> pa.RecordBatch:
    """Rows with one more column, `name`, which has the same text in each of them."""
    more = texts([text] * len(columns[0]))
    wide = schema.append(pa.field(name, pa.string()))
    return pa.RecordBatch.from_arrays([*columns, more], schema=wide)


@dataclass(frozen=True, slots=True)
class _WriteEvents:
    shipped: Shipped
    detect: Detection
    folder: str
    format_: str

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._report(batches))

    def _report(self, batches: Batches) -> Batches:
        worker = self.shipped.worker()
        detecting, found = self.detect(worker, batches)
        done = write_detected(self.folder, self.format_, worker, detecting, found)
        arrays = [
            texts([done.file]),
            texts([json.dumps(done.counts)]),
            integers([done.dropped]),
            integers([done.parts]),
            texts([json.dumps(detecting.done.letters)]),
            integers([len(detecting.done.refused)]),
            texts([json.dumps(done.findings)]),
            texts([json.dumps(done.left_out)]),
            texts([done.counted]),
            texts([json.dumps(done.weights)]),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=WRITTEN)


@dataclass(frozen=True, slots=True)
class _Note:
    shipped: Shipped
    detect: Detection
    format_: str

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._rows(batches))

    def _rows(self, batches: Batches) -> Batches:
        worker = self.shipped.worker()
        clock, (detecting, events) = worker.job.clock, self.detect(worker, batches)
        columns = EVENT_FORMATS[self.format_].columns
        schema = event_schema(clock) if columns else pa.schema([("value", pa.string())])
        lines = None if columns else _EventLines(self.format_, worker.job)
        table = EventBatches(clock)
        counts: dict[str, int] = {}

        for waiting in batched(events):
            for event in waiting:
                counts[event.rule] = counts.get(event.rule, 0) + 1
            if lines is None:
                yield with_text(table.of(waiting).columns, None, schema, "note")
            else:
                yield with_text([texts(lines.of(waiting))], None, schema, "note")
        done = detecting.done
        note = {"counts": counts, "dropped": done.dropped, "parts": done.parts}
        note |= {"letters": done.letters, "refused": len(done.refused), "findings": done.findings}
        note |= {"left_out": done.left_out, "counted": done.counted(), "weights": done.weights}
        yield with_text([pa.nulls(1, f.type) for f in schema], json.dumps(note), schema, "note")


class _EventLines:
    """Owns the text of a task's events: a format's head comes before the first."""

    def __init__(self, format_: str, job: Job) -> None:
        self._clock = job.clock
        self._head, self._format = formatter(format_, job.program.prefixes, job.program.rules)

    def of(self, events: Sequence[Composite]) -> list[str]:
        """One text per event, without the last line end, which Spark's writer adds."""
        lines = [self._format([event], self._clock)[:-1] for event in events]
        if self._head:
            lines.insert(0, self._head[:-1])
            self._head = ""
        return lines


def counts_of(rows: Sequence[Any]) -> dict[str, int]:
    """Events by rule, summed over the rows of `written`."""
    total: dict[str, int] = {}
    for row in rows:
        for rule, count in json.loads(row.counts).items():
            total[rule] = total.get(rule, 0) + count
    return total
