"""A streaming frame in order: workers parse, and one task has the engine of `dotr run`.

Place:   `dotr.spark.stream` makes it for programs, or on machines, for which a stream by part does not pay
         (batch/stream.py chooses).
Method:  workers parse graphs and bundle them (distributed.py); one group of applyInPandasWithState gets
         all of a batch, in order of time, then of text, so that a repeated batch gives the same events. The
         state is the engine's snapshot, and a token by which a process recognises that it still has the
         engine. Lateness is the engine's own: no watermark of Spark is needed, and what is late is late by
         the graph before it, as in `dotr run`. A row without a bundle closes the last instant.
Why not: transformWithState: it needs protobuf and RocksDB, for one value.
Bad input: D5220 · D5221 · errors of graphs.
"""

from __future__ import annotations

import json
import pickle
import secrets
import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd
from msgspec import Struct

from dotr.batch.choices import ORDERED
from dotr.batch.log import LogListing
from dotr.batch.spark.distributed import Graphs, bundled, ends_of
from dotr.batch.spark.event_rows import Form, packed_events
from dotr.batch.spark.read import ReadRows
from dotr.batch.spark.session import crossing
from dotr.batch.spark.stream import CLOSED
from dotr.batch.spark.stream_bundles import unpacked
from dotr.batch.stream import OrderedEngine, StreamOptions, compare, meta_of
from dotr.batch.work import split_lines
from dotr.collecting import rarely
from dotr.core.deployment import Deployment
from dotr.core.instants import check_units
from dotr.errors import DotrError
from dotr.events import Clock, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.sources import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOUND = "slot bigint, events bigint, found binary, sizes string, late bigint, refused bigint, times string"
"""Some events and their number (event_rows.py), in several rows; the last one has, as JSON, how many facts
are stored by rule, and [the greatest time, the watermark] in µs, and counts what was skipped.
"""

_STATE = "meta binary, token bigint, content binary"
_STREAMS_KEPT = 2


class Task(Struct, frozen=True):
    """The operator's arguments. `stream`: its unique name; `content`: the program, its settings and
    background as bytes; `unit`: of the graphs' times, in µs; `meta`: what the checkpoint belongs to (JSON).
    """

    stream: str
    content: bytes
    clock: Clock
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


def taken(task: Task, bundles: Iterable[bytes | None], state: Any) -> Iterator[Any]:
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
    parts = list(bundles)
    rows = [row for part in parts if part for row in _rows(part)]
    rows.sort()
    graphs = ((time * task.unit, split_lines(text)) for time, text in rows)
    found = engine.take(task.clock if rows else None, graphs)
    if None in parts and engine.pipeline.clock is not None:
        found = chain(found, engine.close())
    write = task.form.opened(deployment.program)
    for count, packed in packed_events(chain.from_iterable(found), write):
        yield pd.DataFrame({**_NONE, "events": [count], "found": [packed]})
    new = secrets.randbits(62)
    state.update((task.meta, new, engine.snapshot()))
    while len(_ENGINES) >= _STREAMS_KEPT:
        del _ENGINES[next(iter(_ENGINES))]
    _ENGINES[task.stream] = _Held(new, engine)
    pipeline, counts = engine.pipeline, engine.taken
    states = {
        "sizes": json.dumps(pipeline.sizes()),
        "times": json.dumps([pipeline.latest, pipeline.watermark]),
    }
    last = {"events": 0, "late": counts.late, "refused": counts.refused, **states}
    yield pd.DataFrame({**_NONE, **{name: [value] for name, value in last.items()}})


_NONE: dict[str, list[Any]] = {
    "slot": [0],
    "events": [0],
    "found": [None],
    "sizes": [None],
    "late": [0],
    "refused": [0],
    "times": [None],
}


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
        meta = {**meta_of(deployment, options, ORDERED), "clock": [graphs.clock.integer, graphs.clock.unit]}
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

        rows = bundled(self._graphs, (0,), self._forgiving).select("slot", "bundle")
        if ends is not None:
            rows = rows.unionByName(ends_of(self._graphs, ends, (0,)).select("slot", "bundle"))
        task = self.task

        def take(_key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
            try:
                with rarely():
                    yield from taken(task, [b for frame in frames for b in frame["bundle"].tolist()], state)
            except DotrError as error:
                raise RuntimeError(crossing(error)) from None

        found = rows.groupBy("slot").applyInPandasWithState(take, FOUND, _STATE, "append", "NoTimeout")
        return found.observe(CLOSED, f.sum("late").alias("late"), f.sum("refused").alias("refused"))

    def settings(self) -> dict[str, str]:
        """What a query needs when it starts: there is one group."""
        return {"spark.sql.shuffle.partitions": "1"}

    def end(self, _watermark: int, batch: int | None, noted: Collection[int]) -> int | None:
        """The end to note after a query that processed the available data: the number of the next batch; None
        if there is nothing to close. `batch`: the last one.
        """
        return None if batch is None or batch in noted else batch + 1
