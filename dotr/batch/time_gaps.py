"""Gaps in the times of a log, read in any order: from which instant on it lies too far ahead, and where rules
without another cut may be cut.

Place:   local.py and spark/cluster.py feed it the times that their readers saw; core/ahead.py judges gaps;
         time_slices.py cuts at some.
Method:  the pipeline compares a graph with the last one it took. In time order all graphs after the first too
         wide gap are refused, so one cut describes it. From unordered times, readers keep spans without wide
         gaps: joined cells, narrow enough to need no check. For cutting only, MANY_GAPS gaps are enough:
         others are dropped, which joins spans.
Why not: sort all times: a span is two numbers, however many graphs it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct, field

from dotr.core.ahead import Ahead
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.temporal.silences import ENDLESS

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


def spans_for(ahead: Ahead) -> Spans | None:
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

    ahead: Ahead
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


def cutoff(ahead: Ahead, gaps: Iterable[Gap], clock: Clock, forgiving: bool) -> Cutoff | None:
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
