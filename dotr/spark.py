"""Batch runs: the same events from many processes. The public entry to Spark.

    import dotr.spark
    spark = dotr.spark.session()
    events = dotr.spark.detect(log, rules="fire.dotr")

Place:   above api.py, below cli/. detect/partitioning.py and batch/time_cuts.py are pure and cheap to
         import; Arrow and Spark are imported in the functions that need them, since `dotr plan` needs
         neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Literal, overload

from dotr.budget import BUDGET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

    from dotr.batch.spark.stream_frames import FrameStream

    class Events(DataFrame):
        """Typed events."""

        def rule(self, name: str) -> DataFrame:
            """Those of one rule: time, id, a column for each variable of WITH, terms, what is carried."""


__all__ = ["detect", "graphs", "materialize", "register", "session", "stream", "write"]


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The running Spark session, or a new one with the settings dotr needs; see session.py.

    Raises EngineError D4301 without Java, D4302 when Spark does not start.
    """
    from dotr.batch.spark.session import session as start  # noqa: PLC0415  # start-up

    return start(master, **conf)


@overload
def detect(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    on_error: Literal["fail", "skip"] = "fail",
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    by: str = "auto",
    slice_length: timedelta | str | None = None,
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    parallelism: int | None = None,
    persist: bool = False,
    schema: Literal["typed", "terms"] = "typed",
    types: Mapping[str, str] | Literal["data"] | None = None,
    carry: Sequence[str] = (),
    times: Literal["any", "distinct"] = "any",
    observation: Observation | str | None = None,
) -> Events: ...


@overload
def detect(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    on_error: Literal["keep"],
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    by: str = "auto",
    slice_length: timedelta | str | None = None,
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    parallelism: int | None = None,
    persist: bool = False,
    schema: Literal["typed", "terms"] = "typed",
    types: Mapping[str, str] | Literal["data"] | None = None,
    carry: Sequence[str] = (),
    times: Literal["any", "distinct"] = "any",
    observation: Observation | str | None = None,
) -> tuple[Events, DataFrame]: ...


def detect(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    on_error: str = "fail",
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    by: str = "auto",
    slice_length: timedelta | str | None = None,
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    parallelism: int | None = None,
    persist: bool = False,
    schema: str = "typed",
    types: Mapping[str, str] | str | None = None,
    carry: Sequence[str] = (),
    times: str = "any",
    observation: Observation | str | None = None,
) -> DataFrame | tuple[DataFrame, DataFrame]:
    """The composite events of a log: (time, date, rule, id, bindings, match, terms, graph), unordered; see
    frames.py, and io/typed_events.py for `bindings` and `match`, structs of typed values. With
    `schema="terms"`, (time, rule, id, bindings, match, graph, lists) of N-Triples and JSON. With
    `on_error="keep"`, two frames: the events, and the dead letters, (time, letter). `observation`, of Spark,
    gets counters: graphs, facts, refused, events, and events by rule.
    """
    from dotr.batch.spark.frames import detect as run  # noqa: PLC0415  # start-up

    found = run(
        log,
        rules,
        text=text,
        background=background,
        time_unit=time_unit,
        by=by,
        slice_length=slice_length,
        base=base,
        max_jump=max_jump,
        budget=budget,
        parallelism=parallelism,
        on_error="skip" if on_error == "keep" else on_error,
        persist=persist,
        schema=schema,
        types=types,
        carry=carry,
        times=times,
        observation=observation,
    )
    return (found.events, found.letters) if on_error == "keep" else found.events


@overload
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
    on_error: Literal["fail", "skip"] = "fail",
) -> DataFrame: ...


@overload
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
    on_error: Literal["keep"],
) -> tuple[DataFrame, DataFrame]: ...


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
) -> DataFrame | tuple[DataFrame, DataFrame]:
    """A log (time, graph) from a frame of any columns, as `detect`, `stream` and `write` take it.

    `template`: Turtle with `{column}`, or `mapping`: a mapping file (see the manual, `dotr help data`).
    `time`: the column of the time, with filters if needed (`ts|epoch(ms)`); default: `# time:` of the
    mapping. A column of integers counts `time_unit`s ("s" by default), timestamps and texts are instants;
    `time_zone` is for local ones, of which `ambiguous_time` ("earlier", "later") and `nonexistent_time`
    ("forward") say what those are that came twice or never, and `interval` ("begin", "end") which end of
    `begin/end` is taken; `sub_microsecond="refuse"` refuses what is finer than a microsecond instead of
    cutting it. The frame is not read here. A row in error fails the action that reads it;
    with `on_error="skip"` it is skipped, with "keep" there are two frames: the log, and the dead letters,
    (letter). Raises DataError D2401, D2402, UsageError D4123.
    """
    from dotr.batch.spark.frames import graphs as run  # noqa: PLC0415  # start-up

    log, letters = run(
        frame,
        template=template,
        mapping=mapping,
        time=time,
        time_unit=time_unit,
        time_zone=time_zone,
        sub_microsecond=sub_microsecond,
        ambiguous_time=ambiguous_time,
        nonexistent_time=nonexistent_time,
        interval=interval,
        base=base,
        on_error="skip" if on_error == "keep" else on_error,
    )
    return (log, letters) if on_error == "keep" else log


def materialize(
    triples: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    passes: int | None = None,
) -> DataFrame:
    """The closure of a table of triples (subject, predicate, object) under rules that do not join data with
    data, such as `ENTAILMENT rdfs`, each triple once; see materialising.py. With `passes`, rules may join
    data at a node: at most that many more passes run, until nothing is new; see materialising.py.
    """
    from dotr.batch.spark.materialising import materialize as run  # noqa: PLC0415  # start-up

    return run(triples, rules, text, background, passes)


@overload
def stream(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    lateness: timedelta | str | None = None,
    late: str = "drop",
    on_error: str = "fail",
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    mode: str = "auto",
    parallelism: int | None = None,
    change_rules: bool = False,
    schema: Literal["typed", "terms"] = "typed",
    types: Mapping[str, str] | None = None,
) -> Events: ...


@overload
def stream(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    out: str | PathLike[str],
    checkpoint: str | PathLike[str],
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    lateness: timedelta | str | None = None,
    late: str = "drop",
    on_error: str = "fail",
    format: str = "jsonl",  # the word of the command line
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    once: bool = False,
    every: timedelta | str | None = None,
    mode: str = "auto",
    parallelism: int | None = None,
    change_rules: bool = False,
) -> FrameStream: ...


@overload
def stream(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    foreach_batch: Callable[[DataFrame, int], None],
    checkpoint: str | PathLike[str],
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    lateness: timedelta | str | None = None,
    late: str = "drop",
    on_error: str = "fail",
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    once: bool = False,
    every: timedelta | str | None = None,
    mode: str = "auto",
    parallelism: int | None = None,
    change_rules: bool = False,
    schema: Literal["typed", "terms"] = "typed",
    types: Mapping[str, str] | None = None,
) -> FrameStream: ...


def stream(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    out: str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    text: str | None = None,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    lateness: timedelta | str | None = None,
    late: str = "drop",
    on_error: str = "fail",
    format: str = "jsonl",  # noqa: A002  # the word of the command line
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    once: bool = False,
    every: timedelta | str | None = None,
    mode: str = "auto",
    parallelism: int | None = None,
    change_rules: bool = False,
    schema: str = "typed",
    types: Mapping[str, str] | None = None,
) -> DataFrame | FrameStream:
    """The events of a streaming frame, as a streaming frame with the columns of `detect`; in order, or
    detected by part on all workers (`mode`). With `out` a running query instead, that writes events exactly
    once, in files named by micro-batch; with `foreach_batch` one that hands the events of each micro-batch to
    a function, as a frame, with its number. See stream_sources.py.
    """
    from dotr.batch.spark.stream_sources import stream as run  # noqa: PLC0415  # start-up

    return run(
        log,
        rules,
        out=out,
        checkpoint=checkpoint,
        foreach_batch=foreach_batch,
        text=text,
        background=background,
        time_unit=time_unit,
        lateness=lateness,
        late=late,
        on_error=on_error,
        format_=format,
        base=base,
        max_jump=max_jump,
        budget=budget,
        once=once,
        every=every,
        mode=mode,
        parallelism=parallelism,
        change_rules=change_rules,
        schema=schema,
        types=types,
    )


def write(
    frame: DataFrame,
    path: str | PathLike[str],
    *,
    mode: str = "error",
    form: str = "nquads",
    time_unit: str | None = None,
) -> bool:
    """Write a frame of graphs (time, graph, and id where graphs have names) as an RDF log, `form` "nquads" or
    "jsonl"; returns whether anything was written. `mode`: "error", "ignore", "append" or "overwrite".
    """
    from dotr.batch.spark.frames import write as run  # noqa: PLC0415  # start-up

    return run(frame, path, mode, form, time_unit)


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("dotr")` and `frame.write.format("dotr")` (frames.py), and a table function
    of SQL, `SELECT * FROM dotr_detect(TABLE(log), rules => 'fire.dotr')` (sql.py).
    """
    from dotr.batch.spark.sql import register as run  # noqa: PLC0415  # start-up

    run(spark)
