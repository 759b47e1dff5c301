"""RDFS and OWL 2 RL: what the recommendations name, and the same triples as owlrl."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import list_rules
from dotr.enrich.rules import check_rules
from dotr.errors import DataError, ProgramError
from dotr.rdf.terms import Triple, canonical
from tests.enrich import entailment as e
from tests.enrich.entailment_cases import CLASHES, OWL_CASES, RDFS_CASES
from tests.enrich.programs import no, rule, term

_PREFIXES = """
PREFIX : <http://example.org/>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""


def turtle(text: str) -> list[Triple]:
    quads = ox.parse(f"{_PREFIXES}{text} ." if text else "", format=ox.RdfFormat.TURTLE)
    return [(str(q.subject), str(q.predicate), canonical(str(q.object))) for q in quads]


def entails(name: str, given_text: str, expected: str, *absent: str) -> None:
    state = set(e.materialise(name, turtle(given_text)).background)
    assert set(turtle(expected)) <= state
    for text in absent:
        assert not set(turtle(text)) & state


@pytest.mark.parametrize("name", ["rdfs", "owl2rl"])
def test_rule_sets_pass_their_own_checks(name: str) -> None:
    assert check_rules(e.rule_set(name)) == []


@pytest.mark.parametrize(("given_text", "expected"), RDFS_CASES)
def test_rdfs(given_text: str, expected: str) -> None:
    entails("rdfs", given_text, expected)


@pytest.mark.parametrize(("given_text", "expected"), OWL_CASES)
def test_owl_2_rl(given_text: str, expected: str) -> None:
    entails("owl2rl", given_text, expected)


def test_key_needs_all_its_properties() -> None:
    entails(
        "owl2rl",
        ":C owl:hasKey (:p :q) . :a a :C ; :p 1 ; :q 2 . :b a :C ; :p 1 ; :q 3",
        "",
        ":a owl:sameAs :b",
    )


def test_one_maximum_does_not_merge_others() -> None:
    entails(
        "owl2rl", ":C owl:maxCardinality 2 ; owl:onProperty :p . :a a :C ; :p :b, :c", "", ":b owl:sameAs :c"
    )


@pytest.mark.parametrize(("given_text", "name"), CLASHES)
def test_inconsistency_is_reported_and_belongs_to_no_state(given_text: str, name: str) -> None:
    materialiser = e.materialise("owl2rl", turtle(given_text))
    found = materialiser.clashes()
    assert found
    assert all(d.code == "D3101" and f"rule {name} " in d.message for d in found)
    assert not any("clash" in p for _, p, _ in materialiser.background)


def test_clash_of_an_instant_is_gone_with_it() -> None:
    materialiser = e.materialise("owl2rl", turtle(":C owl:disjointWith :D . :a a :C"))
    materialiser.instant(turtle(":a a :D"))
    assert [d.message for d in materialiser.clashes()] == ["inconsistent: OWL 2 RL rule cax-dw finds a clash"]
    assert not any("clash" in p for _, p, _ in materialiser.state())
    materialiser.forget()
    assert materialiser.clashes() == []


@pytest.mark.parametrize(
    "text",
    [
        ":C owl:unionOf :l . :l rdf:first :D ; rdf:rest :l",
        ":C owl:unionOf :l . :l rdf:first :D",
        ":C owl:unionOf :l . :l rdf:first :D, :E ; rdf:rest rdf:nil",
    ],
)
def test_list_without_end_or_member_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError, match="D3102"):
        list_rules(turtle(text))


def test_entailment_and_not_go_together() -> None:
    quiet = rule("?r a Quiet", "?r a Room", no("?r a Noisy"))
    background = turtle(":Loud rdfs:subClassOf :Noisy . :r a :Room . :q a :Room, :Loud . :Loud a owl:Class")
    materialiser = e.materialise("owl2rl", background, quiet)
    assert set(turtle(":r a :Quiet")) <= set(materialiser.background)
    materialiser.instant(turtle(":r a :Loud"))
    assert (term("r"), term("a"), term("Quiet")) not in set(materialiser.state())
    materialiser.forget()
    assert (term("r"), term("a"), term("Quiet")) in set(materialiser.state())


def test_same_as_at_run_time_and_not_do_not_go_together() -> None:
    quiet = rule("?r a Quiet", "?r a Room", no("?r a Noisy"))
    with pytest.raises(ProgramError, match="D3005"):
        e.materialise("owl2rl", turtle(":p a owl:FunctionalProperty"), quiet)


@pytest.mark.parametrize(
    "text",
    [
        ":C rdfs:subClassOf :D",
        ":p a owl:TransitiveProperty",
        ":C owl:sameAs :b",
        ":a owl:sameAs rdfs:subClassOf",
        ":p rdfs:domain :C",
        ":x owl:inverseOf :y",
    ],
)
def test_stream_may_not_bring_schema(text: str) -> None:
    materialiser = e.materialise("owl2rl", turtle(":C rdfs:subClassOf :D"))
    with pytest.raises(DataError, match="D2601"):
        materialiser.instant(turtle(":a a :C . " + text))
    materialiser.instant(turtle(":a a :C"))
    assert set(turtle(":a a :D")) <= set(materialiser.state())


def test_stream_may_type_individuals() -> None:
    materialiser = e.materialise("owl2rl", turtle(":C rdfs:subClassOf :D"))
    materialiser.instant(turtle(":a a owl:NamedIndividual, owl:Thing"))
    assert set(turtle(":a a owl:Thing")) <= set(materialiser.state())


def test_stream_may_bring_schema_where_nothing_was_instantiated() -> None:
    materialiser = Materialiser([rule("?x below ?y", "?x sco ?y")], [])
    materialiser.instant(turtle(":C rdfs:subClassOf :D"))
    assert set(turtle(":C :below :D")) <= set(materialiser.state())


def test_schema_that_same_as_derives_is_instantiated_too() -> None:
    entails("owl2rl", ":C owl:sameAs :B . :C rdfs:subClassOf :D . :a a :B", ":a a :D . :B rdfs:subClassOf :D")


_CLASSES = [f":C{i}" for i in range(3)]
_PROPERTIES = [f":p{i}" for i in range(3)]
_NAMES = [f":n{i}" for i in range(3)]
_class, _name = map(st.sampled_from, (_CLASSES, _NAMES))
_property = st.sampled_from(
    [
        *_PROPERTIES * 2,
        *(f"[ owl:inverseOf {p} ]" for p in _PROPERTIES),
        "[ a owl:ObjectProperty ; owl:inverseOf :p0 ]",
        "[ owl:inverseOf [ owl:inverseOf :p1 ] ]",
        "_:inverse",  # of :p2, in as many axioms as name it
        "_:any",
    ]
)
"""A property, or what may stand for one: inverses, inverses of inverses, blank nodes that axioms share."""
axioms = st.one_of(
    st.just("_:inverse owl:inverseOf :p2"),
    st.builds("{} rdfs:subClassOf {}".format, _class, _class),
    st.builds("{} owl:equivalentClass {}".format, _class, _class),
    st.builds("{} a owl:Class".format, _class),
    st.builds("{} rdfs:subPropertyOf {}".format, _property, _property),
    st.builds("{} rdfs:domain {}".format, _property, _class),
    st.builds("{} rdfs:range {}".format, _property, _class),
    st.builds("{} owl:inverseOf {}".format, _property, _property),
    st.builds("{} owl:equivalentProperty {}".format, _property, _property),
    st.builds(
        "{} a {}".format,
        _property,
        st.sampled_from(["owl:TransitiveProperty", "owl:SymmetricProperty", "owl:ObjectProperty"]),
    ),
    st.builds(
        "{} a {}".format,
        _property,
        st.sampled_from(["owl:FunctionalProperty", "owl:InverseFunctionalProperty"]),
    ),
    st.builds("{} owl:propertyDisjointWith {}".format, _property, _property),
    st.builds("{} owl:intersectionOf ({} {})".format, _class, _class, _class),
    st.builds("{} owl:unionOf ({} {})".format, _class, _class, _class),
    st.builds("{} owl:propertyChainAxiom ({} {})".format, _property, _property, _property),
    st.builds("{} owl:someValuesFrom {} ; owl:onProperty {}".format, _class, _class, _property),
    st.builds("{} owl:allValuesFrom {} ; owl:onProperty {}".format, _class, _class, _property),
    st.builds("{} owl:someValuesFrom owl:Thing ; owl:onProperty {}".format, _class, _property),
    st.builds("{} owl:hasValue {} ; owl:onProperty {}".format, _class, _name, _property),
    st.builds("{} owl:maxCardinality 1 ; owl:onProperty {}".format, _class, _property),
)
DECLARED = " . ".join(
    [
        *(f"{one} a owl:Class" for one in _CLASSES),
        *(f"{one} a owl:ObjectProperty" for one in (*_PROPERTIES, "_:inverse", "_:any")),
    ]
)
"""For owlrl, which takes what nothing declares for no part of itself where rules conclude that."""
keys = st.one_of(
    st.builds("{} owl:hasKey ({})".format, _class, _property),
    st.builds("{} owl:hasKey ({} {})".format, _class, _property, _property),
)
"""Not for owlrl: it takes one that has a key and one that has none for the same."""
facts = st.one_of(
    st.builds("{} a {}".format, _name, _class),
    st.builds("{} {} {}".format, _name, st.sampled_from(_PROPERTIES), _name),
)


@settings(max_examples=settings().max_examples // 10, phases=[Phase.explicit, Phase.generate])
@given(st.lists(axioms, min_size=1, max_size=5), st.lists(facts, min_size=1, max_size=5))
def test_random_ontologies_give_what_owlrl_gives(axioms: list[str], facts: list[str]) -> None:
    triples = turtle(" . ".join([DECLARED, *axioms, *facts]))
    graph = e.graph_of(triples)
    e.expand("owl2rl", graph)
    ours = e.comparable(set(e.materialise("owl2rl", triples).background))
    assert ours == e.comparable(e.triples_of(graph))


def _lubm(data: Path, department: str | None) -> list[Triple]:
    """The ontology, and the triples about one department."""
    quads = list(ox.parse((data / "lubm/univ-bench.owl").read_bytes(), format=ox.RdfFormat.RDF_XML))
    if department is not None:
        lines = gzip.decompress((data / "lubm/University0.nt.gz").read_bytes()).decode().splitlines()
        chosen = "\n".join(line for line in lines if department in line.split(" ", 1)[0])
        quads += ox.parse(chosen, format=ox.RdfFormat.N_TRIPLES)
    return [(str(q.subject), str(q.predicate), canonical(str(q.object))) for q in quads]


def test_lubm_ontology_and_a_few_people_give_what_owlrl_gives(data: Path) -> None:
    triples = _lubm(data, "Department0.University0.edu/AssistantProfessor1>")
    graph = e.graph_of(triples)
    e.expand("owl2rl", graph)
    assert e.comparable(set(e.materialise("owl2rl", triples).background)) == e.comparable(e.triples_of(graph))


def test_lubm_ontology_gives_what_owlrl_gives_under_rdfs(data: Path) -> None:
    """But for reflexive subPropertyOf of properties (rdfs6), which is documented as left out."""
    triples = _lubm(data, None)
    graph = e.graph_of(triples)
    e.expand("rdfs", graph)
    assert e.comparable(set(e.materialise("rdfs", triples).background)) == e.comparable(e.triples_of(graph))
