"""Which triples of a relation the queries can match at all, by the constants of their patterns.

Place:   asked by lasting_model.py for every statement that begins or ends: what matches no pattern is put
         aside, and never indexed.
Method:  the caches of Gergatsoulis and Damigos (2021): for ground and star queries they hold what matches a
         pattern of the query, and nothing else of the graph. Relations that rules read, that a pattern reads
         whole, or that paths and interpreted queries look into, are kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dotr.datalog.dependency import reads
from dotr.ir import DatalogRule, Select, Var
from dotr.joins.relations import ALL
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.sparql.algebra import Pattern, patterns_of
from dotr.sparql.relations_read import read_by, relations_of
from dotr.sparql.translate import Refused, translate

Reader: TypeAlias = Callable[[Triple], bool]


class _Constants:
    """Owns the constants of the patterns of one predicate: subjects, objects, and both."""

    __slots__ = ("objects", "pairs", "subjects")

    def __init__(self) -> None:
        self.subjects: set[Term] = set()
        self.objects: set[Term] = set()
        self.pairs: set[tuple[Term, Term]] = set()


def reader_of(selects: Iterable[Select], rules: Iterable[DatalogRule]) -> Reader | None:
    """Whether a triple may matter to queries or rules; None where its relation alone says so."""
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
    limits = {predicate: constants for predicate, constants in found.items() if predicate not in whole}
    if not limits:
        return None

    def may_matter(triple: Triple) -> bool:
        subject, predicate, object_ = triple
        limit = limits.get(predicate)
        return (
            limit is None
            or subject in limit.subjects
            or object_ in limit.objects
            or (subject, object_) in limit.pairs
        )

    return may_matter


def _narrows(pattern: Pattern, found: dict[Term, _Constants]) -> bool:
    """Note the constants of a pattern; whether it has some."""
    subject, predicate, object_ = pattern.subject, pattern.predicate, pattern.object
    if not isinstance(predicate, str):
        return False
    if isinstance(subject, Var) and isinstance(object_, Var):
        return False
    constants = found.setdefault(predicate, _Constants())
    if isinstance(subject, Var):
        constants.objects.add(object_)  # type: ignore[arg-type]  # one of them is no variable
    elif isinstance(object_, Var):
        constants.subjects.add(subject)
    else:
        constants.pairs.add((subject, object_))
    return True
