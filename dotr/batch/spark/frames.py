"""DataFrames in and out: `dotr.spark.detect`, `graphs` and `write`, and the data source `dotr`.

Place:   for users with their own session, including Connect; the command line uses cluster.py.
Method:  rules and background passed from Python are paths or strings, and are read by the driver.
           detect     a DataFrame of graphs in, a DataFrame of composite events out. The time column is
                      scanned once when the function is called (frame_stages.py explains why); graphs are
                      only read when the result is.
           "dotr"     `spark.read.format("dotr")`: RDF logs as DataFrames, with the splits of a batch
                      (batch/log.py), and DataFrames as RDF logs. Columns are `time` (bigint in the log's
                      unit, or timestamp) and `graph` (N-Triples); the writer takes the same columns, and
                      `id` if graphs have names (events do). Each task writes its own file, which is renamed
                      when all are done. Of archives, row groups whose statistics show that they have no
                      time `from` … `until` are not read. Spark does not tell which columns a query uses: a
                      schema of `time` alone prunes.
                      Spark forgets the options of a table (CREATE TABLE … USING dotr) when it is read, but
                      keeps its schema: so the schema carries them, as metadata of `time`.
           write      a frame of graphs as an RDF log, in any of Spark's four modes; Spark passes only
                      `append` and `overwrite` to the data source.
           graphs     a frame of any columns becomes a log, one graph per row, through a mapping. The
                      template is compiled once in every task and run over Arrow batches (mapInArrow), so
                      rows never become Spark's Python objects, and no parser runs. The kind of time is
                      decided by the type of the column and its filters, which are known before anything
                      runs.
Options: path (several: separated by newlines) · from, until (times as in the log, `until` excluded) ·
         timeUnit s|ms|us · timePath · subMicrosecond cut|refuse · interval refuse|begin|end ·
         rdf12 refuse|plain · base · onError fail|skip · maxDocument · for writing: as nquads|jsonl.
Why not: filter push-down (DataSourceReader.pushFilters): Spark 4.3 keeps the reader that took the filters of
         one query for later queries of the same frame or view, which then silently lack rows.
Bad input: D2401, D2402 the mapping, when called; D2404 and errors of times, when rows are read.
"""

from __future__ import annotations

import json
import os
import re
import warnings as python_warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from itertools import islice, repeat
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from dotr.batch.archives import times_of
from dotr.batch.facts import marks
from dotr.batch.log import (
    LogListing,
    Piece,
    ReadCounts,
    Split,
    absolute,
    is_archive,
    is_remote,
    open_log,
    plain_path,
    read_split,
    spread,
)
from dotr.batch.runs import PARTS, lay_out, warnings
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark import frame_stages as placing
from dotr.batch.spark import session as failures
from dotr.batch.spark import session as shipped_files
from dotr.batch.spark.cluster import MANY
from dotr.batch.spark.lasting_frames import InOrder, one_task
from dotr.batch.spark.session import shipped
from dotr.batch.spark.stream import refuse_streaming
from dotr.batch.spark.typed import check_typed, typed_events
from dotr.batch.time_cuts import Gap, cutoff
from dotr.batch.work import Treatment, graph_text, make_job, ship
from dotr.budget import BUDGET
from dotr.core.deployment import Deployment, Settings
from dotr.core.instants import check_units
from dotr.detect.analysis import ENDLESS
from dotr.detect.partitioning import By
from dotr.errors import DataError, DotrError, RefusedError, UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, Format
from dotr.io.decode.parquet import UNIT_NOTE, batch_times, integers, missing, texts
from dotr.io.decode.rdf import RDF12, ParseChoices, parse_triples
from dotr.io.errors import dead_letter
from dotr.io.outputs import unwritable
from dotr.io.python_values import checked_budget, duration
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.tables.cells import CellError, instants_of
from dotr.io.tables.compiled import CompiledMapping, Row, cell_error, cells_used, compile_mapping
from dotr.io.tables.mapping import TableMapping, parse_cell, parse_mapping, read_mapping
from dotr.io.tables.rows import rows
from dotr.io.time import UNITS, TimeError, parse_text
from dotr.io.time_reading import EXACT, FINER, INTERVAL, TimeReading, time_reading
from dotr.io.typed_events import Kinds, Types, columns_of, refuse_alike
from dotr.lang import load_program
from dotr.lang.grammar.cursor import nearest
from dotr.rdf.terms import PROV_GENERATED_AT_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

Rules: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A path of rules, or several."""

_NAME = "<text>.dotr"


def deployed(
    rules: Rules,
    text: str | None,
    background: Sequence[str | PathLike[str]] = (),
    base: str | None = None,
    budget: int = BUDGET,
) -> Deployment:
    """The program of some paths, or of a string, with its background and more.

    Raises ProgramError, DataError; UsageError D4123 for both or neither.
    """
    paths = [rules] if isinstance(rules, str | os.PathLike) else list(rules)
    if bool(paths) == (text is not None):
        raise UsageError.of("D4123", "rules are either paths or text", hint="rules=PATH, or text=TEXT")
    names = [fspath(path) for path in paths] or [_NAME]
    program = load_program(
        names, lambda name: text if text is not None and name == _NAME else read_rules_text(name)
    )
    documents = [*program.background, *(fspath(path) for path in background)]
    triples = read_background(documents, base or STREAM_BASE, named=program.named)
    return Deployment(program, triples, Settings(budget=checked_budget(budget)))


@failures.without_java
def detect(
    log: DataFrame,
    rules: Rules = (),
    *,
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    by: str = "auto",
    slice_length: timedelta | str | None = None,
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    parallelism: int | None = None,
    on_error: str = "fail",
    persist: bool = False,
    schema: str = "typed",
    types: Types | str | None = None,
    carry: Sequence[str] = (),
    times: str = "any",
    observation: Observation | str | None = None,
) -> Found:
    """The composite events of `log`, as by `dotr run`, unordered, and its dead letters.

    `log` has the columns `time` (an integer type, in `time_unit`, or timestamp) and `graph` (N-Triples); rows
    of one time are one instant, order does not matter. `time_unit` ("s", "ms", "us") is not needed if the
    column has it (archives of `dotr convert`, the data source `dotr`); the default is "s". `rules` are paths
    of .dotr and .dlog files, `text` is rules as text instead, `background` more RDF files, all on the driver.
    `by`: "auto", "key" or "time". `slice_length` overrides the chosen slices of time. `max_jump`: how far
    ahead of the time before it a time may lie. `budget`: units of work, like `--budget`; more is an error.
    `on_error`: "fail", or "skip": unreadable graphs, and instants in error, become dead letters. The column
    `time` is read once, during this call (again if times occur in several rows, for rules that tick, with
    `max_jump`, or if rules are cut at gaps), both columns once each time that a result is read, events or
    letters; `persist` holds them, and what is extracted from them, in memory and on disk instead, until the
    session ends or its cache is cleared. `times`: "any",
    or "distinct" if each time stands in one row, which spares comparing
    them; only rows of one time that follow each other in a partition are an error then (D4123, when read).
    With HOLD, ISTREAM, DSTREAM or effects all is detected in one task, in order of time (lasting_frames.py).

    `schema`: "terms", or "typed": events with the columns of io/typed_events.py, by `types` (variable, or
    `Name.variable` of a rule or position → kind; or "data": the kinds that the values have, for which rules
    run once during this call); `events.rule("Fire")` has a column for each variable of a rule. `carry`:
    columns of the log that events get from the row of their trigger's time, as arrays unless times are
    distinct; they are read separately, without the graph. `observation` gets the counters of the first
    action that reads the events: `graphs` (with a time), `facts`, `refused` (graphs that became letters),
    null where all is detected in one task; `events`, and `events RULE` for each rule.

    Events of the schema "terms" have (time as in `log`, but bigint for every integer type; rule; id;
    bindings: WITH variable → term as N-Triples; match: JSON as in a JSON line; graph: sorted N-Triples),
    letters (time, letter: a JSON line). Raises ProgramError, DataError (background; D2106 and D2107 for
    times too far ahead), UsageError
    D4122 (columns), D4123 (arguments). Errors of graphs are raised when the result is read, also as dotr's
    exceptions.
    """
    failures.install()
    refuse_streaming(log)
    clock = clock_of_frame(log, time_unit)
    if by not in list(By):
        raise UsageError.of("D4123", f"`{by}` is not a way to cut a log", hint="auto, key or time")
    if on_error not in ("fail", "skip"):
        raise UsageError.of("D4123", f"on_error cannot be `{on_error}`", hint="fail or skip")
    forgiving = on_error == "skip"
    if times not in ("any", "distinct"):
        raise UsageError.of("D4123", f"times cannot be `{times}`", hint="any or distinct")
    check_typed(log, schema, types, carry)
    length = None if slice_length is None else duration(slice_length)
    if length == 0:
        raise UsageError.of("D4123", "an empty slice of time", hint='slice_length="1 h"')
    deployment = deployed(rules, text, background, base, budget)
    program = deployment.program
    check_units(program, clock)
    plan = deployment.partitioning(By(by))
    slow = [one_task(program)] if program.lasting else warnings(program, plan)
    for diagnostic in (*program.warnings, *slow):
        python_warnings.warn(diagnostic.render(), UserWarning, stacklevel=3)
    unit = clock.unit if clock.integer else 1
    columns = None
    if schema == "typed":
        columns = columns_of(program, clock, types if isinstance(types, Mapping) else None)
        if log.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
            refuse_alike(columns)

    def finished(events: DataFrame) -> DataFrame:
        if observation is not None:
            names = [rule.name for rule in program.rules if not rule.private]
            events = frames.observed(events, observation, names)
        return events if columns is None else typed_events(events, log, program, clock, carry, times)

    graphs = graphs_of(log, clock)
    if persist:
        graphs = graphs.persist()
    undated = frames.undated(graphs, clock)
    if forgiving:
        graphs = graphs.where("time IS NOT NULL")
    cut, gaps = None, list[Gap]()
    ahead = deployment.ahead(None if max_jump is None else duration(max_jump))
    try:
        cores = placing.parallelism(log.sparkSession, parallelism)
        with failures.described(log.sparkSession, "read", program):
            look = frames.look(graphs, unit, max(MANY, cores * PARTS), times == "distinct")
            several = frames.several_times(graphs, look.repeated)
        if look.first is not None and ahead.stride < ENDLESS:
            cut = cutoff(ahead, frames.gaps(graphs.select("time"), unit, ahead.stride), clock, forgiving)
        if look.first is not None and plan.gap is not None and not program.lasting:
            gaps = frames.gaps_to_cut_at(graphs.select("time"), unit, plan.gap, look)
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise what they like
        raise failures.as_own_error(error) from error
    if look.first is None or look.last is None:
        if columns is not None:
            columns = columns.with_kinds({})
        return Found(finished(frames.no_events(log.sparkSession, clock, columns)), undated)
    if program.lasting:
        in_order = InOrder(
            graphs, deployment, clock, (look.first, look.last), base or STREAM_BASE, forgiving, cut
        )
        if columns is not None:
            columns = columns.with_kinds(_kinds(in_order.kinds) if types == "data" else {})
        found, letters = in_order.detected(columns)
        return Found(finished(found), letters.unionByName(undated))
    cores = placing.parallelism(log.sparkSession, parallelism)  # by now all executors have come
    quantiles = frames.thinned(look.quantiles, cores * PARTS)
    layout = lay_out(plan, cores, quantiles, look.last if cut is None else cut.last, length, gaps)
    treatment, place = Treatment(forgiving=forgiving, shared=False), shipped_files.place(log.sparkSession)
    job = ship(make_job(deployment, clock, layout, treatment, cut, place))
    facts = frames.facts_of_graphs(
        graphs, several, job, clock, base or STREAM_BASE, times == "distinct", observation is not None
    )
    if persist:
        facts = facts.persist()  # events and letters are read from them, by different actions
    first: Time | None = look.first
    if forgiving and any(group.ticks or group.holds for group in layout.plan.groups):
        instants = frames.instants(graphs, look.repeated)
        taken = instants if cut is None else instants.where(f"time < {cut.since // unit}")
        first = frames.first_accepted(taken, job, clock, look.first, base or STREAM_BASE)
    rows = [] if first is None else marks(layout, first)
    placed = placing.by_part(facts, rows, layout, look.first, cores)
    letters = frames.letters(facts, clock).unionByName(undated)
    if columns is not None:
        of_data = partial(frames.kinds_of_data, placed, job)
        columns = columns.with_kinds(_kinds(of_data) if types == "data" else {})
    return Found(finished(frames.events(placed, job, clock, columns, observation is not None)), letters)


def _kinds(find: Callable[[], Kinds]) -> Kinds:
    """What a run over the data finds."""
    try:
        return find()
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise what they like
        raise failures.as_own_error(error) from error


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a log: two frames that are computed when read."""

    events: DataFrame
    letters: DataFrame


def clock_of_frame(log: DataFrame, time_unit: str | None) -> Clock:
    """How the log's time column writes time. Raises UsageError D4122, D4123."""
    return clock_of_columns(log.schema, time_unit)


def clock_of_columns(schema: StructType, time_unit: str | None) -> Clock:
    """How the column `time` of a log writes time. Raises UsageError D4122, D4123."""
    from pyspark.sql import types as t  # noqa: PLC0415  # start-up

    if time_unit is not None and time_unit not in UNITS:
        raise UsageError.of(
            "D4123", f"`{time_unit}` is not a unit of time", hint=f"one of {', '.join(UNITS)}"
        )
    kinds = {field.name: field.dataType for field in schema.fields}
    time, graph = kinds.get("time"), kinds.get("graph")
    if isinstance(graph, t.StringType):
        if isinstance(time, t.LongType | t.IntegerType | t.ShortType | t.ByteType):
            noted = schema["time"].metadata.get(UNIT_NOTE)
            if noted in UNITS and time_unit not in (None, noted):
                raise UsageError.of(
                    "D4123", f"the column `time` counts {noted}, not {time_unit}", hint="leave time_unit out"
                )
            return Clock(integer=True, unit=UNITS[time_unit or (noted if noted in UNITS else "s")])
        if isinstance(time, t.TimestampType):
            return Clock(integer=False)
    found = ", ".join(f"{name} {kind.simpleString()}" for name, kind in kinds.items())
    hint = "give the times a zone" if isinstance(time, t.TimestampNTZType) else "rename or cast them"
    raise UsageError.of(
        "D4122",
        "a log has the columns `time` (bigint or timestamp) and `graph` (string)",
        label=found,
        hint=hint,
    )


def graphs_of(log: DataFrame, clock: Clock) -> DataFrame:
    """The two columns, time as bigint (of microseconds if it is a timestamp)."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    time = f.col("time").cast("bigint") if clock.integer else f.unix_micros("time")
    return log.select(time.alias("time"), "graph")


_ROWS = 2048
_TASKS = 64
_OPTIONS = (
    *("path", "from", "until", "timeUnit", "timePath", "subMicrosecond", "interval", "rdf12"),
    *("base", "onError", "maxDocument", "as"),
)
_OPTIONS_NOTE = "dotr.options"
"""Metadata of the column `time` of a table of SQL: its options, as JSON."""

_SUFFIXES = {"nquads": "nq", "jsonl": "jsonl"}
_OURS = re.compile(r"part-[0-9a-f]{12}-\d{5,}\.(nq|jsonl)")


class LogSource(DataSource):
    """An RDF log as a Spark data source."""

    @classmethod
    def name(cls) -> str:
        return "dotr"

    @failures.crossed
    def schema(self) -> StructType:
        """Reads the first graph. Integer times carry their unit, like those of archives; the time of a table
        of SQL carries its options.
        """
        clock = self._log().clock or Clock()
        notes = {}
        if clock.integer:
            notes[UNIT_NOTE] = next(name for name, size in UNITS.items() if size == clock.unit)
        if _is_table(self.options):
            known = {name: self.options[name] for name in _OPTIONS if name in self.options}
            notes[_OPTIONS_NOTE] = json.dumps(known)
        made = StructType().add("time", "long" if clock.integer else "timestamp", True, notes)
        return made.add("graph", "string")

    @failures.crossed
    def reader(self, schema: StructType) -> LogReader:
        """`schema`: of `time` and `graph`, or one of them; else UsageError D4122."""
        noted = next(
            (field.metadata[_OPTIONS_NOTE] for field in schema if _OPTIONS_NOTE in field.metadata), None
        )
        if noted is not None:
            self.options = CaseInsensitiveDict({**json.loads(noted), **self.options})
        log = absolute(self._log())
        integer = log.clock is None or log.clock.integer
        kinds = {"time": "bigint" if integer else "timestamp", "graph": "string"}
        found = {field.name: field.dataType.simpleString() for field in schema}
        if not found or (log.clock is not None and not found.items() <= kinds.items()):
            label, hint = (", ".join(f"{n} {k}" for n, k in of.items()) for of in (found, kinds))
            raise UsageError.of("D4122", "this log has other columns", label=label, hint=f"it has {hint}")
        return LogReader(log, tuple(found), *(self._bound(name, log.clock) for name in ("from", "until")))

    def _bound(self, option: str, clock: Clock | None) -> Time | None:
        """A time of the range that is read, in µs."""
        text = self.options.get(option)
        if text is None or clock is None:
            return None
        unit = next(name for name, size in UNITS.items() if size == clock.unit)
        hint = f"a number of {unit}" if clock.integer else "a dateTime such as 2026-01-01T00:00:00Z"
        try:
            time, integer = parse_text(text, clock.unit)
        except TimeError:
            integer = not clock.integer
        if integer is not clock.integer:
            raise UsageError.of("D4125", f"the option {option} cannot be `{text}`", hint=hint)
        return time

    @failures.crossed
    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        _refuse_unknown(self.options)
        path = self.options.get("path")
        if not path:
            hint = "save(path); dotr.spark.write appends to the folder of a table"
            raise UsageError.of("D4124", 'the data source "dotr" needs a path', hint=hint)
        form = self.options.get("as", "nquads")
        if form not in _SUFFIXES:
            raise _bad("as", form, _SUFFIXES)
        if "graph" not in schema.names or "time" not in schema.names:
            raise UsageError.of(
                "D4122",
                "a log has the columns `time` and `graph`",
                label=", ".join(schema.names),
                hint="rename them",
            )
        names = tuple(name for name in ("time", "graph", "id") if name in schema.names)
        places = tuple(schema.names.index(name) for name in names)
        integer = schema["time"].dataType.typeName() in ("long", "integer", "short", "byte")
        return LogWriter(path, form, places, Clock(integer, self._unit()), overwrite)

    def _unit(self) -> int:
        name = self.options.get("timeUnit", "s")
        if name not in UNITS:
            raise _bad("timeUnit", name, UNITS)
        return UNITS[name]

    def _choice(self, option: str, known: Sequence[str]) -> str:
        """One of some words, the first where the option is not given."""
        word = self.options.get(option, known[0])
        if word not in known:
            raise _bad(option, word, known)
        return word

    def _log(self) -> LogListing:
        _refuse_unknown(self.options)
        path = self.options.get("path")
        if not path:
            hint = "load(path); in SQL OPTIONS (path '…'), and a table without a list of columns"
            raise UsageError.of("D4124", 'the data source "dotr" needs a path', hint=hint)
        policy = self.options.get("onError", "fail")
        if policy not in ("fail", "skip"):
            raise _bad("onError", policy, ("fail", "skip"))
        time_path = self.options.get("timePath")
        options = SourceOptions(
            base=self.options.get("base", STREAM_BASE),
            time_path=f"<{time_path.strip('<>')}>" if time_path else None,
            unit=self._unit(),
            reading=TimeReading(
                finer=self._choice("subMicrosecond", FINER), interval=self._choice("interval", INTERVAL)
            ),
            choices=ParseChoices(self._choice("rdf12", RDF12)),
            max_document=int(self.options.get("maxDocument", MAX_DOCUMENT)),
        )
        # the path of a table of SQL is a URI, in which a line end is written %0A
        places = [part for place in path.split("\n") for part in _here(place).split("\n")]
        return open_log(places, options, policy == "fail")


def _here(place: str) -> str:
    """A place as a path. Raises UsageError D4127 if Python cannot open it."""
    if is_remote(place):
        raise UsageError.of(
            "D4127",
            f"`{place}` is not on this machine",
            hint="the data source opens files; `dotr batch --log` reads whatever Spark can, and so does "
            "spark.read.parquet for archives of `dotr convert`",
        )
    return plain_path(place)


def _refuse_unknown(options: Mapping[str, str]) -> None:
    """Raise UsageError D4125 for an unknown option: a misspelt one would have no effect.

    Spark hands on the properties of a table as options, too; OPTIONS also with the prefix `option.`.
    """
    known = {option.lower(): option for option in _OPTIONS}
    given = list(options)
    if _is_table(options):
        given = [option[len(_GIVEN) :] for option in given if option.lower().startswith(_GIVEN)]
    for option in given:
        if option.lower() not in known:
            hint = nearest(option, _OPTIONS) or f"the options are {', '.join(_OPTIONS)}"
            raise UsageError.of("D4125", f"there is no option `{option}`", hint=hint)


_GIVEN = "option."


def _is_table(options: Mapping[str, str]) -> bool:
    """Whether the options are those of CREATE TABLE."""
    return options.get("provider", "").lower() == LogSource.name()


def _bad(option: str, found: str, known: Any) -> UsageError:
    return UsageError.of(
        "D4125", f"the option {option} cannot be `{found}`", hint=f"one of {', '.join(known)}"
    )


@dataclass
class LogPartition(InputPartition):
    """What one task reads."""

    split: Split


class LogReader(DataSourceReader):
    """Reads the columns `names` of a log: graphs with a time in `[since, end)`, in µs (None: unbounded)."""

    def __init__(
        self,
        log: LogListing,
        names: tuple[str, ...] = ("time", "graph"),
        since: Time | None = None,
        end: Time | None = None,
    ) -> None:
        self._log, self._names, self._since, self._end = log, names, since, end

    def _wanted(self, first: Time, last: Time) -> bool:
        """Whether a time of these, and of those between, lies in the range."""
        return (self._since is None or last >= self._since) and (self._end is None or first < self._end)

    def _read(self, piece: Piece) -> bool:
        return piece.span is None or self._wanted(*piece.span)

    @failures.crossed
    def partitions(self) -> Sequence[LogPartition]:
        if self._log.clock is None:
            return []
        read = (Split(tuple(filter(self._read, split.pieces))) for split in self._log.splits)
        return [LogPartition(split) for split in spread([split for split in read if split.pieces], _TASKS)]

    def read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # Spark passes our own partitions
        return failures.crossing_to_driver(lambda: self._batches(partition.split))

    def _batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        clock = self._log.clock or Clock()
        unit = clock.unit if clock.integer else 1
        kind = pa.int64() if clock.integer else pa.timestamp("us", tz="UTC")
        times: list[int] = []
        graphs: list[str] = []

        def batch() -> pa.RecordBatch:
            columns = {"time": integers(times, kind), "graph": texts(graphs)}
            return pa.RecordBatch.from_pydict({name: columns[name] for name in self._names})

        for time, graph in self._rows(split):
            if self._wanted(time, time):
                times.append(time // unit)
                graphs.append(graph)
                if len(times) >= _ROWS:
                    yield batch()
                    times, graphs = [], []
        yield batch()

    def _rows(self, split: Split) -> Iterator[tuple[Time, str]]:
        """(time in µs, graph) of a split; the graphs of archives are only read if they are asked for, or may
        be in error.
        """
        for piece in split.pieces:
            times_alone = "graph" not in self._names and self._log.fail
            if times_alone and is_archive(piece.file, self._log.options):
                yield from zip(times_of(self._log, [piece]).to_pylist(), repeat(""))  # no end
            else:
                yield from read_split(self._log, Split((piece,)), ReadCounts())


@dataclass
class Wrote(WriterCommitMessage):
    """The files of one task, not renamed yet."""

    files: tuple[str, ...]


class LogWriter(DataSourceArrowWriter):
    """Writes RDF logs beside the existing files of a folder, or (`overwrite`) instead of them: the old ones
    are removed once all new ones are renamed.

    Raises RefusedError D5001 for a path that is not a folder, and if foreign files would be removed.
    """

    def __init__(
        self, path: str, form: str, places: tuple[int, ...], clock: Clock, overwrite: bool = False
    ) -> None:
        self._path = os.path.abspath(_here(path))
        self._form, self._places, self._clock = form, places, clock
        self._run = uuid4().hex[:12]
        if os.path.lexists(self._path) and not os.path.isdir(self._path):
            raise RefusedError.of("D5001", f"`{path}` is not a folder", place=path, hint="another name")
        self._old = _written_before(self._path) if overwrite else []

    @failures.crossed
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Wrote:
        """One file of a task; not created without rows."""
        name = f".{uuid4().hex}.part"
        path = os.path.join(self._path, name)
        file = None
        rows = 0
        try:
            for batch in iterator:
                if file is None:
                    os.makedirs(self._path, exist_ok=True)
                    file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed below
                file.writelines(self._lines(batch, rows))
                rows += batch.num_rows
            if file is not None:
                file.flush()
                os.fsync(file.fileno())
                file.close()
        except OSError as error:
            raise unwritable(path, error) from None
        return Wrote((name,) if file is not None else ())

    def _lines(self, batch: pa.RecordBatch, first: int) -> Iterator[str]:
        columns = [batch.column(place) for place in self._places]
        times = batch_times(columns[0], self._clock)
        graphs = columns[1].to_pylist()
        ids = columns[2].to_pylist() if len(columns) > 2 else [None] * len(times)
        for row, (time, graph, id_) in enumerate(zip(times, graphs, ids, strict=True), first):
            if time is None or graph is None:
                raise missing("the frame to write", "time" if time is None else "graph")
            stamp = self._clock.text(time)
            if self._form == "jsonl":
                line = {"time": int(stamp) if self._clock.integer else stamp, "graph": graph}
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
                continue
            triples = parse_triples(graph, Format.NTRIPLES, f"the graph at {stamp}")
            name = f"<{id_ or _name(stamp, graph, row)}>"
            yield f"{name} {PROV_GENERATED_AT_TIME} {self._clock.term(time)} .\n"
            yield from (f"{s} {p} {o} {name} .\n" for s, p, o in triples)

    def commit(self, messages: list[Any]) -> None:
        """Give the files of all tasks their names."""
        number = 0
        for message in messages:
            for name in () if message is None else message.files:
                final = f"part-{self._run}-{number:05}.{_SUFFIXES[self._form]}"
                os.rename(os.path.join(self._path, name), os.path.join(self._path, final))
                number += 1
        for old in self._old:
            os.unlink(os.path.join(self._path, old))

    def abort(self, messages: list[Any]) -> None:
        for message in messages:
            for name in () if message is None else message.files:
                os.unlink(os.path.join(self._path, name))


def _written_before(folder: str) -> list[str]:
    """The files of a folder that an overwriting job replaces. Raises RefusedError D5001 for foreign ones."""
    found = [name for name in os.listdir(folder) if not name.startswith(".")] if os.path.isdir(folder) else []
    foreign = [name for name in found if not _OURS.fullmatch(name)]
    if foreign:
        raise RefusedError.of(
            "D5001",
            f"`{folder}` has files that dotr did not write",
            place=folder,
            label=", ".join(sorted(foreign)[:5]),
            hint="give another name, or mode append",
        )
    return found


def _name(stamp: str, graph: str, row: int) -> str:
    """A name for a graph without one. `row` distinguishes equal graphs of one file."""
    return f"urn:dotr:graph:{blake2b(f'{stamp} {graph}'.encode(), digest_size=15).hexdigest()}-{row}"


MODES = ("error", "errorifexists", "ignore", "append", "overwrite")


@failures.without_java
def write(frame: DataFrame, path: str | PathLike[str], mode: str, form: str, time_unit: str | None) -> bool:
    """Write (time, graph) and, if present, id to `path`; returns whether anything was written.

    Raises UsageError D4123 for another mode, D4122, RefusedError D5001 for a path that exists under "error".
    """
    if mode not in MODES:
        hint = f"one of {', '.join(MODES)}"
        raise UsageError.of("D4123", f"a mode cannot be `{mode}`", hint=hint)
    place = fspath(path)
    here = plain_path(place)
    if mode not in ("append", "overwrite") and not is_remote(place) and _is_taken(here):
        if mode == "ignore":
            return False
        raise RefusedError.of(
            "D5001", f"`{place}` exists", place=place, hint="mode append, overwrite or ignore"
        )
    failures.install()
    frame.sparkSession.dataSource.register(LogSource)
    columns = [name for name in ("time", "graph", "id") if name in frame.columns]
    if not {"time", "graph"} <= set(columns):
        raise UsageError.of(
            "D4122",
            "a log has the columns `time` and `graph`",
            label=", ".join(frame.columns),
            hint="rename them",
        )
    writer = frame.select(*columns).write.format("dotr").option("as", form)
    noted = frame.schema["time"].metadata.get(UNIT_NOTE)
    if time_unit or noted:
        writer = writer.option("timeUnit", time_unit or noted)
    try:
        writer.mode("overwrite" if mode == "overwrite" else "append").save(place)
    except Exception as error:  # Py4J and gRPC raise anything
        raise failures.as_own_error(error) from None
    return True


def _is_taken(path: str) -> bool:
    return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))


Batches = Iterator[pa.RecordBatch]

_MAPPED_ROWS = 512
_PLACE = "<frame>"


def graphs(
    frame: DataFrame,
    *,
    template: str | None = None,
    mapping: str | PathLike[str] | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    time_zone: str = "",
    sub_microsecond: str = "cut",
    ambiguous_time: str = "refuse",
    nonexistent_time: str = "refuse",
    interval: str = "refuse",
    base: str | None = None,
    on_error: str = "fail",
) -> tuple[DataFrame, DataFrame]:
    """(the log, its dead letters): (time: bigint or timestamp, graph) and (letter). See `dotr.spark.graphs`.

    Raises DataError D2401, D2402, UsageError D4123.
    """
    failures.install()
    if on_error not in ("fail", "skip"):
        raise UsageError.of("D4123", f"on_error cannot be `{on_error}`", hint="fail, skip or keep")
    if time_unit is not None and time_unit not in UNITS:
        hint = f"one of {', '.join(UNITS)}"
        raise UsageError.of("D4123", f"`{time_unit}` is not a unit of time", hint=hint)
    read = _mapping(template, mapping, base or STREAM_BASE, time)
    assert read.time is not None
    reading = time_reading(sub_microsecond, ambiguous_time, nonexistent_time, interval)
    if read.reading(reading).ambiguous == "infer":
        hint = "rows of a frame have no order; ambiguous_time can be earlier, later or refuse"
        raise UsageError.of("D4187", "`infer` is not a value of ambiguous_time on Spark", hint=hint)
    columns = _columns(frame)
    clock = _clock(frame, read, time_unit or "s", time_zone)
    compile_mapping(read, columns, clock.unit, time_zone, _PLACE, reading)  # reports its errors now
    used = list(cells_used(read))
    work = ReadTable(read, tuple(used), clock, time_zone, on_error == "fail", reading)
    narrow = frame.select(*dict.fromkeys(_quoted(frame, name) for name in used))
    kind = "bigint" if clock.integer else "timestamp"
    made = narrow.mapInArrow(shipped(work), f"time {kind}, graph string, letter string")
    if on_error == "fail":
        return made.select("time", "graph"), made.select("letter").where("false")
    return made.where("letter IS NULL").select("time", "graph"), made.where("letter IS NOT NULL").select(
        "letter"
    )


def _mapping(
    template: str | None, mapping: str | PathLike[str] | None, base: str, time: str | None
) -> TableMapping:
    if (template is None) == (mapping is None):
        hint = 'template="[] :celsius {temp} .", or mapping="readings.map"'
        raise UsageError.of("D4123", "rows are mapped by either a template or a file", hint=hint)
    if template is not None:
        read = parse_mapping(template, "<template>", base)
    else:
        assert mapping is not None
        read = read_mapping(fspath(mapping), base)
    if time is not None:
        read = replace(read, time=parse_cell(time, "<time>"))
    if read.time is None:
        hint = 'time="ts", or # time: ts in the mapping'
        raise UsageError.of("D4123", "no column is named as the time", hint=hint)
    return read


def _columns(frame: DataFrame) -> list[str]:
    """Names of the columns, with fields of structs as `a.b`."""

    def below(fields: Sequence[Any], prefix: str) -> Iterator[str]:
        for field in fields:
            inner = getattr(field.dataType, "fields", None)
            if inner is None:
                yield f"{prefix}{field.name}"
            else:
                yield from below(inner, f"{prefix}{field.name}.")

    return list(below(frame.schema.fields, ""))


def _quoted(frame: DataFrame, name: str) -> str:
    """The column of the frame with a (dotted) name."""
    own = name if name in frame.columns else name.split(".", 1)[0]
    return f"`{own.replace('`', '``')}`"


def _clock(frame: DataFrame, mapping: TableMapping, unit: str, zone: str) -> Clock:
    assert mapping.time is not None
    kind = next((f.dataType.typeName() for f in frame.schema.fields if f.name == mapping.time.column), "")
    whole = kind in ("byte", "short", "integer", "long")
    integer = whole and instants_of(mapping.time, zone, mapping.name) is None
    return Clock(integer=integer, unit=UNITS[unit])


class ReadTable(Struct, frozen=True):
    """Rows of `columns` to (time, graph, letter); letters unless `fail` is set."""

    mapping: TableMapping
    columns: tuple[str, ...]
    clock: Clock
    zone: str
    fail: bool
    reading: TimeReading = EXACT

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._read(batches))

    def _read(self, batches: Batches) -> Batches:
        settings = self.clock.unit, self.zone, _PLACE, self.reading
        compiled = compile_mapping(self.mapping, self.columns, *settings)
        found = rows(batches, self.columns, _PLACE)
        while some := list(islice(found, _MAPPED_ROWS)):
            yield self._made(some, compiled)

    def _made(self, some: list[list[str | None]], compiled: CompiledMapping) -> pa.RecordBatch:
        unit = self.clock.unit if self.clock.integer else 1
        times: list[int | None] = []
        graphs_: list[str | None] = []
        letters: list[str | None] = []
        instants = compiled.instants([row[compiled.time_at] for row in some])
        for row, part, instant in zip(some, compiled.parts(some), instants, strict=True):
            try:
                if isinstance(part, CellError):
                    raise part
                times.append(self._time(instant) // unit)
                graphs_.append(graph_text(part))
                letters.append(None)
            except CellError as error:
                letters.append(self._refused(error, row))
                times.append(None)
                graphs_.append(None)
        kind = None if self.clock.integer else pa.timestamp("us", tz="UTC")
        arrays = [integers(times, kind), texts(graphs_), texts(letters)]
        return pa.RecordBatch.from_arrays(arrays, names=["time", "graph", "letter"])

    def _time(self, instant: tuple[Time, bool] | CellError) -> Time:
        if isinstance(instant, CellError):
            raise instant
        time, integer = instant
        if integer is not self.clock.integer:
            hint = "cast the column: integers to bigint; or read them: time='ts|epoch(s)'"
            kind = "an integer" if integer else "a dateTime"
            raise CellError(f"the time of this row is {kind}, that of others is not", hint, "D2102")
        return time

    def _refused(self, error: CellError, row: Row) -> str:
        content = json.dumps(dict(zip(self.columns, row, strict=True)), ensure_ascii=False)
        refused: DataError = cell_error(error, _PLACE, content)
        if self.fail:
            raise refused
        return dead_letter(refused, content.encode())
