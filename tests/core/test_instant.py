"""The facts of an instant are its own: no instant before it, alike or not, changes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.core.deployment import Deployment
from dotr.core.instant import InstantFacts, Instants, instant_triples
from dotr.events import Clock
from dotr.lang import load_program
from dotr.rdf.terms import RDF_TYPE, Triple, integer

PREFIX = "PREFIX : <urn:x:> "
QUERIES = {
    "joined": "{ SELECT ?r ?v WHERE { ?o :of ?r ; :value ?v } }",
    "of a class": "{ SELECT ?v WHERE { ?o a :Reading ; :value ?v } }",
    "derived": "{ SELECT ?v WHERE { ?o a :Warm ; :value ?v } }",
    "apart": "{ SELECT ?o WHERE { ?o :of :r1 } }",
    "of anything": "{ SELECT ?p WHERE { ?o ?p :r1 } }",
    "optional": "{ SELECT ?o ?v WHERE { ?o :of ?r OPTIONAL { ?o :value ?v } } }",
}
DATALOG = "PREFIX : <urn:x:> [?o, a, :Warm] :- [?o, :of, :r1] ."


def name(local: str) -> str:
    return f"<urn:x:{local}>"


subjects = st.sampled_from([name("o1"), name("o2"), "_:b"])
OBJECTS = {
    name("of"): [name("r1"), name("r2"), "_:b"],
    name("unread"): [name("r1"), "_:b"],
    name("value"): [integer(1), integer(2)],
    name("note"): [integer(1)],
    RDF_TYPE: [name("Reading"), name("Other")],
}
shapes = st.lists(st.sampled_from(sorted(OBJECTS)), max_size=6)


@st.composite
def streams(draw: st.DrawFn) -> list[list[list[Triple]]]:
    """Instants; most have the predicates of the one before, or as many others, in the same order."""
    found, predicates = [], [draw(shapes)]
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            predicates = [draw(st.permutations([*ps, *OBJECTS]))[: len(ps)] for ps in predicates]
        else:
            predicates = draw(st.lists(shapes, min_size=1, max_size=2))
        for _ in range(draw(st.integers(1, 3))):
            graphs = [
                [(draw(subjects), p, draw(st.sampled_from(OBJECTS[p]))) for p in ps] for ps in predicates
            ]
            found.append(graphs)
    return found


def instants(query: str, entailment: str) -> Instants:
    head = f"{PREFIX}RULES <r.dlog> {entailment}"
    text = f"{head} QUERY Q := {QUERIES[query]} RULE R DEFINE {{ dotr_x a :X }} FROM Q"
    program = load_program(["p"], lambda source: DATALOG if source.endswith("dlog") else text)
    found = Deployment(program).instants
    found.begin(Clock())
    return found


def facts(known: InstantFacts) -> object:
    _, triples, of_streams, _ = known
    return sorted(triples), {stream: sorted(found) for stream, found in of_streams.items()}  # type: ignore[type-var]


@given(st.sampled_from(sorted(QUERIES)), st.sampled_from(["", "ENTAILMENT rdfs "]), streams())
def test_an_instant_is_what_it_is_whatever_came_before(
    query: str, entailment: str, stream: list[list[list[Triple]]]
) -> None:
    one = instants(query, entailment)
    for time, came in enumerate(stream):
        expected = facts(instants(query, entailment).overlaid(time, came))
        known = one.overlaid(time, came)
        assert facts(known) == expected
        assert known[1] == instant_triples(came, time)
        assert facts(one.overlaid(time, None)) == facts(instants(query, entailment).overlaid(time, None))
