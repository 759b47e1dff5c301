"""`dotr.spark.detect`: a DataFrame of graphs in, a DataFrame of composite events out.

Place:   for users with their own session, including Connect; the command line uses cluster.py.
Method:  program and background are read here, by the driver. The time column is scanned once when the
         function is called (frame_stages.py explains why); graphs are only read when the result is.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING

from dotr.batch.extracting import Treatment
from dotr.batch.fact_rows import marks
from dotr.batch.job import make_job, ship
from dotr.batch.runs import PARTS, check_program, lay_out, warnings
from dotr.batch.spark import failures, placing, shipped_files
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark.cluster import MANY
from dotr.batch.spark.driver_input import Rules, deployed
from dotr.batch.spark.streams import refuse_streaming
from dotr.batch.time_gaps import Gap, cutoff
from dotr.budget import BUDGET
from dotr.errors import DotrError, UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.decode.parquet import UNIT_NOTE
from dotr.io.python_arguments import duration
from dotr.io.timestamps import UNITS
from dotr.temporal.partitions import By
from dotr.temporal.silences import ENDLESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
) -> Found:
    """The composite events of `log`, as by `dotr run`, unordered, and its dead letters.

    `log` has the columns `time` (an integer type, in `time_unit`, or timestamp) and `graph` (N-Triples); rows
    of one time are one instant, order does not matter. `time_unit` ("s", "ms", "us") is not needed if the
    column has it (archives of `dotr convert`, the data source `dotr`); the default is "s". `rules` are paths
    of .dotr and .dlog files, `text` is rules as text instead, `background` more RDF files, all on the driver.
    `by`: "auto", "key" or "time". `slice_length` overrides the chosen slices of time. `max_jump`: how far
    ahead of the time before it a time may lie. `budget`: units of work, like `--budget`; more is an error.
    `on_error`: "fail", or "skip": unreadable graphs, and instants in error, become dead letters. The column
    `time` is read once, during this call (again for rules that tick, with `max_jump`, or if rules are cut at
    gaps), both columns each time that a result is read; `persist` holds them in memory and on disk instead,
    until the session ends or its cache is cleared.

    Events have (time as in `log`, but bigint for every integer type; rule; id; bindings: WITH variable → term
    as N-Triples; match: JSON as in a JSON line; graph: sorted N-Triples), letters (time, letter: a JSON
    line). Raises ProgramError, DataError (background; D2106 and D2107 for times too far ahead), UsageError
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
    length = None if slice_length is None else duration(slice_length)
    if length == 0:
        raise UsageError.of("D4123", "an empty slice of time", hint='slice_length="1 h"')
    deployment = deployed(rules, text, background, base, budget)
    program = deployment.program
    check_program(program, clock)
    plan = deployment.partitioning(By(by))
    for diagnostic in (*program.warnings, *warnings(program, plan)):
        python_warnings.warn(diagnostic.render(), UserWarning, stacklevel=3)
    unit = clock.unit if clock.integer else 1
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
        look = frames.look(graphs, unit, max(MANY, cores * PARTS))
        if look.first is not None and ahead.stride < ENDLESS:
            cut = cutoff(ahead, frames.gaps(graphs.select("time"), unit, ahead.stride), clock, forgiving)
        if look.first is not None and plan.gap is not None:
            gaps = frames.gaps_to_cut_at(graphs.select("time"), unit, plan.gap, look)
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise what they like
        raise failures.as_own_error(error) from error
    if look.first is None or look.last is None:
        return Found(frames.no_events(log.sparkSession, clock), undated)
    cores = placing.parallelism(log.sparkSession, parallelism)  # by now all executors have come
    quantiles = frames.thinned(look.quantiles, cores * PARTS)
    layout = lay_out(plan, cores, quantiles, look.last if cut is None else cut.last, length, gaps)
    treatment, place = Treatment(forgiving=forgiving, shared=False), shipped_files.place(log.sparkSession)
    job = ship(make_job(deployment, clock, layout, treatment, cut, place))
    instants = frames.instants(graphs, look.repeated)
    facts = frames.facts(instants, job, clock, base or STREAM_BASE)
    first: Time | None = look.first
    if forgiving and any(group.ticks or group.holds for group in layout.plan.groups):
        taken = instants if cut is None else instants.where(f"time < {cut.since // unit}")
        first = frames.first_accepted(taken, job, clock, look.first, base or STREAM_BASE)
    rows = [] if first is None else marks(layout, first)
    placed = placing.by_part(facts, rows, layout, look.first, cores)
    return Found(frames.events(placed, job, clock), frames.letters(facts, clock).unionByName(undated))


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a log: two frames that are computed when read."""

    events: DataFrame
    letters: DataFrame


def clock_of_frame(log: DataFrame, time_unit: str | None) -> Clock:
    """How the log's time column writes time. Raises UsageError D4122, D4123."""
    from pyspark.sql import types as t  # noqa: PLC0415  # start-up

    if time_unit is not None and time_unit not in UNITS:
        raise UsageError.of(
            "D4123", f"`{time_unit}` is not a unit of time", hint=f"one of {', '.join(UNITS)}"
        )
    kinds = {field.name: field.dataType for field in log.schema.fields}
    time, graph = kinds.get("time"), kinds.get("graph")
    if isinstance(graph, t.StringType):
        if isinstance(time, t.LongType | t.IntegerType | t.ShortType | t.ByteType):
            noted = log.schema["time"].metadata.get(UNIT_NOTE)
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
