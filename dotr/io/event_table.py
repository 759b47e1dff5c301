"""Composite events as Arrow columns: Parquet files of events, and rows between Spark and Python.

Place:   files/event_sinks.py, the feed's parts and the batch engines write these; loaded on demand.
Method:  the match and the graph are the texts that a JSON line has; terms of `bindings` are N-Triples.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from dotr.events import Clock, Composite
from dotr.io.arrow_columns import column
from dotr.io.event_formats import format_graph, format_match

ROWS = 4096
"""Events that are written together."""


def event_schema(clock: Clock) -> pa.Schema:
    """The columns of an event: time in the form of the input, terms of `bindings` as N-Triples."""
    time = pa.int64() if clock.integer else pa.timestamp("us", tz="UTC")
    return pa.schema(
        [
            ("time", time),
            ("rule", pa.string()),
            ("id", pa.string()),
            ("bindings", pa.map_(pa.string(), pa.string())),
            ("match", pa.string()),
            ("graph", pa.string()),
        ]
    )


def event_batch(events: Sequence[Composite], clock: Clock) -> pa.RecordBatch:
    """Events as rows of `event_schema`. Integer times are in the clock's unit."""
    unit = clock.unit if clock.integer else 1
    schema = event_schema(clock)
    columns: list[list[object]] = [
        [event.time // unit for event in events],
        [event.rule for event in events],
        [event.id for event in events],
        [list(event.bindings) for event in events],
        [format_match(event, clock) for event in events],
        [format_graph(event) for event in events],
    ]
    arrays = [column(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_solutions(path: str, variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
    """The solutions of a query as a Parquet file: a column of N-Triples terms a variable, null where it is
    unbound. Raises OSError.
    """
    columns = [column([row[at] for row in rows], pa.string()) for at in range(len(variables))]
    pq.write_table(pa.Table.from_arrays(columns, names=list(variables)), path, compression="zstd")


class EventTableWriter:
    """Owns one Parquet file of events that is being written; `close` completes it. Raises OSError."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._clock = clock
        self._writer = pq.ParquetWriter(path, event_schema(clock), compression="zstd")
        self._waiting: list[Composite] = []

    def add(self, events: Sequence[Composite]) -> None:
        self._waiting += events
        if len(self._waiting) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_batch(event_batch(self._waiting, self._clock))
        self._waiting = []

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._writer.close()
