"""`[ owl:inverseOf :p ]` wherever a property may stand: what follows for what has a name, and no more."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr import KnowledgeBase
from dotr.enrich.closing import load_background
from dotr.enrich.materialiser import Limits, Materialiser
from dotr.errors import DataError
from dotr.knowledge_base import model
from dotr.knowledge_base.model import Model, RuleSet, rule_name
from dotr.program import Entailment
from dotr.rdf.terms import Triple, is_blank
from dotr.reference.enrich import LiteralStates, closure, contradictions, generalized_closure
from tests.enrich import entailment as e
from tests.enrich.programs import rule
from tests.enrich.test_entailment import DECLARED, axioms, facts, keys, turtle

INVERSE = "[ owl:inverseOf :p ]"
FOLLOWS = {
    "the subject of subPropertyOf": (f"{INVERSE} rdfs:subPropertyOf :q", ":a :p :b", ":b :q :a"),
    "the object of subPropertyOf": (f":q rdfs:subPropertyOf {INVERSE}", ":a :q :b", ":b :p :a"),
    "between two": (":r rdfs:subPropertyOf _:i . _:i rdfs:subPropertyOf :q", ":a :r :b", ":a :q :b"),
    "one of its own inverse": (f":p rdfs:subPropertyOf {INVERSE}", ":a :p :b", ":b :p :a"),
    "the subject of equivalentProperty": (f"{INVERSE} owl:equivalentProperty :q", ":a :p :b", ":b :q :a"),
    "the object of equivalentProperty": (f":q owl:equivalentProperty {INVERSE}", ":a :q :b", ":b :p :a"),
    "the domain of": (f"{INVERSE} rdfs:domain :C", ":a :p :b", ":b a :C"),
    "the range of": (f"{INVERSE} rdfs:range :C", ":a :p :b", ":a a :C"),
    "someValuesFrom": (f":C owl:onProperty {INVERSE} ; owl:someValuesFrom :D", ":a :p :b ; a :D", ":b a :C"),
    "some value": (f":C owl:onProperty {INVERSE} ; owl:someValuesFrom owl:Thing", ":a :p :b", ":b a :C"),
    "allValuesFrom": (f":C owl:onProperty {INVERSE} ; owl:allValuesFrom :D", ":a :p :b . :b a :C", ":a a :D"),
    "hasValue, of a member": (f":C owl:onProperty {INVERSE} ; owl:hasValue :v", ":a a :C", ":v :p :a"),
    "hasValue, from the value": (f":C owl:onProperty {INVERSE} ; owl:hasValue :v", ":v :p :a", ":a a :C"),
    "maxCardinality": (
        f":C owl:onProperty {INVERSE} ; owl:maxCardinality 1",
        ":c a :C . :a :p :c . :b :p :c",
        ":a owl:sameAs :b",
    ),
    "maxQualifiedCardinality": (
        f":C owl:onProperty {INVERSE} ; owl:maxQualifiedCardinality 1 ; owl:onClass :D",
        ":c a :C . :a :p :c ; a :D . :b :p :c ; a :D",
        ":a owl:sameAs :b",
    ),
    "a link of a chain": (f":q owl:propertyChainAxiom ( :r {INVERSE} )", ":a :r :b . :c :p :b", ":a :q :c"),
    "two links": (f":q owl:propertyChainAxiom ( {INVERSE} _:i )", ":b :p :a . :c :p :b", ":a :q :c"),
    "what a chain is of": (f"{INVERSE} owl:propertyChainAxiom ( :q :r )", ":a :q :b . :b :r :c", ":c :p :a"),
    "symmetric": (f"{INVERSE} a owl:SymmetricProperty", ":a :p :b", ":b :p :a"),
    "transitive": (f"{INVERSE} a owl:TransitiveProperty", ":a :p :b . :b :p :c", ":a :p :c"),
    "functional": (f"{INVERSE} a owl:FunctionalProperty", ":a :p :c . :b :p :c", ":a owl:sameAs :b"),
    "inverse functional": (f"{INVERSE} a owl:InverseFunctionalProperty", ":c :p :a, :b", ":a owl:sameAs :b"),
    "a key": (f":C owl:hasKey ( {INVERSE} )", ":a a :C . :b a :C . :k :p :a, :b", ":a owl:sameAs :b"),
    "a part of a key": (
        f":C owl:hasKey ( :q {INVERSE} )",
        ":a a :C ; :q 1 . :b a :C ; :q 1 . :k :p :a, :b",
        ":a owl:sameAs :b",
    ),
    "the inverse of an inverse": ("[ owl:inverseOf _:i ] rdfs:subPropertyOf :q", ":a :p :b", ":a :q :b"),
    "named as an inverse": (":q owl:inverseOf _:i", ":a :p :b", ":a :q :b"),
    "the inverse of two": ("_:i owl:inverseOf :q", ":a :p :b", ":a :q :b"),
    "no inverse at all": (
        "_:j owl:propertyChainAxiom ( :q :q ) . _:j rdfs:subPropertyOf :p", ":a :q :b . :b :q :c", ":a :p :c",
    ),
    "declared": ("[ a owl:ObjectProperty ; owl:inverseOf :p ] rdfs:subPropertyOf :q", ":a :p :b", ":b :q :a"),
}  # fmt: skip
"""Where it stands: (schema, facts, what follows)."""

CLASHES = {
    "prp-asyp": (f"{INVERSE} a owl:AsymmetricProperty", ":a :p :b . :b :p :a"),
    "prp-irp": (f"{INVERSE} a owl:IrreflexiveProperty", ":a :p :a"),
    "prp-pdw": (f":q owl:propertyDisjointWith {INVERSE}", ":a :p :b . :b :q :a"),
    "prp-adp": (f"[] a owl:AllDisjointProperties ; owl:members ( :q :r {INVERSE} )", ":a :p :b . :b :q :a"),
    "prp-npa1": (
        f"[] owl:sourceIndividual :a ; owl:assertionProperty {INVERSE} ; owl:targetIndividual :b",
        ":b :p :a",
    ),
    "cls-maxc1": (f":C owl:onProperty {INVERSE} ; owl:maxCardinality 0", ":b a :C . :a :p :b"),
    "cls-maxqc1": (
        f":C owl:onProperty {INVERSE} ; owl:maxQualifiedCardinality 0 ; owl:onClass :D",
        ":b a :C . :a :p :b ; a :D",
    ),
}
SHARED = " . _:i owl:inverseOf :p"


def as_ntriples(triples: list[Triple]) -> str:
    return "".join(f"{' '.join(triple)} .\n" for triple in triples)


@pytest.mark.parametrize("place", FOLLOWS)
def test_an_anonymous_property_stands_where_a_property_may(place: str) -> None:
    schema_text, facts_text, follows = FOLLOWS[place]
    schema, given_facts, wanted = turtle(schema_text + SHARED), turtle(facts_text), set(turtle(follows))
    graph = e.graph_of([*schema, *given_facts])
    e.expand("owl2rl", graph)
    assert wanted <= e.triples_of(graph), "owlrl, too"
    closed = e.materialise("owl2rl", [*schema, *given_facts])
    assert wanted <= set(closed.background)
    instants = e.materialise("owl2rl", schema)
    instants.instant(given_facts)
    state = set(instants.state())
    assert wanted <= state
    assert not [triple for triple in [*closed.background, *state, *instants.added()] if is_blank(triple[1])]
    instants.forget()
    assert not wanted & set(instants.state())
    kb = KnowledgeBase(schema, entailment="owl2rl", terms="canonical")
    kb.insert(given_facts)
    assert wanted <= set(kb)
    assert len(kb) == len(list(kb)) == len(kb.query("SELECT ?s ?p ?o { ?s ?p ?o }").rows)
    kb.delete(given_facts)
    assert not wanted & set(kb)


@pytest.mark.parametrize("name", CLASHES)
@pytest.mark.parametrize("first", ["schema", "facts", "together"])
def test_a_contradiction_by_an_anonymous_property_is_found(name: str, first: str) -> None:
    schema, given_facts = map(turtle, CLASHES[name])
    parts = {
        "schema": [schema, given_facts],
        "facts": [given_facts, schema],
        "together": [schema + given_facts],
    }
    kb = KnowledgeBase(entailment="owl2rl", contradictions="keep", terms="canonical")
    for part in parts[first]:
        kb.insert(part)
    assert {one.rule for one in kb.contradictions()} == {name}
    kb.delete(given_facts)
    assert kb.contradictions() == []
    instants = e.materialise("owl2rl", schema)
    instants.instant(given_facts)
    assert {clash.message for clash in instants.clashes()} == {
        f"inconsistent: OWL 2 RL rule {name} finds a clash"
    }


def test_a_value_may_be_the_subject_of_an_anonymous_property() -> None:
    """As the rules over generalized RDF have it: of a serial number there is one thing."""
    instants = e.materialise("owl2rl", turtle(f"{INVERSE} a owl:FunctionalProperty"))
    instants.instant(turtle(':a :p "4711" . :b :p "4711" ; :q :c'))
    assert set(turtle(":a owl:sameAs :b ; :q :c")) <= set(instants.state())


def test_a_rule_with_a_variable_predicate_does_not_see_it() -> None:
    schema = turtle("_:any owl:propertyChainAxiom ( :q :q ) . _:any rdfs:domain :C")
    instants = e.materialise("owl2rl", schema, rule("?x linked ?y", "?x ?p ?y"))
    instants.instant(turtle(":a :q :b . :b :q :c"))
    state = set(instants.state())
    assert set(turtle(":a a :C ; :linked :b")) <= state
    assert not set(turtle(":a :linked :c")) & state


def test_subproperties_and_domains_of_rdfs_reach_through_it() -> None:
    schema = turtle(
        ":p rdfs:subPropertyOf _:any . _:any rdfs:domain :C ; rdfs:range :D ; rdfs:subPropertyOf :q"
    )
    instants = e.materialise("rdfs", schema)
    instants.instant(turtle(":a :p :b"))
    assert set(turtle(":a a :C ; :q :b . :b a :D")) <= set(instants.state())


def test_what_nothing_needs_is_not_kept() -> None:
    """A program that asks for :r alone derives nothing for `[ owl:inverseOf :p ]`."""
    schema = turtle(f":q rdfs:subPropertyOf {INVERSE} . :r rdfs:subPropertyOf :s")
    instants = e.materialise("owl2rl", schema, needed=["<http://example.org/s>"])
    assert not [r for r in instants.reach.relations if r.startswith("_:")]


def test_a_saved_knowledge_base_goes_on_with_it() -> None:
    schema = turtle(f":q rdfs:subPropertyOf {INVERSE} . {INVERSE} a owl:TransitiveProperty")
    closed = e.materialise("owl2rl", [*schema, *turtle(":a :q :b")]).closed
    rules = e.rules_for("owl2rl", schema)
    loaded = Materialiser(rules, closed=load_background(rules, closed.save()))
    loaded.instant(turtle(":b :q :c"))
    assert set(turtle(":b :p :a . :c :p :b, :a")) <= set(loaded.state())


_clashes = st.sampled_from([text.replace(":q", ":p1").replace(":p ", ":p0 ") for text, _ in CLASHES.values()])


@pytest.mark.parametrize("maintained", [True, False])
@given(
    st.lists(st.one_of(axioms, axioms, axioms, keys, _clashes), min_size=1, max_size=5),
    st.lists(facts, min_size=1, max_size=5),
    st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6),
)
@settings(deadline=None)
def test_after_any_history_holds_the_closure_of_what_is_stated(
    maintained: bool, ontology: list[str], some_facts: list[str], steps: list[set[int]]
) -> None:
    """Axioms and facts come and go; each step is an exchange of those that it names."""
    parts = [turtle(text) for text in [*ontology, *some_facts]]
    kept = Model(RuleSet(entailment=Entailment.OWL2RL), limits=Limits(), strict=False, prefixes={})
    stated: set[Triple] = set()
    with patch.object(model, "_WORTH", 0 if maintained else model._WORTH):
        for step in steps:
            chosen = {triple for place in step if place < len(parts) for triple in parts[place]}
            insert, delete = chosen - stated, chosen & stated
            try:
                kept.change(sorted(insert), sorted(delete))
            except DataError:  # a list lacks a cell that another axiom had, too
                continue
            stated = (stated | insert) - delete
            rules = kept.rules.over(sorted(stated))
            assert set(kept.kept) == closure(rules, sorted(stated))
            assert len(kept.kept) == len(set(kept.kept))
            wanted = set(contradictions(rules, generalized_closure(rules, stated)))
            found = {(one.subject, one.rule, one.object) for one in kept.contradictions()}
            assert found == {(s, rule_name(p), o) for s, p, o in wanted}


@given(
    st.lists(st.one_of(axioms, axioms, keys), min_size=1, max_size=5),
    st.lists(facts, max_size=3),
    st.lists(st.lists(facts, min_size=1, max_size=4), min_size=1, max_size=3),
)
@settings(max_examples=settings().max_examples // 5, deadline=None)
def test_clashes_of_instants_are_the_literal_ones(
    ontology: list[str], background: list[str], instants: list[list[str]]
) -> None:
    clashing = [text for text, _ in CLASHES.values()]
    known = turtle(" . ".join([DECLARED, *ontology, *background, clashing[len(ontology) % len(clashing)]]))
    rules = e.rules_for("owl2rl", known)
    materialiser, literal = Materialiser(rules, known), LiteralStates(rules, known)
    for instant in instants:
        added = turtle(" . ".join(instant))
        try:
            materialiser.instant(added)
        except DataError:
            continue
        found = Counter((d.message, d.label) for d in materialiser.clashes())
        assert bool(found) == bool(contradictions(rules, literal.generalized_at(added)))
        materialiser.forget()


def test_rules_of_the_profile_are_as_they_were_where_nothing_is_anonymous() -> None:
    """No more rules, and no more relations: what is not used costs nothing."""
    schema = turtle(
        ":p rdfs:subPropertyOf :q . :q owl:inverseOf :r . :C owl:onProperty :p ; owl:someValuesFrom :D"
    )
    closed = e.materialise("owl2rl", schema).closed
    assert closed.tables == {}
    assert not [clause for clause in closed.clauses.all if "_:" in repr(clause.rule.body)]
