"""Which triples of a relation the queries can match, by the constants of their patterns.

Place:   called by lasting_model.py for every statement that begins or ends: what matches no pattern is not
         indexed.
Method:  the caches of Gergatsoulis and Damigos (2021): for ground and star queries they hold only what
         matches a pattern of the query. Relations that rules, a pattern without constants, a path or an
         interpreted query read are kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dotr.datalog.dependency import reads
from dotr.ir import DatalogRule, Select, Var
from dotr.joins.graph_relations import ALL
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.sparql.algebra import Pattern, patterns_of
from dotr.sparql.queried_relations import read_by, relations_of
from dotr.sparql.translate import Refused, translate

Reader: TypeAlias = Callable[[Iterable[Triple]], list[Triple]]
"""Triples → those that may matter, in the same order."""


_NOTHING: frozenset[Term] = frozenset()


class _Constants:
    """Owns the constants of the patterns of one predicate: `objects` without a constant subject, and
    `subjects` → the objects beside them, None for any.
    """

    __slots__ = ("objects", "subjects")

    def __init__(self) -> None:
        self.subjects: dict[Term, set[Term] | None] = {}
        self.objects: set[Term] = set()

    def matches(self, subject: Term, object_: Term) -> bool:
        """Whether a pattern may match the triple."""
        if object_ in self.objects:
            return True
        beside = self.subjects.get(subject, _NOTHING)
        return beside is None or object_ in beside


def reader_of(selects: Iterable[Select], rules: Iterable[DatalogRule]) -> Reader | None:
    """Which triples may matter to queries or rules; None where the relations alone decide."""
    whole: set[Term] = {relation for rule in rules for relation, _ in reads(rule)} | {RDF_TYPE}
    found: dict[Term, _Constants] = {}
    for select in selects:
        try:
            patterns = list(patterns_of(translate(select).core))
        except Refused:
            whole |= relations_of(select)
            continue
        for pattern in patterns:
            if not _narrows(pattern, found):
                whole.update(read_by(pattern))
    if ALL in whole:
        return None
    limits = {predicate: limit for predicate, limit in found.items() if predicate not in whole}
    if not limits:
        return None
    subjects = frozenset(subject for limit in limits.values() for subject in limit.subjects)
    objects = frozenset(object_ for limit in limits.values() for object_ in limit.objects)

    def mattering(triples: Iterable[Triple]) -> list[Triple]:
        kept = []
        for triple in triples:  # most have a limited predicate and no constant of it
            subject, predicate, object_ = triple
            if object_ in objects or subject in subjects or predicate not in limits:
                limit = limits.get(predicate)
                if limit is None or limit.matches(subject, object_):
                    kept.append(triple)
        return kept

    return mattering


def _narrows(pattern: Pattern, found: dict[Term, _Constants]) -> bool:
    """Record the constants of a pattern; whether it has any."""
    subject, predicate, object_ = pattern.subject, pattern.predicate, pattern.object
    if not isinstance(predicate, str):
        return False
    if isinstance(subject, Var) and isinstance(object_, Var):
        return False
    constants = found.setdefault(predicate, _Constants())
    if isinstance(subject, Var):
        constants.objects.add(object_)  # type: ignore[arg-type]  # one of them is not a variable
    elif isinstance(object_, Var):
        constants.subjects[subject] = None
    else:
        beside = constants.subjects.setdefault(subject, set())
        if beside is not None:
            beside.add(object_)
    return True
