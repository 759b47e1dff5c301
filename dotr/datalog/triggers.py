"""Which clauses a row wakes, and whether its joins may run as soon as it is added.

Place:   under inserters.py and stratum_evaluation.py; made from the clauses of a program, without data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from dotr.datalog.clauses import Clause
from dotr.datalog.dependency import components
from dotr.ir import Var
from dotr.joins.body import AbsentPattern, BodyPattern, Item, bound_by
from dotr.joins.graph_relations import ALL, Relation, is_class
from dotr.rdf.terms import RDF_TYPE

_DEEPEST = 40  # calls from one row of an instant to the next


class Trigger(Struct, frozen=True):
    """A clause as seen from one of its atoms: a row of the atom starts it, `rest` is joined.

    An absence is tested again among `rest`: another row may replace the added or removed one.
    """

    clause: Clause
    atom: BodyPattern
    rest: tuple[Item, ...]


def outside(absent: AbsentPattern, items: Sequence[Item]) -> BodyPattern:
    """The pattern of an absence as a trigger: its existential variables are renamed."""
    bound = bound_by(items)
    columns = tuple(
        Var("not " + node.name) if isinstance(node, Var) and node.name not in bound else node
        for node in absent.pattern.columns
    )
    return BodyPattern(absent.pattern.relation, columns)


class Triggers(Struct):
    """Clauses by the relation of each atom and the clause's stratum; absences separately."""

    positive: dict[tuple[Relation, int], list[Trigger]] = field(default_factory=dict)
    negative: dict[tuple[Relation, int], list[Trigger]] = field(default_factory=dict)

    @classmethod
    def of(cls, clauses: Sequence[Clause]) -> Triggers:
        found = cls()
        for clause in clauses:
            for i, item in enumerate(clause.items):
                rest = clause.items[:i] + clause.items[i + 1 :]
                if isinstance(item, BodyPattern):
                    key = (item.relation, clause.stratum)
                    found.positive.setdefault(key, []).append(Trigger(clause, item, rest))
                elif isinstance(item, AbsentPattern):
                    key = (item.pattern.relation, clause.stratum)
                    trigger = Trigger(clause, outside(item, clause.items), clause.items)
                    found.negative.setdefault(key, []).append(trigger)
        return found


class DirectTrigger:
    """Owns which relations' rows may be joined as they are added.

    The loops around such a join never read what it derives, because the relation is in no cycle; and calls
    are not nested too deeply. Computed from a relation on, at its first row.
    """

    def __init__(self, triggers: Triggers, level: Callable[[Relation], int], loose: bool) -> None:
        self._triggers = triggers
        self._level = level
        self._loose = loose  # a head may be of any relation
        self._depth: dict[Relation, int] = {}

    def __contains__(self, relation: Relation) -> bool:
        if self._loose:
            return False
        if relation not in self._depth:
            self._explore(relation)
        return self._depth[relation] > 0

    def _explore(self, start: Relation) -> None:
        """Depths of everything a row of `start` can derive; 0 means a worklist."""
        graph: dict[Relation, list[Relation]] = {}
        todo = [start]
        for relation in todo:
            if relation not in graph and relation not in self._depth:
                graph[relation] = self._next(relation)
                todo += graph[relation]
        for component in components(graph):
            for relation in component:
                if relation not in self._depth:
                    alone = len(component) == 1 and relation not in graph[relation]
                    below = 1 + max((self._depth.get(target, 0) for target in graph[relation]), default=0)
                    direct = alone and below <= _DEEPEST and self._level(relation) == 0
                    self._depth[relation] = below if direct else 0

    def _next(self, relation: Relation) -> list[Relation]:
        over = [relation, ALL] + ([RDF_TYPE] if is_class(relation) else [])
        return list(
            dict.fromkeys(
                head.pattern.relation
                for union in over
                for trigger in self._triggers.positive.get((union, 0), ())
                for head in trigger.clause.heads
            )
        )
