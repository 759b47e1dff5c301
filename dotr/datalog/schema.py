"""Rules with variable predicates or classes, instantiated over the schema of the closed background.

Place:   before strata are computed, for the oracle and the materialiser alike.
Method:  language.md, section 4, after the description logic programs of Grosof et al. (2003): atoms over the
         schema vocabulary (rdfs:subClassOf, subPropertyOf, domain, range, owl:…) that bind a variable
         predicate or class of the same rule are evaluated now, and every solution becomes a rule without
         them. The schema is closed first, by the rules that derive schema from schema; instantiated rules may
         add to it, hence a loop. What follows from the stated schema alone is firm. Schema that needs facts
         (a restriction on an individual, copied to an equal one) ends with these facts: a rule that was
         instantiated over it keeps it as a premise, so that it derives nothing once that is gone.
Why not: keep the variables. Everything would depend on everything: no NOT beside any ENTAILMENT.
         Rules without any premise of the schema, made anew when it changes: a rule would support the facts
         from which its own schema follows, and none of them would ever fall.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import Overlong
from dotr.datalog.dependency import atom_relation, reads
from dotr.datalog.relations_read import reach
from dotr.datalog.triple_set import TripleSet
from dotr.errors import Diagnostic, Diagnostics
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition
from dotr.ir import AggregateAtom, Atom, BodyAtom, DatalogRule, FilterAtom, NotAtom, Var
from dotr.joins.graph_relations import (
    ALL,
    Relation,
    class_relation,
    is_anonymous,
    is_class,
    overlap,
    relation_name,
    relation_of,
)
from dotr.joins.variables import (
    atom_variables,
    expression_variables,
    substitute_atom,
    substitute_body,
)
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Term, Triple, is_iri, is_literal

SAME_AS: Term = f"<{OWL}sameAs>"
INVERSE_OF: Term = f"<{OWL}inverseOf>"
_BETWEEN_INDIVIDUALS = frozenset({SAME_AS, f"<{OWL}differentFrom>"})
_PREDICATES = frozenset(f"<{RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range"))
_INDIVIDUALS = frozenset({f"<{OWL}Thing>", f"<{OWL}NamedIndividual>"})

Closure = Callable[[Sequence[DatalogRule], Collection[Triple]], Collection[Triple]]


def is_schema_predicate(predicate: Term) -> bool:
    """Whether a predicate belongs to the schema vocabulary."""
    return predicate in _PREDICATES or predicate.startswith(f"<{OWL}")


def is_schema_class(term: Term) -> bool:
    return term.startswith((f"<{OWL}", f"<{RDFS}")) and term not in _INDIVIDUALS


def is_schema(relation: Relation) -> bool:
    """Whether the triples of a relation are schema, rather than about individuals."""
    if is_class(relation):
        return is_schema_class(relation[2:])
    return relation not in _BETWEEN_INDIVIDUALS and is_schema_predicate(relation)


def schema_triples(triples: Iterable[Triple]) -> list[Triple]:
    """The schema triples. Each predicate and class is tested once."""
    known: dict[Relation, bool] = {}
    found = []
    for triple in triples:
        relation = class_relation(triple[2]) if triple[1] == RDF_TYPE else triple[1]
        schema = known.get(relation)
        if schema is None:
            schema = known[relation] = is_schema(relation)
        if schema:
            found.append(triple)
    return found


def instantiable(rule: DatalogRule) -> bool:
    """Whether a schema atom of the rule binds one of its variable predicates or classes."""
    places = _variable_places(rule)
    if not places:
        return False
    bound = {name for atom in schema_atoms(rule) for name in atom_variables(atom)}
    grouped = {v.name for item in rule.body if isinstance(item, AggregateAtom) for v in item.group}
    return bool(places & bound) and not (bound & grouped)


def reads_equality(rule: DatalogRule) -> bool:
    """Whether the rule reads owl:sameAs (to be called if neither background nor rules have any)."""
    return any(isinstance(item, Atom) and atom_relation(item) == SAME_AS for item in rule.body)


class Instantiated(Struct, frozen=True):
    """Rules as they run. `over`: whether anything was instantiated; `watched`: over which relations.

    `schema`: the triples instantiated over; `firm`: those of them that follow from stated schema alone, which
    no rule has among its premises. When `over`, a stream may not bring schema triples (the materialiser
    refuses them) and no triple of a watched relation may be derived at an instant. `dormant`: rules that read
    owl:sameAs if neither background nor rules have any; a stream may (equality.py).
    """

    rules: tuple[DatalogRule, ...]
    over: bool
    watched: frozenset[Relation]
    schema: frozenset[Triple]
    firm: frozenset[Triple] = frozenset()
    dormant: tuple[DatalogRule, ...] = ()

    def missed(self, closed: Iterable[Triple]) -> set[Triple]:
        """Watched triples of a closed background unknown to instantiation, which must be repeated with
        them."""
        if not self.over:
            return set()
        return {t for t in schema_triples(closed) if t not in self.schema and relation_of(*t) in self.watched}


def instantiate(
    rules: Sequence[DatalogRule],
    background: Collection[Triple],
    close: Closure,
    known: Iterable[Triple] = (),
) -> Instantiated:
    """Instantiate over the schema triples that `rules` entail from `background`, and `known` ones.

    An equality among either wakes the rules that wait for one. `close` computes a closure under the positive
    rules that schema depends on. Schema that only rules with variable heads or negation derive is found in
    the closed background (`Instantiated.missed`). Raises ProgramError D3006 for a rule that derives schema
    from what a stream may bring.
    """
    if not any(map(instantiable, rules)):
        return Instantiated(tuple(rules), False, frozenset(), frozenset())
    firm, made = _firm(rules, background, close)
    known = tuple(known)
    schema = {*firm, *schema_triples(known)}
    equal = any(predicate == SAME_AS for part in (background, known) for _, predicate, _ in part)
    if len(schema) > len(firm):
        made = _instances(rules, schema, firm)
    as_written = set(rules)
    while True:
        instances, dormant = _awake(made, equal)
        watched = _watched(rules, instances)
        _check_heads([rule for rule in instances if rule in as_written], watched)
        part = reach([rule for rule in instances if _plain(rule)], watched)
        found: set[Triple] = set()
        if len(schema) > len(firm) or not all(map(_of_schema, part.rules)):
            over = schema
            if not all(map(is_schema, part.relations)):
                over = {triple for triple in background if part.keeps(triple)} | schema
            found = set(schema_triples(close(part.rules, sorted(over))))
        if found <= schema:
            return Instantiated(
                tuple(instances), True, watched, frozenset(schema), frozenset(firm), tuple(dormant)
            )
        schema |= found
        made = _instances(rules, schema, firm)


def _firm(
    rules: Sequence[DatalogRule], background: Collection[Triple], close: Closure
) -> tuple[set[Triple], list[DatalogRule]]:
    """The schema that follows from what is stated of it, without facts; and the rules' instances over it."""
    firm = set(schema_triples(background))
    while True:
        made = _instances(rules, firm, firm)
        part = reach([rule for rule in made if _of_schema(rule) and _plain(rule)], _watched(rules, made))
        found = set(schema_triples(close(part.rules, sorted(firm))))
        if found <= firm:
            return firm, made
        firm |= found


def _of_schema(rule: DatalogRule) -> bool:
    """Whether the rule reads nothing but schema."""
    return all(is_schema(relation) for relation, _ in reads(rule))


def _plain(rule: DatalogRule) -> bool:
    """No negation, and heads of known relations."""
    return not any(isinstance(item, NotAtom | AggregateAtom) for item in rule.body) and not any(
        atom_relation(head) in (ALL, RDF_TYPE) for head in rule.heads
    )


def stream_schema(triple: Triple, derived: bool = False) -> Diagnostic:
    """D2601 for a schema triple at an instant."""
    return Diagnostic(
        "D2601",
        "an instant may not change the schema" if derived else "a stream graph may not bring schema triples",
        label=" ".join(triple),
        notes=(
            "rules with variable predicates or classes were instantiated over the schema of the background",
        ),
        hint="put it into the background",
    )


def _variable_places(rule: DatalogRule) -> set[str]:
    """Variables for a predicate or class in an atom that is not itself evaluated now."""
    places: set[str] = set()
    for item in (*rule.heads, *rule.body):
        atom = item.atom if isinstance(item, NotAtom) else item
        if isinstance(atom, Atom):
            if isinstance(atom.predicate, Var):
                places.add(atom.predicate.name)
            elif isinstance(atom.object, Var) and atom.predicate == RDF_TYPE:
                places.add(atom.object.name)
    return places


def schema_atoms(rule: DatalogRule) -> list[Atom]:
    """The atoms of a body that are evaluated over the schema."""
    return [item for item in rule.body if isinstance(item, Atom) and is_schema(atom_relation(item))]


def _instances(
    rules: Sequence[DatalogRule], schema: Collection[Triple], firm: Collection[Triple]
) -> list[DatalogRule]:
    found: dict[DatalogRule, None] = {}
    known = TripleSet(sorted(schema))
    for rule in rules:
        if not instantiable(rule):
            found[rule] = None
            continue
        if len(schema) > len(firm):
            found.update((made, None) for made, _ in instances_of(rule, known, firm))
            continue
        now = schema_atoms(rule)
        for values in solutions(now, known):
            made = instance(rule, now, values)
            if made is not None:
                found[made] = None
    return list(found)


def instances_of(
    rule: DatalogRule, schema: TripleSet, firm: Collection[Triple]
) -> list[tuple[DatalogRule, tuple[Triple, ...]]]:
    """(a rule without variable predicates and classes, the firm schema that it was instantiated over), by the
    solutions of an instantiable rule's schema atoms. Other schema is among the rule's own premises; a rule
    that there is without such a premise comes without.
    """
    now = schema_atoms(rule)
    whole: list[tuple[DatalogRule, tuple[Triple, ...]]] = []
    guarded: list[tuple[dict[str, Term], tuple[Triple, ...], DatalogRule]] = []
    for values in solutions(now, schema):
        made = instance(rule, now, values)
        if made is None:
            continue
        over = tuple(ground(atom, values) for atom in now)
        if all(triple in firm for triple in over):
            whole.append((made, over))
        else:
            guarded.append((values, over, made))
    bare = {made for made, _ in whole} if guarded else set()
    for values, over, made in guarded:
        if made not in bare:
            kept = instance(rule, now, values, {triple for triple in over if triple not in firm})
            if kept is not None:
                whole.append((kept, tuple(triple for triple in over if triple in firm)))
    return whole


def ground(atom: Atom, values: Mapping[str, Term]) -> Triple:
    """The triple of an atom under values for all its variables."""
    terms = [values[n.name] if isinstance(n, Var) else n for n in (atom.subject, atom.predicate, atom.object)]
    return terms[0], terms[1], terms[2]


def solutions(
    atoms: Sequence[Atom], known: TripleSet, row: Mapping[str, Term] | None = None
) -> list[dict[str, Term]]:
    """Every solution of the atoms that extends `row`."""
    rows = [dict(row or {})]
    for atom in atoms:
        rows = [extended for row in rows for extended in known.matches(atom, row)]
    return rows


def instance(
    rule: DatalogRule, now: Sequence[Atom], values: dict[str, Term], kept: Collection[Triple] = ()
) -> DatalogRule | None:
    """The rule with values for variables, without the atoms `now` that they satisfy, unless their triples are
    `kept`.

    None if it can derive nothing, or nothing new.
    """
    body: list[BodyAtom] = []
    for item in rule.body:
        if isinstance(item, Atom) and item in now and (not kept or ground(item, values) not in kept):
            continue
        item = substitute_body(item, values)
        if isinstance(item, Atom) and not _possible(item):
            return None
        holds = _decided(item) if isinstance(item, FilterAtom) else None
        if holds is False:
            return None
        if holds:
            continue
        body.append(item)
    heads = [substitute_atom(head, values) for head in rule.heads]
    heads = [head for head in heads if _possible(head) and head not in body]
    return replace(rule, heads=tuple(heads), body=tuple(body)) if heads else None


def _decided(item: FilterAtom) -> bool | None:
    """Whether a condition without variables holds; None for any other, or if it makes what is too long."""
    if expression_variables(item.condition):
        return None
    try:
        return compile_condition(item.condition, _no_leaf, clock=Clock())(())
    except Overlong:
        return None  # reported by whoever evaluates it


def _no_leaf(_: object) -> Callable[[object], Term | None]:
    raise AssertionError("a ground condition has no variables")


def _possible(atom: Atom) -> bool:
    """No literal as predicate; as subject only of an anonymous property."""
    subject, predicate = atom.subject, atom.predicate
    if not isinstance(predicate, Var) and not is_iri(predicate):
        return is_anonymous(predicate)
    return isinstance(subject, Var) or not is_literal(subject)


def _watched(rules: Sequence[DatalogRule], instances: Sequence[DatalogRule]) -> frozenset[Relation]:
    """Schema relations that instantiation read, and those they are derived from."""
    watched = {atom_relation(a) for r in rules if instantiable(r) for a in schema_atoms(r)}
    changed = True
    while changed:
        changed = False
        for rule in instances:
            if any(atom_relation(head) in watched for head in rule.heads):
                more = {relation for relation, _ in reads(rule) if is_schema(relation)} - watched
                watched |= more
                changed = changed or bool(more)
    return frozenset(watched)


def _check_heads(rules: Sequence[DatalogRule], watched: frozenset[Relation]) -> None:
    found = Diagnostics()
    for rule in rules:
        outside = [relation for relation, _ in reads(rule) if not is_schema(relation)]
        negated = any(isinstance(item, NotAtom | AggregateAtom) for item in rule.body)
        if not outside and not negated:
            continue
        for head in rule.heads:
            relation = atom_relation(head)
            if relation in watched:
                source = relation_name(outside[0]) if outside else "negation"
                found.error(
                    "D3006",
                    f"a rule derives schema ({relation_name(relation)}) from what a stream may bring",
                    head.span or rule.span,
                    f"depends on {source}",
                    notes=("rules with variable predicates or classes were instantiated over the schema",),
                    hint="write these triples into the background",
                )
    found.raise_errors()


def _awake(rules: list[DatalogRule], equal: bool) -> tuple[list[DatalogRule], list[DatalogRule]]:
    """Rules that can derive something, and those that read owl:sameAs, which nothing has unless `equal`."""
    if equal:
        return rules, []
    others = [rule for rule in rules if not reads_equality(rule)]
    if any(overlap(atom_relation(head), SAME_AS) for rule in others for head in rule.heads):
        return rules, []
    return others, [rule for rule in rules if reads_equality(rule)]
