"""A pattern of rows as an automaton whose states are in order of preference.

Place:   the partitions of a sequence (merged.py, apart.py) go through it; `dotr plan` draws it.
Method:  a state waits for a row of one element; counted quantifiers are unrolled. What follows a state is the
         list of states that are reached from it without a row, the preferred first, as a backtracking matcher
         would try them; END among them is a complete mapping, and what is less preferred than that is left
         out (Pike's machine, as of Thompson 1968; the states are Glushkov's). A state that is reached in two
         ways has the place of the preferred one: both ways give the same elements to the same rows.
         `merge` goes from one list of states to the next for a row that satisfies some elements: of those in
         one state only the preferred goes on.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dotr.program.sequences import Either, Element, InOrder, Pattern, Repeated

END: Final = -1
"""In a list of states: a mapping is complete."""


class _Step(Struct):
    """What an element waits for, and the place behind it; or ("") the places that are tried, the preferred
    first.
    """

    element: str
    then: tuple[int, ...]


class Transition(Struct, frozen=True):
    """From one list of states to the next. `states`: the next list; `taken`: places in the former list whose
    state takes the row; `origins`: for each next state its place in `taken`; `ended`: that of what is then
    complete and preferred to all that is not in the list, or -1.
    """

    states: tuple[int, ...]
    taken: tuple[int, ...]
    origins: tuple[int, ...]
    ended: int


class Automaton(Struct, frozen=True):
    """`elements`: of each state, as a place in `names`. `start`: the states that wait for the first row.
    `follow`: what follows each state. `skipping`: behind the first row a state may skip a row.
    """

    names: tuple[str, ...]
    elements: tuple[int, ...]
    start: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]
    skipping: bool = False

    def merge(self, states: tuple[int, ...], satisfied: int, first: bool) -> Transition:
        """What follows for a row that satisfies the elements in the bits of `satisfied`; `first`: of a
        mapping.
        """
        found: dict[int, int] = {}
        taken: list[int] = []
        skips = self.skipping and not first
        for place, state in enumerate(states):
            if satisfied >> self.elements[state] & 1:
                taken.append(place)
                for then in self.follow[state]:
                    if then == END:
                        return Transition(tuple(found), tuple(taken), tuple(found.values()), len(taken) - 1)
                    found.setdefault(then, len(taken) - 1)
            if skips and state not in found:
                taken.append(~place)
                found[state] = len(taken) - 1
        return Transition(tuple(found), tuple(taken), tuple(found.values()), -1)

    def needs(self, states: tuple[int, ...]) -> int:
        """The elements that they wait for, as bits."""
        bits = 0
        for state in states:
            bits |= 1 << self.elements[state]
        return bits


def automaton(pattern: Pattern, names: tuple[str, ...], *, skipping: bool = False) -> Automaton:
    """The automaton of a pattern; `names`: its elements. Linear in the pattern unrolled, but for what follows
    optional parts one after another, which is quadratic.
    """
    steps = [_Step("", ())]

    def add(*then: int, element: str = "") -> int:
        steps.append(_Step(element, then))
        return len(steps) - 1

    def build(part: Pattern, behind: int) -> int:
        match part:
            case Element(name):
                return add(behind, element=name)
            case InOrder(parts):
                for one in reversed(parts):
                    behind = build(one, behind)
                return behind
            case Either(branches):
                return add(*[build(branch, behind) for branch in branches])
            case Repeated(one, minimum, maximum, reluctant):
                if maximum is None:
                    loop = add()
                    inside = build(one, loop)
                    steps[loop].then = (behind, inside) if reluctant else (inside, behind)
                    behind = inside if minimum else loop
                    minimum = max(0, minimum - 1)
                else:
                    end = behind
                    for _ in range(maximum - minimum):
                        inside = build(one, behind)
                        behind = add(end, inside) if reluctant else add(inside, end)
                for _ in range(minimum):
                    behind = build(one, behind)
                return behind

    begin = build(pattern, 0)

    def reached(place: int) -> tuple[int, ...]:
        """The places of elements, and 0, that are reached without a row."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        todo = [place]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if steps[at].element or not at:
                found[at] = None
            else:
                todo.extend(reversed(steps[at].then))
            if not at:
                break
        return tuple(found)

    first = reached(begin)
    follow: dict[int, tuple[int, ...]] = {}
    waiting = list(dict.fromkeys(first))
    for place in waiting:  # grows: states are numbered as they are reached
        if place not in follow:
            follow[place] = reached(steps[place].then[0])
            waiting += [then for then in follow[place] if then and then not in waiting]
    number = {0: END, **{place: state for state, place in enumerate(waiting)}}
    return Automaton(
        names,
        tuple(names.index(steps[place].element) for place in waiting),
        tuple(number[place] for place in first),
        tuple(tuple(number[then] for then in follow[place]) for place in waiting),
        skipping,
    )
