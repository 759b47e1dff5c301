"""Which relations derive each other: components of a stratum and their order of evaluation.

Place:   used by retraction.py; made from the triggers of a program, without data.
Method:  strongly connected components (Tarjan 1972) of "a row of this may derive a row of that", computed
         from a relation on demand, so that unchanged relations cost nothing. Height is the longest path down
         to a component that derives nothing: it does not depend on where the search begins, and greater
         heights come first.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from msgspec import Struct

from dotr.datalog.clauses import Clauses
from dotr.datalog.dependency import components
from dotr.datalog.triggers import Triggers
from dotr.joins.body import AbsentPattern, BodyPattern, Item
from dotr.joins.graph_relations import ALL, Relation, is_apart, is_class
from dotr.joins.store import EVERYTHING
from dotr.rdf.terms import RDF_TYPE


class Component(Struct, frozen=True, eq=False):
    """Relations of one stratum that derive each other; `cyclic`: or one that derives itself."""

    height: int
    cyclic: bool


class Components:
    """Owns the components found so far. `loose`: a head may be of any relation, so a stratum is one
    component.
    """

    def __init__(self, triggers: Triggers, level: Callable[[Relation], int], loose: bool) -> None:
        self._triggers = triggers
        self._level = level
        self._found: dict[Relation, Component] = {}
        self._loose = loose
        self._whole: dict[int, Component] = {}

    def of(self, relation: Relation) -> Component:
        """The component of a relation that is not a union."""
        if self._loose:
            return self._whole.setdefault(self._level(relation), Component(0, True))
        found = self._found.get(relation)
        if found is None:
            self._explore(relation)
            found = self._found[relation]
        return found

    def _explore(self, start: Relation) -> None:
        graph: dict[Relation, list[Relation]] = {}
        todo = [start]
        for relation in todo:
            if relation not in graph and relation not in self._found:
                graph[relation] = self._derived_from(relation)
                todo += graph[relation]
        for members in components(graph):
            if members[0] in self._found:
                continue
            inside = set(members)
            targets = {target for relation in members for target in graph[relation]}
            below = (self._found[target].height for target in targets - inside)
            component = Component(1 + max(below, default=0), len(members) > 1 or bool(targets & inside))
            self._found.update(dict.fromkeys(members, component))

    def _derived_from(self, relation: Relation) -> list[Relation]:
        """Relations of the same stratum with a head over an atom of this one."""
        level = self._level(relation)
        heads = (
            head.pattern.relation
            for over in unions_of(relation)
            for trigger in self._triggers.positive.get((over, level), ())
            for head in trigger.clause.heads
        )
        return list(dict.fromkeys(heads))


def unions_of(relation: Relation) -> tuple[Relation, ...]:
    """A relation and the unions through which an atom may read its rows."""
    if is_apart(relation):
        return (relation,)
    return (relation, RDF_TYPE, ALL) if is_class(relation) else (relation, ALL)


def affected(clauses: Clauses, changing: Iterable[Relation]) -> Container[Relation]:
    """The relations that may get or lose rows when these do, each with its unions."""
    found: set[Relation] = set()
    todo = list(changing)
    readers: dict[Relation, list[Relation]] = {}
    for clause in clauses.all:
        for read in relations_read(clause.items):
            readers.setdefault(read, []).extend(head.pattern.relation for head in clause.heads)
    for aggregate in clauses.all_aggregations:
        for read in relations_read(aggregate.items):
            readers.setdefault(read, []).append(aggregate.relation)
    while todo:
        relation = todo.pop()
        if relation in found:
            continue
        found.add(relation)
        if relation in (ALL, RDF_TYPE):
            return EVERYTHING
        for over in unions_of(relation):
            todo += readers.get(over, ())
    if found:
        found.add(ALL)
    if any(map(is_class, found)):
        found.add(RDF_TYPE)
    return frozenset(found)


def relations_read(items: Iterable[Item]) -> list[Relation]:
    """The relations of the patterns and absences of a body."""
    patterns = (item.pattern if isinstance(item, AbsentPattern) else item for item in items)
    return [pattern.relation for pattern in patterns if isinstance(pattern, BodyPattern)]
