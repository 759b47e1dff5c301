"""What holds, kept as intervals: stretches of points with the same rows.

Place:   the buckets of columns over heads of .lars files (buckets.py); timeline.py reports skipped stretches.
Method:  a block is its first point, the distance of its points, how many there are, and the rows of each. The
         rows of the newest point are a separate block until a later point comes, and then join the block
         before them if they continue it. So what holds for a year costs as much as at one point; facts are
         made when read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from dotr.events import Fact, Time, Values
from dotr.rdf.order import values_key
from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer

R = TypeVar("R")


class Stretch(Struct, frozen=True):
    """Points at which the same atoms of a head hold, in canonical order; at least one point."""

    points: range
    atoms: Sequence[Values]


class Block(Struct, Generic[R], eq=False):
    """`points` points from `first` on, each `step` after the one before, with the same `rows`."""

    first: Time
    step: Time
    points: int
    rows: list[R]

    @property
    def last(self) -> Time:
        return self.first + (self.points - 1) * self.step

    def goes_on(self, first: Time, step: Time, rows: Sequence[R]) -> bool:
        """Whether such points continue it. `step` 0: one point."""
        gap = first - self.last
        return self.rows == rows and (self.points == 1 or self.step == gap) and step in (0, gap)

    def before(self, time: Time) -> int:
        """The number of its points before a time."""
        if time <= self.first:
            return 0
        return min(self.points, -(-(time - self.first) // self.step) if self.points > 1 else 1)

    def between(self, start: Time, end: Time) -> range:
        """Its points in [start, end)."""
        step = self.step if self.points > 1 else 1
        return range(self.first + self.before(start) * step, min(end, self.last + 1), step)


class Blocks(Generic[R]):
    """Owns rows by point. Times of added rows never decrease."""

    def __init__(self) -> None:
        self.blocks: list[Block[R]] = []

    def add(self, time: Time, row: R) -> None:
        """Add a row at a point, the last so far or a later one."""
        blocks = self.blocks
        if blocks and blocks[-1].points == 1 and blocks[-1].first == time:
            blocks[-1].rows.append(row)
            return
        self._join()
        blocks.append(Block(time, 0, 1, [row]))

    def add_stretch(self, points: range, rows: list[R]) -> None:
        """Add the same rows at points that are all later than the existing ones."""
        self._join()
        step = points.step if len(points) > 1 else 0
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.goes_on(points[0], step, rows):
            last.step = points[0] - last.last
            last.points += len(points)
        else:
            self.blocks.append(Block(points[0], step, len(points), rows))

    def _join(self) -> None:
        """The newest point is complete: join it to the block before it, if possible."""
        blocks = self.blocks
        if (
            len(blocks) > 1
            and blocks[-1].points == 1
            and blocks[-2].goes_on(blocks[-1].first, 0, blocks[-1].rows)
        ):
            newest = blocks.pop()
            blocks[-1].step = newest.first - blocks[-1].last
            blocks[-1].points += 1

    def forget(self, since: Time) -> Iterator[tuple[list[R], int]]:
        """Remove what is older than `since`: returns rows, each with its number of points."""
        gone = 0
        for block in self.blocks:
            points = block.before(since)
            if points:
                yield block.rows, points
            if points < block.points:
                block.first += points * block.step
                block.points -= points
                break
            gone += 1
        del self.blocks[:gone]

    def dump(self) -> list[list[Any]]:
        return [[block.first, block.step, block.points, block.rows[:]] for block in self.blocks]

    def load(self, blocks: Iterable[Sequence[Any]]) -> None:
        self.blocks = [Block(first, step, points, rows[:]) for first, step, points, rows in blocks]


class HeldLog(Sequence[Fact]):
    """Facts in canonical order, kept as blocks; read like a list."""

    def __init__(self) -> None:
        self._kept: Blocks[Values] = Blocks()
        self._ends: list[int] = []  # the number of facts up to and including each block; made on demand

    def append(self, fact: Fact) -> None:
        self._ends = []
        self._kept.add(fact[0], fact[1])

    def add_stretch(self, points: range, rows: list[Values]) -> None:
        self._ends = []
        self._kept.add_stretch(points, rows)

    def forget(self, since: Time) -> None:
        """Remove what is older."""
        self._ends = []
        for _ in self._kept.forget(since):
            pass

    def remove(self, fact: Fact) -> None:
        self._ends = []
        time, values = fact[0], fact[1]
        blocks = self._kept.blocks
        at = next(i for i, b in enumerate(blocks) if b.first <= time <= b.last)
        block = blocks[at]
        before = block.before(time)
        rest = [row for row in block.rows if row != values]
        parts = [
            Block(block.first, block.step, before, block.rows),
            Block(time, 0, 1, rest),
            Block(time + block.step, block.step, block.points - before - 1, block.rows[:]),
        ]
        blocks[at : at + 1] = [part for part in parts if part.points and part.rows]

    @property
    def blocks(self) -> list[Block[Values]]:
        return self._kept.blocks

    @property
    def oldest(self) -> Time:
        return self._kept.blocks[0].first

    @property
    def newest(self) -> Time:
        return self._kept.blocks[-1].last

    def kept(self) -> int:
        """The number of stored rows."""
        return sum(len(block.rows) for block in self._kept.blocks)

    def __len__(self) -> int:
        ends = self._counted()
        return ends[-1] if ends else 0

    @overload
    def __getitem__(self, place: int) -> Fact: ...
    @overload
    def __getitem__(self, place: slice) -> LogSlice: ...
    def __getitem__(self, place: int | slice) -> Fact | LogSlice:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            return LogSlice(self, start, max(start, stop))
        ends = self._counted()
        if place < 0:
            place += ends[-1] if ends else 0
        if place < 0 or not ends or place >= ends[-1]:
            raise IndexError(place)
        number = bisect_right(ends, place)
        block = self._kept.blocks[number]
        inside = place - (ends[number - 1] if number else 0)
        return (
            block.first + inside // len(block.rows) * block.step,
            block.rows[inside % len(block.rows)],
            0,
            "",
        )

    def backwards(self, place: int, every_point: bool) -> Iterator[int]:
        """Places before `place`, descending; unless `every_point`, only those of the last such point of each
        block, since its other points differ in time only.
        """
        ends = self._counted()
        for number in range(min(bisect_left(ends, place), len(ends) - 1), -1, -1):
            start, end = ends[number - 1] if number else 0, min(ends[number], place)
            rows = len(self.blocks[number].rows)
            low = start if every_point or end <= start else start + (end - start - 1) // rows * rows
            yield from range(end - 1, low - 1, -1)

    def forwards(self, place: int, every_point: bool) -> Iterator[int]:
        """Places from `place` on; unless `every_point`, only those of the first such point of each block."""
        ends = self._counted()
        for number in range(bisect_right(ends, place), len(ends)):
            start = max(place, ends[number - 1] if number else 0)
            rows = len(self.blocks[number].rows)
            yield from range(start, ends[number] if every_point else min(ends[number], start + rows))

    def _counted(self) -> list[int]:
        if not self._ends:
            total = 0
            for block in self._kept.blocks:
                total += block.points * len(block.rows)
                self._ends.append(total)
        return self._ends

    def dump(self) -> list[list[Any]]:
        blocks = self._kept.dump()
        return [[first, step, points, [list(row) for row in rows]] for first, step, points, rows in blocks]

    def load(self, blocks: Iterable[Sequence[Any]]) -> None:
        self._ends = []
        self._kept.load((f, s, n, [tuple(row) for row in rows]) for f, s, n, rows in blocks)


def merged(logs: Sequence[HeldLog], since: Time) -> HeldLog:
    """Several logs as one, without what is older than `since`. O(blocks) where their points coincide."""
    found = HeldLog()
    left = [[block for block in log.blocks if block.last >= since] for log in logs]
    blocks = [block for of_log in left for block in of_log]
    edges = sorted({since, *(edge for b in blocks for edge in (b.first, b.last + 1) if edge >= since)})
    for start, end in pairwise(edges):
        at: dict[range, list[Values]] = {}
        for of_log in left:
            while of_log and of_log[0].last < start:
                del of_log[0]
            if of_log and of_log[0].first < end and (points := of_log[0].between(start, end)):
                at.setdefault(points, []).extend(of_log[0].rows)
        if len(at) == 1:
            for points, rows in at.items():
                found.add_stretch(points, sorted(rows, key=values_key))
        else:
            apart = ((time, values) for points, rows in at.items() for time in points for values in rows)
            for time, values in sorted(apart, key=lambda fact: (fact[0], values_key(fact[1]))):
                found.append((time, values, 0, ""))
    return found


class LogSlice(Sequence[Fact]):
    """Facts of a log from one place up to another, while the log does not change."""

    def __init__(self, log: HeldLog, start: int, stop: int) -> None:
        self._log, self._start, self._stop = log, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, place: int) -> Fact: ...
    @overload
    def __getitem__(self, place: slice) -> LogSlice: ...
    def __getitem__(self, place: int | slice) -> Fact | LogSlice:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            return LogSlice(self._log, self._start + start, self._start + max(start, stop))
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._log[self._start + place]

    def __delitem__(self, place: slice) -> None:
        """Skip the first few."""
        self._start += place.indices(len(self))[1]


class HeldTotal:
    """A running COUNT, SUM or AVG, not DISTINCT, of what holds (see running_aggregates.py)."""

    def __init__(self, function: str, star: bool) -> None:
        self._kept: Blocks[Term | None] = Blocks()
        self._function, self._star = function, star
        self._size = self._errors = 0
        self._sum = ExactSum()

    def add(self, time: Time, term: Term | None) -> None:
        self._kept.add(time, term)
        self._change([term], 1)

    def add_stretch(self, points: range, terms: list[Term | None]) -> None:
        self._kept.add_stretch(points, terms)
        self._change(terms, len(points))

    def _change(self, terms: Sequence[Term | None], times: int) -> None:
        self._size += times * len(terms)
        if self._star:
            return
        for term in terms:
            if term is None:
                self._errors += times
            elif self._function != "COUNT":
                self._sum.add(term, times)

    def expire(self, since: Time) -> bool:
        for terms, points in self._kept.forget(since):
            self._change(terms, -points)
        return self._size > 0

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        if self._function == "COUNT":
            return integer(self._size - self._errors)
        if self._errors:
            return None
        return self._sum.total() if self._function == "SUM" else self._sum.mean(self._size)

    @classmethod
    def joined(cls, totals: Sequence[HeldTotal], function: str, star: bool) -> HeldTotal:
        """Several as one, to read the value now. O(blocks)."""
        found = cls(function, star)
        for block in (block for total in totals for block in total._kept.blocks):
            found._change(block.rows, block.points)
        return found

    def kept(self) -> int:
        """The number of stored terms."""
        return sum(len(block.rows) for block in self._kept.blocks)

    def entries(self) -> list[tuple[Time, Term | None]]:
        """The values, point by point, oldest first."""
        found = self._kept.blocks
        return [(b.first + i * b.step, term) for b in found for i in range(b.points) for term in b.rows]

    def dump(self) -> list[list[Any]]:
        return self._kept.dump()

    def load(self, blocks: Iterable[Sequence[Any]]) -> None:
        self._kept.load(blocks)
        for block in self._kept.blocks:
            self._change(block.rows, block.points)
