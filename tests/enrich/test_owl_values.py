"""Literals that are one value and two terms (dt-eq), in keys, owl:hasValue, negative assertions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr import KnowledgeBase
from dotr.enrich.materialiser import Materialiser
from dotr.knowledge_base.model import Limits, Model, RuleSet
from dotr.program import Entailment
from dotr.rdf.terms import Triple, canonical
from dotr.reference.enrich import LiteralStates, closure
from tests.enrich import entailment as e
from tests.enrich.test_entailment import turtle

X = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
ONE = ('"1"^^xsd:integer', '"01"^^xsd:byte', '"1.0"^^xsd:decimal', '"+1.00"^^xsd:decimal')
A = ('"a"', '"a"^^xsd:token', '"a"^^xsd:NCName')
BYTES = ('"0a"^^xsd:hexBinary', '"0A"^^xsd:hexBinary')
ALONE = (
    '"1"^^xsd:double',
    '"1"^^xsd:float',
    '"1"',
    '"a"@en',
    '"Cg=="^^xsd:base64Binary',
    '"1"^^:own',
    '"1.0"^^:own',
    "2",
)
VALUES = [
    (number, text)
    for number, texts in enumerate([ONE, A, BYTES, *((one,) for one in ALONE)])
    for text in texts
]
"""(value, as it is written): Python's own list of what is one value."""


def triples(text: str) -> list[Triple]:
    return turtle(f"{X} {text}")


def states(schema: str, facts: str) -> list[set[Triple]]:
    """By a closed background, at an instant, after an insertion."""
    known, added = triples(schema), triples(facts)
    closed = e.materialise("owl2rl", [*known, *added])
    instants = e.materialise("owl2rl", known)
    instants.instant(added)
    kb = KnowledgeBase(known, entailment="owl2rl", terms="canonical")
    kb.insert(added)
    return [set(closed.background), set(instants.state()), set(kb)]


PAIRS = list(product(VALUES, VALUES))


@pytest.mark.parametrize("number", range(0, len(PAIRS), 3))
def test_one_key_is_one_value(number: int) -> None:
    (one, first), (other, second) = PAIRS[number]
    same = set(triples(":a owl:sameAs :b"))
    for state in states(":C owl:hasKey ( :p )", f":a a :C ; :p {first} . :b a :C ; :p {second}"):
        assert (same <= state) == (one == other)


@pytest.mark.parametrize("number", range(1, len(PAIRS), 3))
def test_an_owl_value_is_had_however_it_is_written(number: int) -> None:
    (one, first), (other, second) = PAIRS[number]
    for state in states(f":C owl:onProperty :p ; owl:hasValue {first}", f":a :p {second}"):
        assert (set(triples(":a a :C")) <= state) == (one == other)


@pytest.mark.parametrize("number", range(2, len(PAIRS), 3))
def test_an_identifier_of_data_is_a_value(number: int) -> None:
    (one, first), (other, second) = PAIRS[number]
    schema = ":p a owl:InverseFunctionalProperty, owl:DatatypeProperty"
    for state in states(schema, f":a :p {first} . :b :p {second}"):
        assert (set(triples(":a owl:sameAs :b")) <= state) == (one == other)


@pytest.mark.parametrize("number", range(0, len(PAIRS), 5))
def test_what_is_denied_is_a_value(number: int) -> None:
    (one, first), (other, second) = PAIRS[number]
    denied = f"[] owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetValue {first}"
    kb = KnowledgeBase(triples(denied), entailment="owl2rl", contradictions="keep", terms="canonical")
    kb.insert(triples(f":a :p {second} . :b :p {first}"))
    assert {clash.rule for clash in kb.contradictions()} == ({"prp-npa2"} if one == other else set())


def test_the_key_of_the_issue() -> None:
    """Of five things with one number and one name each, those are one whose values are."""
    schema = ":C owl:hasKey ( :n :name )"
    facts = (
        ':i1 a :C ; :n "01"^^xsd:integer ; :name "A"@en . :i2 a :C ; :n "1"^^xsd:byte ; :name "A"@EN .'
        ' :i3 a :C ; :n 1 ; :name "A" . :i4 a :C ; :n "1.0"^^xsd:decimal ; :name "A"@en .'
        ' :i5 a :C ; :n "1.0"^^xsd:double ; :name "A"@en'
    )
    for state in states(schema, facts):
        pairs = {(s[-2], o[-2]) for s, p, o in state if p.endswith("#sameAs>") and s != o}
        assert pairs == {(a, b) for a in "124" for b in "124" if a != b}


def test_no_triple_of_another_term_is_printed() -> None:
    for state in states(":C owl:hasKey ( :p )", ':a a :C ; :p "1.0"^^xsd:decimal . :b a :C ; :p 1'):
        assert not any(p.startswith("_:") for _, p, _ in state)
        assert {(s, o) for s, p, o in state if p.endswith("/p>")} == {
            (f"<http://example.org/{name}>", canonical(f'"1"^^<http://www.w3.org/2001/XMLSchema#{kind}>'))
            for name in "ab"
            for kind in ("integer", "decimal")
        }, "each of two that are one has what the other has"


def test_a_key_without_another_way_of_writing_keeps_no_values() -> None:
    """However many have it: only what is written otherwise costs more."""
    facts = " . ".join(f":n{i} a :C ; :p {i}" for i in range(50))
    closed = e.materialise("owl2rl", triples(f":C owl:hasKey ( :p ) . {facts}")).closed
    assert not any(closed.tables.values())


def test_a_proof_names_the_value() -> None:
    kb = KnowledgeBase(entailment="owl2rl", terms="canonical", prefixes={"": "http://example.org/"})
    kb.insert(triples(':C owl:hasKey ( :p ) . :a a :C ; :p "1.0"^^xsd:decimal . :b a :C ; :p 1'))
    proof = str(kb.explain(triples(":a owl:sameAs :b")[0]))
    assert ":a [ value of :p ] 1" in proof
    assert ":a :p 1.0" in proof
    assert "_:value" not in proof


_value = st.sampled_from([text for _, text in VALUES])
_thing = st.sampled_from([":n0", ":n1", ":n2"])
_property = st.sampled_from([":p0", ":p1", "[ owl:inverseOf [ owl:inverseOf :p0 ] ]"])
_axioms = st.one_of(
    st.builds(":C owl:hasKey ({})".format, _property),
    st.builds(":C owl:hasKey ({} {})".format, _property, _property),
    st.builds("[] owl:onProperty {} ; owl:hasValue {} ; rdfs:subClassOf :C".format, _property, _value),
    st.builds("{} rdfs:subPropertyOf {}".format, _property, _property),
    st.builds("{} a owl:InverseFunctionalProperty, owl:DatatypeProperty".format, _property),
)
_facts = st.one_of(
    st.builds("{} a :C".format, _thing),
    *[st.builds("{} {} {}".format, _thing, st.sampled_from([":p0", ":p1"]), _value)] * 3,
)


@given(
    st.lists(_axioms, min_size=1, max_size=3),
    st.lists(_facts, max_size=4),
    st.lists(st.lists(_facts, min_size=1, max_size=4), min_size=1, max_size=3),
)
@settings(deadline=None)
def test_random_values_give_what_is_literally_so(
    ontology: list[str], background: list[str], instants: list[list[str]]
) -> None:
    known = triples(" . ".join([*ontology, *background]))
    rules = e.rules_for("owl2rl", known)
    materialiser, literal = Materialiser(rules, known), LiteralStates(rules, known)
    assert set(materialiser.background) == literal.closed
    for instant in instants:
        added = triples(" . ".join(instant))
        materialiser.instant(added)
        assert set(materialiser.state()) == literal.at(added)
        materialiser.forget()


@given(
    st.lists(_axioms, min_size=1, max_size=3),
    st.lists(st.lists(_facts, min_size=1, max_size=3), min_size=1, max_size=5),
)
@settings(deadline=None)
def test_values_that_come_and_go_leave_nothing(ontology: list[str], steps: Sequence[list[str]]) -> None:
    schema = triples(" . ".join(ontology))
    kept = Model(RuleSet(entailment=Entailment.OWL2RL), schema, limits=Limits(), prefixes={})
    stated = set(schema)
    rules = kept.rules.over(schema)
    for step in steps:
        chosen = set(triples(" . ".join(step)))
        insert, delete = chosen - stated, chosen & stated
        kept.change(sorted(insert), sorted(delete))
        stated = (stated | insert) - delete
        assert set(kept.kept) == closure(rules, stated)
