"""Equality that a stream states or derives: between individuals, applied to everything but the schema."""

from __future__ import annotations

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import is_schema
from dotr.errors import DataError, ProgramError, Severity
from dotr.joins.plan import ALL, Relation, class_relation, holding, relation_of
from dotr.program import DatalogRule
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import LiteralStates
from tests.enrich import entailment as e
from tests.enrich.programs import no, rule, term
from tests.enrich.test_entailment import DECLARED, axioms, facts, keys, turtle

FUNCTIONAL = ":p a owl:FunctionalProperty . :r owl:onProperty :p ; owl:hasValue :i2"
PLAIN = ":C rdfs:subClassOf :D . :a a :C . :b :q :c"


def states(background: str, *instants: str, more: tuple[DatalogRule, ...] = ()) -> list[set[Triple]]:
    materialiser = e.materialise("owl2rl", turtle(background), *more)
    found = []
    for text in instants:
        materialiser.instant(turtle(text))
        found.append(set(materialiser.state()))
        materialiser.forget()
    return found


def schema_of(triples: set[Triple]) -> set[Triple]:
    return {triple for triple in triples if is_schema(relation_of(*triple))}


def test_a_derived_equality_of_an_individual_of_the_schema_leaves_the_schema_as_it_is() -> None:
    materialiser = e.materialise("owl2rl", turtle(FUNCTIONAL))
    before = schema_of(set(materialiser.state()))
    materialiser.instant(turtle(":a :p :i1, :i2 . :i1 :q :z . :b a :r"))
    state = set(materialiser.state())
    assert schema_of(state) == before
    assert set(turtle(":i1 owl:sameAs :i2 . :i2 :q :z . :b :p :i1, :i2 . :a a :r")) <= state


def test_a_stream_may_state_that_individuals_are_equal() -> None:
    first, second = states(PLAIN, ":a owl:sameAs :b . :x :q :a", ":x :q :a")
    assert set(turtle(":b a :C, :D . :a :q :c . :x :q :b . :b owl:sameAs :a")) <= first
    assert not set(turtle(":b a :C . :x :q :b")) & second


def test_equality_of_the_stream_and_not_go_together() -> None:
    quiet = rule("?r a Quiet", "?r a Room", no("?r a Noisy"))
    state, after = states(
        PLAIN + " . :r a :Room . :s a :Noisy", ":r owl:sameAs :s", ":x :q :r", more=(quiet,)
    )
    assert not set(turtle(":r a :Quiet")) & state
    assert set(turtle(":r a :Noisy . :s a :Room")) <= state
    assert set(turtle(":r a :Quiet")) <= after


def test_equality_that_the_background_states_is_applied_to_the_schema_and_to_the_stream() -> None:
    (state,) = states(
        ":p owl:sameAs :q . :C owl:sameAs :D . :C rdfs:subClassOf :E . :a owl:sameAs :b",
        ":a :p :x . :y a :D",
    )
    assert set(turtle(":b :q :x . :y a :C, :E . :D rdfs:subClassOf :E")) <= state


def test_a_clash_by_an_equality_of_the_stream_is_reported() -> None:
    materialiser = e.materialise("owl2rl", turtle(PLAIN + " . :a owl:differentFrom :b"), needed=())
    materialiser.instant(turtle(":a owl:sameAs :b"))
    assert [d.code for d in materialiser.clashes()] == ["D3101"] * 2
    materialiser.forget()
    assert materialiser.clashes() == []


@pytest.mark.parametrize("text", [":C owl:sameAs :b", ":a owl:sameAs :p", ":p owl:sameAs :p2"])
@pytest.mark.parametrize("functional", ["", " . :f a owl:FunctionalProperty"])
def test_a_class_or_property_equal_to_something_is_a_data_error(text: str, functional: str) -> None:
    materialiser = e.materialise("owl2rl", turtle(PLAIN + " . :p a owl:SymmetricProperty" + functional))
    with pytest.raises(DataError, match=r"D2601.*a class or a property equal"):
        materialiser.instant(turtle(text))
    assert schema_of(set(materialiser.state())) <= set(materialiser.background)


def test_a_derived_equality_of_classes_is_a_data_error() -> None:
    materialiser = e.materialise("owl2rl", turtle(f"{FUNCTIONAL} . {PLAIN}"))
    with pytest.raises(DataError, match="D2601"):
        materialiser.instant(turtle(":a :p :C, :x"))


def test_what_the_background_says_already_may_be_said_again() -> None:
    states(":C owl:sameAs :D . :C rdfs:subClassOf :E", ":C owl:sameAs :D . :E owl:sameAs :E")


def test_equalities_of_individuals_of_the_schema_are_found_one_a_pair() -> None:
    materialiser = e.materialise("owl2rl", turtle(FUNCTIONAL))
    found = []
    for text in (":a :p :i1, :i2", ":a :p :i2, :i1, :i3", ":a :p :i4, :i5"):
        materialiser.instant(turtle(text))
        found.append(materialiser.findings())
        materialiser.forget()
    assert [len(each) for each in found] == [1, 2, 0]
    assert {(d.code, d.severity) for each in found for d in each} == {("D2602", Severity.INFO)}


def test_equality_reaches_relations_that_only_the_stream_has() -> None:
    """Where everything is read, triples of a predicate that nobody knew are carried over, too."""
    (first, second) = states(
        PLAIN, ":a owl:sameAs :b . :a :new :c . :x a :New . :x owl:sameAs :y", ":a :new :c"
    )
    assert set(turtle(":b :new :c . :y a :New")) <= first
    assert not set(turtle(":b :new :c")) & second


_names = st.sampled_from([f":n{i}" for i in range(3)])
_equal = st.builds("{} owl:sameAs {}".format, _names, _names)
_ontologies = st.lists(axioms, min_size=1, max_size=5)
_backgrounds = st.lists(st.one_of(facts, facts, facts, _equal), max_size=3)
_instants = st.lists(st.one_of(facts, facts, _equal), min_size=1, max_size=5)
_FEW = settings(max_examples=settings().max_examples // 5, phases=[Phase.explicit, Phase.generate])


@_FEW
@given(_ontologies, _backgrounds, _instants)
def test_individuals_have_the_triples_that_owlrl_gives_them(
    ontology: list[str], background: list[str], instant: list[str]
) -> None:
    known, added = turtle(" . ".join([DECLARED, *ontology, *background])), turtle(" . ".join(instant))
    materialiser = e.materialise("owl2rl", known)
    try:
        materialiser.instant(added)
    except DataError:
        assume(False)
    graph = e.graph_of([*known, *added])
    e.expand("owl2rl", graph)
    wanted = e.comparable(e.triples_of(graph))
    ours = e.comparable(set(materialiser.state()))
    assert ours - schema_of(ours) == wanted - schema_of(wanted)


_QUIET = (
    rule("?x a Quiet", "?x a C0", no("?x a C1")),
    rule("?x loud ?y", "?x p0 ?y", no("?x a Quiet")),
)
_needs = st.one_of(
    st.just([ALL]),
    st.lists(
        st.sampled_from(
            [term("p0"), term("p1"), class_relation(term("C0")), term("sameAs"), RDF_TYPE, term("loud")]
        ),
        min_size=1,
        max_size=3,
    ),
)


@_FEW
@given(
    st.lists(st.one_of(axioms, axioms, axioms, keys), min_size=1, max_size=5),
    _backgrounds,
    st.lists(_instants, min_size=1, max_size=3),
    _needs,
    st.booleans(),
)
def test_states_are_the_literal_ones(
    ontology: list[str],
    background: list[str],
    instants: list[list[str]],
    needed: list[Relation],
    quiet: bool,
) -> None:
    known = turtle(" . ".join([*ontology, *background]))
    rules = [*e.rules_for("owl2rl", known), *(_QUIET if quiet else ())]
    try:
        materialiser = Materialiser(rules, known, needed=needed)
    except ProgramError:  # a NOT beside equality that rules derive
        assume(False)
    literal = LiteralStates(rules, known)

    def relevant(triples: set[Triple]) -> set[Triple]:
        return {t for t in triples if ALL in needed or not set(needed).isdisjoint(holding(t))}

    for instant in instants:
        added = turtle(" . ".join(instant))
        try:
            materialiser.instant(added)
        except DataError:
            continue
        assert relevant(set(materialiser.state())) == relevant(literal.at(added))
        materialiser.forget()
