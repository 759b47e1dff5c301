"""Attribute values that the equations of a rule carry from its trigger to its other positions.

Place:   a batch partitions detection by it (partition_keys.py); by it network.py decides whether a trigger
         fact had anything to choose from.
Method:  inside a rule, equations of `ON` carry a trigger attribute to the candidates, directly or through
         earlier conjuncts (a condition is applied before selection, so whatever fails it is not a candidate,
         whichever the operator). What `=` equates is in one class (temporal/equal_terms.py); classes are
         transitive, `=` is not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dotr.events import Fact
from dotr.ir import Attribute, Every, Position, Rule
from dotr.temporal.equal_terms import equality_class, has_float
from dotr.tesla.conditions import equality, parts

Roots = Mapping[tuple[str, str], frozenset[int]]
"""(position, attribute) → the trigger attributes whose value it equals in every candidate."""


def roots(rule: Rule, computed: Collection[tuple[str, str]] = ()) -> Roots:
    """What the equations of a rule carry from its trigger to its other positions.

    `computed`: attributes, as (stream, variable), that can be an xsd:float and so carry nothing.
    """
    if isinstance(rule.trigger, Every):
        return {}
    trigger = rule.trigger
    streams = {position.name: position.stream for position in rule.positions}
    found = {
        (trigger.name, variable): frozenset((i,))
        for i, variable in enumerate(trigger.variables)
        if (trigger.stream, variable) not in computed
    }
    for conjunct in rule.conjuncts:
        own = conjunct.position.name
        for part in parts(conjunct.on):
            match equality(part, own):
                case Attribute(variable=variable), Attribute(position=other, variable=theirs) if (
                    streams[own],
                    variable,
                ) not in computed:
                    known = found.get((own, variable), frozenset())
                    found[own, variable] = known | found.get((other, theirs), frozenset())
                case _:
                    pass
    return found


def classes(carried: Roots, position: Position, trigger: Fact) -> list[tuple[int, object]]:
    """(place, equality class) of the attributes that a candidate of a position shares with a trigger fact."""
    found: list[tuple[int, object]] = []
    for place, variable in enumerate(position.variables):
        for root in carried.get((position.name, variable), ()):
            term = trigger[1][root]
            if term is not None and not has_float(term):
                found.append((place, equality_class(term)))
    return found
