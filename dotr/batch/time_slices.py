"""Cutting time: a slice `[start, end)` owns the triggers in it and is shown the horizon before it, or begins
behind a gap so wide that it needs to be shown nothing.

Place:   plan.py says whether a group of rules may be cut and how far its horizon reaches; fact_rows.py sends
         every instant to the slices that look at it.
Method:  exact by ownership: a match belongs to the slice of its trigger, so nothing is found twice, and a
         fact can matter to a trigger only from its horizon back, so nothing is missed. Intervals are closed
         towards the past (language.md, section 3: `R.t − w ≤ time`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from dotr.batch.time_gaps import Gap
from dotr.events import Time
from dotr.late import dataclass

OVERLAP = 20
"""A slice is at least so many horizons long, which keeps what is seen twice under 5 %."""


@dataclass(frozen=True, slots=True)
class Even:
    """Slices of one length, at its multiples: what `--slice` asks for."""

    length: int

    def seen_by(self, time: Time, horizon: int) -> range:
        """The numbers of the slices that look at `time`, its owner first."""
        return range(time // self.length, (time + horizon) // self.length + 1)

    def bounds(self, number: int) -> tuple[Time | None, Time | None]:
        """`[start, end)` of a slice; None where it is open."""
        return number * self.length, (number + 1) * self.length


@dataclass(frozen=True, slots=True)
class Uneven:
    """Slices between given times, so that each has about as many graphs, whatever hour was busy.

    `starts` ascend strictly; slice 0 is all that is before the first of them.
    """

    starts: tuple[Time, ...]

    def seen_by(self, time: Time, horizon: int) -> range:
        """As `Even.seen_by`."""
        return range(bisect_right(self.starts, time), bisect_right(self.starts, time + horizon) + 1)

    def bounds(self, number: int) -> tuple[Time | None, Time | None]:
        """As `Even.bounds`."""
        starts = self.starts
        return (
            starts[number - 1] if number else None,
            starts[number] if number < len(starts) else None,
        )


Slices = Even | Uneven


def balanced_slices(quantiles: Sequence[Time], horizon: int) -> Uneven:
    """Slices that start at quantiles of the log's times, but at least OVERLAP horizons apart.

    Where the log is too short for that (a month's horizon over a quarter), four horizons must do: a fifth of
    the work is done twice then, which still is quicker than one task.
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
    """Slices that start behind gaps: behind each quantile of the log's times the next that is wide enough.

    `quantiles` and `gaps` ascend.
    """
    found = [first for last, first in gaps if first - last > wider_than]
    places = (bisect_left(found, time) for time in quantiles)
    return Uneven(tuple(dict.fromkeys(found[place] for place in places if place < len(found))))
