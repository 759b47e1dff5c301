"""A log's times by the statistics of row groups, without reading the times.

Place:   used by local.py and spark/cluster.py, for logs that are all Parquet.
Method:  if no two tasks' row groups can share a time, every instant is whole in one task. First, last and
         count are in the footers; quantiles assume that the times of a row group are evenly spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from dotr.batch.log_splits import Piece, Split
from dotr.events import Time

Spread = tuple[Time, Time, int]


class KnownTimes(Struct, frozen=True):
    """A log's graphs, first and last time, and (least time, greatest, graphs) of row groups, by time."""

    graphs: int
    first: Time
    last: Time
    spans: tuple[Spread, ...]

    def quantiles(self, count: int) -> tuple[Time, ...]:
        """At most `count` quantiles, ascending."""
        found: set[Time] = set()
        behind = place = 0
        for low, high, graphs in self.spans:
            while place < count and place * self.graphs // count < behind + graphs:
                found.add(low + (high - low) * (place * self.graphs // count - behind) // graphs)
                place += 1
            behind += graphs
        return tuple(sorted(found))

    def between(self, since: Time, until: Time) -> float:
        """The approximate number of graphs in `[since, until)`."""
        found = 0.0
        for low, high, graphs in self.spans:
            inside = min(until, high + 1) - max(since, low)
            if inside > 0:
                found += graphs * inside / (high + 1 - low)
        return found


def known_times(log: Sequence[Split]) -> KnownTimes | None:
    """The times by the footers of a log; None if some footers lack them."""
    pieces = [piece for split in log for piece in split.pieces if piece.graphs]
    if not pieces or None in [piece.span for piece in pieces]:
        return None
    spans = tuple(sorted((*piece.span, piece.graphs) for piece in pieces if piece.span is not None))
    return KnownTimes(
        sum(piece.graphs for piece in pieces), spans[0][0], max(high for _, high, _ in spans), spans
    )


def share_times(tasks: Sequence[Split]) -> bool:
    """Whether two of the tasks, by their row groups, might share a time."""
    spans = sorted(span for split in tasks if (span := _span(split.pieces)) is not None)
    return any(before[1] >= after[0] for before, after in pairwise(spans))


def _span(pieces: Sequence[Piece]) -> tuple[Time, Time] | None:
    known = [piece.span for piece in pieces if piece.span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
