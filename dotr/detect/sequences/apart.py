"""Partitions of a pattern whose conditions look at rows of a mapping, or at totals: every mapping by itself.

Place:   sequence.py opens it; merged.py is for patterns whose conditions look at the row and PREV only.
Method:  each start has its mappings in order of preference: the states that wait, the registers, and which
         row SKIP TO would be at. So a row makes no more mappings than the conditions that it is tested for,
         which are counted before. No row is kept. Where no match is to begin inside another, a start that is
         to match next and has a complete mapping makes all up to its last row superfluous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.budget import EXPRESSION
from dotr.detect.sequences.automaton import END, Automaton
from dotr.detect.sequences.code import PatternCode, PatternShape, Registers, Row
from dotr.detect.sequences.feed import Feed
from dotr.detect.sequences.partition import Found, Limits, Partition
from dotr.detect.sequences.registers import dump_row, row_of
from dotr.events import FOREVER, Clock, Fact, Time

NONE = -1
"""The number of no row."""

Thread: TypeAlias = tuple[tuple[int, ...], Registers, int]
"""(states that wait for the next row, the preferred first, registers, number of the last row of SKIP TO's
element): a mapping once, however many ways its pattern may go on."""


class Start(Struct):
    """The mappings from one row: those that go on, the preferred first, and the complete one that is
    preferred to all others: its last row, registers, and the row of SKIP TO.
    """

    number: int
    row: Row
    threads: list[Thread]
    last: int = NONE
    mapped: Registers = ()
    mark: int = NONE


class ApartPartition(Partition):
    """Rows with equal PER: the open starts, in order."""

    __slots__ = ("open_starts",)

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.open_starts: list[Start] = []

    @property
    def open(self) -> bool:
        return bool(self.open_starts)

    @property
    def size(self) -> int:
        return sum(1 + len(start.threads) for start in self.open_starts)


class Apart:
    """Owns no partition; goes through the rows of one."""

    def __init__(
        self, automaton: Automaton, code: PatternCode, limits: Limits, shape: PatternShape, budget: int
    ) -> None:
        self.automaton = automaton
        self.shape, self.budget = shape, budget
        self.code = code
        self.limits = limits
        self._skip_to = automaton.names.index(limits.skip_to) if limits.skip_to is not None else NONE
        self._begin: list[Thread] = [(automaton.start, code.start, NONE)]
        self._need = automaton.needs(automaton.start)
        self._needs: dict[tuple[int, ...], int] = {}  # states that wait → their elements, as bits
        self._after = [  # what follows a state, up to a complete mapping; whether there is one
            (then[: then.index(END)], True) if END in then else (then, False) for then in automaton.follow
        ]
        self._chains = shape.chains()

    def new(self, key: Any) -> ApartPartition:
        return ApartPartition(key)

    def feed(self, number: int, clock: Clock, hooks: Mapping[str, Any]) -> Feed:
        """A function that takes the rows of a source. `hooks`: what it calls of the sequence, by name."""
        pattern, many, gap = self.shape.pattern, self.shape.many, self.limits.gap
        places = [pattern.sources[number].variables.index(name) for name in pattern.per]
        parts, counted = hooks["parts"], hooks["counted"]

        def feed(time: Time, facts: Sequence[Fact], found: list[Found]) -> None:
            counted[0] += len(facts)
            for fact in facts:
                values = tuple([fact[1][place] for place in places])
                if None in values:
                    counted[1] += 1
                    continue
                key: Any = values[0] if len(values) == 1 else values
                part = parts.get(key)
                if part is None:
                    part = hooks["new"](key, time)
                if time > part.closes or (gap is not None and time - part.last > gap):
                    hooks["expire"](part, time, found)
                if part.last != time:
                    part.work = 0
                row = (*fact, number) if many else fact
                if part.work < 0:
                    part.follow(row, self.code.before)
                    continue
                part.work += self._cost(part)
                if part.work > self.budget:
                    hooks["exceed"](part, fact, found)
                    part.follow(row, self.code.before)
                else:
                    counted[2] += self.take(part, row, found)
                    hooks["settle"](part)

        return feed

    def _cost(self, part: ApartPartition) -> int:
        """The units of the next row: for each condition that it is tested for, and for each row that an
        aggregate in a condition goes through.
        """
        cost = EXPRESSION * len(self.automaton.start)
        for start in part.open_starts:
            cost += EXPRESSION * sum([len(states) for states, _, _ in start.threads])
            for place, units in self._chains:
                chains = [(registers[place], len(states)) for states, registers, _ in start.threads]
                cost += units * sum([chain[2] * times for chain, times in chains if chain is not None])
        return cost

    def refresh(self, part: ApartPartition) -> None:
        """Find out anew when one of its mappings ends."""
        part.closes = self._closes(part, part.open_starts[0]) if part.open_starts else FOREVER

    def take(self, part: ApartPartition, row: Row, found: list[Found]) -> bool:
        """A row; matches that are then certain are added to `found`. Whether a mapping begins with it."""
        code = self.code
        need, needs = self._need, self._needs
        for start in part.open_starts:
            for states, _, _ in start.threads:
                if states not in needs:
                    needs[states] = self.automaton.needs(states)
                need |= needs[states]
        number = part.count
        bits = code.bits(row, part.before, need)
        begun = Start(number, row, self._begin)
        going = [*part.open_starts, begun]
        for place, start in enumerate(going):
            if start.threads:
                self._go_on(start, row, part.before, bits, number)
                if not place and start.last == number and self._leads:
                    going = going[:1]
                    break
        part.follow(row, code.before)
        part.open_starts = [start for start in going if start.threads or start.last >= 0]
        self.report(part, found)
        return going[-1] is begun and (bool(begun.threads) or begun.last >= 0)

    @property
    def _leads(self) -> bool:
        """Whether no match is to begin inside another."""
        return not self.limits.overlapping and self._skip_to == NONE

    def _go_on(self, start: Start, row: Row, before: Any, bits: int, number: int) -> None:
        automaton, code = self.automaton, self.code
        skips = automaton.skipping and start.number != number
        left: list[Thread] = []
        for states, registers, mark in start.threads:
            for state in states:
                element = automaton.elements[state]
                if bits >> element & 1:
                    carried = code.updates[element](registers, row)
                    test = code.tests.get(element)
                    if test is None or test(row, before, carried):
                        marked = number if element == self._skip_to else mark
                        then, ended = self._after[state]
                        if then:
                            left.append((then, carried, marked))
                        if ended:
                            start.threads = left
                            start.last, start.mapped, start.mark = number, carried, marked
                            return
                    else:
                        code.failed[element] += 1
                if skips:
                    left.append(((state,), registers, mark))
        start.threads = left

    # -- deadlines -----------------------------------------------------------------------------------------

    def expire(self, part: ApartPartition, time: Time, found: list[Found]) -> None:
        """Mappings that may take no row from `time` on have ended."""
        limits = self.limits
        all_ = limits.gap is not None and part.last + limits.gap < time
        for start in part.open_starts:
            if all_ or start.row[0] + limits.within < time:
                start.threads = []
        part.open_starts = [start for start in part.open_starts if start.threads or start.last >= 0]
        self.report(part, found)

    def _closes(self, part: ApartPartition, start: Start) -> Time:
        end: Time = start.row[0] + self.limits.within
        return end if self.limits.gap is None else min(end, part.last + self.limits.gap)

    def next(self, part: ApartPartition) -> Time | None:
        """The instant at which, without another row, the next match is certain."""
        until: Time | None = None
        for start in part.open_starts:
            if start.threads:
                until = self._closes(part, start)
            if start.last >= 0:
                return until
        return None

    # -- matches -------------------------------------------------------------------------------------------

    def report(self, part: ApartPartition, found: list[Found]) -> None:
        """The matches that are certain."""
        starts = part.open_starts
        if self.limits.overlapping:
            found.extend((part, start.row, start.mapped) for start in starts if not start.threads)
            part.open_starts = [start for start in starts if start.threads]
            return
        while starts and starts[0].last >= 0:
            one = starts[0]
            if one.threads:
                if self._leads:
                    starts = [one, *[start for start in starts if start.number > one.last]]
                break
            found.append((part, one.row, one.mapped))
            last = one.last if one.mark < 0 else max(one.mark, one.number + 1) - 1
            starts = [start for start in starts if start.number > last]
        part.open_starts = starts

    # -- state ---------------------------------------------------------------------------------------------

    def clear(self, part: ApartPartition) -> None:
        """Nothing is open any more."""
        part.open_starts = []

    def dump(self, part: ApartPartition) -> dict[str, Any]:
        """All of a partition, as a JSON value."""
        return {
            "starts": [
                [
                    start.number,
                    dump_row(start.row),
                    [[list(states), self._dump(carried), mark] for states, carried, mark in start.threads],
                    start.last,
                    self._dump(start.mapped),
                    start.mark,
                ]
                for start in part.open_starts
            ]
        }

    def load(self, part: ApartPartition, state: dict[str, Any]) -> None:
        """The inverse of `dump`."""
        part.open_starts = [
            Start(
                number,
                row_of(row),
                [(tuple(states), self._load(carried), own) for states, carried, own in threads],
                last,
                self._load(mapped),
                mark,
            )
            for number, row, threads, last, mapped, mark in state["starts"]
        ]

    def _dump(self, carried: Registers) -> list[Any]:
        return [r.dump(value) for r, value in zip(self.code.registers, carried, strict=bool(carried))]

    def _load(self, carried: list[Any]) -> Registers:
        return tuple([r.load(value) for r, value in zip(self.code.registers, carried, strict=bool(carried))])
