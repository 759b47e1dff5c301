"""Cutting time: a slice `[start, end)` owns the triggers in it and also reads the horizon before it, or
begins after a gap so wide that it needs nothing before it.

Place:   tesla/partitioning.py decides whether a group of rules may be cut, and its horizon; fact_rows.py
         sends every instant to the slices that read it.
Method:  exact by ownership: a match belongs to the slice of its trigger, so nothing is found twice, and a
         fact can matter to a trigger only from its horizon back, so nothing is missed. Intervals are closed
         towards the past (language.md, section 3: `R.t − w ≤ time`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from dotr.batch.time_gaps import Gap
from dotr.events import Time

OVERLAP = 20
"""A slice is at least this many horizons long, so that less than 5 % is read twice."""


class Even(Struct, frozen=True):
    """Slices of one length, at its multiples: `--slice`."""

    length: int

    def seen_by(self, time: Time, horizon: int) -> range:
        """The numbers of the slices that read `time`, its owner first."""
        return range(time // self.length, (time + horizon) // self.length + 1)

    def bounds(self, number: int) -> tuple[Time | None, Time | None]:
        """`[start, end)` of a slice; None if open."""
        return number * self.length, (number + 1) * self.length


class Uneven(Struct, frozen=True):
    """Slices between given times, so that each has about as many graphs despite busy hours.

    `starts` ascend strictly; slice 0 is everything before the first.
    """

    starts: tuple[Time, ...]

    def seen_by(self, time: Time, horizon: int) -> range:
        return range(bisect_right(self.starts, time), bisect_right(self.starts, time + horizon) + 1)

    def bounds(self, number: int) -> tuple[Time | None, Time | None]:
        starts = self.starts
        return (
            starts[number - 1] if number else None,
            starts[number] if number < len(starts) else None,
        )


Slices = Even | Uneven


def balanced_slices(quantiles: Sequence[Time], horizon: int) -> Uneven:
    """Slices that start at quantiles of the log's times, at least OVERLAP horizons apart.

    If the log is too short for that (a month's horizon over a quarter), four horizons suffice: a fifth of the
    work is then done twice, which is still faster than one task.
    """
    for overlap in (OVERLAP, 4):
        starts: list[Time] = []
        for time in sorted(quantiles):
            if not starts or time - starts[-1] >= max(overlap * horizon, 1):
                starts.append(time)
        if len(starts) * 2 >= len(set(quantiles)):
            break
    return Uneven(tuple(starts[1:]))


def slices_at_gaps(quantiles: Sequence[Time], gaps: Sequence[Gap], wider_than: Time) -> Uneven:
    """Slices that start after gaps: after each quantile of the log's times, at the next gap wide enough.

    `quantiles` and `gaps` ascend.
    """
    found = [first for last, first in gaps if first - last > wider_than]
    places = (bisect_left(found, time) for time in quantiles)
    return Uneven(tuple(dict.fromkeys(found[place] for place in places if place < len(found))))
