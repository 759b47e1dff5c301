"""Spark SQL: the table function `dotr_detect`, and what `dotr.spark.register` registers.

Place:   for users of SQL with their own session, including Connect; `dotr.spark.detect` does the same for
         frames, on all workers.
Method:  `analyze` runs beside the driver when a query is analyzed: it reads the rules and the background and
         answers with the columns of events (io/typed_events.py) and with how Spark has to divide and sort
         the table: one partition, or one for each value of the column `key`, in order of time. Each partition
         is a log of its own, which one engine runs, as `dotr run` would. The program travels in the answer,
         so that workers need no files. Only the time, in the column's unit or in µs, and the graph go to
         Python.
Cost:    a row is a pickled tuple: Spark has no tables of Arrow for functions that are analyzed. The text of
         the rules is sent with every row; a path is shorter. Each Python worker closes the background.
Why not: the query's own PARTITION BY, unless it asks for that (`partitioned`): Spark does not tell the
         function whether there is one, and a table that is split by chance would lose events silently.
Bad input: D4122 columns · D4123 arguments · D4315 rows out of order · D4307 a worker with another dotr;
         ProgramError and DataError of rules and background when a query is analyzed, errors of graphs when it
         runs.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import Row, StructType
from pyspark.sql.udtf import (
    AnalyzeArgument,
    AnalyzeResult,
    OrderingColumn,
    PartitioningColumn,
    SelectedColumn,
)

from dotr.batch.spark import session as failures
from dotr.batch.spark.frame_stages import micros
from dotr.batch.spark.frames import LogSource, clock_of_columns, deployed
from dotr.batch.spark.typed import names_kinds, quoted
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.decode.documents import STREAM_BASE, Format
from dotr.io.decode.parquet import missing
from dotr.io.decode.rdf import parse_triples
from dotr.io.event_tables import EventBatches, event_schema
from dotr.io.typed_events import TRIGGER, TypedBatches, TypedColumns, columns_of, refuse_alike
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program
from dotr.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "dotr_detect"
RULES = (".dotr", ".dlog", ".lars")
"""How the paths of rules end."""

_EVENTS = 1024


def register(spark: SparkSession) -> None:
    """See `dotr.spark.register`."""
    failures.install()
    spark.dataSource.register(LogSource)
    made: Any = f.udtf(DetectFunction)
    spark.udtf.register(NAME, made)


@dataclass
class Analysis(AnalyzeResult):
    """What the tasks of a query get. `program`: program, background and settings, pickled."""

    program: bytes = b""
    clock: Clock = field(default_factory=Clock)
    columns: TypedColumns | None = None
    version: str = __version__


class DetectFunction:
    """The table function. Spark makes one for each partition, and calls `eval` with each row of it."""

    @staticmethod
    @failures.crossed
    def analyze(
        log: AnalyzeArgument,
        rules: AnalyzeArgument,
        background: AnalyzeArgument | None = None,
        time_unit: AnalyzeArgument | None = None,
        schema: AnalyzeArgument | None = None,
        types: AnalyzeArgument | None = None,
        key: AnalyzeArgument | None = None,
        partitioned: AnalyzeArgument | None = None,
    ) -> Analysis:
        """The arguments are those of `dotr.spark.detect`, except for: `rules`, one or more paths, each on its
        line, or text; `key`, a column of the table, each of whose values has a log of its own; `partitioned`,
        true where the query itself divides and sorts the table.
        """
        if not log.isTable or not isinstance(log.dataType, StructType):
            raise UsageError.of(
                "D4122", f"{NAME} detects over a table", hint=f"{NAME}(TABLE(log), rules => …)"
            )
        given = log.dataType
        clock = clock_of_columns(given, _text("time_unit", time_unit))
        deployment = _deployed(rules, background)
        program = deployment.program
        check_units(program, clock)
        columns = _columns(program, clock, _text("schema", schema) or "typed", types)
        arrow = event_schema(clock) if columns is None else _without_trigger(columns.schema())
        time = "time" if clock.integer else "unix_micros(time)"
        deployment.compile()
        found = Analysis(
            schema=from_arrow_schema(arrow),
            select=[SelectedColumn(f"CAST({time} AS BIGINT)", "time"), SelectedColumn("graph")],
            program=pickle.dumps(
                (program, list(deployment.background), deployment.settings), pickle.HIGHEST_PROTOCOL
            ),
            clock=clock,
            columns=columns,
        )
        if _known("partitioned", partitioned, bool):
            return found
        found.orderBy = [OrderingColumn("time"), OrderingColumn("graph")]
        name = _text("key", key)
        if name is None:
            found.withSinglePartition = True
            return found
        if name not in given.names:
            hint = nearest(name, given.names) or f"its columns are {', '.join(given.names)}"
            raise UsageError.of("D4123", f"the log has no column `{name}`", hint=hint)
        found.partitionBy = [PartitioningColumn(quoted(name))]
        return found

    def __init__(self, analysis: Analysis) -> None:
        failures.same_release(analysis.version)
        self._clock = analysis.clock
        self._unit = analysis.clock.unit if analysis.clock.integer else 1
        self._batches: EventBatches | TypedBatches = EventBatches(analysis.clock)
        if analysis.columns is not None:
            self._batches = TypedBatches(analysis.columns)
        self._pipeline = Pipeline(_opened(analysis.program), PipelineObserver(late=self._late))
        self._pipeline.begin(analysis.clock)
        self._waiting: list[Composite] = []

    @failures.crossed
    def eval(self, log: Row, *_given: Any, **_named: Any) -> Sequence[tuple[Any, ...]]:
        """A row (time, graph): rows of events, once there are several."""
        stamp, graph = log
        time = micros(stamp, self._unit)
        place = f"the graph at {time} µs"
        if graph is None:
            raise missing(place, "graph")
        self._waiting += self._pipeline.push(time, parse_triples(graph, Format.NTRIPLES, place, STREAM_BASE))
        return self._rows() if len(self._waiting) >= _EVENTS else ()

    @failures.crossed
    def terminate(self) -> Sequence[tuple[Any, ...]]:
        """The end of a partition."""
        self._waiting += self._pipeline.finish()
        return self._rows() if self._waiting else ()

    def _rows(self) -> Sequence[tuple[Any, ...]]:
        made, self._waiting = self._batches.of(self._waiting), []
        if TRIGGER in made.schema.names:
            made = made.drop_columns(TRIGGER)
        columns = [_column(made.column(at), type_) for at, type_ in enumerate(made.schema.types)]
        return list(zip(*columns, strict=True))

    def _late(self, time: Time, *_: object) -> NoReturn:
        raise UsageError.of(
            "D4315",
            f"the graph at {self._clock.text(time)} comes after later ones",
            hint="PARTITION BY … ORDER BY time, or leave out `partitioned`",
        )


def _column(column: Any, type_: Any) -> list[Any]:
    values = column.to_pylist()
    return [None if value is None else dict(value) for value in values] if pa.types.is_map(type_) else values


def _without_trigger(schema: Any) -> Any:
    return schema.remove(schema.get_field_index(TRIGGER))


@lru_cache(maxsize=4)
def _opened(content: bytes) -> Deployment:
    """The program of a query, once for each Python worker."""
    program, background, settings = pickle.loads(content)  # noqa: S301  # our own driver's bytes, same release
    return Deployment(program, background, settings)


def _deployed(rules: AnalyzeArgument, background: AnalyzeArgument | None) -> Deployment:
    written = _text("rules", rules) or ""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    paths = [line for line in lines if line.endswith(RULES)]
    more = _known("background", background, str | list) or ()
    documents = [more] if isinstance(more, str) else list(more)
    return deployed(paths, None, documents) if paths and paths == lines else deployed((), written, documents)


def _columns(
    program: Program, clock: Clock, schema: str, types: AnalyzeArgument | None
) -> TypedColumns | None:
    """None: the schema "terms"."""
    declared = _known("types", types, dict)
    if schema not in ("typed", "terms"):
        raise UsageError.of("D4123", f"there is no schema `{schema}`", hint="terms or typed")
    if declared is not None and (schema == "terms" or not names_kinds(declared)):
        hint = "with the typed schema: types => map('celsius', 'double')"
        raise UsageError.of("D4123", f"`types` cannot be `{declared}`", hint=hint)
    if schema == "terms":
        return None
    columns = columns_of(program, clock, declared).with_kinds({})
    refuse_alike(columns)
    return columns


def _known(name: str, argument: AnalyzeArgument | None, kind: Any) -> Any:
    """The value of an argument; None if it is not given. Raises UsageError D4123 for one of another kind."""
    if argument is None:
        return None
    if argument.isTable or not argument.isConstantExpression:
        raise UsageError.of("D4123", f"`{name}` is not a constant", hint="rows cannot differ in it")
    if argument.value is not None and not isinstance(argument.value, kind):
        found = argument.dataType.simpleString()
        raise UsageError.of("D4123", f"`{name}` cannot be a {found}", hint="see the manual: dotr help spark")
    return argument.value


def _text(name: str, argument: AnalyzeArgument | None) -> str | None:
    found: str | None = _known(name, argument, str)
    return found
