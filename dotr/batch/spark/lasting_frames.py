"""Frames of graphs where something lasts: all workers parse, one task runs the graphs in order of time.

Place:   `dotr.spark.detect` calls it for programs with HOLD, ISTREAM, DSTREAM or effects (frames.py); a batch
         over files cuts what it can into slices (batch/lasting.py), whose run of a slice is used here.
Method:  what lasts depends on all earlier graphs, so instants cannot be enriched apart from each other, but
         graphs can be parsed apart: that is one map without a shuffle. The parsed graphs are then sorted by
         time in one partition, and run as the one slice that a log is if nothing is cut. Graphs of one
         instant are sorted by their text, so that labels of blank nodes do not depend on the order of rows.
Cost:    one task, and its partition on the disk of one worker; memory for the graphs of an instant, and for
         what lasts.
Why not: slices of time: the statements before each would be collected by the driver when `detect` is called,
         and again after every instant in error, although nothing has been asked of the result yet.
Bad input: D2018 · D2105 · errors of graphs, when a result is read; with `forgiving` these are dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from dotr.batch.lasting import (
    LastingJob,
    Row,
    Slice,
    SliceRun,
    clock_of,
    lasting_content,
    make_lasting_job,
)
from dotr.batch.runs import batched
from dotr.batch.spark.frame_stages import (
    KINDS,
    collected_kinds,
    event_columns,
    kinds_batch,
    micros,
    spark_schema,
)
from dotr.batch.spark.session import Batches, crossing_to_driver, shipped
from dotr.batch.time_cuts import Cutoff
from dotr.batch.work import Treatment, graph_text
from dotr.core.deployment import Deployment
from dotr.errors import DataError, Diagnostic, Severity
from dotr.events import Clock, Time
from dotr.io.decode.documents import Format
from dotr.io.decode.parquet import integers, missing, texts
from dotr.io.decode.rdf import parse_triples
from dotr.io.errors import dead_letter
from dotr.io.event_tables import EventBatches, event_schema
from dotr.io.typed_events import Kinds, TypedBatches, TypedColumns
from dotr.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARSED = "time bigint, graph string, letter string"
_ROWS = 1024


def one_task(program: Program) -> Diagnostic:
    """The warning D4126 for a frame of graphs where something lasts."""
    names = "`, `".join(rule.name for rule in program.rules)
    return Diagnostic(
        "D4126",
        f"detection of `{names}` runs in one task",
        notes=("what lasts depends on all earlier graphs, and a frame is not cut into slices of time",),
        hint="`dotr batch` over files on a disk that all workers share cuts rules that have a horizon",
        severity=Severity.WARNING,
    )


@dataclass(frozen=True, slots=True)
class InOrder:
    """A run of rules over a frame (time: bigint in the clock's unit or µs, graph), made when it is read.
    `span`: its first and last time, in µs; `cut`: where times are too far ahead.

    Its methods raise ProgramError, DataError for a program that cannot run.
    """

    graphs: DataFrame
    deployment: Deployment
    clock: Clock
    span: tuple[Time, Time]
    base: str
    forgiving: bool
    cut: Cutoff | None

    def detected(self, columns: TypedColumns | None) -> tuple[DataFrame, DataFrame]:
        """(events, letters: time, letter). `columns`: of typed events."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # start-up
        from pyspark.sql import types as t  # noqa: PLC0415  # start-up

        clock = self.clock
        parsed = self._parsed()
        schema: str | t.StructType = f"{event_columns(clock)}, letter string"
        if columns is not None:
            schema = t.StructType([*spark_schema(columns), t.StructField("letter", t.StringType())])
        found = self._ordered(parsed).mapInArrow(shipped(self._run(columns)), schema)
        unit = clock.unit if clock.integer else 1
        time = f.col("time") if clock.integer else f.timestamp_micros(f.col("time") * f.lit(unit))
        unread = parsed.where("letter IS NOT NULL").select(time.alias("time"), "letter")
        refused = found.where("letter IS NOT NULL").select("time", "letter")
        return found.where("letter IS NULL").drop("letter"), refused.unionByName(unread)

    def kinds(self) -> Kinds:
        """The kinds of the values of all events: one run of the rules."""
        run = FindKindsInOrder(self._run(None))
        return collected_kinds(self._ordered(self._parsed()).mapInArrow(shipped(run), KINDS))

    def _parsed(self) -> DataFrame:
        return self.graphs.mapInArrow(shipped(ParseGraphs(self.clock, self.base, self.forgiving)), _PARSED)

    def _ordered(self, parsed: DataFrame) -> DataFrame:
        whole = parsed.where("letter IS NULL").select("time", "graph").repartition(1)
        return whole.sortWithinPartitions("time", "graph")

    def _run(self, columns: TypedColumns | None) -> RunInOrder:
        treatment = Treatment(forgiving=self.forgiving, shared=False)
        content = lasting_content(self.deployment, self.clock, treatment, *self.span, self.cut)
        job = make_lasting_job(self.deployment, content)
        return RunInOrder(job, Slice(tuple(range(len(self.deployment.program.rules)))), columns)


@dataclass(frozen=True, slots=True)
class ParseGraphs:
    """Rows (time, graph) to rows (time, graph as dotr writes it, letter): either a graph or a letter."""

    clock: Clock
    base: str
    forgiving: bool

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._batches(batches))

    def _batches(self, batches: Batches) -> Batches:
        for batch in batches:
            rows = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            parsed = [self._parsed(*row) for row in rows]
            arrays = [integers([row[0] for row in parsed])]
            arrays += [texts([row[1] for row in parsed]), texts([row[2] for row in parsed])]
            yield pa.RecordBatch.from_arrays(arrays, names=["time", "graph", "letter"])

    def _parsed(self, stamp: int | None, graph: str | None) -> tuple[int | None, str | None, str | None]:
        try:
            time = micros(stamp, self.clock.unit if self.clock.integer else 1)
            place = f"the graph at {time} µs"
            if graph is None:
                raise missing(place, "graph")
            return stamp, graph_text(parse_triples(graph, Format.NTRIPLES, place, self.base)), None
        except DataError as error:
            if not self.forgiving:
                raise
            return stamp, None, dead_letter(error, (graph or "").encode())


@dataclass(frozen=True, slots=True)
class RunInOrder:
    """The graphs of all instants, in order of time, to events and dead letters."""

    job: LastingJob
    slice: Slice
    columns: TypedColumns | None = None

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._found(batches))

    def _found(self, batches: Batches) -> Batches:
        clock = clock_of(self.job)
        run = SliceRun(self.job, self.slice, None)
        table = EventBatches(clock) if self.columns is None else TypedBatches(self.columns)
        for events in batched(run.events(_rows(batches, clock))):
            found = table.of(events)
            yield _with_letters(found.columns, [None] * found.num_rows, found.schema)
        left = iter(run.done.letters)
        schema = event_schema(clock) if self.columns is None else self.columns.schema()
        while some := list(islice(left, _ROWS)):
            yield _letters(some, clock, schema)


@dataclass(frozen=True, slots=True)
class FindKindsInOrder:
    """The same rows to (position or "", variable, kind) of their events."""

    run: RunInOrder

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._kinds(batches))

    def _kinds(self, batches: Batches) -> Batches:
        run = SliceRun(self.run.job, self.run.slice, None)
        yield kinds_batch(run.events(_rows(batches, clock_of(self.run.job))))


def _rows(batches: Batches, clock: Clock) -> Iterator[Row]:
    unit = clock.unit if clock.integer else 1
    for batch in batches:
        for time, graph in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            yield time * unit, graph


def _letters(letters: Sequence[tuple[Time, str]], clock: Clock, schema: pa.Schema) -> pa.RecordBatch:
    """Letters as rows of events without anything else but the time."""
    unit = clock.unit if clock.integer else 1
    times = integers([time // unit for time, _ in letters], schema.field(0).type)
    nothing = [pa.nulls(len(letters), field.type) for field in list(schema)[1:]]
    return _with_letters([times, *nothing], [letter for _, letter in letters], schema)


def _with_letters(
    columns: Sequence[pa.Array], letters: Sequence[str | None], schema: pa.Schema
) -> pa.RecordBatch:
    wide = schema.append(pa.field("letter", pa.string()))
    return pa.RecordBatch.from_arrays([*columns, texts(letters)], schema=wide)
