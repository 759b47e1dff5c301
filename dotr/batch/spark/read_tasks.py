"""Tasks that read a log: files, bytes that Spark fetched, lines of large files, rows of large archives.

Place:   mapped by cluster.py (files that workers can open) and remote_logs.py (what only Spark can reach).
Method:  every task yields rows (time in the log's unit, graph, note); its last row has a note instead of a
         graph: dead letters, and how times were found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from dotr.batch.arrow_batches import graph_text
from dotr.batch.locations import as_path
from dotr.batch.log_splits import LogListing, Piece, ReadCounts, Reading
from dotr.batch.spark import failures
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark.placing import pieces_of
from dotr.core.parts import all_triples
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.batch_parse import MANY
from dotr.io.decode.json_lines import Line, Lines
from dotr.io.decode.parquet import missing

Batches = Iterator[pa.RecordBatch]
Rows = Iterator[tuple[Time, str]]

READ_COLUMNS = "time bigint, graph string, note string"

_ROWS = 1024
_CHARACTERS = 4_000_000


def _noted(log: LogListing, rows_of: Callable[[Reading], Rows]) -> Batches:
    """Rows in batches, then the note of the task."""
    assert log.clock is not None
    unit = log.clock.unit if log.clock.integer else 1
    counts = ReadCounts()
    times: list[int] = []
    graphs: list[str] = []
    size = 0
    for time, graph in rows_of(Reading(log, counts)):
        times.append(time // unit)
        graphs.append(graph)
        size += len(graph)
        if len(times) >= _ROWS or size > _CHARACTERS:
            yield _batch(times, graphs, [None] * len(times))
            times, graphs, size = [], [], 0
    note = json.dumps({"letters": counts.letters, "rungs": counts.rungs, "beside": counts.beside})
    yield _batch([*times, None], [*graphs, None], [*([None] * len(times)), note])


def _batch(times: list[Any], graphs: list[Any], notes: list[Any]) -> pa.RecordBatch:
    columns = [integers(times), texts(graphs), texts(notes)]
    return pa.RecordBatch.from_arrays(columns, names=["time", "graph", "note"])


@dataclass(frozen=True, slots=True)
class ReadSplits:
    """Reads pieces of files."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        for piece in pieces_of(batches):
            yield from reading.rows(piece)


@dataclass(frozen=True, slots=True)
class ReadContents:
    """Reads whole files: (path, content)."""

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        for batch in batches:
            for path, content in zip(batch.column(0), batch.column(1), strict=True):
                yield from reading.rows(Piece(path.as_py()), content.as_py())


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Reads lines of JSON: (path as a URI, byte at which the block of the line begins, the line's bytes).

    Spark passes a file's block to one task, in order. Only lines of the first block are numbered from the
    head of the file; elsewhere the place names the byte after which they are counted.
    """

    log: LogListing

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        block, number = ("", 0), 0
        for batch in batches:
            rows = zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)
            for found, group in groupby(rows, key=itemgetter(0, 1)):
                if found != block:
                    block, number = found, 0
                lines = [Line(row[2], number + place, 0) for place, row in enumerate(group, 1)]
                number = lines[-1].number
                yield from self._lines(reading, block, [line for line in lines if line.content.strip()])

    def _lines(self, reading: Reading, block: tuple[str, int], lines: Sequence[Line]) -> Rows:
        path, start = unquote(block[0]), block[1]
        name = f"{path}, behind byte {start}" if start else path
        parser = Lines(name, self.log.options.base, self.log.options.choices)
        for first in range(0, len(lines), MANY):
            some = lines[first : first + MANY]
            for line, found in zip(some, parser.parse(some), strict=True):
                try:
                    if isinstance(found, DataError):
                        raise found
                    triples, said = found
                    own = None if said is None else ("the line's own time", said)
                    time = reading.extractor.time(all_triples(triples), path, f"{name}:{line.number}", own)
                except DataError as error:
                    reading.refusals.take(error, line.content)
                    continue
                reading.counts.graphs += 1
                yield time, graph_text(triples)
        reading.counts.rungs = reading.extractor.rungs


class _Names(dict[str, str]):
    """The URI of a file → its name; each is computed once."""

    def __missing__(self, uri: str) -> str:
        self[uri] = found = as_path(uri)
        return found


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Reads the rows of archives that Spark opened: (time in the clock's unit, graph, and the URI of the
    file, if it is not always `file`).
    """

    log: LogListing
    file: str

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(
            lambda: _noted(self.log, lambda reading: self._rows(reading, batches))
        )

    def _rows(self, reading: Reading, batches: Batches) -> Rows:
        clock, names = self.log.clock or Clock(), _Names()
        unit = clock.unit if clock.integer else 1
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            files = repeat(self.file) if self.file else map(names.__getitem__, columns[2])
            for time, graph, file in zip(*columns[:2], files):  # noqa: B905  # `files` may have no end
                place = f"{file}, a graph at {time}"
                try:
                    micros = frames.micros(time, unit)
                    if graph is None:
                        raise missing(place, "graph")
                except DataError as error:
                    reading.refusals.take(error, (graph or "").encode())
                    continue
                for row in reading.graph(micros, graph, place):
                    reading.counts.graphs += 1
                    yield row
        reading.counts.rungs = reading.extractor.rungs
