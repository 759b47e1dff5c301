"""A streaming frame in order: workers parse, and one task has the engine of `dotr run`.

Place:   the plan of streams (stream_frames.py) for programs, or on machines, for which a stream by part does
         not pay (batch/stream.py chooses).
Method:  workers parse graphs and bundle them (distributed.py); one group of applyInPandasWithState gets
         all of a batch, in order of time, then of text, so that a repeated batch gives the same events. The
         state is the engine's snapshot, and a token by which a process recognises that it still has the
         engine. Lateness is the engine's own: no watermark of Spark is needed, and what is late is late by
         the graph before it, as in `dotr run`. A row without a bundle closes the last instant of the batches
         before.
         Events leave the operator as bytes, in their order; late graphs and dead letters that are kept leave
         it as lines beside the counts. Letters of documents come with the notes of the tasks that read them.
         If it is not known how the stream writes time, workers read in µs and note the clock of their first
         graph; the engine takes it from there.
Why not: transformWithState: it needs protobuf and RocksDB, for one value.
Bad input: D2102 · D5220 · D5221 · errors of graphs.
"""

from __future__ import annotations

import json
import pickle
import secrets
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
from msgspec import Struct

from dotr.batch.choices import ORDERED
from dotr.batch.log import LogListing
from dotr.batch.spark.distributed import Graphs, bundled, ends_of
from dotr.batch.spark.event_rows import Form, Lines, packed_events
from dotr.batch.spark.read import ReadRows
from dotr.batch.spark.session import crossing
from dotr.batch.spark.stream import CLOSED
from dotr.batch.spark.stream_bundles import unpacked
from dotr.batch.stream import OrderedEngine, StreamOptions, compare, meta_of, other_clock
from dotr.batch.work import split_lines
from dotr.collecting import rarely
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.errors import DotrError
from dotr.events import Clock, Composite, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.sources import SourceOptions
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEPT = {"late_lines": "_late", "letter_lines": "_letters"}
"""Columns of what is kept → their folders beside the events."""

FOUND = (
    "slot bigint, events bigint, found binary, sizes string, late bigint, refused bigint, times string, "
    "late_lines string, letter_lines string"
)
"""Some events and their number (event_rows.py), in several rows; the last one has, as JSON, how many facts
are stored by rule, and [the greatest time, the watermark, whether the last instant is open], times as the
stream writes them, "" before the first; it counts what was skipped, and has the lines of late graphs and dead
letters if these are kept.
"""

_STATE = "meta binary, token bigint, content binary"
_STREAMS_KEPT = 2
_STATES_KEPT = "10"


class Task(Struct, frozen=True):
    """The operator's arguments. `stream`: its unique name; `content`: the program, its settings and
    background as bytes; `clock`: None if it is not known yet; `unit`: of the graphs' times, in µs; `meta`:
    what the checkpoint belongs to (JSON).
    """

    stream: str
    content: bytes
    clock: Clock | None
    options: StreamOptions
    form: Form
    unit: int
    meta: bytes


class _Held(Struct):
    """A live engine, and the token of its state."""

    token: int
    engine: OrderedEngine


_ENGINES: dict[str, _Held] = {}


@lru_cache(maxsize=_STREAMS_KEPT)
def _deployment(_stream: str, content: bytes) -> Deployment:
    program, settings, background = pickle.loads(zlib.decompress(content))  # noqa: S301  # our own driver's bytes
    return Deployment(program, background, settings)


Part: TypeAlias = tuple[bytes | None, str | None]
"""A bundle of graphs, and the note of the task that read them, if it ended; without either, an end."""


def taken(task: Task, parts: Sequence[Part], state: Any) -> Iterator[Any]:
    """What a batch gives, as FOUND. `state`: Spark's handle on _STATE."""
    meta, token, content = state.get if state.exists else (None, None, None)
    if meta is not None and bytes(meta) != task.meta:
        compare(json.loads(bytes(meta)), json.loads(task.meta), "", task.options.change_rules)
    held = _ENGINES.pop(task.stream, None)
    deployment = _deployment(task.stream, task.content)
    if held is not None and held.token == token:
        engine = held.engine
    else:
        engine = OrderedEngine(deployment, task.options)
        if content is not None:
            engine.restore(bytes(content), "")
    engine.number_batch(0)
    clock, letters = _noted([note for _, note in parts if note is not None])
    if task.options.on_error == "keep":
        engine.letters += letters
    rows = [row for bundle, _ in parts if bundle for row in _rows(bundle)]
    rows.sort()
    graphs = ((time * task.unit, split_lines(text)) for time, text in rows)
    instants = _instants(engine, (task.clock or clock) if rows else None, graphs, (None, None) in parts)
    events = chain.from_iterable(instants)
    first = next(events, None)
    if first is not None:
        form = Lines(engine.pipeline.clock, task.form.format_) if isinstance(task.form, Lines) else task.form
        for count, packed in packed_events(chain([first], events), form.opened(deployment.program)):
            yield _row(events=count, found=packed)
    new = secrets.randbits(62)
    known = engine.pipeline.clock
    noted = {**json.loads(task.meta), "clock": None if known is None else [known.integer, known.unit]}
    state.update((json.dumps(noted, sort_keys=True).encode(), new, engine.snapshot()))
    while len(_ENGINES) >= _STREAMS_KEPT:
        del _ENGINES[next(iter(_ENGINES))]
    _ENGINES[task.stream] = _Held(new, engine)
    pipeline, counts = engine.pipeline, engine.taken
    latest, watermark = pipeline.latest, pipeline.watermark
    is_open = latest is not None and (watermark is None or watermark < latest)
    yield _row(
        sizes=json.dumps(pipeline.sizes()),
        times=json.dumps([_text(known, latest), _text(known, watermark), is_open]),
        late=counts.late,
        refused=counts.refused,
        late_lines=_lines(engine.late),
        letter_lines=_lines(engine.letters),
    )


def _instants(
    engine: OrderedEngine, clock: Clock | None, graphs: Iterable[tuple[Time, list[Triple]]], closing: bool
) -> Iterator[Sequence[Composite]]:
    """The events of the instants that are closed, first by an end of the batches before."""
    if closing and engine.pipeline.clock is not None:
        yield from engine.close()
    yield from engine.take(clock, graphs)


def _noted(notes: Sequence[str]) -> tuple[Clock | None, list[str]]:
    """How the tasks of a batch found time to be written, and their dead letters: those of a task in its
    order, tasks by their first letter. Raises DataError D2102 if they differ.
    """
    known = [json.loads(note) for note in notes]
    clocks = {Clock(*found["clock"]) for found in known if found["clock"] is not None}
    if len(clocks) > 1:
        raise other_clock()
    return next(iter(clocks), None), list(chain.from_iterable(sorted(found["letters"] for found in known)))


def _text(clock: Clock | None, time: Time | None) -> str:
    return "" if clock is None or time is None else clock.text(time)


def _lines(lines: Sequence[str]) -> str | None:
    return "".join(f"{line}\n" for line in lines) or None


_NONE: dict[str, Any] = {
    "slot": 0,
    "events": 0,
    "found": None,
    "sizes": None,
    "late": 0,
    "refused": 0,
    "times": None,
    "late_lines": None,
    "letter_lines": None,
}


def _row(**values: Any) -> Any:
    """A row of FOUND."""
    return pd.DataFrame({name: [value] for name, value in {**_NONE, **values}.items()})


def _rows(bundle: bytes) -> Iterator[tuple[Time, str]]:
    table = unpacked(bundle)
    yield from zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)


class Ordered:
    """Owns the plan of a stream in order, like `Distributed`. Raises ProgramError, DataError of the program
    and its background.
    """

    mode = ORDERED

    def __init__(
        self, graphs: Graphs, deployment: Deployment, options: StreamOptions, form: Form, stream: str
    ) -> None:
        if graphs.clock is not None:
            check_units(deployment.program, graphs.clock)
        deployment.compile()
        self._forgiving = options.on_error != "fail"
        read = graphs.read
        if read is None:
            log = LogListing(
                (), graphs.clock, SourceOptions(base=graphs.base or STREAM_BASE), not self._forgiving
            )
            read = ReadRows(log, "the stream")
        self._graphs = Graphs(graphs.frame, graphs.clock, None, read)
        content = (deployment.program, deployment.settings, list(deployment.background))
        meta = {**meta_of(deployment, options, ORDERED), "clock": graphs.noted_clock}
        self.task = Task(
            stream,
            zlib.compress(pickle.dumps(content, pickle.HIGHEST_PROTOCOL), 1),
            graphs.clock,
            options,
            form,
            graphs.unit,
            json.dumps(meta, sort_keys=True).encode(),
        )

    def found(self, ends: str | None = None, closing: bool = False) -> DataFrame:
        """What the engine finds, as FOUND."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

        rows = bundled(self._graphs, (0,), self._forgiving).select("slot", "bundle", "note")
        if ends is not None:
            rows = rows.unionByName(ends_of(self._graphs, ends, (0,)).drop("at"))
        task = self.task

        def take(_key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
            try:
                with rarely():
                    yield from taken(task, [part for frame in frames for part in _parts(frame)], state)
            except DotrError as error:
                raise RuntimeError(crossing(error)) from None

        found = rows.groupBy("slot").applyInPandasWithState(take, FOUND, _STATE, "append", "NoTimeout")
        return found.observe(CLOSED, f.sum("late").alias("late"), f.sum("refused").alias("refused"))

    def settings(self) -> dict[str, str]:
        """What a query needs when it starts: there is one group, whose state is written whole after each
        batch; Spark would keep that of 100.
        """
        return {"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.minBatchesToRetain": _STATES_KEPT}

    def end(self, _watermark: int, batch: int | None, noted: Collection[int]) -> int | None:
        """The end to note after a query that processed the available data: the number of the next batch; None
        if there is nothing to close. `batch`: the last one.
        """
        return None if batch is None or batch in noted else batch + 1


def _parts(frame: pd.DataFrame) -> Iterator[Part]:
    for bundle, note in zip(frame["bundle"].tolist(), frame["note"].tolist(), strict=True):
        yield bundle, note if isinstance(note, str) else None
