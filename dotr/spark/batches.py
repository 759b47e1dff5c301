"""The two halves of the work as functions over Arrow batches: graphs to facts, facts to events.

Place:   what Spark's mapInArrow calls and what local.py's processes call: the same code for both.
Method:  plain columns in, plain columns out; a batch of rows amortises the crossing between JVM and Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from dotr.events import Composite, Time
from dotr.spark.facts import FactRow
from dotr.spark.job import Worker, split_lines

GRAPHS = pa.schema([("time", pa.int64()), ("graphs", pa.list_(pa.string()))])
"""One row an instant: its graphs as N-Triples that dotr wrote (canonical terms, document order)."""

FACTS = pa.schema([("part", pa.int64()), ("time", pa.int64()), ("facts", pa.string())])
"""FactRow by column."""

ROWS = 8192
"""Rows of one outgoing batch, at most."""

CHARACTERS = 8_000_000
"""Characters of one outgoing batch, about, where rows are long."""


def extract_batches(worker: Worker, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """GRAPHS to FACTS. Instants in any order; each comes once."""
    rows: list[FactRow] = []
    size = 0
    facts, route = worker.extracting.facts, worker.router.rows
    for batch in batches:
        times = batch.column(0).to_pylist()
        for time, graphs in zip(times, batch.column(1).to_pylist(), strict=True):
            new = route(time, facts(time, [split_lines(graph) for graph in graphs]))
            rows += new
            size += sum([len(row[2]) for row in new])
            if len(rows) >= ROWS or size >= CHARACTERS:
                yield fact_batch(rows)
                rows, size = [], 0
    if rows:
        yield fact_batch(rows)


def fact_batch(rows: Iterable[FactRow]) -> pa.RecordBatch:
    """Rows as one batch of FACTS."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FACTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FACTS)


def fact_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[FactRow]:
    """Batches of FACTS as rows."""
    for batch in batches:
        yield from zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)


def graph_text(triples: Iterable[tuple[str, str, str]]) -> str:
    """A graph as the `graphs` column has it."""
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def instants(rows: Iterable[tuple[Time, str]]) -> Iterator[pa.RecordBatch]:
    """GRAPHS from graphs sorted by time: those of one time become one row."""
    times: list[Time] = []
    graphs: list[list[str]] = []
    size = 0
    for time, graph in rows:
        if times and times[-1] == time:
            graphs[-1].append(graph)
        else:
            if len(times) >= ROWS or size >= CHARACTERS:
                yield _graph_batch(times, graphs)
                times, graphs, size = [], [], 0
            times.append(time)
            graphs.append([graph])
        size += len(graph)
    if times:
        yield _graph_batch(times, graphs)


def _graph_batch(times: list[Time], graphs: list[list[str]]) -> pa.RecordBatch:
    arrays = [pa.array(times, GRAPHS.field(0).type), pa.array(graphs, GRAPHS.field(1).type)]
    return pa.RecordBatch.from_arrays(arrays, schema=GRAPHS)


def events(worker: Worker, batches: Iterable[pa.RecordBatch]) -> Iterator[Composite]:
    """FACTS, sorted by part and time, to composite events."""
    return worker.detecting().events(fact_rows(batches))
