"""Instants read directly from the row groups of Parquet archives, without exchange between tasks.

Place:   local.py and spark/archives.py extract these if archive_times.py, or a scan of the times, shows which
         instants are whole in one task.
Method:  an instant is yielded as soon as all its graphs are read; the column of times gives their number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dotr.batch.extracting import Instant
from dotr.batch.log_splits import LogListing, Piece, other_time
from dotr.events import Message, Time
from dotr.io.arrow_columns import integers
from dotr.io.decode.parquet import ArchiveFile, not_there
from dotr.rdf.terms import Triple


def rows_of(log: LogListing, pieces: Iterable[Piece]) -> Iterator[tuple[Time, str, str]]:
    """(time in µs, N-Triples, place) of the pieces. Raises DataError."""
    for piece in pieces:
        yield from opened(log, piece.file).rows(piece.first, piece.end or None)


def times_of(log: LogListing, pieces: Iterable[Piece]) -> pa.ChunkedArray:
    """The times in µs of the pieces. Raises DataError."""
    chunks = [
        integers(times)
        for piece in pieces
        for times in opened(log, piece.file).times(piece.first, piece.end or None)
    ]
    return pa.chunked_array(chunks, pa.int64())


def opened(log: LogListing, path: str) -> ArchiveFile:
    """An archive of the log. Raises DataError."""
    archive = ArchiveFile(path, log.options.unit, finer=log.options.reading.finer)
    if archive.clock != log.clock:
        raise other_time(path)
    return archive


def graphs_of(
    log: LogListing, pieces: Iterable[Piece]
) -> Iterator[tuple[Sequence[Time], Sequence[list[Triple]]]]:
    """(times in µs, the graph at each) of the pieces, some at a time. Raises DataError."""
    for piece in pieces:
        for times, parts, place in opened(log, piece.file).graphs(piece.first, piece.end or None):
            if type(parts[0]) is Message:
                raise not_there(place)
            yield times, parts  # type: ignore[misc]  # a message is alone


def whole_instants(
    log: LogListing, pieces: Sequence[Piece], again: Collection[Time] = ()
) -> Iterator[Instant]:
    """The instants of the pieces except `again`. Raises DataError."""
    counts = pc.value_counts(times_of(log, pieces))
    found = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    several = {time: count for time, count in found if count > 1}
    waiting: dict[Time, list[list[Triple]]] = {}
    for times, graphs in graphs_of(log, pieces):
        for time, triples in zip(times, graphs, strict=True):
            if time in again:
                continue
            if time not in several:
                yield time, [triples]
                continue
            waiting.setdefault(time, []).append(triples)
            if len(waiting[time]) == several[time]:
                yield time, waiting.pop(time)
