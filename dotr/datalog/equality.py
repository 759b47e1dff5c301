"""Equality at an instant: owl:sameAs between individuals, stated by a stream or derived from it.

Place:   over schema.py, which defines schema; used where rules are prepared for instants, and by the oracle.
Method:  language.md, section 4. Equality of the background is applied to everything, by the ordinary rules.
         Equality of an instant substitutes individuals: classes and properties are refused (D2601), and the
         schema stays unchanged (D2602, once per pair). If neither the background nor a rule can produce an
         equality, the rules that read it are dormant; when a stream states the first they join the program,
         those with a variable predicate or class expanded for the relations that are read.
Why not: let them join at once. Their heads may be of any relation, so everything would depend on everything:
         no NOT beside OWL, no pruning, and each triple of a stream joined with equalities that never come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from dotr.datalog.dependency import atom_relation, reads
from dotr.datalog.schema import (
    SAME_AS,
    Instantiated,
    instance,
    is_schema,
    is_schema_class,
    is_schema_predicate,
    reads_equality,
    solutions,
)
from dotr.datalog.triple_set import TripleSet
from dotr.errors import Diagnostic, Severity
from dotr.ir import Atom, DatalogRule, Var
from dotr.joins.graph_relations import ALL, Relation, is_aggregate, is_clash, is_class
from dotr.joins.variables import atom_variables
from dotr.rdf.terms import RDF_TYPE, RDFS, Term, is_iri

_TAXONOMY = frozenset(f"<{RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range"))


def replaces(rule: DatalogRule) -> bool:
    """Whether the rule copies triples of any relation from one equal term to the other.

    It reads owl:sameAs, and other atoms of its body bind the predicates or classes of its heads.
    """
    if not reads_equality(rule):
        return False
    equal = {name for atom in _equalities(rule) for name in atom_variables(atom)}
    asked = _open(rule.heads)
    return bool(asked) and asked <= equal | _open(_others(rule))


def written_out(
    rules: Iterable[DatalogRule], relations: Collection[Relation], equalities: TripleSet
) -> list[DatalogRule]:
    """The copying rules, with constants for their variable predicates and classes.

    `relations`: all that have data; `equalities`: all between predicates and between classes.
    """
    data = [r for r in sorted(relations) if is_data(r)]
    found: dict[DatalogRule, None] = {}
    for rule in rules:
        found.update(dict.fromkeys(_written_out(rule, data, equalities)))
    return list(found)


def is_data(relation: Relation) -> bool:
    """Whether rows of the relation are triples about individuals."""
    union = relation in (ALL, RDF_TYPE)
    return not (union or is_schema(relation) or is_aggregate(relation) or is_clash(relation))


def may_join_anything(instantiated: Instantiated) -> bool:
    """Whether the dormant rules derive equality from more than equality."""
    return any(
        atom_relation(head) == SAME_AS and any(relation != SAME_AS for relation, _ in reads(rule))
        for rule in instantiated.dormant
        for head in rule.heads
    )


def vocabulary(instantiated: Instantiated, needed: Iterable[Relation]) -> frozenset[Term]:
    """Classes and properties of a program and of the schema it was instantiated over."""
    relations = {relation for relation in needed if is_class(relation) or is_iri(relation)}
    for rule in (*instantiated.rules, *instantiated.dormant):
        relations.update(relation for relation, _ in reads(rule))
        relations.update(map(atom_relation, rule.heads))
    found = {relation[2:] if is_class(relation) else relation for relation in relations}
    for subject, predicate, object_ in instantiated.schema:
        found.add(subject)
        if predicate in _TAXONOMY:
            found.add(object_)
    return frozenset(filter(is_iri, found))


def is_vocabulary(term: Term, known: Collection[Term]) -> bool:
    """Whether a term is a known class or property, or one of the ontology languages."""
    return term in known or term == RDF_TYPE or is_schema_predicate(term) or is_schema_class(term)


def mentioned(instantiated: Instantiated) -> frozenset[Term]:
    """Terms that occur in triples of the schema."""
    return frozenset(term for s, _, o in instantiated.schema for term in (s, o))


def between_vocabulary(subject: Term, object_: Term) -> Diagnostic:
    """D2601 for an equality that is not between individuals."""
    return Diagnostic(
        "D2601",
        "an instant may not make a class or a property equal to something",
        label=f"{subject} owl:sameAs {object_}",
        notes=("only individuals can be equal for an instant; classes and properties belong to the schema",),
        hint="state the equality in the background: there it is applied to everything",
    )


def beside_schema(subject: Term, object_: Term) -> Diagnostic:
    """D2602 for an equality of an individual that the schema mentions."""
    return Diagnostic(
        "D2602",
        "an equality of the stream does not change the schema",
        label=f"{subject} owl:sameAs {object_}",
        notes=("schema triples of the one do not apply to the other",),
        hint="to apply it to the schema, state the equality in the background",
        severity=Severity.INFO,
    )


def while_held(finding: Diagnostic) -> Diagnostic:
    """D2602 where what makes the two equal is held."""
    return replace(
        finding,
        message="what is held makes an individual of the schema equal to another",
        notes=("schema triples of the one apply to the other as long as both are equal",),
        hint="",
    )


def _written_out(rule: DatalogRule, relations: Sequence[Relation], known: TripleSet) -> Iterator[DatalogRule]:
    rows: list[dict[str, Term]] = [{}]
    for atom in _others(rule):
        rows = [wider for row in rows for wider in _over(atom, row, relations)]
    for row in rows:
        now = [atom for atom in _equalities(rule) if not row.keys().isdisjoint(atom_variables(atom))]
        for values in solutions(now, known, row):
            made = instance(rule, now, values)
            if made is not None:
                yield made


def _over(atom: Atom, row: dict[str, Term], relations: Sequence[Relation]) -> Iterator[dict[str, Term]]:
    """The row, extended by every predicate and class that the atom may have."""
    predicate = atom.predicate
    rows = [row]
    if isinstance(predicate, Var) and predicate.name not in row:
        rows = [{**row, predicate.name: r} for r in relations if not is_class(r)]
        rows.append({**row, predicate.name: RDF_TYPE})
    for wider in rows:
        known = wider[predicate.name] if isinstance(predicate, Var) else predicate
        object_ = atom.object
        if known == RDF_TYPE and isinstance(object_, Var) and object_.name not in wider:
            yield from ({**wider, object_.name: r[2:]} for r in relations if is_class(r))
        else:
            yield wider


def _atoms(rule: DatalogRule) -> list[Atom]:
    return [item for item in rule.body if isinstance(item, Atom)]


def _equalities(rule: DatalogRule) -> list[Atom]:
    return [atom for atom in _atoms(rule) if atom_relation(atom) == SAME_AS]


def _others(rule: DatalogRule) -> list[Atom]:
    return [atom for atom in _atoms(rule) if atom_relation(atom) != SAME_AS]


def _open(atoms: Iterable[Atom]) -> set[str]:
    """Variables that stand for a predicate or a class."""
    found: set[str] = set()
    for atom in atoms:
        if isinstance(atom.predicate, Var):
            found.add(atom.predicate.name)
        elif atom.predicate == RDF_TYPE and isinstance(atom.object, Var):
            found.add(atom.object.name)
    return found
