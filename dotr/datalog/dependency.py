"""The dependency graph over relations, for strata, and its strongly connected components.

Place:   used by strata.py and termination.py.
Method:  a node per relation (predicate, or class for rdf:type) and hubs for atoms with a variable predicate
         or class: reading hubs depend on every relation they range over; every relation depends on the
         writing hubs that may derive it. Components by Tarjan (1972), without recursion.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from dotr.ir import AggregateAtom, Atom, DatalogRule, NotAtom
from dotr.joins.graph_relations import ALL, Relation, is_anonymous, is_class, relation_of
from dotr.joins.strong_components import StrongComponents
from dotr.rdf.terms import RDF_TYPE

READ_ALL, READ_TYPE = "read " + ALL, "read a"
WRITE_ALL, WRITE_TYPE = "write " + ALL, "write a"

Node = TypeVar("Node", bound=Hashable)


class Edge(Struct, frozen=True):
    """The head relation depends on the body relation; `strict` is "NOT", "AGGREGATE" or ""."""

    head: str
    body: str
    strict: str
    rule: int


def atom_relation(atom: Atom) -> Relation:
    return relation_of(atom.subject, atom.predicate, atom.object)


def read_node(relation: Relation) -> str:
    """The node a body atom over `relation` depends on."""
    return READ_ALL if relation == ALL else READ_TYPE if relation == RDF_TYPE else relation


def write_node(relation: Relation) -> str:
    """The node a head over `relation` belongs to."""
    return WRITE_ALL if relation == ALL else WRITE_TYPE if relation == RDF_TYPE else relation


def reads(rule: DatalogRule) -> list[tuple[Relation, str]]:
    """(relation, "" | "NOT" | "AGGREGATE") of every atom in the body, aggregates' bodies included."""
    found: list[tuple[Relation, str]] = []
    for item in rule.body:
        if isinstance(item, Atom):
            found.append((atom_relation(item), ""))
        elif isinstance(item, NotAtom):
            found.append((atom_relation(item.atom), "NOT"))
        elif isinstance(item, AggregateAtom):
            for inner in item.body:
                if isinstance(inner, Atom):
                    found.append((atom_relation(inner), "AGGREGATE"))
                elif isinstance(inner, NotAtom):
                    found.append((atom_relation(inner.atom), "AGGREGATE"))
    return found


def edges_of(rules: Sequence[DatalogRule]) -> list[Edge]:
    """All edges, hubs included. O(atoms + relations)."""
    edges: dict[Edge, None] = {}
    relations: dict[Relation, None] = {}
    for index, rule in enumerate(rules):
        body = reads(rule)
        relations.update((relation, None) for relation, _ in body)
        for head in rule.heads:
            relation = atom_relation(head)
            relations[relation] = None
            for read, strict in body:
                edges[Edge(write_node(relation), read_node(read), strict, index)] = None
    derived = {atom_relation(head) for rule in rules for head in rule.heads}
    hubs: list[tuple[str, str]] = []
    for relation in relations:
        if relation in (ALL, RDF_TYPE) or is_anonymous(relation):
            continue
        if ALL in derived:
            hubs.append((relation, WRITE_ALL))
        if is_class(relation):
            hubs.append((READ_TYPE, relation))
            if RDF_TYPE in derived:
                hubs.append((relation, WRITE_TYPE))
        else:
            hubs.append((READ_ALL, relation))
    hubs.append((READ_ALL, READ_TYPE))
    if RDF_TYPE in derived:
        # A clause that keeps a variable class in its head depends on everything (language.md, section 4).
        hubs += [(READ_TYPE, WRITE_TYPE), (WRITE_TYPE, READ_ALL)]
    if ALL in derived:
        hubs += [(READ_TYPE, WRITE_ALL), (READ_ALL, WRITE_ALL), (WRITE_ALL, READ_ALL)]
    edges.update((Edge(head, body, "", -1), None) for head, body in hubs)
    return list(edges)


def components(graph: Mapping[Node, Sequence[Node]]) -> list[list[Node]]:
    """Strongly connected components, successors first; otherwise in order of first appearance."""
    found = StrongComponents[Node](lambda node: graph.get(node, ()))
    for node in graph:
        found.of(node)
    return [members[::-1] for members in found.members]


def path(graph: Mapping[Node, Sequence[Node]], start: Node, end: Node, within: set[Node]) -> list[Node]:
    """A shortest path inside `within`, both ends included; `[start]` if they are one; [] if there is none."""
    came: dict[Node, Node | None] = {start: None}
    todo = [start]
    for node in todo:
        if node == end:
            steps = [node]
            while (before := came[steps[-1]]) is not None:
                steps.append(before)
            return steps[::-1]
        for target in graph.get(node, ()):
            if target in within and target not in came:
                came[target] = node
                todo.append(target)
    return []
