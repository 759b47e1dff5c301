"""A sequence as it runs: facts of its sources in, its matches out.

Place:   detect/network.py opens one for each sequence; detect/detector.py runs it in its turn, with the facts
         of its sources at an instant that it sees, and at its deadlines.
Method:  rows are facts in the order of time, place in OF, canonical order; each goes to its partition, by the
         terms of PER. A partition in which a mapping is complete, but not yet certain, is in a queue of
         deadlines, under a time that is no later than its next match; what the queue has first is computed
         anew before it is believed, so that a row that moves a deadline on costs nothing there. At a deadline
         its rows come first. Other partitions end when their next row comes, or are swept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from operator import itemgetter
from typing import Any, Final

from dotr.budget import Exhausted
from dotr.detect.sequences.apart import Apart
from dotr.detect.sequences.automaton import Automaton, automaton
from dotr.detect.sequences.code import PatternShape, Row, write
from dotr.detect.sequences.merged import Merged
from dotr.detect.sequences.partition import Found, Limits
from dotr.detect.sequences.registers import dump_row, row_of
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.program.names import TRIGGER, Passed
from dotr.program.rules import Rule
from dotr.program.sequences import RowPattern
from dotr.rdf.values import values_key

Rows = Sequence[tuple[int, Sequence[Fact]]]
"""The facts of an instant by the number of their source, ascending."""

_KEY: Final = itemgetter(0)


class SequenceRun:
    """Owns the partitions and deadlines of a sequence. `budget`: units of a partition at an instant; past
    them `exceeded` gets its row, and what is open in it is dropped.
    """

    def __init__(
        self,
        index: int,
        rule: Rule,
        clock: Clock,
        budget: int,
        exceeded: Callable[[Fact, Exhausted], None],
    ) -> None:
        assert isinstance(rule.trigger, RowPattern), "the trigger of a sequence"
        self.index, self.rule, self.pattern = index, rule, rule.trigger
        pattern = rule.trigger
        self.shape = PatternShape(pattern, rule.bindings)
        self.limits = Limits(pattern.within, pattern.gap, pattern.overlapping, pattern.skip_to)
        self.automaton: Automaton = automaton(pattern.pattern, self.shape.names, skipping=pattern.skipping)
        code = write(self.shape, clock)
        self.code = code
        self.how: Any = (Apart if self.shape.apart else Merged)(self.automaton, code, self.limits)
        self._budget, self._exceeded = budget, exceeded
        self._parts: dict[Any, Any] = {}  # partitions, by the terms of PER
        self._queue: list[tuple[Time, int, Any]] = []
        self._pushed = 0
        self._sweep_at: Time | None = None
        self._places = [
            tuple([source.variables.index(name) for name in pattern.per]) for source in pattern.sources
        ]
        self.counted = {"rows": 0, "left out": 0, "starts": 0, "matches": 0, "dropped": 0}
        self._many = len(pattern.sources) > 1

    # -- an instant ----------------------------------------------------------------------------------------

    def run(self, time: Time, rows: Rows) -> list[RawMatch]:
        """The matches that are certain at an instant, in canonical order, equal ones by their first row."""
        found: list[Found] = []
        if self._sweep_at is None:
            self._sweep_at = time + self.limits.within
        elif time > self._sweep_at:
            self.sweep(time)
        for source, facts in rows:
            self._take(time, source, facts, found)
        while self._queue and self._queue[0][0] <= time:
            due, _, part = heappop(self._queue)
            if part.due != due:
                continue
            part.due = None
            self.how.expire(part, time + 1, found)
            self._settle(part)
        return self._matches(time, found) if found else []

    def _take(self, time: Time, source: int, facts: Sequence[Fact], found: list[Found]) -> None:
        places, parts, take = self._places[source], self._parts, self.how.take
        only = places[0] if len(places) == 1 else -1
        gap = self.limits.gap
        for fact in facts:
            values = fact[1]
            key: Any = values[only] if only >= 0 else tuple([values[place] for place in places])
            if key is None or (only < 0 and None in key):
                self.counted["left out"] += 1
                continue
            row: Row = (*fact[:4], source) if self._many else fact
            part: Any = parts.get(key)
            if part is None:
                part = parts[key] = self._new(key)
            elif part.open and (
                self.how.closing(part) < time if gap is None or part.last + gap >= time else True
            ):
                self.how.expire(part, time, found)
            if part.at != time:
                part.at, part.work = time, 0
            if part.work < 0:
                part.follow(row, self.code.before)
                continue
            part.work += take(part, row, found)
            if part.work > self._budget:
                self._drop(part, fact, found)
            elif not part.open:
                if not self.code.before:
                    self._forget(part)
            else:
                self._schedule(part)

    def _new(self, key: Any) -> Any:
        part = self.how.new(key)
        part.before = () if self.code.before > 1 else None
        return part

    def _drop(self, part: Any, fact: Fact, found: list[Found]) -> None:
        """What is open in a partition is too much work."""
        self.how.clear(part)
        found[:] = [one for one in found if one[0] is not part]
        part.work = -1
        self.counted["dropped"] += 1
        self._exceeded(fact, Exhausted())

    def _settle(self, part: Any) -> None:
        """Forget a partition in which nothing is open, else schedule its next match."""
        if part.open:
            self._schedule(part)
        elif not self.code.before:
            self._forget(part)

    def _forget(self, part: Any) -> None:
        self.counted["rows"] += part.count
        self.counted["starts"] += part.starts
        part.count = part.starts = 0
        if id(self._parts.get(part.key)) == id(part):  # not one that came after it
            del self._parts[part.key]

    def _schedule(self, part: Any) -> None:
        """See to it that the queue has it no later than its next match."""
        due = self.how.next(part)
        if due is not None and (part.due is None or due < part.due):
            part.due = due
            self._pushed += 1
            heappush(self._queue, (due, self._pushed, part))

    def _matches(self, time: Time, found: list[Found]) -> list[RawMatch]:
        values = self.code.values
        self.counted["matches"] += len(found)
        rules = (self.index,)
        if len(found) == 1:
            _, row, registers = found[0]
            return [(rules, time, (row[:4],), values(registers, time))]  # type: ignore[list-item]  # unbound
        several = []
        for _, row, registers in found:
            bound = values(registers, time)
            order = values_key(bound), row[0], row[4] if self._many else 0, values_key(row[1]), row[2]
            several.append((order, (rules, time, (row[:4],), bound)))
        several.sort(key=_KEY)
        return [match for _, match in several]  # type: ignore[misc]  # unbound values

    def next(self) -> Time | None:
        """The earliest time at which it has a match if no row comes; after the last one at which it ran."""
        queue = self._queue
        while queue:
            time, number, part = queue[0]
            if part.due != time:
                heappop(queue)
                continue
            due = self.how.next(part) if part.open else None
            if due == time:
                return time
            if due is None:
                heappop(queue)
                part.due = None
            else:
                part.due = due
                heapreplace(queue, (due, number, part))
        return None

    # -- state ---------------------------------------------------------------------------------------------

    def sweep(self, now: Time) -> None:
        """Forget partitions in which nothing is open, and no row that PREV may still ask for."""
        self._sweep_at = now + self.limits.within
        within = self.limits.within
        for part in list(self._parts.values()):
            if part.open and part.due is None and self.how.closing(part) < now:
                silent: list[Found] = []
                self.how.expire(part, now, silent)
                assert not silent, "a partition with a match is due"
            if not part.open and (not self.code.before or part.last + within < now):
                self._forget(part)

    def sizes(self) -> int:
        """How many rows it keeps."""
        return sum(part.size + (part.before is not None) for part in self._parts.values())

    def passed(self) -> Passed:
        """Rows, starts, matches."""
        parts = self._parts.values()
        rows = self.counted["rows"] + sum(part.count for part in parts)
        starts = self.counted["starts"] + sum(part.starts for part in parts)
        return [(TRIGGER, rows), ("starts", starts), ("matches", self.counted["matches"])]

    def forget_passed(self) -> None:
        """Count from 0 again."""
        self.counted = dict.fromkeys(self.counted, 0)
        self.code.failed[:] = [0] * len(self.code.failed)
        for part in self._parts.values():
            self.counted["rows"] -= part.count
            part.starts = 0

    def dump(self, now: Time | None) -> list[Any]:
        """All that later matches depend on, as a JSON value."""
        if now is not None:
            self.sweep(now)
        return [
            [
                list(part.key) if isinstance(part.key, tuple) else [part.key],
                part.count,
                part.last,
                self._dump_before(part.before),
                self.how.dump(part),
            ]
            for part in self._parts.values()
        ]

    def _dump_before(self, before: Any) -> Any:
        if self.code.before < 2 or before is None:
            return dump_row(before)
        return [dump_row(row) for row in before]

    def load(self, state: Sequence[Any], now: Time | None) -> None:
        """The inverse of `dump`, into a sequence without rows."""
        for key, count, last, before, own in state:
            found = key[0] if len(self.pattern.per) == 1 else tuple(key)
            part = self._parts[found] = self._new(found)
            part.count, part.last = count, last
            if before is not None:
                part.before = tuple(map(row_of, before)) if self.code.before > 1 else row_of(before)
            self.how.load(part, own)
            if part.open:
                self._schedule(part)
        self._sweep_at = None if now is None else now + self.limits.within
