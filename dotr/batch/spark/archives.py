"""Tasks over Parquet archives: a row of the task's frame names the row groups that it reads.

Place:   cluster.py, for logs that are all Parquet.
Method:  a first task reads the times alone. A second extracts what stands alone at its instant, where it was
         read. Only graphs of times that come more than once are handed on to meet each other in a shuffle.
Why not: let the engine read the files. Graphs are by far the largest thing in a log, and would cross from
         JVM to Python only to become a few facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from dotr.batch.arrow_batches import Instant, extract, fact_batches
from dotr.batch.job import Shipped
from dotr.batch.log_splits import LogListing, other_time
from dotr.batch.spark import failures
from dotr.batch.spark.placing import pieces_of
from dotr.events import Time
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.documents import Format
from dotr.io.decode.parquet import ArchiveFile
from dotr.io.decode.parsing import parse_triples

Batches = Iterator[pa.RecordBatch]

_ROWS = 8192


def rows_of(log: LogListing, batches: Batches) -> Iterator[tuple[Time, str, str]]:
    """(time in µs, N-Triples, place) of the pieces that come. Raises DataError."""
    for piece in pieces_of(batches):
        yield from _open(log, piece.file).rows(piece.first, piece.end or None)


def _open(log: LogListing, path: str) -> ArchiveFile:
    archive = ArchiveFile(path, log.options.unit)
    if archive.clock != log.clock:
        raise other_time(path)
    return archive


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The times of all graphs."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.told(lambda: self._times(batches))

    def _times(self, batches: Batches) -> Batches:
        for piece in pieces_of(batches):
            for times in _open(self.log, piece.file).times(piece.first, piece.end or None):
                yield pa.RecordBatch.from_arrays([integers(times)], names=["time"])


@dataclass(frozen=True, slots=True)
class ExtractArchives:
    """The facts of every instant that is not `again`, those at which several graphs came."""

    log: LogListing
    shipped: Shipped
    again: frozenset[Time]

    def __call__(self, batches: Batches) -> Batches:
        return failures.told(lambda: fact_batches(extract(self.shipped.worker(), self._instants(batches))))

    def _instants(self, batches: Batches) -> Iterator[Instant]:
        again, base = self.again, self.log.options.base
        for time, graph, place in rows_of(self.log, batches):
            if time not in again:
                yield time, [parse_triples(graph, Format.NTRIPLES, place, base)]


@dataclass(frozen=True, slots=True)
class ReadGraphs:
    """The graphs of the instants `again`; all graphs where it is empty."""

    log: LogListing
    again: frozenset[Time]

    def __call__(self, batches: Batches) -> Batches:
        return failures.told(lambda: self._graphs(batches))

    def _graphs(self, batches: Batches) -> Batches:
        times: list[Time] = []
        graphs: list[str] = []
        for time, graph, _place in rows_of(self.log, batches):
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
