"""Time cut into slices, and the gaps of a log at which it is cut or refused.

Place:   local.py and spark/cluster.py supply the times that their readers saw; detect/partitioning.py decides
         whether a group of rules may be cut, and its horizon; facts.py sends every instant to the slices that
         read it; core/instants.py judges gaps.
Method:  a slice `[start, end)` owns the triggers in it and also reads the horizon before it, or begins after
         a gap so wide that it needs nothing before it. Exact by ownership: a match belongs to the slice of
         its trigger, so nothing is found twice, and a fact can matter to a trigger only from its horizon
         back, so nothing is missed. Intervals are closed towards the past (language.md, section 3:
         `R.t − w ≤ time`).
         The pipeline compares a graph with the last one it took. In time order all graphs after the first too
         wide gap are refused, so one cut describes it. From unordered times, readers keep spans without wide
         gaps: joined cells, narrow enough to need no check. For cutting only, MANY_GAPS gaps are enough:
         others are dropped, which joins spans.
Why not: sort all times: a span is two numbers, however many graphs it has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct, field

from dotr.core.instants import JumpLimit
from dotr.detect.analysis import ENDLESS
from dotr.errors import DataError
from dotr.events import Clock, Time

Span: TypeAlias = tuple[Time, Time]
"""First and last of times between which no gap is wider than a stride."""

Gap: TypeAlias = tuple[Time, Time]
"""The last time before it and the first one after it."""

_MANY = 100_000

MANY_GAPS = 4096
"""The limit of gaps to cut at that a reader reports."""


class Spans(Struct):
    """Owns the spans of the times seen so far; `most`: the limit of gaps that it reports, None: all."""

    stride: Time
    most: int | None = None
    _cells: dict[Time, Span] = field(default_factory=dict)
    _joined: list[Span] = field(default_factory=list)

    def add(self, time: Time) -> None:
        """A graph came for this time."""
        cell = time // (self.stride + 1)
        found = self._cells.get(cell)
        if found is None:
            self._cells[cell] = time, time
            if len(self._cells) > _MANY:
                self._joined = joined([*self._joined, *self._cells.values()], self.stride)
                if self.most is not None:
                    self._joined = with_fewer_gaps(self._joined, _MANY // 2)
                self._cells.clear()
        elif time < found[0] or time > found[1]:
            self._cells[cell] = min(time, found[0]), max(time, found[1])

    def joined(self) -> list[Span]:
        """The spans in time order."""
        found = joined([*self._joined, *self._cells.values()], self.stride)
        return found if self.most is None else with_fewer_gaps(found, self.most)


def spans_for(ahead: JumpLimit) -> Spans | None:
    """The record of a reader's times; None if no time can be too far ahead of another."""
    return None if ahead.stride >= ENDLESS else Spans(ahead.stride)


def joined(spans: Iterable[Span], stride: Time) -> list[Span]:
    """Spans in time order, joined across gaps of at most `stride`."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first - found[-1][1] <= stride:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def with_fewer_gaps(spans: Sequence[Span], most: int) -> list[Span]:
    """Spans in time order, joined so that at most `most` gaps remain: the widest; ties are broken
    deterministically.
    """
    if len(spans) - 1 <= most:
        return list(spans)
    found = ((first - last, _mixed(first), last, first) for (_, last), (first, _) in pairwise(spans))
    kept = {first for _, _, _, first in nlargest(most, found)}
    left = [spans[0]]
    for span in spans[1:]:
        if span[0] in kept:
            left.append(span)
        else:
            left[-1] = left[-1][0], span[1]
    return left


def _mixed(time: Time) -> int:
    return time * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF


class Cutoff(Struct, frozen=True):
    """Graphs from `since` on lie too far ahead of `last`, the last instant taken."""

    ahead: JumpLimit
    last: Time
    since: Time

    def error(self, time: Time, clock: Clock) -> DataError:
        """The error of a graph at `time` ≥ `since`."""
        error = self.ahead.refused(self.last, self.last, time, clock)
        assert error is not None, "what is further ahead is refused, too"
        return error


def gaps(spans: Iterable[Span], stride: Time) -> Iterator[Gap]:
    """The gaps wider than `stride` between spans, in time order."""
    return ((last, first) for (_, last), (first, _) in pairwise(joined(spans, stride)))


def cutoff(ahead: JumpLimit, gaps: Iterable[Gap], clock: Clock, forgiving: bool) -> Cutoff | None:
    """The first gap that is too wide, or None. `gaps`: those wider than `ahead.stride`.

    Raises DataError D2106, D2107 unless `forgiving`.
    """
    for last, first in gaps:
        error = ahead.refused(last, last, first, clock)
        if error is not None and not forgiving:
            raise error
        if error is not None:
            return Cutoff(ahead, last, first)
    return None


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
