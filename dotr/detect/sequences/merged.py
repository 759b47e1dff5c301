"""Partitions of a pattern whose conditions look at the row and PREV only: starts in groups, states merged.

Place:   sequence.py opens it; apart.py is for all other patterns.
Method:  all mappings from one row are a list of states in order of preference. Rows with equal lists are a
         group, and stay one until a deadline: a row takes a group from list to list by one look-up (`Lists`,
         an automaton of lists that is made as rows need it). Which row completed a mapping last is kept for
         a group, and for the starts that it had when groups became one.
         As long as no start has a complete mapping, the lists of all groups are a `Front`, and a row takes
         the whole partition on by one look-up: which front is next, and what becomes of the groups' starts.
         Nothing else is carried: the rows from the oldest open start are kept, and when a start's match is
         certain its registers are made of them, from its last row to its first: starts whose lists have
         become equal have the same registers behind that row, and many that match at one instant cost no
         more than one of them (`Behind`). Where no match is to begin inside another, a start that is to match
         next and has a complete mapping makes all up to the last row of that superfluous: it becomes the
         `Lead`, goes on with registers, and its rows are dropped.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, TypeAlias

from dotr.budget import EXPRESSION
from dotr.detect.sequences.automaton import Automaton, Transition
from dotr.detect.sequences.code import PatternCode, PatternShape, Registers, Row
from dotr.detect.sequences.feed import BUILT_IN, Feed, write_feed
from dotr.detect.sequences.partition import Found, Limits, Partition
from dotr.detect.sequences.registers import dump_row, row_of
from dotr.events import FOREVER, Clock, Time

LISTS = 1 << 14
"""How many lists of states are remembered, and how many fronts."""

NONE = -1
"""The number of no row."""

_NUMBER = itemgetter(0)

FEW = 64
"""So many rows are kept without looking which of them can still be asked for."""


class States(dict[int, tuple[Any, bool]]):
    """A list of states: the elements that a row satisfies → the next list, and whether a mapping is then
    complete and preferred to all that are not in the list.
    """

    __slots__ = ("cost", "lists", "moves", "need", "states", "steps")

    def __init__(self, lists: Lists, states: tuple[int, ...]) -> None:
        super().__init__()
        self.lists, self.states = lists, states
        self.need = lists.automaton.needs(states)
        self.cost = EXPRESSION * len(states)
        self.moves: dict[int, Transition] = {}
        self.steps: dict[int, Step] = {}

    def __missing__(self, satisfied: int) -> tuple[States, bool]:
        move = self.move(satisfied)
        found = self[satisfied] = self.lists.of(move.states), move.ended >= 0
        return found

    def step(self, satisfied: int) -> Step:
        """What the row does to a list whose states have registers."""
        move = self.move(satisfied)
        elements, updates = self.lists.automaton.elements, self.lists.updates
        taken = [
            (updates[elements[self.states[place]]], place) if place >= 0 else (None, ~place)
            for place in move.taken
        ]
        only = taken[0][0] if len(taken) == 1 else None
        step = self.steps[satisfied] = self[satisfied][0], only, taken, move.origins, move.ended
        return step

    def move(self, satisfied: int) -> Transition:
        """What the row does to each state."""
        move = self.moves.get(satisfied)
        if move is None:
            first = self is self.lists.start
            move = self.moves[satisfied] = self.lists.automaton.merge(self.states, satisfied, first)
        return move


Step: TypeAlias = tuple[States, Any, list[tuple[Any, int]], tuple[int, ...], int]
"""(next list, the update if only one state goes on, (update or None, place) of each that does, for each next
state its place among them, that of the complete mapping or -1)."""


class Front(dict[int, "Move"]):
    """The lists of the groups of a partition without complete mappings, the group of the oldest start first:
    the elements that a row satisfies → what it does to the groups. `need`, `cost`: those of the next row.
    """

    __slots__ = ("cost", "lists", "need", "states")

    def __init__(self, lists: Lists, states: tuple[States, ...]) -> None:
        super().__init__()
        self.lists, self.states = lists, states
        self.need, self.cost = lists.start.need, lists.start.cost
        for one in states:
            self.need |= one.need
            self.cost += one.cost

    def __missing__(self, satisfied: int) -> Move:
        move = self[satisfied] = self._move(satisfied)
        return move

    def _move(self, satisfied: int) -> Move:
        lists = self.lists
        begun, complete = lists.start[satisfied]
        begins = complete or begun is not lists.empty
        after = [one[satisfied] for one in self.states]
        if complete or any(ended for _, ended in after):
            first = after[0][1] if after else complete
            return lists.none, FIRST if first else OTHER, (), (), NEW if begins else NONE
        kept: list[States] = []
        joins: list[tuple[int, int]] = []
        dropped: list[int] = []
        places: dict[tuple[int, ...], tuple[int, int]] = {}  # list → (place before, place after)
        for place, (states, _) in enumerate(after):
            if states is lists.empty:
                dropped.append(place)
            elif (known := places.get(states.states)) is not None:
                joins.append((known[0], place))
                dropped.append(place)
            else:
                places[states.states] = place, len(kept)
                kept.append(states)
        begin = NONE
        if begins:
            known = places.get(begun.states)
            begin = NEW if known is None else known[1]
            if known is None:
                kept.append(begun)
        return lists.front(kept), NEITHER, tuple(joins), tuple(reversed(dropped)), begin


NEW = -2
"""The place of a group that a start begins."""
NEITHER, FIRST, OTHER = range(3)
"""Whose mapping a row has completed: that of the oldest start, or another's."""

Move: TypeAlias = tuple[Front, int, tuple[tuple[int, int], ...], tuple[int, ...], int]
"""(next front, whose mapping is complete, places of groups of which the first takes the starts of the second,
places of groups that are then left out, the last first, the place of the group that the row begins in: NONE
if it begins in none)."""

Starts: TypeAlias = list[int]
"""Starts of a group, in order: the numbers of their rows."""

Behind: TypeAlias = dict[tuple[int, int, tuple[int, ...]], tuple[int, Registers, int]]
"""(last row of a mapping, a row, the states before that) → of the mapping from that row on: the place of its
state, its registers from back to front, the number of its last row of `skip_to`.
"""


class Lists:
    """Owns the lists of states that were reached, and the fronts. `updates`: what a row of each element does
    to registers.
    """

    def __init__(
        self, automaton: Automaton, updates: Sequence[Callable[[Registers, Row], Registers]]
    ) -> None:
        self.automaton, self.updates = automaton, updates
        self._known: dict[tuple[int, ...], States] = {}
        self._fronts: dict[tuple[tuple[int, ...], ...], Front] = {}
        self.start = States(self, automaton.start)
        self.empty = self.of(())
        self.none = self.front(())

    def of(self, states: tuple[int, ...]) -> States:
        """The list of these states; none but the empty one is remembered for ever."""
        found = self._known.get(states)
        if found is None:
            if len(self._known) > LISTS:
                self._known = {(): self.empty}
            found = self._known[states] = States(self, states)
        return found

    def front(self, lists: Sequence[States]) -> Front:
        """The front of these lists; none but that without any is remembered for ever."""
        key = tuple([one.states for one in lists])
        found = self._fronts.get(key)
        if found is None:
            if len(self._fronts) > LISTS:
                self._fronts = {(): self.none}
            found = self._fronts[key] = Front(self, tuple(lists))
        return found


class Group:
    """Starts with equal lists. `last`: the number of the last row of their mappings; if it is NONE, `lasts`
    has it of those that have one. `hopes`: whether one of them may have a mapping.
    """

    __slots__ = ("hopes", "last", "lasts", "starts", "states")

    def __init__(self, states: States, last: int, starts: Starts, hopes: bool) -> None:
        self.states, self.last, self.starts, self.hopes = states, last, starts, hopes
        self.lasts: dict[int, int] = {}

    def ways(self) -> list[tuple[int, int]]:
        """(number, last row of its mapping) of each start."""
        if self.last != NONE or not self.lasts:
            return [(number, self.last) for number in self.starts]
        of = self.lasts.get
        return [(number, of(number, NONE)) for number in self.starts]

    def divide(self) -> None:
        """Its starts are to have mappings of their own."""
        if self.last != NONE:
            self.lasts = dict.fromkeys(self.starts, self.last)
            self.last = NONE

    def last_of(self, number: int) -> int:
        """The last row of the mapping of a start."""
        return self.last if self.last != NONE else self.lasts.get(number, NONE)


class Lead:
    """The mapping that will be the next match, and those preferred to it: `first` row; `states` with their
    registers; the registers of the mapping; `closes`: the last instant whose rows it may take.
    """

    __slots__ = ("carried", "closes", "first", "mapped", "states")

    def __init__(
        self, first: Row, states: States, carried: list[Registers], mapped: Registers, closes: Time
    ) -> None:
        self.first, self.states, self.closes = first, states, closes
        self.carried, self.mapped = carried, mapped


class MergedPartition(Partition):
    """Rows with equal PER. `front`: the lists of its groups, and `starts` of each; None where some may have a
    complete mapping: then `groups`. `rows`: (row, the elements that it satisfies), from number `base` on, no
    later than the oldest open start. `decided`: starts whose match is certain, if those before them end:
    (number, last row).
    """

    __slots__ = ("base", "decided", "front", "groups", "lead", "rows", "starts")

    def __init__(self, key: Any, front: Front) -> None:
        super().__init__(key)
        self.front: Front | None = front
        self.starts: list[Starts] = []
        self.groups: list[Group] = []
        self.rows: list[tuple[Row, int]] = []
        self.base = 0
        self.decided: list[tuple[int, int]] = []
        self.lead: Lead | None = None

    @property
    def open(self) -> bool:
        return bool(self.starts or self.groups or self.decided) or self.lead is not None

    @property
    def size(self) -> int:
        return len(self.rows) + (self.lead is not None)


class Merged:
    """Owns no partition; goes through the rows of one."""

    def __init__(
        self, automaton: Automaton, code: PatternCode, limits: Limits, shape: PatternShape, budget: int
    ) -> None:
        self.lists = Lists(automaton, code.updates)
        self.code = code
        self.limits = limits
        self.shape = shape
        self.budget = budget
        self._elements = automaton.elements
        self._skip_to = automaton.names.index(limits.skip_to) if limits.skip_to is not None else NONE

        self.leads = not limits.overlapping and self._skip_to == NONE

    def new(self, key: Any) -> MergedPartition:
        return MergedPartition(key, self.lists.none)

    def feed(self, number: int, clock: Clock, hooks: Mapping[str, Any]) -> Feed:
        """The function that takes the rows of a source. `hooks`: what it calls of the sequence, by name."""
        own = {
            "start": self.lists.start,
            "empty": self.lists.empty,
            "none": self.lists.none,
            "report": self.report,
            "complete": self._complete,
            "unfold": self._unfold,
            "trim": self._trim,
            "merge": _merge,
            "decide": self._decide_every,
            "join": _join,
            "begin": _begin,
            "Group": Group,
            "never": FOREVER,
            "within": self.limits.within,
        }
        return write_feed(self, clock, number, {**own, **BUILT_IN, **hooks})

    def refresh(self, part: MergedPartition) -> None:
        """Find out anew what its next row is tested for, and when one of its mappings ends."""
        if part.front is None and not part.decided and not any(group.hopes for group in part.groups):
            self._fold(part)
        start, lead = self.lists.start, part.lead
        if part.front is None:
            part.need, part.cost = start.need, start.cost
            for states in [group.states for group in part.groups] + ([lead.states] if lead else []):
                part.need |= states.need
                part.cost += states.cost
        if lead is not None:
            part.closes = lead.closes
        elif part.starts or part.groups:
            part.closes = part.rows[_oldest(part) - part.base][0][0] + self.limits.within
        else:
            part.closes = FOREVER

    def _fold(self, part: MergedPartition) -> None:
        """No start has a complete mapping: its groups become a front."""
        part.groups.sort(key=_first_start)
        part.front = self.lists.front([group.states for group in part.groups])
        part.starts = [group.starts for group in part.groups]
        part.groups = []

    @staticmethod
    def _unfold(part: MergedPartition) -> None:
        """A start gets a complete mapping."""
        part.groups = _groups(part)
        part.front, part.starts = None, []

    def _complete(self, part: MergedPartition, found: list[Found]) -> bool:
        """The oldest start has just got the first complete mapping of all: it is to match next. Whether it
        goes on; else nothing is open.
        """
        number = part.count - 1
        first = part.starts[0][0] if part.starts else number
        row, states, carried, mapped = self._again(part, first)
        part.front, part.starts, part.rows = self.lists.none, [], []
        if states is self.lists.empty:
            found.append((part, row, mapped))
            part.closes = FOREVER
            return False
        part.lead = Lead(row, states, carried, mapped, row[0] + self.limits.within)
        return True

    def _decide_every(self, part: MergedPartition, group: Group) -> None:
        self._decide(part, group, len(group.starts))

    def _decide(self, part: MergedPartition, group: Group, many: int) -> None:
        """The first starts of a group have ended."""
        for number in group.starts[:many]:
            if (last := group.last_of(number)) >= 0:
                insort(part.decided, (number, last))
        del group.starts[:many]

    # -- deadlines -----------------------------------------------------------------------------------------

    def expire(self, part: MergedPartition, time: Time, found: list[Found]) -> None:
        """Mappings that may take no row from `time` on have ended."""
        limits = self.limits
        all_ = limits.gap is not None and part.last + limits.gap < time
        lead = part.lead
        if part.front is not None:
            if lead is None:
                self._expire_front(part, FOREVER if all_ else time - limits.within)
                return
            if not part.starts:
                if all_ or lead.closes < time:
                    found.append((part, lead.first, lead.mapped))
                    part.lead = None
                return
            self._unfold(part)
        if lead is not None and (all_ or lead.closes < time):
            lead.states, lead.carried = self.lists.empty, []
        oldest, base, rows = time - limits.within, part.base, part.rows
        for group in part.groups:
            many = 0
            if all_:
                many = len(group.starts)
            else:
                for number in group.starts:
                    if rows[number - base][0][0] >= oldest:
                        break
                    many += 1
            if many:
                self._decide(part, group, many)
        part.groups = [group for group in part.groups if group.starts]
        self.report(part, found)

    def _expire_front(self, part: MergedPartition, oldest: Time) -> None:
        """Starts before a time have ended, none of which has a complete mapping."""
        base, rows, front = part.base, part.rows, part.front
        assert front is not None, "no mapping is complete"
        before, in_order = -1, True  # whether all groups are still there, in the order of their first starts
        for starts in part.starts:
            old = rows[starts[0] - base][0][0] < oldest
            if old:
                many = 1
                while many < len(starts) and rows[starts[many] - base][0][0] < oldest:
                    many += 1
                del starts[:many]
            in_order = in_order and bool(starts) and starts[0] > before
            if not old:
                break
            before = starts[0] if starts else before
        if in_order:
            self._trim(part)
            return
        left = [(starts, states) for starts, states in zip(part.starts, front.states, strict=True) if starts]
        left.sort(key=_first)
        part.starts = [starts for starts, _ in left]
        part.front = self.lists.front([states for _, states in left])
        self._trim(part)

    def next(self, part: MergedPartition) -> Time | None:
        """The instant at which, without another row, the next match is certain."""
        limits, lead = self.limits, part.lead
        if lead is None and part.front is not None:
            return None
        latest = None if limits.gap is None else part.last + limits.gap
        if lead is not None:
            return lead.closes if latest is None or lead.closes < latest else latest
        hopeful = [group for group in part.groups if group.hopes]
        if not hopeful and not part.decided:
            return None
        rows, base, within = part.rows, part.base, limits.within

        def closes(number: int) -> Time:
            end: Time = rows[number - base][0][0] + within
            return end if latest is None or end < latest else latest

        if limits.overlapping:
            ends = [
                closes(next_)
                for group in hopeful
                if (next_ := next((n for n, last in group.ways() if last >= 0), None)) is not None
            ]
            return min(ends, default=None)
        ways = [[(number, last, True) for number, last in group.ways()] for group in part.groups]
        ways.append([(number, last, False) for number, last in part.decided])
        until: Time | None = None
        for number, last, waits in merge(*ways):
            if waits:
                until = closes(number)
            if last >= 0:
                return until
        return None

    # -- matches -------------------------------------------------------------------------------------------

    def report(self, part: MergedPartition, found: list[Found]) -> None:
        """The matches that are certain."""
        behind: Behind = {}
        if self.limits.overlapping:
            for number, last in part.decided:
                registers, _ = self._matched(part, number, last, behind)
                found.append((part, part.rows[number - part.base][0], registers))
            part.decided.clear()
        else:
            while self._report_next(part, found, behind):
                pass
        self._trim(part)

    def _report_next(self, part: MergedPartition, found: list[Found], behind: Behind) -> bool:
        lead = part.lead
        if lead is not None:
            if lead.states.states:
                return False
            found.append((part, lead.first, lead.mapped))
            part.lead = None
            return True
        decided = part.decided
        leading: Group | None = None
        first = decided[0][0] if decided else part.count
        for group in part.groups:
            if group.starts[0] < first:
                first, leading = group.starts[0], group
        if leading is not None:
            last = leading.last_of(first)
            if last >= 0 and self._skip_to == NONE:
                if last == part.count - 1:
                    self._promote(part, first)
                else:
                    self._drop(part, last, first)
            return False
        if not decided:
            return False
        number, last = decided.pop(0)
        registers, mark = self._matched(part, number, last, behind)
        found.append((part, part.rows[number - part.base][0], registers))
        if mark >= 0:
            last = max(mark, number + 1) - 1
        self._drop(part, last, NONE)
        return True

    def _promote(self, part: MergedPartition, number: int) -> None:
        """The start that is to match next has just got a mapping."""
        row, states, carried, mapped = self._again(part, number)
        part.lead = Lead(row, states, carried, mapped, row[0] + self.limits.within)
        part.groups.clear()
        part.decided.clear()
        part.rows.clear()

    def _drop(self, part: MergedPartition, last: int, but: int) -> None:
        """Nothing starts up to this row, `but` one."""
        for group in part.groups:
            starts = group.starts
            del starts[starts[0] == but : bisect_right(starts, last)]
        part.groups = [group for group in part.groups if group.starts]
        del part.decided[: bisect_right(part.decided, last, key=_NUMBER)]

    @staticmethod
    def _trim(part: MergedPartition) -> None:
        """Forget rows before the oldest open start."""
        if not (part.starts or part.groups or part.decided):
            part.rows.clear()
        elif len(part.rows) > FEW:
            first = _oldest(part)
            if 2 * (first - part.base) > len(part.rows):
                del part.rows[: first - part.base]
                part.base = first

    def _again(self, part: MergedPartition, first: int) -> tuple[Row, States, list[Registers], Registers]:
        """Go the way of a start once more, to the last row: its row; the states that then wait, with their
        registers; those of the mapping that is complete there.
        """
        states = self.lists.start
        one: Registers = self.code.start  # of all states, if `several` is None
        several: list[Registers] | None = None
        mapped = one
        for row, bits in part.rows[first - part.base :]:
            step = states.steps.get(bits)
            states, only, taken, origins, ended = states.step(bits) if step is None else step
            if only is not None:
                one = only(one if several is None else several[taken[0][1]], row)
                several = None
                if ended >= 0:
                    mapped = one
                continue
            old = [one] * (1 + max([at for _, at in taken], default=0)) if several is None else several
            new = [old[at] if update is None else update(old[at], row) for update, at in taken]
            several = [new[origin] for origin in origins]
            if ended >= 0:
                mapped = new[ended]
        carried = [one] * len(states.states) if several is None else several
        return part.rows[first - part.base][0], states, carried, mapped

    def _matched(self, part: MergedPartition, first: int, last: int, behind: Behind) -> tuple[Registers, int]:
        """Of the mapping of a start that is complete at row `last`: the registers, and the number of the last
        row of `skip_to` in it. `behind` has what is known already, and gets what is found.
        """
        rows, base, code = part.rows, part.base, self.code
        states, number = self.lists.start, first
        way: list[tuple[int, States]] = [(number, states)]
        known = None
        while known is None and number < last:
            states, number = states[rows[number - base][1]][0], number + 1
            known = behind.get((last, number, states.states))
            if known is None:
                way.append((number, states))
        place, registers, mark = known or (NONE, code.start, NONE)
        for number, states in reversed(way):
            row, bits = rows[number - base]
            move = states.move(bits)
            place = move.taken[move.ended if number == last else move.origins[place]]
            if place < 0:
                place = ~place
            else:
                element = self._elements[states.states[place]]
                registers = code.prepends[element](registers, row)
                if element == self._skip_to and mark == NONE:
                    mark = number
            if number > first:  # before its first row a mapping skips none: that list is another
                behind[last, number, states.states] = place, registers, mark
        return code.turn(registers), mark

    # -- state ---------------------------------------------------------------------------------------------

    def clear(self, part: MergedPartition) -> None:
        """Nothing is open any more."""
        part.front, part.starts, part.groups = self.lists.none, [], []
        part.decided, part.rows, part.lead = [], [], None

    def dump(self, part: MergedPartition) -> dict[str, Any]:
        """All of a partition, as a JSON value."""
        groups = _groups(part) if part.front is not None else part.groups
        first = _oldest(part) if groups or part.decided else part.base
        registers, lead = self.code.registers, part.lead
        state: dict[str, Any] = {
            "base": first,
            "rows": [[dump_row(row), bits] for row, bits in part.rows[first - part.base :]],
            "decided": [list(one) for one in part.decided],
            "groups": [[list(group.states.states), [list(way) for way in group.ways()]] for group in groups],
        }
        if lead is not None:
            state["lead"] = [
                dump_row(lead.first),
                list(lead.states.states),
                [_dump(registers, carried) for carried in lead.carried],
                _dump(registers, lead.mapped),
                lead.closes,
            ]
        return state

    def load(self, part: MergedPartition, state: dict[str, Any]) -> None:
        """The inverse of `dump`."""
        part.base = state["base"]
        part.rows = [(row_of(row), bits) for row, bits in state["rows"]]
        part.decided = [(n, last) for n, last in state["decided"]]
        part.front = None
        for states, ways in state["groups"]:
            lasts = {number: last for number, last in ways if last >= 0}
            group = Group(self.lists.of(tuple(states)), NONE, [number for number, _ in ways], bool(lasts))
            group.lasts = lasts
            part.groups.append(group)
        if "lead" in state:
            first, states, carried, mapped, closes = state["lead"]
            registers = self.code.registers
            part.lead = Lead(
                row_of(first),
                self.lists.of(tuple(states)),
                [_load(registers, one) for one in carried],
                _load(registers, mapped),
                closes,
            )


def _dump(registers: Sequence[Any], carried: Registers) -> list[Any]:
    return [register.dump(value) for register, value in zip(registers, carried, strict=True)]


def _load(registers: Sequence[Any], carried: Sequence[Any]) -> Registers:
    return tuple([register.load(value) for register, value in zip(registers, carried, strict=True)])


def _groups(part: MergedPartition) -> list[Group]:
    """The groups of a front."""
    assert part.front is not None, "no mapping is complete"
    pairs = zip(part.front.states, part.starts, strict=True)
    return [Group(states, NONE, starts, False) for states, starts in pairs]


def _oldest(part: MergedPartition) -> int:
    """The number of the oldest open start; there is one."""
    if part.starts:
        return part.starts[0][0]
    return min([group.starts[0] for group in part.groups] + [n for n, _ in part.decided[:1]])


def _first(pair: tuple[Starts, States]) -> int:
    return pair[0][0]


def _first_start(group: Group) -> int:
    return group.starts[0]


def _begin(group: Group, number: int, last: int) -> None:
    """A row begins a mapping whose list is that of a group; `last`: the row, if one is complete, or -1."""
    if group.last != last:
        group.divide()
        if last >= 0:
            group.lasts[number] = last
    group.starts.append(number)
    group.hopes = group.hopes or last >= 0


def _join(one: Group, other: Group) -> None:
    """Two groups with equal lists become one."""
    if one.last != other.last or (one.last == NONE and other.lasts):
        one.divide()
        other.divide()
        one.lasts.update(other.lasts)
    _merge(one.starts, other.starts)
    one.hopes = one.hopes or other.hopes


def _merge(one: Starts, other: Starts) -> None:
    """One takes the starts of the other, in order."""
    one += other
    one.sort()  # two runs: linear
