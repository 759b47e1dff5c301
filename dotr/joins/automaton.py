"""Property paths as automata over edges.

Place:   read by path_relations.py, which walks the product of a graph and an automaton.
Method:  position automaton (Glushkov 1961): a state for every occurrence of an edge in the path, entered by
         that edge, without empty moves; occurrences with equal successors are one state. `p*`, `p+` and `p?`,
         however nested, are loops of the automaton, so that `(((p*)*)*)*` is walked like `p*`.
Why not: evaluating step by step like the standard's ALP: a nested repetition would be walked once for each
         node of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import Struct

from dotr.ir import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.rdf.terms import Term


class Transition(Struct, frozen=True):
    """One step along a predicate, or against it. `predicate` None: along any except the `excluded`."""

    predicate: Term | None
    forward: bool = True
    excluded: frozenset[Term] = frozenset()

    def turned(self) -> Transition:
        return Transition(self.predicate, not self.forward, self.excluded)


Move: TypeAlias = tuple[Transition, int]
"""An edge and the state that it leads to."""


class Machine(Struct, frozen=True):
    """The moves of each state, the start, and the ends; it does not accept the path of length zero."""

    moves: tuple[tuple[Move, ...], ...]
    start: int
    accepting: frozenset[int]


class Automaton(Struct, frozen=True):
    """A path read from its subject (`forward`) and from its object (`backward`).

    States have the same numbers in both; only the start of `backward` is an additional state. `nullable`: the
    path of length zero, which neither machine accepts, matches.
    """

    forward: Machine
    backward: Machine
    nullable: bool

    @property
    def edges(self) -> frozenset[Transition]:
        """Every edge, read from the subject."""
        return frozenset(edge for moves in self.forward.moves for edge, _ in moves)


class _SubAutomaton(Struct, frozen=True):
    """Of a path: the positions it may begin and end at, and whether it may be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    nullable: bool


_EMPTY = _SubAutomaton((), (), True)


class _Places:
    """Owns the positions of edges and their successors: tuples of positions, shared where equal."""

    def __init__(self) -> None:
        self.edges: list[Transition] = []
        self.follow: list[dict[int, tuple[int, ...]]] = []

    def part(self, path: Path, forward: bool) -> _SubAutomaton:
        match path:
            case str():
                return self._edge(Transition(path, forward))
            case Inverse(inner):
                return self.part(inner, not forward)
            case Sequence(paths):
                found = _EMPTY
                for step in paths if forward else reversed(paths):
                    found = self._behind(found, self.part(step, forward))
                return found
            case Alternative(paths):
                return _either([self.part(each, forward) for each in paths])
            case Repeat(inner, minimum, unbounded):
                found = self.part(inner, forward)
                if unbounded:
                    self._join(found.last, found.first)
                return _SubAutomaton(found.first, found.last, found.nullable or minimum == 0)
            case NegatedSet(ahead, back):
                sets = [(ahead, forward)] if ahead or not back else []
                sets += [(back, not forward)] if back else []
                return _either([self._edge(Transition(None, along, frozenset(s))) for s, along in sets])
            case _:
                assert_never(path)

    def _edge(self, edge: Transition) -> _SubAutomaton:
        self.edges.append(edge)
        self.follow.append({})
        place = (len(self.edges) - 1,)
        return _SubAutomaton(place, place, False)

    def _behind(self, a: _SubAutomaton, b: _SubAutomaton) -> _SubAutomaton:
        self._join(a.last, b.first)
        return _SubAutomaton(
            a.first + b.first if a.nullable else a.first,
            a.last + b.last if b.nullable else b.last,
            a.nullable and b.nullable,
        )

    def _join(self, places: Iterable[int], following: tuple[int, ...]) -> None:
        for place in places:
            self.follow[place][id(following)] = following


def _either(parts: list[_SubAutomaton]) -> _SubAutomaton:
    return _SubAutomaton(
        tuple(place for part in parts for place in part.first),
        tuple(place for part in parts for place in part.last),
        any(part.nullable for part in parts),
    )


def automaton(path: Path) -> Automaton:
    """The automaton of a path. Cost: about its length; one state per set of successors."""
    places = _Places()
    whole = places.part(path, True)
    ends = frozenset(whole.last)
    states: dict[tuple[frozenset[int], bool], int] = {}
    ways: list[Iterable[tuple[int, ...]]] = [(whole.first,)]
    state_of: list[int] = []
    for place, follow in enumerate(places.follow):
        key = frozenset(follow), place in ends
        if key not in states:
            states[key] = len(ways)
            ways.append(follow.values())
        state_of.append(states[key])
    moves = tuple(
        tuple(dict.fromkeys((places.edges[p], state_of[p]) for following in way for p in following))
        for way in ways
    )
    accepting = frozenset(state for (_, end), state in states.items() if end)
    return Automaton(Machine(moves, 0, accepting), _backward(moves, accepting), whole.nullable)


def _backward(moves: tuple[tuple[Move, ...], ...], accepting: frozenset[int]) -> Machine:
    """The same moves reversed, from accepting states to the start."""
    back: list[list[Move]] = [[] for _ in moves]
    for state, ways in enumerate(moves):
        for edge, target in ways:
            back[target].append((edge.turned(), state))
    start = dict.fromkeys(move for state in sorted(accepting) for move in back[state])
    return Machine((*map(tuple, back), tuple(start)), len(moves), frozenset((0,)))
