"""The store for rdflib: what rdflib's tests ask of a store, of its own and of ours; and ours reasons."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import rdflib
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import FOAF, OWL, RDF, RDFS, XSD
from rdflib.plugins.sparql import prepareQuery

from dotr.knowledge_base import ContradictionError
from dotr.rdflib import Store

E = rdflib.Namespace("http://e/")
TAREK, MICHEL, BOB, LIKES, HATES, PIZZA, CHEESE = (
    E.tarek,
    E.michel,
    E.bob,
    E.likes,
    E.hates,
    E.pizza,
    E.cheese,
)
SEVEN = [
    (TAREK, LIKES, PIZZA),
    (TAREK, LIKES, CHEESE),
    (MICHEL, LIKES, PIZZA),
    (MICHEL, LIKES, CHEESE),
    (BOB, LIKES, CHEESE),
    (BOB, HATES, PIZZA),
    (BOB, HATES, MICHEL),
]


@pytest.fixture(params=["Memory", "dotr"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return Graph(store=request.param, bind_namespaces="none")


def test_the_package_announces_the_store() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    ((name, value),) = project["entry-points"]["rdf.plugins.store"].items()
    assert (name, EntryPoint(name, value, "rdf.plugins.store").load()) == ("dotr", Store)


def test_adding_and_removing(graph: Graph) -> None:
    for triple in SEVEN:
        graph.add(triple)
        graph.add(triple)
    assert len(graph) == 7
    graph.remove((BOB, HATES, PIZZA))
    graph.remove((BOB, HATES, PIZZA))
    assert len(graph) == 6
    graph.remove((None, LIKES, CHEESE))
    assert set(graph) == {(TAREK, LIKES, PIZZA), (MICHEL, LIKES, PIZZA), (BOB, HATES, MICHEL)}
    graph.remove((None, None, None))
    assert len(graph) == 0


def test_patterns(graph: Graph) -> None:
    graph += SEVEN  # type: ignore[misc]  # triples
    counts = [
        (TAREK, None, None),
        (None, LIKES, None),
        (None, None, PIZZA),
        (BOB, HATES, None),
        (BOB, None, PIZZA),
        (None, LIKES, CHEESE),
        (BOB, HATES, MICHEL),
        (None, None, None),
        (E.nobody, None, None),
    ]
    assert [len(list(graph.triples(pattern))) for pattern in counts] == [2, 5, 3, 2, 1, 3, 1, 7, 0]
    assert set(graph.subjects(LIKES, CHEESE)) == {TAREK, MICHEL, BOB}
    assert set(graph.objects(BOB)) == {CHEESE, PIZZA, MICHEL}
    assert set(graph.predicates(BOB, PIZZA)) == {HATES}
    assert (BOB, HATES, PIZZA) in graph
    assert (BOB, None, TAREK) not in graph
    assert graph.value(BOB, LIKES) == CHEESE


def test_graphs_as_sets(graph: Graph) -> None:
    other = Graph()
    other += SEVEN[:4]  # type: ignore[misc]  # triples
    graph += SEVEN[2:]  # type: ignore[misc]  # triples
    graph += other
    assert len(graph) == 7
    graph -= other
    assert set(graph) == set(SEVEN[4:])
    assert set(graph & other) == set()
    assert len(graph + other) == 7
    graph.set((BOB, HATES, TAREK))
    assert set(graph.objects(BOB, HATES)) == {TAREK}


NODES = [
    URIRef("http://e/ünïcode#x"),
    BNode("n"),
    BNode("b1"),
    Literal(""),
    Literal('a\n\t"q" \\ ü'),
    Literal("chat", lang="en-GB"),
    Literal(1),
    Literal(-5),
    Literal(1.0),
    Literal(1e10),
    Literal(Decimal("1.10")),
    Literal(True),
    Literal("1", datatype=XSD.byte),
    Literal("2020-01-01T00:00:00", datatype=XSD.dateTime),
    Literal("2020-01-01", datatype=XSD.date),
    Literal("x", datatype=E.own),
    Literal("ill", datatype=XSD.integer),
    Literal("s", datatype=XSD.string),
    Literal("<p/>", datatype=RDF.XMLLiteral),
]


@pytest.mark.parametrize("node", NODES, ids=str)
def test_every_term_comes_back_as_it_went_in(graph: Graph, node: rdflib.term.Node) -> None:
    graph.add((E.s, E.p, node))
    graph.add((BNode("s"), E.q, Literal("other")))
    assert set(graph.objects(E.s, E.p)) == {node}
    (found,) = graph.objects(E.s, E.p)
    assert type(found) is type(node)
    assert (E.s, E.p, node) in graph
    (row,) = graph.query("SELECT ?o WHERE { ?s ?p ?o FILTER(?s = <http://e/s>) }")
    assert row.o == node
    (row,) = graph.query("SELECT ?s WHERE { ?s <http://e/p> ?o }", initBindings={"o": node})
    assert row.s == E.s
    graph.remove((E.s, E.p, node))
    assert len(graph) == 1


def test_documents_and_prefixes(graph: Graph) -> None:
    graph.parse(data="@prefix ex: <http://e/> . ex:a ex:b [ ex:c ( 1 2 ) ] .", format="turtle")
    assert len(graph) == 6
    assert str(dict(graph.namespaces())["ex"]) == "http://e/"
    assert isomorphic(Graph().parse(data=graph.serialize(format="nt"), format="nt"), graph)
    assert "ex:a" in graph.serialize(format="turtle")
    assert len(list(graph.query("SELECT ?x { ex:a ex:b ?x }"))) == 1
    (node,) = graph.objects(E.a, E.b)
    assert list(Collection(graph, graph.value(node, E.c))) == [Literal(1), Literal(2)]


QUERIES = [
    "SELECT ?who ?what { ?who <http://e/likes> ?what }",
    "SELECT DISTINCT ?who { ?who ?p <http://e/pizza> OPTIONAL { ?who <http://e/hates> ?x } }",
    "SELECT ?who (COUNT(?what) AS ?n) { ?who <http://e/likes> ?what } GROUP BY ?who",
    "SELECT ?who { ?who <http://e/likes> ?x MINUS { ?who <http://e/hates> ?y } } ORDER BY DESC(?who) LIMIT 1",
    "PREFIX f: <http://e/> SELECT ?x { f:bob (f:likes|f:hates)+ ?x FILTER NOT EXISTS { ?x f:likes ?y } }",
    "ASK { <http://e/bob> <http://e/hates> ?x }",
    "ASK { <http://e/bob> <http://e/likes> <http://e/pizza> }",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_as_those_of_rdflib(graph: Graph, query: str) -> None:
    graph += SEVEN  # type: ignore[misc]  # triples
    own = graph.query(query)
    theirs = graph.query(query, use_store_provided=False)
    assert own.type == theirs.type
    if own.type == "ASK":
        assert bool(own) == bool(theirs)
    else:
        assert own.vars == theirs.vars
        assert sorted(map(tuple, own)) == sorted(map(tuple, theirs))


def test_what_our_sparql_has_not_is_rdflibs(graph: Graph) -> None:
    graph += SEVEN  # type: ignore[misc]  # triples
    made = graph.query("CONSTRUCT { ?y <http://e/liked> ?x } WHERE { ?x <http://e/likes> ?y }").graph
    assert made is not None
    assert len(made) == 5
    assert len(list(graph.query(prepareQuery("SELECT ?x { ?x ?p ?o }")))) == 7
    graph.update(
        "DELETE { ?x ?p ?o } INSERT { ?x <http://e/name> 'B' } WHERE { ?x <http://e/hates> ?y ; ?p ?o }"
    )
    assert set(graph.triples((BOB, None, None))) == {(BOB, E.name, Literal("B"))}
    graph.update("INSERT DATA { <http://e/a> <http://e/b> 01 }")
    assert len(graph) == 6


def test_it_reasons_and_takes_back() -> None:
    graph = Graph(store="dotr")
    graph.bind("ex", E)
    graph.add((E.Student, RDFS.subClassOf, FOAF.Person))
    graph.add((E.ann, RDF.type, E.Student))
    graph.add((E.knows, RDF.type, OWL.SymmetricProperty))
    graph.add((E.ann, E.knows, E.bob))
    assert (E.ann, RDF.type, FOAF.Person) in graph
    assert {row.x for row in graph.query("SELECT ?x { ?x ex:knows ?y }")} == {E.ann, E.bob}
    graph.remove((E.bob, E.knows, E.ann))
    assert (E.bob, E.knows, E.ann) in graph, "it only follows"
    graph.remove((E.ann, E.knows, None))
    assert (E.bob, E.knows, E.ann) not in graph
    assert str(graph.store.knowledge_base.explain((E.ann, RDF.type, FOAF.Person))).count("stated") == 1  # type: ignore[attr-defined]  # ours


def test_a_transaction_may_be_taken_back_or_refused() -> None:
    graph = Graph(store=Store({"contradictions": "refuse"}))
    graph.add((E.a, RDF.type, E.Room))
    graph.commit()
    graph.add((E.b, RDF.type, E.Room))
    graph.rollback()
    assert len(graph) == 1
    graph.add((E.a, RDF.type, OWL.Nothing))
    with pytest.raises(ContradictionError):
        graph.commit()
    assert set(graph) == {(E.a, RDF.type, E.Room)}


def test_it_is_saved_where_it_was_opened(tmp_path: Path) -> None:
    graph = Graph(store="dotr")
    graph.open(str(tmp_path / "graph.kb"), create=True)
    graph.add((E.a, E.b, Literal("01", datatype=XSD.integer, normalize=False)))
    graph.close(commit_pending_transaction=True)
    other = Graph(store="dotr")
    other.open(str(tmp_path / "graph.kb"))
    assert list(other) == [(E.a, E.b, Literal(1))]
    assert Graph(store="dotr").open(str(tmp_path / "none.kb")) == rdflib.store.NO_STORE
