"""A deletion that ends an equality ends what rules derived over the schema of the equal individual, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr import KnowledgeBase

PREFIXES = {
    "": "http://e/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
INVERSE_FUNCTIONAL = (
    ":p a owl:InverseFunctionalProperty ; owl:inverseOf :p ."
    " :C owl:equivalentClass :r . :r owl:onProperty :p ; owl:hasValue :b ."
)
FUNCTIONAL = (
    ":p a owl:FunctionalProperty ; owl:inverseOf :q ."
    " :C owl:equivalentClass :r . :r owl:onProperty :p ; owl:hasValue :b ."
)
KEY = (
    ":C owl:hasKey :k . :k rdf:first :p ; rdf:rest rdf:nil ."
    " :C owl:equivalentClass :r . :r owl:onProperty :p ; owl:hasValue :b ."
)
ONE_OF = INVERSE_FUNCTIONAL + " :D owl:oneOf :l . :l rdf:first :b ; rdf:rest rdf:nil ."
CLASS_OF_PROPERTIES = ":C rdfs:subClassOf owl:SymmetricProperty . :p rdfs:domain :C ."
CASES = {
    "inverse functional": (INVERSE_FUNCTIONAL, ":a :p :a .", ":a :p :b ."),
    "functional": (FUNCTIONAL, ":a :q :a .", ":b :q :a ."),
    "key": (KEY, ":a :p :a . :b :p :b .", ":a :p :b ."),
    "enumeration": (ONE_OF, ":a :p :a .", ":a :p :b ."),
    "equality that is stated": (INVERSE_FUNCTIONAL, ":a :p :a .", ":a owl:sameAs :b ."),
    "a property that is symmetric because of a fact": (CLASS_OF_PROPERTIES, ":x :p :p .", ":p :p :x ."),
}


def made(*texts: str) -> KnowledgeBase:
    kb = KnowledgeBase(
        entailment="owl2rl", terms="canonical", contradictions="keep",
        prefixes={**PREFIXES, "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"},
    )  # fmt: skip
    for text in texts:
        kb.insert(text)
    return kb


@pytest.mark.parametrize(("schema", "stays", "goes"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("later", [False, True], ids=["at once", "one after the other"])
@pytest.mark.parametrize("opened", [False, True], ids=["", "saved and opened"])
def test_what_supports_itself_over_the_equality_that_ended_is_gone(
    tmp_path: Path, schema: str, stays: str, goes: str, later: bool, opened: bool
) -> None:
    kb = made(schema, stays, goes) if later else made(schema + stays + goes)
    if opened:
        kb.save(tmp_path / "saved.kb")
        kb = KnowledgeBase.open(tmp_path / "saved.kb", terms="canonical")
    held = set(kb)
    change = kb.delete(goes)
    expected = set(made(schema, stays))
    assert set(kb) == expected
    assert set(change.removed) == held - expected
    assert not kb.explain(goes)
    kb.insert(goes)
    assert set(kb) == held


@pytest.mark.parametrize(("schema", "stays", "goes"), CASES.values(), ids=CASES)
def test_the_end_of_a_period_ends_it_as_well(schema: str, stays: str, goes: str) -> None:
    kb = made(schema, stays)
    before = set(kb)
    kb.insert(goes, until=5)
    kb.advance(5)
    assert set(kb) == before


def test_a_proof_over_schema_of_an_equal_individual_goes_back_to_the_equality() -> None:
    kb = made(INVERSE_FUNCTIONAL, ":a :p :a, :b . :c :p :a .")
    assert ":c owl:sameAs :a ." in kb
    proof = str(kb.explain(":r owl:hasValue :a ."))
    assert ":r owl:hasValue :b   stated" in proof
    assert "owl:sameAs" in proof


def test_a_statement_that_ends_while_it_follows_from_another_is_no_statement_any_more() -> None:
    """Also where another row of its relation, the only derived one, ends in the same change."""
    kb = KnowledgeBase(prefixes=PREFIXES, terms="canonical")
    kb.add_rules(":q(?y, ?x) :- :p(?x, ?y) .")
    kb.insert(":a :p :b . :c :q :d .")
    kb.update(insert=":d :p :c .", delete=":c :q :d . :a :p :b .")
    assert set(kb.triples(which="stated")) == {("<http://e/d>", "<http://e/p>", "<http://e/c>")}
    kb.delete(":d :p :c .")
    assert not set(kb)
