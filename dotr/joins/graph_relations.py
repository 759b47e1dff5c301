"""Relations: the parts of a graph that plans read and rules write, by predicate, and for rdf:type by class.

Place:   shared by joins/ (probes), datalog/ (dependencies) and sparql/ (what wakes a query).
Method:  vertical partitioning. A triple (s, p, o) is a row (s, o) of relation p; (s, rdf:type, C) is a row
         (s,) of the relation of class C. Two relations are unions: `RDF_TYPE`, rows (s, C) of all classes,
         and `ALL`, rows (s, p, o) of everything. An aggregate of a Datalog rule is its own relation, and so
         are the pairs of nodes that a property path joins. An anonymous property (a blank node that the
         schema uses as one) is a relation, too, outside of the unions, since no triple of RDF has it.
Why not: one ternary relation: every rule would be woken by every triple, and recursion through negation
         would be found everywhere.
"""

from __future__ import annotations

from typing import TypeAlias

from dotr.ir import Node, Var
from dotr.rdf.terms import RDF_TYPE, Term, Triple

Relation: TypeAlias = str
"""A predicate's term, `"a " + class`, `ALL`, `"agg …"` for an aggregate, or `"path …"` for a path."""

ALL: Relation = "*"
CLASH = "<urn:dotr:clash:"


def class_relation(term: Term) -> Relation:
    """The relation of a class's members."""
    return "a " + term


def is_class(relation: Relation) -> bool:
    return relation.startswith("a ")


def is_clash(relation: Relation) -> bool:
    """Whether rows are findings of an inconsistency rule: `<urn:dotr:clash:cax-dw>`.

    Such rows belong to no state and to no union.
    """
    return relation.startswith(CLASH)


def is_aggregate(relation: Relation) -> bool:
    return relation.startswith("agg ")


def is_anonymous(relation: Relation) -> bool:
    """Whether rows are triples of a blank node as predicate (OWL 2 Profiles, sec. 4.3: the rules are over
    generalized RDF). They hold inside of a closure; subjects may be literals.
    """
    return relation.startswith("_:")


def is_apart(relation: Relation) -> bool:
    """Whether rows are no triples of RDF: they belong to no state and no union, and are kept in tables."""
    return is_aggregate(relation) or is_clash(relation) or is_anonymous(relation)


def path_relation(number: int, text: str) -> Relation:
    """The relation of a property path with this text; one path may have several."""
    return f"path {number} {text}"


def is_path(relation: Relation) -> bool:
    """Whether rows are pairs of nodes that a property path joins: computed, never stored."""
    return relation.startswith("path ")


def relation_of(subject: Node, predicate: Node, object_: Node) -> Relation:
    """The narrowest relation that holds every triple the pattern matches."""
    if isinstance(predicate, Var):
        return ALL
    if predicate == RDF_TYPE and not isinstance(object_, Var):
        return class_relation(object_)
    return predicate


def columns_of(subject: Node, predicate: Node, object_: Node) -> tuple[Node, ...]:
    """The pattern's nodes as columns of `relation_of` the same pattern."""
    if isinstance(predicate, Var):
        return (subject, predicate, object_)
    if predicate == RDF_TYPE and not isinstance(object_, Var):
        return (subject,)
    return (subject, object_)


def holding(triple: Triple) -> tuple[Relation, ...]:
    """The relations a triple is in, narrowest first."""
    _, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return (class_relation(object_), RDF_TYPE, ALL)
    return (predicate,) if is_anonymous(predicate) else (predicate, ALL)


def overlap(first: Relation, second: Relation) -> bool:
    """Whether one triple can be in both relations."""
    if first == second:
        return True
    if ALL in (first, second):
        return not (is_apart(first) or is_apart(second))
    return (first == RDF_TYPE and is_class(second)) or (second == RDF_TYPE and is_class(first))


def relation_name(relation: Relation) -> str:
    """For messages: the predicate, the class, or what the union ranges over."""
    if relation == ALL:
        return "every predicate"
    if relation == RDF_TYPE:
        return "every class"
    if is_aggregate(relation):
        return "an aggregate"
    if is_anonymous(relation):
        return "an anonymous property"
    if is_path(relation):
        return relation.split(" ", 2)[2]
    return relation[2:] if is_class(relation) else relation
