"""Checks of a Datalog program, and its strata.

Place:   lang calls check_rules; the oracle and the materialiser call strata.
Method:  stratified negation (Apt, Blair, Walker 1988) over relations: predicates, and classes for rdf:type. A
         stratum is the greatest number of NOT and AGGREGATE on a path down from a head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr.datalog.dependency import (
    READ_ALL,
    READ_TYPE,
    WRITE_ALL,
    WRITE_TYPE,
    Edge,
    atom_relation,
    components,
    edges_of,
    path,
    read_node,
    write_node,
)
from dotr.datalog.safety import check_safety
from dotr.datalog.schema import instantiable, reads_equality
from dotr.datalog.termination import check_termination
from dotr.errors import Diagnostic, Diagnostics
from dotr.ir import AggregateAtom, DatalogRule, NotAtom
from dotr.joins.graph_relations import Relation, is_class, relation_name

_HUBS = {READ_ALL, READ_TYPE, WRITE_ALL, WRITE_TYPE}


def check_rules(rules: Sequence[DatalogRule]) -> list[Diagnostic]:
    """Every error of rules that can be found without data, in source order of the checks.

    Rules that are instantiated over a schema skip the checks of recursion here; they are checked with the
    background (`check_recursion`).
    """
    found = Diagnostics()
    for rule in rules:
        check_safety(rule, found)
    instantiated = any(map(instantiable, rules))
    plain = [r for r in rules if not instantiable(r) and not (instantiated and reads_equality(r))]
    found.found += check_recursion(plain)
    return found.found


def check_recursion(rules: Sequence[DatalogRule]) -> list[Diagnostic]:
    """Report recursion through NOT, AGGREGATE or BIND, in rules as they will run (instantiated)."""
    found = Diagnostics()
    if any(map(_strict, rules)):
        _levels(rules, found)
    check_termination(rules, found)
    return found.found


class Strata(Struct, frozen=True):
    """`layers`: rules by stratum from 0, in program order inside one; a stratum may be empty.

    A rule with heads of several strata is split.
    """

    layers: tuple[tuple[DatalogRule, ...], ...]
    levels: Mapping[str, int]

    def level(self, relation: Relation) -> int:
        """The stratum that completes a relation; 0 if no rule derives it."""
        node = write_node(relation)
        found = self.levels.get(node)
        if found is None:
            hub = WRITE_TYPE if is_class(relation) and WRITE_TYPE in self.levels else WRITE_ALL
            found = self.levels.get(hub, 0)
        return found

    def reads_at(self, relation: Relation) -> int:
        """The stratum that completes everything a body atom over `relation` ranges over."""
        return self.levels.get(read_node(relation), self.level(relation))


def strata(rules: Sequence[DatalogRule]) -> list[list[DatalogRule]]:
    """Rules by stratum, lowest first; none is empty. Raises ProgramError if there are no strata."""
    return [list(layer) for layer in stratify(rules).layers if layer]


def stratify(rules: Sequence[DatalogRule]) -> Strata:
    """The strata of rules. Raises ProgramError if there are none."""
    if not any(map(_strict, rules)):
        return Strata((tuple(rules),), {})
    found = Diagnostics()
    levels = _levels(rules, found)
    found.raise_errors()
    layers: list[list[DatalogRule]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
    for rule in rules:
        by_level: dict[int, list[int]] = {}
        for index, head in enumerate(rule.heads):
            by_level.setdefault(levels.get(write_node(atom_relation(head)), 0), []).append(index)
        for level, indices in by_level.items():
            heads = tuple(rule.heads[i] for i in indices)
            layers[level].append(rule if heads == rule.heads else replace(rule, heads=heads))
    return Strata(tuple(map(tuple, layers)), levels)


def _strict(rule: DatalogRule) -> bool:
    """Whether the rule must wait for a stratum below it."""
    return any(isinstance(item, NotAtom | AggregateAtom) for item in rule.body)


def _levels(rules: Sequence[DatalogRule], found: Diagnostics) -> dict[str, int]:
    edges = edges_of(rules)
    graph: dict[str, list[str]] = {}
    by_head: dict[str, list[Edge]] = {}
    for edge in edges:
        graph.setdefault(edge.head, []).append(edge.body)
        graph.setdefault(edge.body, [])
        by_head.setdefault(edge.head, []).append(edge)
    levels: dict[str, int] = {}
    for component in components(graph):
        members = set(component)
        level = 0
        reported = False
        for node in component:
            for edge in by_head.get(node, ()):
                if edge.body in members:
                    if edge.strict and not reported:
                        reported = True
                        _report(edge, rules, graph, members, found)
                else:
                    level = max(level, levels[edge.body] + bool(edge.strict))
        levels.update(dict.fromkeys(component, level))
    return levels


def _report(
    edge: Edge,
    rules: Sequence[DatalogRule],
    graph: dict[str, list[str]],
    members: set[str],
    found: Diagnostics,
) -> None:
    rule = rules[edge.rule]
    span = rule.span
    for item in rule.body:
        if isinstance(item, NotAtom | AggregateAtom) and (
            isinstance(item, NotAtom) == (edge.strict == "NOT")
        ):
            span = item.span or span
            break
    steps = path(graph, edge.body, edge.head, members)
    if any(step in (WRITE_ALL, WRITE_TYPE) for step in [edge.head, *steps]):
        writers = [
            r for r in rules if any(write_node(atom_relation(h)) in (WRITE_ALL, WRITE_TYPE) for h in r.heads)
        ]
        where = ", ".join(str(r.span) for r in writers[:3] if r.span is not None)
        found.error(
            "D3005",
            f"a rule with a variable predicate or class in its head cannot stand beside {edge.strict}",
            span,
            notes=(
                "such a rule may derive anything, so it depends on everything"
                + (f": {where}" if where else ""),
                "schema triples (rdfs:subPropertyOf, …) in its body that bind the variable would fix it",
            ),
        )
        return
    shown = [relation_name(step) for step in [edge.head, *steps] if step not in _HUBS]
    head, *rest = shown
    cycle = f"{head} ← {edge.strict} {' ← '.join(rest)}"
    found.error(
        "D3002" if edge.strict == "NOT" else "D3003",
        f"recursion through {edge.strict}: {head} depends on itself",
        span,
        notes=(f"the cycle: {cycle}",),
        hint="derive what is negated or counted without it",
    )
