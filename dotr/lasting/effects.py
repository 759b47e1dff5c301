"""What events state and end: the effects of INSERT and DELETE, and which stated triples a pattern matches.

Place:   emit/effects.py makes them of the events of an instant, periods.py applies them at the next moment;
         instants.py keeps them until then. The literal reading has its own (reference/effects.py).
Method:  language.md, "Rules that write what lasts": fluents that events initiate and terminate (event
         calculus; RTEC: Artikis, Sergot, Paliouras, 2015, section 3). An effect of `t` holds from `t⁺` on,
         the next moment. StatedIndex has, for each set of places that the patterns of a program bind, the
         stated triples by their terms at these places, so that a pattern costs its matches, whatever else is
         stated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.events import Clock, Effect, Pattern, Time
from dotr.program import AnyTerm, Rule
from dotr.rdf.terms import Term, Triple

Form: TypeAlias = tuple[tuple[int, ...], Term | None]
"""The places that a pattern binds, and its predicate where the rule names it."""

DEEPEST: Final = 1_000
"""How many instants in succession effects alone may make, each by those of the one before."""

LONGEST: Final = 1_000_000
"""How many instants effects may make between two messages."""


class Pending(Struct, frozen=True):
    """The effects of the events of one instant, in output order, and the time at which they happen. `depth`:
    that of their events; `rules`: whose effects made their instants, back to one of depth 0, and their own.
    """

    time: Time
    depth: int
    effects: tuple[Effect, ...]
    rules: tuple[str, ...] = ()


def next_moment(time: Time, clock: Clock) -> Time:
    """The moment after `time` (µs): a microsecond later, or a unit of integer time."""
    return time + (clock.unit if clock.integer else 1)


def time_before(time: Time, clock: Clock) -> Time:
    """The moment of the events whose effects happen at `time`: the inverse of `next_moment`."""
    return time - (clock.unit if clock.integer else 1)


def saved(pending: Pending | None) -> Any:
    """As a value of JSON."""
    if pending is None:
        return None
    return [
        pending.time,
        pending.depth,
        [[one.rule, one.id, one.insert, one.delete, one.lost] for one in pending.effects],
        list(pending.rules),
    ]


def loaded(value: Any) -> Pending | None:
    """The inverse of `saved`."""
    if value is None:
        return None
    time, depth, effects, rules = value
    return Pending(
        time,
        depth,
        tuple(
            Effect(rule, name, tuple(map(_tuple, insert)), tuple(map(_tuple, delete)), lost)
            for rule, name, insert, delete, lost in effects
        ),
        tuple(rules),
    )


def _tuple(nodes: Sequence[Any]) -> Any:
    subject, predicate, object_ = nodes
    return subject, predicate, object_


def forms_of(rules: Iterable[Rule]) -> frozenset[Form]:
    """What the patterns of DELETE bind; without those that are triples."""
    found = set()
    for rule in rules:
        for triple in rule.deletes:
            nodes = triple.subject, triple.predicate, triple.object
            places = tuple(place for place, node in enumerate(nodes) if not isinstance(node, AnyTerm))
            if len(places) < len(nodes):
                found.add((places, triple.predicate if isinstance(triple.predicate, str) else None))
    return frozenset(found)


class StatedIndex:
    """Owns tables of stated triples for patterns of some forms."""

    def __init__(self, forms: Collection[Form], stated: Iterable[Triple]) -> None:
        self.forms = forms
        self._wanted: dict[tuple[int, ...], set[Term] | None] = {}
        for places, predicate in forms:
            wanted = self._wanted.setdefault(places, set())
            if predicate is None or wanted is None:
                self._wanted[places] = None
            else:
                wanted.add(predicate)
        self._tables: dict[tuple[int, ...], dict[tuple[Term, ...], dict[Triple, None]]] = {
            places: {} for places in self._wanted
        }
        if self._tables:
            for triple in stated:
                self.put(triple)

    def put(self, triple: Triple) -> None:
        """A triple is stated."""
        for places, table in self._tables.items():
            wanted = self._wanted[places]
            if wanted is None or triple[1] in wanted:
                table.setdefault(tuple([triple[place] for place in places]), {})[triple] = None

    def discard(self, triple: Triple) -> None:
        """A triple is not stated any more; nothing where it was not."""
        for places, table in self._tables.items():
            key = tuple([triple[place] for place in places])
            found = table.get(key)
            if found is not None:
                found.pop(triple, None)
                if not found:
                    del table[key]

    def candidates(self, pattern: Pattern) -> Collection[Triple] | None:
        """The stated triples that have the terms of a pattern at its places; None: it has none of the forms,
        as after a change of rules.
        """
        places = tuple(place for place, node in enumerate(pattern) if isinstance(node, str))
        if places not in self._tables:
            return None
        wanted = self._wanted[places]
        if wanted is not None and pattern[1] not in wanted:
            return None
        return self._tables[places].get(tuple([node for node in pattern if isinstance(node, str)]), ())


def fits(triple: Triple, pattern: Pattern) -> bool:
    """Whether a triple matches a pattern."""
    bound = all(node == term for node, term in zip(pattern, triple, strict=True) if isinstance(node, str))
    return bound and all(triple[a] == triple[b] for a, b in _equal(pattern))


def _equal(pattern: Pattern) -> Iterator[tuple[int, int]]:
    """The pairs of places at which a pattern has one term, whatever it is."""
    for a, b in ((0, 1), (0, 2), (1, 2)):
        if pattern[a] == pattern[b] and not isinstance(pattern[a], str):
            yield a, b
