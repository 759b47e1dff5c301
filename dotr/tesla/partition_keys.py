"""By which attributes a component of rules can be partitioned: all facts of a match carry the trigger's key.

Place:   used by partitioning.py; batch/fact_rows.py distributes facts by it.
Method:  inside a rule, equations of `ON` carry a trigger attribute to the candidates, directly or through
         earlier conjuncts (a condition is applied before selection, so whatever fails it is not a candidate,
         whichever the operator). Every stream has one key for all rules, so that a stream that two positions
         share, and a composite that other rules chain on, is in the same part for all of them. What `=`
         equates is in one class (temporal/equal_terms.py); classes are transitive, `=` is not. LARS rules are
         partitioned by the variable that all their atoms share (held_keys.py), together with the rules that
         read what holds.
Why not: `WHERE`. It is tested after the choice; `LAST` over all keys differs from `LAST` of one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from dotr.ir import Attribute, Choose, Every, LarsRule, Program, Rule
from dotr.temporal.partitions import StreamKeys
from dotr.tesla.held_keys import computed_heads, keys_of, names, parted_name, streams_of
from dotr.tesla.roots import roots


def computed_attributes(program: Program, rules: Sequence[Rule]) -> frozenset[tuple[str, str]]:
    """WITH variables, as (rule, variable), that are not plain attributes of query facts, and such variables
    of heads of .lars files.

    `rules` include all that they refer to. The variables can be an xsd:float, which equals many numbers that
    need not equal each other.
    """
    found: set[tuple[str, str]] = set()
    grown = True
    while grown:
        grown = False
        for rule in rules:
            streams = {position.name: position.stream for position in rule.positions}
            for binding in rule.bindings:
                match binding.expression:
                    case Attribute(position=position, variable=variable):
                        computed = (streams[position], variable) in found
                    case _:
                        computed = True
                if computed and (rule.name, binding.variable) not in found:
                    found.add((rule.name, binding.variable))
                    grown = True
        heads = set(computed_heads(program, found)) - found
        found |= heads
        grown = grown or bool(heads)
    return frozenset(found)


def unlinked(rule: Rule) -> list[str]:
    """Positions that no equation links with an attribute of the trigger; the trigger itself if it has no
    attribute.
    """
    if isinstance(rule.trigger, Every):
        return [rule.trigger.name]
    known = roots(rule)
    return [
        c.position.name
        for c in rule.conjuncts
        if not any(known.get((c.position.name, variable)) for variable in c.position.variables)
    ]


def stream_keys(program: Program, rules: Sequence[int], copying: bool = False) -> StreamKeys | None:
    """A key for every stream of a component of rules, as wide as possible, or None.

    `rules` are indices into `program.rules`. Each part of the key is a separate solution: a choice of one
    attribute per stream such that, in every rule, every position's attribute equals the trigger's. `copying`:
    as few query streams as possible may have an empty key, if no rule is triggered by them or consumes from
    them: every part gets all of their facts.
    """
    members = [program.rules[i] for i in rules]
    if any(isinstance(rule.trigger, Every) for rule in members):
        return None
    holds = program.lars.rules if any(map(program.has_to_do_with_lars, rules)) else ()
    copyable = _copyable(members, holds) if copying else frozenset()
    search = _Search(members, holds, computed_attributes(program, members), copyable)
    first = members[0].trigger
    assert not isinstance(first, Every)
    start = parted_name(first)
    solutions = (next(search.solve(0, {start: place}), None) for place in range(len(first.variables)))
    columns = [solution for solution in solutions if solution is not None]
    if not columns:
        return None
    fewest = min(map(_copied, columns), key=len)
    chosen = [column for column in columns if _copied(column) == fewest]
    keys = {
        stream: tuple(place for column in chosen if (place := column[stream]) is not None)
        for stream in chosen[0]
    }
    held = {p.stream: keys[parted_name(p)] for rule in members for p in rule.positions if p.held}
    return keys | held


Choice: TypeAlias = Mapping[str, int | None]
"""Stream → the attribute chosen for it; None: all of its facts go to every part."""


def _copied(column: Choice) -> list[str]:
    return sorted(stream for stream, place in column.items() if place is None)


def _copyable(rules: Sequence[Rule], holds: Sequence[LarsRule]) -> frozenset[str]:
    """Streams whose facts several parts may read: none triggers a rule there or is consumed, and what holds
    does not depend on them.
    """
    looked_at = {p.stream for rule in rules for p in rule.positions if not p.within_instant}
    looked_at -= {name for rule in holds for name in names(rule)}
    triggers = {rule.trigger.stream for rule in rules if not isinstance(rule.trigger, Every)}
    consumed = {p.stream for rule in rules for p in rule.positions if p.name in rule.consuming}
    return frozenset(looked_at - triggers - consumed)


_Demand: TypeAlias = tuple[Rule, str, str, int] | LarsRule
"""(rule, position, stream, number of attributes), or all atoms of a LARS rule."""


class _Search:
    """Chooses attributes by backtracking; rules are few and their equations determine almost everything."""

    def __init__(
        self,
        rules: Sequence[Rule],
        holds: Sequence[LarsRule],
        computed: Collection[tuple[str, str]],
        copyable: Collection[str],
    ) -> None:
        self._rules = rules
        self._copyable = copyable
        self._roots = {rule.name: roots(rule, computed) for rule in rules}
        self._demands: list[_Demand] = []
        for rule in _connected(rules, holds):
            if isinstance(rule, LarsRule):
                self._demands.append(rule)
            else:
                self._demands += (
                    (rule, position.name, parted_name(position), len(position.variables))
                    for position in rule.positions
                )

    def solve(self, at: int, chosen: Choice) -> Iterator[Choice]:
        """All solutions that extend the first `at` demands and the attributes chosen so far."""
        known = [r for r in self._rules if r.name in chosen and parted_name(r.trigger) in chosen]  # type: ignore[arg-type]  # no EVERY here
        if not all(self._carries(rule, chosen) for rule in known):
            return
        if at == len(self._demands):
            yield chosen
            return
        demand = self._demands[at]
        if isinstance(demand, LarsRule):
            parted = {stream: place for stream, place in chosen.items() if place is not None}
            for keys in keys_of(demand, parted):
                yield from self.solve(at + 1, {**chosen, **keys})
            return
        rule, position, stream, width = demand
        places: list[int | None] = [chosen[stream]] if stream in chosen else list(range(width))
        if stream in self._copyable and stream not in chosen:
            places.append(None)
        for place in places:
            if place is None or self._fits(rule, position, place, chosen):
                yield from self.solve(at + 1, {**chosen, stream: place})

    def _fits(self, rule: Rule, position: str, place: int, chosen: Choice) -> bool:
        """Whether attribute `place` of a position equals the trigger's chosen one."""
        assert not isinstance(rule.trigger, Every)
        if position == rule.trigger.name:
            return True
        variable = next(p for p in rule.positions if p.name == position).variables[place]
        trigger = chosen[parted_name(rule.trigger)]
        return trigger in self._roots[rule.name].get((position, variable), ())

    def _carries(self, rule: Rule, chosen: Choice) -> bool:
        """Whether the composites of a rule carry its trigger's key in the attribute chosen for them."""
        assert not isinstance(rule.trigger, Every)
        place = chosen[rule.name]
        assert place is not None
        given = rule.bindings[place].expression
        in_match = {rule.trigger.name, *(c.position.name for c in rule.conjuncts if isinstance(c, Choose))}
        return (
            isinstance(given, Attribute)
            and given.position in in_match
            and chosen[parted_name(rule.trigger)]
            in self._roots[rule.name].get((given.position, given.variable), ())
        )


def _connected(rules: Sequence[Rule], holds: Sequence[LarsRule]) -> list[Rule | LarsRule]:
    """The rules in an order in which each, if possible, shares a stream with an earlier one."""
    order: list[Rule | LarsRule] = [rules[0]]
    left: list[Rule | LarsRule] = [*holds, *rules[1:]]
    seen = set(streams_of(rules[0]))
    while left:
        nearest = next((rule for rule in left if not seen.isdisjoint(_names(rule))), left[0])
        left.remove(nearest)
        order.append(nearest)
        seen.update(_names(nearest))
    return order


def _names(rule: Rule | LarsRule) -> Sequence[str]:
    return names(rule) if isinstance(rule, LarsRule) else streams_of(rule)
