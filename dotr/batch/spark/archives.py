"""Tasks over Parquet archives: a row of the task's frame names the row groups that it reads.

Place:   used by cluster.py, for logs that are all Parquet.
Method:  unless the statistics of row groups show that no two tasks share a time (archive_times.py), a first
         task reads only the times. A second extracts the instants that are whole in its row groups. Only
         graphs of times that several tasks have are shuffled.
Why not: let Spark read the files: graphs are by far the largest data of a log, and would cross from JVM to
         Python only to become a few facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from dotr.batch.archive_instants import rows_of, times_of, whole_instants
from dotr.batch.archive_slices import slice_events, slice_of
from dotr.batch.arrow_batches import extract, fact_batches
from dotr.batch.detecting import Detecting
from dotr.batch.extracting import Instant
from dotr.batch.fact_rows import COUNTED, INSTANTS, FactRow
from dotr.batch.job import Shipped, Worker
from dotr.batch.log_splits import LogListing
from dotr.batch.spark import failures
from dotr.batch.spark.placing import pieces_of
from dotr.events import Composite, Time
from dotr.io.arrow_columns import integers, texts

Batches = Iterator[pa.RecordBatch]

_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The times of a task's row groups, each with its number of graphs."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._times(batches))

    def _times(self, batches: Batches) -> Batches:
        counts = pc.value_counts(times_of(self.log, pieces_of(batches)))
        table = pa.Table.from_arrays([counts.field("values"), counts.field("counts")], names=["time", "n"])
        yield from table.to_batches(_ROWS)


@dataclass(frozen=True, slots=True)
class ExtractArchives:
    """The facts of every instant except `again`, those of which several tasks have graphs. `counted`: the
    last row has the number of instants (INSTANTS).
    """

    log: LogListing
    shipped: Shipped
    again: frozenset[Time]
    counted: bool

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: fact_batches(self._facts(batches)))

    def _facts(self, batches: Batches) -> Iterator[FactRow]:
        count = 0

        def counted() -> Iterator[Instant]:
            nonlocal count
            for instant in whole_instants(self.log, list(pieces_of(batches)), self.again):
                count += 1
                yield instant

        yield from extract(self.shipped.worker(), counted())
        if self.counted:
            yield COUNTED, 0, json.dumps({INSTANTS: count})


@dataclass(frozen=True, slots=True)
class ReadSlices:
    """The events of slices (archive_slices.py), whose texts are rows. A `Detection`."""

    log: LogListing

    def __call__(self, worker: Worker, batches: Batches) -> tuple[Detecting, Iterator[Composite]]:
        detecting = worker.detecting()
        texts_ = (text for batch in batches for text in batch.column(0).to_pylist())
        found = (slice_events(worker, detecting, self.log, slice_of(text)) for text in texts_)
        return detecting, chain.from_iterable(found)


@dataclass(frozen=True, slots=True)
class ReadGraphs:
    """The graphs of the instants `again`; all graphs if it is empty."""

    log: LogListing
    again: frozenset[Time]

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._graphs(batches))

    def _graphs(self, batches: Batches) -> Batches:
        times: list[Time] = []
        graphs: list[str] = []
        for time, graph, _place in rows_of(self.log, pieces_of(batches)):
            if not self.again or time in self.again:
                times.append(time)
                graphs.append(graph)
                if len(times) >= _ROWS:
                    yield _batch(times, graphs)
                    times, graphs = [], []
        yield _batch(times, graphs)


def _batch(times: list[Time], graphs: list[str]) -> pa.RecordBatch:
    columns = [integers(times), texts(graphs)]
    return pa.RecordBatch.from_arrays(columns, names=["time", "graph"])
