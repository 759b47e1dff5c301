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
from dotr.events import FOREVER, NEVER, Clock, Fact, RawMatch, Time
from dotr.program.names import REFUSED, TRIGGER, Passed
from dotr.program.rules import Rule
from dotr.program.sequences import RowPattern
from dotr.rdf.values import values_key

Rows = Sequence[tuple[int, Sequence[Fact]]]
"""The facts of an instant by the number of their source, ascending."""

COUNTED: Final = ("rows", "left out", "starts", "matches", "dropped")
"""What is counted: facts of the sources, those of them in which a variable of PER is unbound, mappings that
were begun, matches, partitions whose mappings were too much work.
"""

IDLE: Final = 1 << 10
"""How many partitions in which nothing is open are not forgotten yet: their next rows need no new ones."""

_KEY: Final = itemgetter(0)


class SequenceRun:
    """Owns the partitions and deadlines of a sequence. `budget`: units of a partition at an instant; past
    them `exceeded` gets its row, and what is open in it is dropped. `queue`: (time, number, partition).

    An instant is `run`, or step by step: `sweep` if it is later than `sweep_at`, one of `feeds` for each
    source that has facts, `end` if the queue has it, `take` if there is something in `found`.
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
        self.how: Any = (Apart if self.shape.apart else Merged)(
            self.automaton, code, self.limits, self.shape, budget
        )
        self._exceeded = exceeded
        self._parts: dict[Any, Any] = {}  # partitions, by the terms of PER
        self.queue: list[tuple[Time, int, Any]] = []
        self._pushed = 0
        self._idle: list[Any] = []  # partitions in which nothing was open after the last row
        self._room = IDLE
        self.sweep_at: Time = NEVER
        self.found: list[Found] = []
        self._many = len(pattern.sources) > 1
        self._chains = self.shape.chains(of_values=True)
        self._budget = budget
        self.counted = [0] * len(COUNTED)
        hooks = {
            "parts": self._parts,
            "idle": self._idle,
            "counted": self.counted,
            "new": self._new,
            "expire": self._expire,
            "settle": self._settle,
            "exceed": self._exceed,
            "follow": self._follow,
        }
        self.feeds = [self.how.feed(number, clock, hooks) for number in range(len(pattern.sources))]

    # -- an instant ----------------------------------------------------------------------------------------

    def run(self, time: Time, rows: Rows) -> list[RawMatch]:
        """The matches that are certain at an instant, in canonical order, equal ones by their first row."""
        if time > self.sweep_at:
            self.sweep(time)
        for source, facts in rows:
            self.feeds[source](time, facts, self.found)
        self.end(time)
        return self.take(time) if self.found else []

    def end(self, time: Time) -> None:
        """The deadlines of an instant, after its rows."""
        while self.next(time + 1) is not None:
            _, _, part = heappop(self.queue)
            part.due = None
            self.how.expire(part, time + 1, self.found)
            self._settle(part)

    def _new(self, key: Any, time: Time) -> Any:
        if len(self._idle) > self._room:
            self._forget_idle(time)
        part = self._parts[key] = self.how.new(key)
        part.before = () if self.code.before > 1 else None
        return part

    def _expire(self, part: Any, time: Time, found: list[Found]) -> None:
        """Mappings that may take no row from `time` on have ended; a row follows."""
        if part.open:
            self.how.expire(part, time, found)
            self.how.refresh(part)

    def _follow(self, part: Any, row: Row) -> None:
        part.follow(row, self.code.before)

    def _exceed(self, part: Any, fact: Fact, found: list[Found]) -> None:
        """What is open in a partition is too much work."""
        self.how.clear(part)
        self.how.refresh(part)
        found[:] = [one for one in found if one[0] is not part]
        part.work = -1
        if not self.code.before:
            self._idle.append(part)
        self.counted[4] += 1
        self._exceeded(fact, Exhausted())

    def _settle(self, part: Any) -> None:
        """Schedule the next match of a partition; one in which nothing is open will be forgotten."""
        if part.open:
            self._schedule(part)
        elif not self.code.before:
            self._idle.append(part)
        self.how.refresh(part)

    def _forget_idle(self, time: Time) -> None:
        """Forget partitions in which nothing is open, after their instant: its work is counted until then."""
        now = [part for part in self._idle if part.last == time]
        for part in self._idle:
            if part.last != time and not part.open:
                self._parts.pop(part.key, None)
        self._idle[:] = now
        self._room = max(IDLE, 2 * len(now))

    def _schedule(self, part: Any) -> None:
        """See to it that the queue has it no later than its next match."""
        due = self.how.next(part)
        if due is not None and (part.due is None or due < part.due):
            part.due = due
            self._pushed += 1
            heappush(self.queue, (due, self._pushed, part))

    def take(self, time: Time) -> list[RawMatch]:
        """What was found at an instant, in canonical order. A match has the fact of its first row, k times if
        that comes from the k-th source of OF: so matches that begin at equal facts of two sources differ.
        """
        if self._chains:
            self._charge(time)
        found, values = self.found[:], self.code.values
        self.found.clear()
        self.counted[3] += len(found)
        rules = (self.index,)
        if len(found) == 1:
            _, row, registers = found[0]
            begun = (row[:4],) * (row[4] + 1) if self._many else (row[:4],)
            return [(rules, time, begun, values(registers, time))]  # type: ignore[list-item]  # unbound
        several = []
        for _, row, registers in found:
            bound = values(registers, time)
            source = row[4] if self._many else 0
            order = values_key(bound), row[0], source, values_key(row[1]), row[2]
            several.append((order, (rules, time, (row[:4],) * (source + 1), bound)))
        several.sort(key=_KEY)
        return [match for _, match in several]  # type: ignore[misc]  # unbound values

    def _charge(self, time: Time) -> None:
        """Charge the rows that values of matches go through: each of many matches may have all of them."""
        units: dict[int, list[Any]] = {}  # of a partition: itself, the first row of its first match, units
        for part, row, registers in self.found:
            own = units.setdefault(id(part), [part, row, part.work if part.last == time else 0])
            for place, each in self._chains:
                if (chain := registers[place]) is not None:
                    own[2] += each * abs(chain[2])
        for part, row, spent in units.values():
            if spent > self._budget:
                self._exceed(part, row[:4], self.found)

    def next(self, bound: Time = FOREVER) -> Time | None:
        """The earliest time before `bound` at which it has a match if no row comes; after the last one at
        which it ran.
        """
        queue = self.queue
        while queue and queue[0][0] < bound:
            time, number, part = queue[0]
            if part.due != time:
                heappop(queue)
                continue
            due = self.how.next(part)
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
        self.sweep_at = now + self.limits.within
        within = self.limits.within
        self._idle.clear()
        for part in list(self._parts.values()):
            gone = self.limits.gap is not None and part.last + self.limits.gap < now
            if part.open and part.due is None and (gone or part.closes < now):
                silent: list[Found] = []
                self._expire(part, now, silent)
                assert not silent, "a partition with a match is due"
            if not part.open and (not self.code.before or part.last + within < now):
                del self._parts[part.key]

    def sizes(self) -> int:
        """How many rows it keeps."""
        return sum(part.size + (part.before is not None) for part in self._parts.values())

    def passed(self) -> Passed:
        """Rows, for each element with a condition how often that was false or an error, starts, matches."""
        rows, left_out, starts, matches, _ = self.counted
        refused = [
            (f"{REFUSED}{element.name}", count)
            for element, count in zip(self.pattern.elements, self.code.failed, strict=True)
            if element.on is not None
        ]
        return [(TRIGGER, rows - left_out), *refused, ("starts", starts), ("matches", matches)]

    def forget_passed(self) -> None:
        """Count from 0 again."""
        self.counted[:] = [0] * len(COUNTED)
        self.code.failed[:] = [0] * len(self.code.failed)

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
            part = self._parts[found] = self._new(found, NEVER)
            part.count, part.last = count, last
            if before is not None:
                part.before = tuple(map(row_of, before)) if self.code.before > 1 else row_of(before)
            self.how.load(part, own)
            self._settle(part)
        self.sweep_at = NEVER if now is None else now + self.limits.within
