"""The rules of a program as they run over instants, once its background is closed.

Place:   used by closing.py, and when a stream brings what dormant rules wait for (equalities.py).
Method:  the rules that closed the background, except those that copy triples between equal terms: these are
         expanded for the relations that are read (equality.py), to a fixpoint, since an equality of two
         properties in the background makes one read for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from dotr.datalog.clauses import Clauses, translate
from dotr.datalog.dependency import atom_relation, reads
from dotr.datalog.equality import replaces, written_out
from dotr.datalog.relations_read import RelationsRead, reach
from dotr.datalog.schema import SAME_AS, Instantiated
from dotr.datalog.strata import stratify
from dotr.datalog.triple_set import TripleSet
from dotr.ir import DatalogRule
from dotr.joins.graph_relations import ALL, Relation, class_relation
from dotr.rdf.background import Background, many
from dotr.rdf.terms import RDF_TYPE, Triple


def fixed_rules(rules: Iterable[DatalogRule]) -> list[DatalogRule]:
    """Rules that do not copy between equal terms."""
    return [rule for rule in rules if not replaces(rule)]


def awake(
    instantiated: Instantiated,
    index: Background,
    wanted: Iterable[Relation],
    before: Sequence[DatalogRule],
    met: Collection[Relation] = (),
) -> tuple[RelationsRead, Clauses]:
    """All rules, dormant ones included; `met`: relations that only a stream has.

    Aggregates are named as in `before`. Raises ProgramError if there are no strata.
    """
    rules = [*instantiated.rules, *instantiated.dormant]
    found = _written(rules, index, [*wanted, SAME_AS], met)
    return found, translate(stratify(found.rules), before)


def _written(
    rules: Sequence[DatalogRule], index: Background, wanted: Sequence[Relation], met: Collection[Relation]
) -> RelationsRead:
    fixed, replacing = fixed_rules(rules), [rule for rule in rules if replaces(rule)]
    equalities = list(_equalities(index))
    known = TripleSet(equalities)
    found = reach(fixed, wanted)
    while True:
        relations = {*found.relations, *_equal_to(found.relations, equalities)}
        if relations & {ALL, RDF_TYPE}:
            relations |= {*met, *_of_rules(fixed), *_of_background(index, ALL in relations)}
        wider = reach([*fixed, *written_out(replacing, relations, known)], wanted)
        if wider.relations <= found.relations:
            return wider
        found = wider


def _equalities(index: Background) -> Iterator[Triple]:
    for subject, objects in index.forward.get(SAME_AS, {}).items():
        yield from ((subject, SAME_AS, object_) for object_ in many(objects))


def _equal_to(relations: Collection[Relation], equalities: Iterable[Triple]) -> Iterator[Relation]:
    """Predicates and classes that the background makes equal to those of the relations."""
    for subject, _, object_ in equalities:
        if object_ in relations:
            yield subject
        if class_relation(object_) in relations:
            yield class_relation(subject)


def _of_rules(rules: Iterable[DatalogRule]) -> Iterator[Relation]:
    for rule in rules:
        yield from (relation for relation, _ in reads(rule))
        yield from map(atom_relation, rule.heads)


def _of_background(index: Background, predicates: bool) -> Iterator[Relation]:
    yield from map(class_relation, index.backward.get(RDF_TYPE, ()))
    if predicates:
        yield from index.forward
