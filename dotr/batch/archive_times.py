"""What the statistics of row groups say of a log's times, so that nobody has to read them first.

Place:   spark/cluster.py, for logs that are all Parquet.
Method:  where no two tasks' row groups can share a time, every instant is whole in one task. First, last and
         count stand in the footers; quantiles are taken as if the times of a row group were evenly spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dotr.batch.log_splits import Piece, Split
from dotr.events import Time
from dotr.late import dataclass


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Of a log: graphs, the first and the last time, and quantiles that ascend."""

    graphs: int
    first: Time
    last: Time
    quantiles: tuple[Time, ...]


def known_times(log: Sequence[Split], tasks: Sequence[Split], count: int) -> KnownTimes | None:
    """What the footers say of `log`, whose row groups are dealt out to `tasks`, with `count` quantiles; None
    where some do not say, or two tasks might share a time.
    """
    pieces = [piece for split in log for piece in split.pieces if piece.graphs]
    spans = [span for split in tasks if (span := _span(split.pieces)) is not None]
    if not pieces or None in [_span([piece]) for piece in pieces]:
        return None
    if any(before[1] >= after[0] for before, after in pairwise(sorted(spans))):
        return None
    found = sorted((piece.span[0], piece.span[1], piece.graphs) for piece in pieces if piece.span)
    return KnownTimes(
        sum(piece.graphs for piece in pieces),
        found[0][0],
        max(high for _, high, _ in found),
        _quantiles(found, count),
    )


def _span(pieces: Sequence[Piece]) -> tuple[Time, Time] | None:
    known = [piece.span for piece in pieces if piece.span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _quantiles(spans: Sequence[tuple[Time, Time, int]], count: int) -> tuple[Time, ...]:
    total = sum(graphs for _, _, graphs in spans)
    found: set[Time] = set()
    behind = place = 0
    for low, high, graphs in spans:
        while place < count and place * total // count < behind + graphs:
            found.add(low + (high - low) * (place * total // count - behind) // graphs)
            place += 1
        behind += graphs
    return tuple(sorted(found))
