"""The timeline of LARS rules in a run: its points, what holds at each, and what rules see of it.

Place:   held by the detector of a program with LARS rules, and by the literal reading; an engine that is
         passed in computes what holds (windows/, reference/lars.py). Intervals are the buckets of columns
         over heads of .lars files (columns.py).
Method:  language.md, "A .lars file". Facts wait for the first point that is not before them. At a point the
         layers of the program are evaluated between its composite event rules (lang/checks/lars.py), so that
         heads may read rules and rules heads. A stretch in which nothing begins or ends is skipped; rules
         that choose from heads themselves, and not their changes, get it as a stretch before the next
         instant, as far back as a window can reach. If a head itself is a trigger, the points at which it
         holds are stepped through, except in stillness: once everything that happened is out of reach of
         those rules' windows, all points look alike to them, so that if one has no match none has.
         Intervals: stretches of points with the same rows. A block is its first point, the distance of its
         points, how many there are, and the rows of each. The rows of the newest point are a separate block
         until a later point comes, and then join the block before them if they continue it. So what holds for
         a year costs as much as at one point; facts are made when read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

from msgspec import Struct

from dotr.budget import INPUT, POINT, SLACK, UNLIMITED, VERIFIED, Allowance, Exhausted
from dotr.detect.analysis import depths, is_triggering, reads_time
from dotr.detect.digest import timeline_digest
from dotr.errors import EngineError, ProgramError
from dotr.events import Clock, Fact, Time, Values
from dotr.expressions.accumulators import mergeable
from dotr.program import LarsProgram, Position, Program, RelationToStream
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term
from dotr.rdf.values import values_key

R = TypeVar("R")


class Interval(Struct, frozen=True):
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


class IntervalLog(Sequence[Fact]):
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


def merged(logs: Sequence[IntervalLog], since: Time) -> IntervalLog:
    """Several logs as one, without what is older than `since`. O(blocks) where their points coincide."""
    found = IntervalLog()
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

    def __init__(self, log: IntervalLog, start: int, stop: int) -> None:
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
    """A running COUNT, SUM or AVG, not DISTINCT, of what holds (see totals.py)."""

    def __init__(self, function: str, star: bool) -> None:
        self._kept: Blocks[Term | None] = Blocks()
        self._total = mergeable(function, star)

    def add(self, time: Time, term: Term | None) -> None:
        self._kept.add(time, term)
        self._total.add(term)

    def add_stretch(self, points: range, terms: list[Term | None]) -> None:
        self._kept.add_stretch(points, terms)
        for term in terms:
            self._total.add(term, len(points))

    def expire(self, since: Time) -> bool:
        for terms, points in self._kept.forget(since):
            for term in terms:
                self._total.remove(term, points)
        return self._total.size > 0

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        return self._total.value()

    @classmethod
    def joined(cls, totals: Sequence[HeldTotal], function: str, star: bool) -> HeldTotal:
        """Several as one, to read the value now."""
        found = cls(function, star)
        for total in totals:
            found._total.include(total._total)
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
            for term in block.rows:
                self._total.add(term, block.points)


Changes: TypeAlias = tuple[list[Values], list[Values]]
"""The atoms of a head that began to hold, and those that ended, each in canonical order."""


class Lars(Protocol):
    """Computes what holds; its interface is explained in reference/lars.py."""

    def begin(self, point: Time) -> None: ...
    def facts(self, name: str, facts: Iterable[tuple[Time, Values]]) -> None: ...
    def evaluate(self, stratum: int) -> Mapping[str, Changes]: ...
    def holding(self, name: str) -> list[Values]: ...
    def end(self) -> None: ...
    def due(self) -> Time | None: ...
    def restless(self) -> list[str]: ...

    limit: int

    @property
    def used(self) -> int: ...

    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, state: Mapping[str, Any]) -> None: ...


OpenLars: TypeAlias = Callable[
    [LarsProgram, Sequence[Sequence[int]], Time, Time, Clock, Collection[str] | None], Lars
]
"""(program, numbers of rules by layer, first point, step, clock, heads whose changes are reported)."""


class _HeadRead(Struct):
    """How rules read a head itself. `trigger`: a rule runs for each of its facts; `chosen`: a rule reads
    them, up to `memory` before its trigger.
    """

    trigger: bool = False
    chosen: bool = False
    memory: Time = 0


class Timeline:
    """Owns the facts that wait for a point, and the engine once the first instant is known.

    `literal`: the engine wants every point, also those without a change. `allowance`: units of work at points
    at which nothing comes; what comes adds to it (INPUT).
    """

    def __init__(
        self,
        program: Program,
        clock: Clock,
        open_lars: OpenLars,
        *,
        literal: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        self.program = program
        self._clock, self._open, self._literal = clock, open_lars, literal
        lars = program.lars
        self.step = lars.step or clock.unit
        self._reads = lars.reads
        self._changes: dict[str, None] = {}
        self._heads_read: dict[str, _HeadRead] = {}
        self._look_at_uses()
        self._lars: Lars | None = None
        self._beginning: Time = 0
        self._last: Time | None = None  # the last point that was evaluated
        self._at: Time | None = None  # the point being evaluated
        self._passed: Time = 0  # the last point whose facts of heads were given; with `_last`
        self._stirred: Time = 0  # the last instant at which anything happened; with `_last`
        self._still = False  # whether a point of stillness had no match
        self._allowance = allowance or Allowance()
        self._rules = {rule.name for rule in program.rules}
        self._came = self._silent = False  # whether a fact came for the point; or no graph, either
        self._waiting: dict[str, list[tuple[Time, Values]]] = {}
        self._holding: dict[str, list[Values]] = {}  # of heads read themselves, at the last point

    def _look_at_uses(self) -> None:
        self._reach: Time = 0  # how far back rules with a head as trigger look
        self._by_time = False  # whether one of them differs by the time of a still point
        for rule in self.program.rules:
            depth = depths(rule)
            if isinstance(rule.trigger, RowPattern) and any(s.of_head for s in rule.trigger.sources):
                self._by_time = True  # each point at which it holds is a row
            if isinstance(rule.trigger, Position) and rule.trigger.of_head:
                self._reach = max(self._reach, *depth.values())
                self._by_time = self._by_time or (
                    all(conjunct.position.of_head for conjunct in rule.required) and reads_time(rule)
                )
            for position in rule.positions:
                if not position.held:
                    continue
                if " " in position.stream:
                    self._changes[position.stream.partition(" ")[2]] = None
                    continue
                read = self._heads_read.setdefault(position.stream, _HeadRead())
                is_trigger = is_triggering(rule, position)
                read.trigger = read.trigger or is_trigger
                read.chosen = read.chosen or not is_trigger
                read.memory = max(read.memory, depth[position.name])

    # -- points

    def point(self, time: Time) -> Time:
        """The first point that is not before a time."""
        return -(-time // self.step) * self.step

    def due(self, bound: Time) -> Time | None:
        """The next point before `bound` (the next instant) that must be evaluated, or None."""
        if self._lars is None:
            return None
        if self._last is None:
            return self._beginning if self._beginning < bound else None
        times = [bound, *(self.point(time) for facts in self._waiting.values() for time, _ in facts[:1])]
        if not self._literal and (changing := self._lars.due()) is not None:
            times.append(changing)
        following = min(times)
        dense = self._dense(following)
        found = following if dense is None else dense
        return found if found < bound else None

    def _dense(self, following: Time) -> Time | None:
        """The next point before `following` at which a head is a trigger."""
        if self._still:
            return None
        if any(self._holding.get(name) for name in self.triggers):
            found = self._passed + self.step
            return found if found < following else None
        return None

    @property
    def triggers(self) -> list[str]:
        """The heads that are triggers themselves."""
        return [name for name, read in self._heads_read.items() if read.trigger]

    def stillness(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool) -> bool:
        """Whether rules triggered by heads see at an instant only what has held since before their windows,
        so that all points look alike to them until something happens; called before it is taken.
        """
        if graph or any(facts.values()):
            self.stirred(time)
        return self._last is not None and time - self._reach > self._stirred and not self._by_time

    def stirred(self, time: Time) -> None:
        """Something happened at an instant: a graph, a change, a match."""
        self._stirred, self._still = time, False

    def rest(self) -> None:
        """The last instant taken was a point of stillness without a match."""
        self._still = True

    def passed(self, time: Time) -> tuple[int, dict[str, Interval]]:
        """The number of points of stillness skipped before an instant, and, for rules that choose from heads,
        what held at all skipped points; called before `take`.
        """
        if self._lars is None or self._last is None:
            return 0, {}
        step = self.step
        found: dict[str, Interval] = {}
        through = (time - 1) // step * step
        for name, read in self._heads_read.items():
            held = self._holding.get(name)
            if held and read.chosen:
                first = max(self._passed + step, self.point(time - read.memory))
                points = range(first, through + step, step)
                if points:
                    found[name] = Interval(points, held)
        many = (through - self._passed) // step if self._still else 0
        self._passed = max(self._passed, through)
        return max(0, many), found

    def take(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool) -> None:
        """Take the facts of an instant. Without a graph, only changes of what lasts count.

        Raises ProgramError D4011 if nothing comes and what points without input may cost is spent.
        """
        if self._lars is None:
            self._start(self.point(time))
        for name in self._reads:
            new = facts.get(name)
            if new and (graph or name in self.program.standing):
                self._waiting.setdefault(name, []).extend((fact[0], fact[1]) for fact in new)
        self._came = any(name not in self._rules for name in self._waiting)
        self._silent = not (graph or self._came)
        if self._silent and time % self.step == 0:
            self._refuse_endless(time)

    def _refuse_endless(self, time: Time) -> None:
        """Raise ProgramError D4011 (verifying: D4012) if the allowance for points without input is spent."""
        if self._allowance.exhausted:
            assert self._lars is not None, "a point was evaluated"
            raise self._endless(self._lars, time)

    def _endless(self, lars: Lars, time: Time, exhausted: Exhausted | None = None) -> ProgramError:
        from dotr.windows.engine import endless  # noqa: PLC0415  # start-up: rare

        heads = [name for name in self.triggers if self._holding.get(name)] or lars.restless()
        notes = () if exhausted is None else exhausted.notes()
        return endless(heads, self._clock.text(time), self._allowance.most, notes, literal=self._literal)

    def _charge(self, units: int, point: int = POINT) -> None:
        """Account for a point that took so many units, and `point` more."""
        if self._came:
            self._allowance.add(self._allowance.most // INPUT + SLACK * units)
        elif self._silent:
            self._allowance.take(point + units)

    def events(self, rule: str, facts: Sequence[Fact]) -> None:
        """Take the events of a rule at the last instant taken."""
        if rule not in self._reads:
            return
        given = [(fact[0], fact[1]) for fact in facts]
        if self._at is None:
            self._waiting.setdefault(rule, []).extend(given)
        else:
            assert self._lars is not None, "a point is being evaluated"
            self._lars.facts(rule, given)

    def _start(self, beginning: Time) -> None:
        lars = self.program.lars
        strata = [layer.rules for layer in lars.layers]
        watched = list({**self._changes, **dict.fromkeys(self._heads_read)})
        self._beginning = beginning
        self._lars = self._open(lars, strata, beginning, self.step, self._clock, watched)

    def begin(self, time: Time) -> list[tuple[int, int]]:
        """Begin a point if the last instant taken is one; returns the layers to evaluate, each as (how many
        rules precede it in dependency order, number).
        """
        if time % self.step:
            return []
        lars = self._lars
        assert lars is not None, "take() comes first"
        self._at = time
        self._begin(lars, time)
        for name, facts in self._waiting.items():
            lars.facts(name, facts)
        self._waiting.clear()
        return [(layer.before, number) for number, layer in enumerate(self.program.lars.layers)]

    def _begin(self, lars: Lars, point: Time) -> None:
        """Go to a point. If nothing comes, it may take what is left."""
        lars.limit = max(0, self._allowance.left) if self._silent else UNLIMITED
        lars.begin(point)

    def catch_up(self, time: Time) -> dict[str, list[Fact]]:
        """Evaluate the skipped points before an instant by the definition: head → its facts there. Raises
        EngineError D4090 if anything changed there, ProgramError D4012 if there are too many.
        """
        found: dict[str, list[Fact]] = {}
        lars = self._lars
        if lars is None:
            return found
        first = self._beginning if self._last is None else self._last + self.step
        self._came, self._silent = False, True
        for point in range(first, time, self.step):
            self._refuse_endless(point)
            self._begin(lars, point)
            for number in range(len(self.program.lars.layers)):
                for name, (began, ended) in self._evaluated(lars, number, point).items():
                    if began or ended:
                        raise self._differs(name, point, began, ended)
            for name in self._heads_read:
                found.setdefault(name, []).extend(_facts(point, lars.holding(name)))
            lars.end()
            self._charge(lars.used)
            self._last = point
        return found

    def _differs(
        self, name: str, point: Time, began: Sequence[Values], ended: Sequence[Values]
    ) -> EngineError:
        return EngineError.of(
            "D4090",
            f"head `{name}` at {self._clock.text(point)}: engine and literal reading differ",
            notes=(f"literally it changes there: {began}, {ended}", "engine: nothing does"),
            hint="this is a bug of dotr: please report rules and input",
        )

    def _evaluated(self, lars: Lars, number: int, time: Time) -> Mapping[str, Changes]:
        """A layer at a point. Raises ProgramError D4011, or D4012 for the literal reading."""
        try:
            return lars.evaluate(number)
        except Exhausted as exhausted:
            raise self._endless(lars, time, exhausted) from None

    def evaluate(self, number: int) -> dict[str, list[Fact]]:
        """Stream → facts of a layer that rules see at the current point."""
        lars, time = self._lars, self._at
        assert lars is not None, "begin() comes first"
        assert time is not None, "begin() comes first"
        found: dict[str, list[Fact]] = {}
        for name, (began, ended) in self._evaluated(lars, number, time).items():
            if began or ended:
                self.stirred(time)
            found[f"{RelationToStream.ISTREAM} {name}"] = _facts(time, began)
            found[f"{RelationToStream.DSTREAM} {name}"] = _facts(time, ended)
        for name in self.program.lars.layers[number].names:
            if name in self._heads_read:
                self._holding[name] = lars.holding(name)
                found[name] = _facts(time, self._holding[name])
        return {stream: facts for stream, facts in found.items() if facts}

    def end(self, units: int = 0) -> None:
        """The last instant taken is done; its rules took `units` of work."""
        if self._at is not None:
            assert self._lars is not None, "a point is being evaluated"
            self._lars.end()
            self._charge(self._lars.used + units, VERIFIED if self._literal else POINT)
            self._last = self._passed = self._at
            self._at = None

    # -- state

    def digest(self) -> str:
        """The digest that identifies the state."""
        return timeline_digest(self.program)

    def snapshot(self) -> dict[str, Any]:
        """Everything that later results depend on, as a JSON value; between instants."""
        return {
            "digest": self.digest(),
            "beginning": self._beginning,
            "last": self._last,
            "passed": self._passed,
            "stirred": self._stirred,
            "spent": self._allowance.most - self._allowance.left,
            "waiting": [[n, [[t, list(v)] for t, v in facts]] for n, facts in self._waiting.items()],
            "holding": [[name, [list(values) for values in held]] for name, held in self._holding.items()],
            "lars": None if self._lars is None else self._lars.snapshot(),
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Continue from a snapshot of the same LARS rules; with another one, or none, start empty."""
        if state is None or state["digest"] != self.digest() or state["lars"] is None:
            return
        self._start(state["beginning"])
        assert self._lars is not None, "it was opened"
        if state["last"] is not None:
            self._lars.restore(state["lars"])
        self._last = state["last"]
        self._passed = state.get("passed", self._last or 0)
        self._allowance.left = self._allowance.most - state.get("spent", 0)
        self._stirred = state.get("stirred", self._last or 0)
        self._waiting = {n: [(t, tuple(v)) for t, v in facts] for n, facts in state["waiting"]}
        self._holding = {name: [tuple(values) for values in held] for name, held in state["holding"]}


def _facts(time: Time, atoms: Iterable[Values]) -> list[Fact]:
    return [(time, values, 0, "") for values in atoms]


def opened(
    program: Program,
    clock: Clock,
    open_lars: OpenLars,
    *,
    literal: bool = False,
    allowance: Allowance | None = None,
) -> Timeline | None:
    """The timeline of a program's LARS rules, if it has any."""
    if not program.lars.rules:
        return None
    return Timeline(program, clock, open_lars, literal=literal, allowance=allowance)
