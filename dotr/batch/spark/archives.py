"""Tasks over Parquet archives: a row of the task's frame names the row groups that it reads.

Place:   cluster.py, for logs that are all Parquet.
Method:  where the statistics of row groups do not say that no two tasks share a time (archive_times.py), a
         first task reads the times alone. A second extracts the instants that are whole in its row groups.
         Only graphs of times that several tasks have are handed on to meet each other in a shuffle.
Why not: let the engine read the files. Graphs are by far the largest thing in a log, and would cross from
         JVM to Python only to become a few facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dotr.batch.arrow_batches import Instant, extract, fact_batches
from dotr.batch.fact_rows import COUNTED, INSTANTS, FactRow
from dotr.batch.job import Shipped
from dotr.batch.log_splits import LogListing, Piece, other_time
from dotr.batch.spark import failures
from dotr.batch.spark.placing import pieces_of
from dotr.events import Time
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.documents import Format
from dotr.io.decode.parquet import ArchiveFile
from dotr.io.decode.parsing import parse_triples
from dotr.rdf.terms import Triple

Batches = Iterator[pa.RecordBatch]

_ROWS = 8192


def rows_of(log: LogListing, pieces: Iterable[Piece]) -> Iterator[tuple[Time, str, str]]:
    """(time in µs, N-Triples, place) of the pieces. Raises DataError."""
    for piece in pieces:
        yield from _open(log, piece.file).rows(piece.first, piece.end or None)


def _times(log: LogListing, pieces: Iterable[Piece]) -> pa.ChunkedArray:
    """The times in µs of the pieces. Raises DataError."""
    chunks = [
        integers(times)
        for piece in pieces
        for times in _open(log, piece.file).times(piece.first, piece.end or None)
    ]
    return pa.chunked_array(chunks, pa.int64())


def _open(log: LogListing, path: str) -> ArchiveFile:
    archive = ArchiveFile(path, log.options.unit)
    if archive.clock != log.clock:
        raise other_time(path)
    return archive


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The times of a task's row groups, and how many graphs there are at each."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._times(batches))

    def _times(self, batches: Batches) -> Batches:
        counts = pc.value_counts(_times(self.log, pieces_of(batches)))
        table = pa.Table.from_arrays([counts.field("values"), counts.field("counts")], names=["time", "n"])
        yield from table.to_batches(_ROWS)


@dataclass(frozen=True, slots=True)
class ExtractArchives:
    """The facts of every instant that is not `again`, those of which several tasks have graphs.
    `counted`: the last row says how many instants there were, under no query's name.
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
            for instant in self._instants(list(pieces_of(batches))):
                count += 1
                yield instant

        yield from extract(self.shipped.worker(), counted())
        if self.counted:
            yield COUNTED, 0, json.dumps({INSTANTS: count})

    def _instants(self, pieces: Sequence[Piece]) -> Iterator[Instant]:
        """Instants as soon as all of their graphs are read."""
        again, base = self.again, self.log.options.base
        counts = pc.value_counts(_times(self.log, pieces))
        more = counts.filter(pc.greater(counts.field("counts"), 1))
        several = dict(zip(more.field("values").to_pylist(), more.field("counts").to_pylist(), strict=True))
        waiting: dict[Time, list[list[Triple]]] = {}
        for time, graph, place in rows_of(self.log, pieces):
            if time in again:
                continue
            triples = parse_triples(graph, Format.NTRIPLES, place, base)
            if time not in several:
                yield time, [triples]
                continue
            waiting.setdefault(time, []).append(triples)
            if len(waiting[time]) == several[time]:
                yield time, waiting.pop(time)


@dataclass(frozen=True, slots=True)
class ReadGraphs:
    """The graphs of the instants `again`; all graphs where it is empty."""

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
