"""Rules as the materialiser runs them: heads and bodies over relations, aggregates extracted.

Place:   between strata.py and the two runs of a program, over the background and at an instant.
Method:  an AGGREGATE becomes a relation of its own, filled when the strata below it are complete; what
         remains of a body is patterns, absences, filters and assignments, for the join kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from dotr.datalog.strata import Strata
from dotr.ir import AggregateAtom, AggregateTerm, DatalogRule, Node, Var
from dotr.joins.body import AbsentPattern, BodyPattern, Item, from_atom, from_body
from dotr.joins.graph_relations import ALL, Relation, is_aggregate, is_anonymous
from dotr.joins.variables import expression_variables
from dotr.rdf.terms import is_literal


class Head(Struct, frozen=True):
    """`checked_subject`: it might be a literal; `checked_predicate`: it might not be an IRI.

    In these cases nothing is derived.
    """

    pattern: BodyPattern
    checked_subject: bool
    checked_predicate: bool


class Clause(Struct, frozen=True):
    """One rule of one stratum."""

    rule: DatalogRule
    heads: tuple[Head, ...]
    items: tuple[Item, ...]
    stratum: int

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The columns of all heads, concatenated."""
        return tuple(node for head in self.heads for node in head.pattern.columns)


class AggregateClause(Struct, frozen=True):
    """An AGGREGATE as a relation: a row is the group's values, then the totals'. `stratum` fills it."""

    relation: Relation
    items: tuple[Item, ...]
    group: tuple[str, ...]
    totals: tuple[AggregateTerm, ...]
    stratum: int

    @property
    def arity(self) -> int:
        return len(self.group) + len(self.totals)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The distinct variables that the totals read."""
        names = (n for t in self.totals if t.argument is not None for n in expression_variables(t.argument))
        return tuple(dict.fromkeys(names))


class Clauses(Struct, frozen=True):
    """`layers[k]` and `aggregations[k]` belong to stratum k."""

    layers: tuple[tuple[Clause, ...], ...]
    aggregations: tuple[tuple[AggregateClause, ...], ...]
    strata: Strata

    def level(self, relation: Relation) -> int:
        """The stratum that completes a relation, aggregates included."""
        if is_aggregate(relation):
            return next(a.stratum for a in self.all_aggregations if a.relation == relation)
        return self.strata.level(relation)

    @property
    def all(self) -> list[Clause]:
        return [clause for layer in self.layers for clause in layer]

    @property
    def all_aggregations(self) -> list[AggregateClause]:
        return [aggregation for layer in self.aggregations for aggregation in layer]


def without(clauses: Iterable[Clause], others: Iterable[Clause]) -> list[Clause]:
    """Clauses that are not among others, compared head by head, since strata may split a rule differently."""
    known = {(clause.rule.body, head) for clause in others for head in clause.rule.heads}
    return [c for c in clauses if any((c.rule.body, head) not in known for head in c.rule.heads)]


def translate(strata: Strata, before: Sequence[DatalogRule] = ()) -> Clauses:
    """All rules, aggregates extracted. Equal aggregates share a relation.

    Aggregates are numbered as they appear in `before`, then in the strata, so that added rules do not rename
    a program's aggregates.
    """
    rules = (*before, *(rule for layer in strata.layers for rule in layer))
    atoms = dict.fromkeys(i for rule in rules for i in rule.body if isinstance(i, AggregateAtom))
    numbers = {atom: number for number, atom in enumerate(atoms)}
    known: dict[AggregateAtom, AggregateClause] = {}
    layers = tuple(
        tuple(_clause(rule, stratum, known, numbers, strata) for rule in layer)
        for stratum, layer in enumerate(strata.layers)
    )
    found: list[list[AggregateClause]] = [[] for _ in layers]
    for aggregation in known.values():
        found[aggregation.stratum].append(aggregation)
    return Clauses(layers, tuple(map(tuple, found)), strata)


def _clause(
    rule: DatalogRule,
    stratum: int,
    known: dict[AggregateAtom, AggregateClause],
    numbers: Mapping[AggregateAtom, int],
    strata: Strata,
) -> Clause:
    items: list[Item] = []
    for item in rule.body:
        if isinstance(item, AggregateAtom):
            aggregation = known.get(item)
            if aggregation is None:
                aggregation = known[item] = _aggregation(item, numbers[item], strata)
            columns = (*item.group, *(total.variable for total in item.totals))
            items.append(BodyPattern(aggregation.relation, columns))
        else:
            items.append(from_body(item))
    subjects, predicates = _safe_variables(items)
    heads = []
    for atom in rule.heads:
        pattern = from_atom(atom)
        any_subject = is_anonymous(pattern.relation)
        if not isinstance(atom.subject, Var) and is_literal(atom.subject) and not any_subject:
            continue
        checked = isinstance(atom.subject, Var) and atom.subject.name not in subjects and not any_subject
        loose = pattern.relation == ALL and isinstance(atom.predicate, Var)
        heads.append(Head(pattern, checked, loose and _name(atom.predicate) not in predicates))
    return Clause(rule, tuple(heads), tuple(items), stratum)


def _name(node: Node) -> str:
    return node.name if isinstance(node, Var) else ""


def _aggregation(item: AggregateAtom, number: int, strata: Strata) -> AggregateClause:
    items = tuple(from_body(inner) for inner in item.body)
    patterns = [inner.pattern if isinstance(inner, AbsentPattern) else inner for inner in items]
    below = [strata.reads_at(p.relation) for p in patterns if isinstance(p, BodyPattern)]
    group = tuple(variable.name for variable in item.group)
    return AggregateClause(f"agg {number}", items, group, item.totals, max(below, default=-1) + 1)


def _safe_variables(items: Sequence[Item]) -> tuple[set[str], set[str]]:
    """Variables bound by a subject column (no literals), and by a predicate column (IRIs)."""
    subjects: set[str] = set()
    predicates: set[str] = set()
    for item in items:
        if isinstance(item, BodyPattern) and not (is_aggregate(item.relation) or is_anonymous(item.relation)):
            first = item.columns[0]
            if isinstance(first, Var):
                subjects.add(first.name)
            if item.relation == ALL and isinstance(item.columns[1], Var):
                predicates.add(item.columns[1].name)
    return subjects | predicates, predicates
