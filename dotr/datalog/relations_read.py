"""Pruning: rules and background that no query reaches are left out.

Place:   used by materialiser.py, before anything is closed; `dotr plan` prints what it dropped.
Method:  backwards from the relations that queries read, through heads to bodies, to a fixpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr.datalog.dependency import atom_relation, reads
from dotr.ir import DatalogRule
from dotr.joins.graph_relations import ALL, Relation, class_relation, is_anonymous, is_class
from dotr.rdf.terms import RDF_TYPE, Triple


class RelationsRead(Struct, frozen=True):
    """Rules that some query reaches, without unreached heads; relations that they and queries read."""

    rules: tuple[DatalogRule, ...]
    relations: frozenset[Relation]

    def keeps(self, triple: Triple) -> bool:
        """Whether the triple is in one of the relations."""
        _, predicate, object_ = triple
        relations = self.relations
        if ALL in relations or predicate in relations:
            return True
        return predicate == RDF_TYPE and class_relation(object_) in relations


def reach(rules: Sequence[DatalogRule], needed: Iterable[Relation]) -> RelationsRead:
    """The part of a program that `needed` depends on. O(atoms)."""
    by_head: dict[Relation, list[int]] = {}
    for index, rule in enumerate(rules):
        for head in rule.heads:
            by_head.setdefault(atom_relation(head), []).append(index)
    relations: dict[Relation, None] = {}
    alive: set[int] = set()
    todo = list(dict.fromkeys(needed))
    while todo:
        relation = todo.pop()
        if relation in relations:
            continue
        relations[relation] = None
        for answering in _answering(relation, by_head):
            for index in by_head.pop(answering, ()):
                if index not in alive:
                    alive.add(index)
                    todo += [read for read, _ in reads(rules[index])]
    kept = frozenset(relations)
    return RelationsRead(tuple(_with_heads(rules[i], kept) for i in sorted(alive)), kept)


def _with_heads(rule: DatalogRule, needed: frozenset[Relation]) -> DatalogRule:
    if ALL in needed:
        return rule
    heads = tuple(head for head in rule.heads if _answers(atom_relation(head), needed))
    return rule if heads == rule.heads else replace(rule, heads=heads)


def _answering(relation: Relation, by_head: dict[Relation, list[int]]) -> list[Relation]:
    """Relations of heads that may derive a row of `relation`."""
    if relation == ALL:
        return list(by_head)
    if relation == RDF_TYPE:
        return [head for head in by_head if head in (ALL, RDF_TYPE) or is_class(head)]
    if is_anonymous(relation):
        return [relation]
    return [relation, RDF_TYPE, ALL] if is_class(relation) else [relation, ALL]


def _answers(head: Relation, needed: frozenset[Relation]) -> bool:
    if head in needed or ALL in needed or (head == ALL and needed):
        return True
    if is_class(head):
        return RDF_TYPE in needed
    return head == RDF_TYPE and any(is_class(relation) for relation in needed)
