"""`dotr.spark.stream`: a streaming frame of graphs in, files of events out.

Place:   for users with their own session; the command line uses stream_sources.py.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from datetime import timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING

from dotr.batch.spark import distributed, placing
from dotr.batch.spark.dataframe import clock_of_frame, graphs_of
from dotr.batch.spark.distributed import Graphs
from dotr.batch.spark.driver_input import Rules, deployed
from dotr.batch.spark.running import BatchTrigger, Running
from dotr.batch.spark.streams import graph_reader, not_streaming, observed, start, states_of
from dotr.batch.stream_folder import FORMATS, ORDERED, StreamOptions, known_mode
from dotr.batch.stream_modes import choose
from dotr.budget import BUDGET
from dotr.core.time_units import check_units
from dotr.errors import UsageError
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.python_arguments import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stream(
    log: DataFrame,
    rules: Rules,
    *,
    out: str | PathLike[str],
    checkpoint: str | PathLike[str],
    text: str | None,
    background: Sequence[str | PathLike[str]],
    time_unit: str | None,
    lateness: timedelta | str | None,
    late: str,
    on_error: str,
    format_: str,
    base: str | None,
    max_jump: timedelta | str | None,
    budget: int = BUDGET,
    once: bool,
    every: timedelta | str | None,
    mode: str,
    parallelism: int | None,
) -> Running:
    """Start a query over `log`, a streaming frame with the columns `time` and `graph` as in `detect`.

    `out`: the folder of the events, one file per micro-batch with events; `checkpoint`: the folder of Spark's
    checkpoint and of the engine's states. `lateness`: how much out of order the stream may be. `late`:
    "drop", "fail", or "keep" in `out/_late`; `on_error`: "fail", "skip", or "keep" in `out/_letters`. `once`:
    process the available data, close the last instant when `wait` is called, and end; else a micro-batch at
    the interval `every`. `mode`: "ordered" (one engine, the bytes of `dotr run`), "distributed" (parts on all
    workers, the same set of events, sorted by time, rule and id) or "auto": see `mode` and `reasons` of the
    result. `parallelism`: tasks at once, if Spark does not know.

    Raises ProgramError, DataError (background), UsageError D4122, D4123, D4129 (no stream), D4309 (Connect),
    UsageError D4311 (cannot be distributed),
    RefusedError D5001, D5220 (the checkpoint belongs to other rules), EngineError D5221.
    """
    if not log.isStreaming:
        raise not_streaming()
    clock = clock_of_frame(log, time_unit)
    allowed = (("late", late, ("drop", "keep", "fail")), ("on_error", on_error, ("fail", "skip", "keep")))
    for name, value, known in (*allowed, ("format", format_, FORMATS)):
        if value not in known:
            hint = f"one of {', '.join(known)}"
            raise UsageError.of("D4123", f"{name} cannot be `{value}`", hint=hint)
    deployment = deployed(rules, text, background, base, budget)
    check_units(deployment.program, clock)
    for diagnostic in deployment.program.warnings:
        python_warnings.warn(diagnostic.render(), UserWarning, stacklevel=4)
    options = StreamOptions(
        format_, duration(lateness), late, on_error, None if max_jump is None else duration(max_jump)
    )
    trigger = BatchTrigger(once, None if every is None else duration(every) / 1e6)
    home, cores = fspath(checkpoint), placing.parallelism(log.sparkSession, parallelism)
    choice = choose(mode, known_mode(states_of(home)), deployment, options, cores)
    graphs, found = graphs_of(log, clock), base or STREAM_BASE
    if choice.mode == ORDERED:
        read = graph_reader(clock, found, on_error)
        running: Running = start(observed(graphs), read, deployment, fspath(out), home, options, trigger)
    else:
        source = Graphs(graphs, clock, found)
        running = distributed.start(source, deployment, fspath(out), home, options, trigger, cores=cores)
    running.reasons = choice.reasons
    return running
