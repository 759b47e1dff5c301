"""OWL 2 RL as rules over a background: schema instantiated, lists and values written out, equality.

Place:   before strata are computed, for the reference (its data structure is TripleSet) and the materialiser
         alike. Beside rules/owl2rl.dlog, which has the rules that need no lists. Restrictions of what an
         instant may add wrap the functions that add rows (insertion.py); the background is closed without
         any.
Method:  schema: language.md, section 4, after the description logic programs of Grosof et al. (2003): atoms
         over the schema vocabulary (rdfs:subClassOf, subPropertyOf, domain, range, owl:…) that bind a
         variable predicate or class of the same rule are evaluated now, and every solution becomes a rule
         without them. The schema is closed first, by the rules that derive schema from schema; instantiated
         rules may add to it, hence a loop. What follows from the stated schema alone is firm. Schema that
         needs facts (a restriction on an individual, copied to an equal one) ends with these facts: a rule
         that was instantiated over it keeps it as a premise, so that it derives nothing once that is gone.
         Lists: one body atom, or one rule, per member: OWL 2 Profiles, sec. 4.3, tables 4–7 and 9, rules
         eq-diff2/3, prp-spo2, prp-key, prp-adp, cls-int1/2, cls-uni, cls-oo, cax-adc, scm-int, scm-uni. They
         are read from the stated background, once.
         Values: dt-eq (sec. 4.3) makes literals of one value the same, eq-rep-o replaces one by the other, in
         keys, owl:hasValue, negative assertions, and inverse functional properties of data. Here
         `"1.0"^^xsd:decimal` has its value as another term, 1 (rdf/values.py), in a relation beside that of
         its property, which has no triple of RDF (joins/plan.py): rules that compare values read that one,
         too. It is empty where all literals are written as their values.
         Equality (owl:sameAs; language.md, section 4): that of the background is applied to everything, by
         the ordinary rules. That of an instant substitutes individuals: classes and properties are refused
         (D2601), and the schema stays unchanged (D2602, once per pair). If neither the background nor a rule
         can produce an equality, the rules that read it are dormant; when a stream states the first they join
         the program, those with a variable predicate or class expanded for the relations that are read.
Why not: schema: keep the variables: everything would depend on everything, no NOT beside any ENTAILMENT.
         Rules without any premise of the schema, made anew when it changes: a rule would support the facts
         from which its own schema follows, and none of them would ever fall.
         Lists: recursive rules over rdf:rest: intersections and keys need "for all members", which Datalog
         expresses only with negation.
         Values: dt-eq as it stands: every such literal would be printed, and counted by queries, as often as
         it can be written.
         Equality: let rules join at once: their heads may be of any relation, so everything would depend on
         everything: no NOT beside OWL, no pruning, and each triple of a stream joined with equalities that
         never come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, filterfalse, product
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.budget import Overlong
from dotr.enrich.analysis import atom_relation, reach, reads
from dotr.errors import DataError, Diagnostic, Diagnostics, Severity
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition
from dotr.expressions.functions import DATA_VALUE
from dotr.joins.plan import (
    ALL,
    Relation,
    atom_variables,
    class_relation,
    expression_variables,
    is_aggregate,
    is_anonymous,
    is_clash,
    is_class,
    overlap,
    relation_name,
    relation_of,
    substitute_atom,
    substitute_body,
)
from dotr.program import (
    AggregateAtom,
    Atom,
    BindAtom,
    BodyAtom,
    Call,
    DatalogRule,
    Entailment,
    FilterAtom,
    Node,
    NotAtom,
    Program,
    Var,
)
from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, Term, Triple, is_iri, is_literal
from dotr.rdf.values import data_value

Binding = Mapping[str, Term]


class TripleSet:
    """Owns a growing set of triples, found by predicate, predicate and subject, or predicate and object."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.all: set[Triple] = set()
        self._by: dict[tuple[Term | None, Term | None, Term | None], dict[Triple, None]] = {}
        for triple in triples:
            self.add(triple)

    def add(self, triple: Triple) -> bool:
        """Whether it is new."""
        if triple in self.all:
            return False
        self.all.add(triple)
        s, p, o = triple
        for key in ((None, p, None), (s, p, None), (None, p, o)):
            self._by.setdefault(key, {})[triple] = None
        return True

    def matches(self, atom: Atom, binding: Binding) -> Iterator[dict[str, Term]]:
        """Every extension of `binding` that puts the atom in the set. A predicate that nothing binds is an
        IRI: triples of anonymous properties are found by name only.
        """
        s, p, o = (_value(node, binding) for node in (atom.subject, atom.predicate, atom.object))
        candidates: Iterable[Triple]
        if p is None:
            candidates = (triple for triple in self.all if not is_anonymous(triple[1]))
        elif s is not None and o is not None:
            candidates = ((s, p, o),) if (s, p, o) in self.all else ()
        else:
            candidates = self._by.get((s, p, o), ())
        for triple in candidates:
            extended = _extend(atom, triple, binding)
            if extended is not None:
                yield extended

    def holds(self, atom: Atom, binding: Binding) -> bool:
        """Whether some extension of `binding` puts the atom in the set."""
        return next(self.matches(atom, binding), None) is not None


def _value(node: Node, binding: Binding) -> Term | None:
    return binding.get(node.name) if isinstance(node, Var) else node


def _extend(atom: Atom, triple: Triple, binding: Binding) -> dict[str, Term] | None:
    extended = dict(binding)
    for node, term in zip((atom.subject, atom.predicate, atom.object), triple, strict=True):
        if isinstance(node, Var):
            if extended.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return extended


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
    owl:sameAs if neither background nor rules have any; a stream may (owl.py).
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
    from what a stream may contain.
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
        "an instant may not change the schema"
        if derived
        else "a stream graph may not contain schema triples",
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
                    f"a rule derives schema ({relation_name(relation)}) from what a stream may contain",
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


VALUE_OF = "_:value of "
"""A property's values as terms of their own: the relation's name, before the property's."""

_WRITTEN_OTHERWISE: Term = "_:written otherwise"
_VALUE_X, _VALUE_Y, _Z, _V = Var("x"), Var("y"), Var("z"), Var("v")


def value_of(property_: Term) -> Term:
    return VALUE_OF + property_


def other_terms(property_: Term) -> DatalogRule:
    """The values of a property that are written otherwise."""
    body = (Atom(_VALUE_X, property_, _Z), BindAtom(_literal_value(_Z), _V), FilterAtom(_differs(_Z, _V)))
    return DatalogRule((Atom(_VALUE_X, value_of(property_), _V),), body)


def with_value(property_: Term, literal: Term, subject: Node, head: Atom) -> Iterator[DatalogRule]:
    """What follows for a subject that has the value of a literal, in another term."""
    value = data_value(literal)
    if value is not None:
        yield other_terms(property_)
        yield DatalogRule((head,), (Atom(subject, value_of(property_), value),))
        if value != literal:
            yield DatalogRule((head,), (Atom(subject, property_, value),))


def of_one_value(property_: Term) -> Iterator[tuple[str, DatalogRule]]:
    """prp-ifp, where a value is written in two ways."""
    yield "dt-eq", other_terms(property_)
    for other in (property_, value_of(property_)):
        body = (
            Atom(_VALUE_X, value_of(property_), _V),
            Atom(_VALUE_Y, other, _V),
            FilterAtom(_differs(_VALUE_X, _VALUE_Y)),
        )
        yield (
            "prp-ifp",
            DatalogRule((Atom(_VALUE_X, SAME_AS, _VALUE_Y), Atom(_VALUE_Y, SAME_AS, _VALUE_X)), body),
        )


def of_one_key(class_: Term, members: Sequence[Term]) -> Iterator[tuple[str, DatalogRule]]:
    """prp-key, where a value of a key is written in two ways: if any is, all are compared as values."""
    mark = Atom(class_, _WRITTEN_OTHERWISE, class_)
    for member in dict.fromkeys(members):
        here = Atom(_VALUE_X, member, _Z)
        yield "dt-eq", DatalogRule((mark,), (here, FilterAtom(_differs(_Z, _literal_value(_Z)))))
        either = Call("COALESCE", (_literal_value(_Z), _Z))
        yield (
            "dt-eq",
            DatalogRule((Atom(_VALUE_X, value_of(member), _V),), (mark, here, BindAtom(either, _V))),
        )
    body: list[BodyAtom] = [mark, Atom(_VALUE_X, RDF_TYPE, class_), Atom(_VALUE_Y, RDF_TYPE, class_)]
    for number, member in enumerate(members):
        value = Var(f"z{number}")
        body += [Atom(_VALUE_X, value_of(member), value), Atom(_VALUE_Y, value_of(member), value)]
    yield (
        "prp-key",
        DatalogRule((Atom(_VALUE_X, SAME_AS, _VALUE_Y),), (*body, FilterAtom(_differs(_VALUE_X, _VALUE_Y)))),
    )


def _literal_value(node: Var) -> Call:
    return Call(DATA_VALUE, (node,))


def _differs(one: Var, other: Var | Call) -> Call:
    return Call("!", (Call("SAMETERM", (one, other)),))


_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
LIST_PREDICATES = (_FIRST, _REST)
"""What lists are made of; axioms with lists are schema."""
_SAME_AS = f"<{OWL}sameAs>"
_SUB_CLASS = f"<{RDFS}subClassOf>"
_X, _Y = Var("x"), Var("y")

NamedRule: TypeAlias = tuple[str, DatalogRule]
"""A rule with its name in the profile."""


def owl(name: str) -> Term:
    return f"<{OWL}{name}>"


def clash(name: str) -> Term:
    """The predicate of findings of an inconsistency rule."""
    return f"<urn:dotr:clash:{name}>"


class ListAxiom(Struct, frozen=True):
    """The rules that an axiom over a list, or values, stands for. `stated`: the axiom's triples, with its
    list; `rules`: each with its name in the profile.
    """

    stated: tuple[Triple, ...]
    rules: tuple[NamedRule, ...]


def list_rules(background: Collection[Triple]) -> tuple[DatalogRule, ...]:
    """Rules for every axiom over a list, or values, of a background, in the order of its triples.

    Raises DataError D3102 for a list that has no end, branches, or lacks a member.
    """
    found = (rule for axiom in list_axioms(background) for _, rule in axiom.rules)
    return tuple(dict.fromkeys(found))


def list_axioms(background: Collection[Triple]) -> Iterator[ListAxiom]:
    """Every axiom over a list, in the order of its triples, then over values. Raises DataError D3102."""
    first: dict[Term, list[Term]] = {}
    rest: dict[Term, list[Term]] = {}
    kinds: set[tuple[Term, Term]] = set()
    axioms: list[Triple] = []
    valued: dict[Term, dict[Term, list[Term]]] = {}
    for subject, predicate, object_ in background:
        if predicate == _FIRST:
            first.setdefault(subject, []).append(object_)
        elif predicate == _REST:
            rest.setdefault(subject, []).append(object_)
        elif predicate == RDF_TYPE:
            kinds.add((subject, object_))
        elif predicate in _VALUED:
            valued.setdefault(predicate, {}).setdefault(subject, []).append(object_)
        elif predicate in _EXPANSIONS or predicate in _MEMBERS:
            axioms.append((subject, predicate, object_))
    for axiom in axioms:
        subject, predicate, head = axiom
        cells = _cells(head, first, rest, axiom)
        members = [member for _, member in cells]
        heads = [cell for cell, _ in cells]
        stated = [axiom, *((cell, _FIRST, member) for cell, member in cells)]
        stated += [(cell, _REST, tail) for cell, tail in zip(heads, [*heads[1:], _NIL], strict=True)]
        if predicate in _EXPANSIONS:
            yield ListAxiom(tuple(stated), tuple(_EXPANSIONS[predicate](subject, members)))
        for kind, expand in _KINDS.items():
            if predicate in _MEMBERS and (subject, kind) in kinds:
                whole = (*stated, (subject, RDF_TYPE, kind))
                yield ListAxiom(whole, tuple(expand(members)))
    yield from _value_axioms(valued)
    for property_ in sorted(property_ for property_, kind in kinds if kind == _INVERSE_FUNCTIONAL):
        if (property_, _OF_DATA) in kinds:
            stated = [(property_, RDF_TYPE, kind) for kind in (_INVERSE_FUNCTIONAL, _OF_DATA)]
            yield ListAxiom(tuple(stated), tuple(of_one_value(property_)))


def _value_axioms(valued: dict[Term, dict[Term, list[Term]]]) -> Iterator[ListAxiom]:
    """owl:hasValue and negative assertions of literals."""
    properties = valued.get(owl("onProperty"), {})
    for class_, values in valued.get(owl("hasValue"), {}).items():
        for value, property_ in product(filter(is_literal, values), properties.get(class_, ())):
            had = ((class_, owl("hasValue"), value), (class_, owl("onProperty"), property_))
            found = with_value(property_, value, _X, _a(_X, class_))
            yield ListAxiom(had, tuple((_named(rule, "cls-hv2"), rule) for rule in found))
    properties, subjects = valued.get(owl("assertionProperty"), {}), valued.get(owl("sourceIndividual"), {})
    for node, values in valued.get(owl("targetValue"), {}).items():
        for value, property_, subject in product(
            filter(is_literal, values), properties.get(node, ()), subjects.get(node, ())
        ):
            denied = (
                (node, owl("targetValue"), value),
                (node, owl("assertionProperty"), property_),
                (node, owl("sourceIndividual"), subject),
            )
            found = with_value(property_, value, subject, Atom(subject, clash("prp-npa2"), value))
            yield ListAxiom(denied, tuple((_named(rule, "prp-npa2"), rule) for rule in found))


def _named(rule: DatalogRule, name: str) -> str:
    return "dt-eq" if any(isinstance(item, BindAtom) for item in rule.body) else name


def is_list_triple(triple: Triple) -> bool:
    """Whether `list_rules` reads the triple."""
    _, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return object_ in _KINDS or object_ in (_INVERSE_FUNCTIONAL, _OF_DATA)
    return predicate in (_FIRST, _REST) or predicate in _EXPANSIONS or predicate in _MEMBERS | _VALUED


def _cells(
    head: Term, first: dict[Term, list[Term]], rest: dict[Term, list[Term]], axiom: Triple
) -> list[tuple[Term, Term]]:
    """(cell, member) of a list."""
    found: list[tuple[Term, Term]] = []
    seen: set[Term] = set()
    while head != _NIL:
        values, tails = set(first.get(head, ())), set(rest.get(head, ()))
        if head in seen or len(values) != 1 or len(tails) != 1:
            what = "has no end" if head in seen else "lacks a member or branches"
            raise DataError.of(
                "D3102",
                f"the list of an OWL axiom {what}",
                label=" ".join(axiom),
                hint="every cell of a list has one rdf:first and one rdf:rest; the last rest is rdf:nil",
            )
        seen.add(head)
        found.append((head, values.pop()))
        head = tails.pop()
    return found


def _rule(head: Atom, *body: BodyAtom) -> DatalogRule:
    return DatalogRule((head,), body)


def _a(node: Node, class_: Term) -> Atom:
    return Atom(node, RDF_TYPE, class_)


def _intersection(class_: Term, members: list[Term]) -> Iterator[NamedRule]:
    if members:
        yield "cls-int1", _rule(_a(_X, class_), *(_a(_X, member) for member in members))
    for member in members:
        yield "cls-int2", _rule(_a(_X, member), _a(_X, class_))
        yield "scm-int", _rule(Atom(class_, _SUB_CLASS, member))


def _union(class_: Term, members: list[Term]) -> Iterator[NamedRule]:
    for member in members:
        yield "cls-uni", _rule(_a(_X, class_), _a(_X, member))
        if not is_literal(member):
            yield "scm-uni", _rule(Atom(member, _SUB_CLASS, class_))


def _one_of(class_: Term, members: list[Term]) -> Iterator[NamedRule]:
    for member in members:
        if not is_literal(member):
            yield "cls-oo", _rule(_a(member, class_))


def _chain(property_: Term, members: list[Term]) -> Iterator[NamedRule]:
    if members and not any(map(is_literal, (property_, *members))):
        nodes = [Var(f"x{i}") for i in range(len(members) + 1)]
        steps = [Atom(nodes[i], member, nodes[i + 1]) for i, member in enumerate(members)]
        yield "prp-spo2", _rule(Atom(nodes[0], property_, nodes[-1]), *steps)


def _key(class_: Term, members: list[Term]) -> Iterator[NamedRule]:
    if members and not any(map(is_literal, members)):
        values = [Var(f"z{i}") for i in range(len(members))]
        body: list[BodyAtom] = [_a(_X, class_), _a(_Y, class_)]
        for member, value in zip(members, values, strict=True):
            body += [Atom(_X, member, value), Atom(_Y, member, value)]
        different = FilterAtom(Call("!", (Call("SAMETERM", (_X, _Y)),)))
        yield "prp-key", _rule(Atom(_X, _SAME_AS, _Y), *body, different)
        yield from of_one_key(class_, members)


def _different(members: list[Term]) -> Iterator[NamedRule]:
    for one, other in combinations(members, 2):
        if one != other and not is_literal(one):
            yield "eq-diff2", _rule(Atom(one, clash("eq-diff2"), other), Atom(one, _SAME_AS, other))


def _disjoint_classes(members: list[Term]) -> Iterator[NamedRule]:
    for one, other in combinations(members, 2):
        yield "cax-adc", _rule(Atom(_X, clash("cax-adc"), _X), _a(_X, one), _a(_X, other))


def _disjoint_properties(members: list[Term]) -> Iterator[NamedRule]:
    for one, other in combinations(filterfalse(is_literal, members), 2):
        yield "prp-adp", _rule(Atom(_X, clash("prp-adp"), _Y), Atom(_X, one, _Y), Atom(_X, other, _Y))


_EXPANSIONS: dict[Term, Callable[[Term, list[Term]], Iterable[NamedRule]]] = {
    owl("intersectionOf"): _intersection,
    owl("unionOf"): _union,
    owl("oneOf"): _one_of,
    owl("propertyChainAxiom"): _chain,
    owl("hasKey"): _key,
}
_KINDS: dict[Term, Callable[[list[Term]], Iterable[NamedRule]]] = {
    owl("AllDifferent"): _different,
    owl("AllDisjointClasses"): _disjoint_classes,
    owl("AllDisjointProperties"): _disjoint_properties,
}
_MEMBERS = frozenset({owl("members"), owl("distinctMembers")})
_VALUED = frozenset(
    map(owl, ("hasValue", "onProperty", "targetValue", "assertionProperty", "sourceIndividual"))
)
_INVERSE_FUNCTIONAL, _OF_DATA = owl("InverseFunctionalProperty"), owl("DatatypeProperty")


def rules_over(program: Program, background: Collection[Triple]) -> tuple[DatalogRule, ...]:
    """All rules over a background: the program's, and under OWL 2 RL those of its lists."""
    if program.entailment is not Entailment.OWL2RL:
        return program.datalog
    return (*program.datalog, *list_rules(background))


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
    return finding._replace(
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


Adder: TypeAlias = Callable[..., None]


class Restrictions(Struct, frozen=True):
    """`refuse` is called instead of adding a row to a relation, `check` before.

    `met` is called with a relation of neither program nor background when it gets a row.
    """

    refuse: Mapping[Relation, Adder] = field(default_factory=dict)
    check: Mapping[Relation, Adder] = field(default_factory=dict)
    met: Callable[[Relation], None] = lambda relation: None


UNRESTRICTED = Restrictions()


def checked(check: Adder, add: Adder) -> Adder:
    """An adder that calls `check` first."""

    def both(*row: Term) -> None:
        check(*row)
        add(*row)

    return both
