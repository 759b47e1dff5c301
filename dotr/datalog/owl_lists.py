"""OWL axioms over RDF lists, written out as rules: one body atom, or one rule, per member of a list.

Place:   beside rules/owl2rl.dlog, which has the rules that need no lists; called once per background.
Method:  OWL 2 Profiles, sec. 4.3, tables 4–7 and 9, rules eq-diff2/3, prp-spo2, prp-key, prp-adp, cls-int1/2,
         cls-uni, cls-oo, cax-adc, scm-int, scm-uni. Lists are read from the stated background; so are axioms
         over values, for literals that are one value and two terms (owl_values.py).
Why not: recursive rules over rdf:rest: intersections and keys need "for all members", which Datalog expresses
         only with negation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import combinations, filterfalse, product
from typing import TypeAlias

from msgspec import Struct

from dotr.datalog.owl_values import of_one_key, of_one_value, with_value
from dotr.errors import DataError
from dotr.ir import Atom, BindAtom, BodyAtom, Call, DatalogRule, Entailment, FilterAtom, Node, Program, Var
from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, Term, Triple, is_literal

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
