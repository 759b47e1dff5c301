"""The store for rdflib: buffered changes, terms as first written, prefixes, and what is left to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import RDF, RDFS, Graph, Literal, URIRef
from rdflib.store import NO_STORE, VALID_STORE
from rdflib.term import Variable

from dotr.knowledge_base import KnowledgeBase
from dotr.rdflib import Store

A, B, C, P = (URIRef(f"urn:x:{name}") for name in "ABCP")
XSD_INTEGER = URIRef("http://www.w3.org/2001/XMLSchema#integer")


def found(store: Store, *pattern: object) -> list[object]:
    return [triple for triple, _ in store.triples(pattern or (None, None, None))]  # type: ignore[arg-type]  # tests


def test_changes_wait_until_the_graph_is_read_the_last_of_a_triple_counts() -> None:
    store = Store()
    store.add((A, P, B))
    store.add((A, P, C))
    store.remove((A, P, B))
    store.rollback()
    assert len(store) == 0
    store.add((A, P, B))
    store.remove((A, P, B))
    store.remove((A, P, C))
    store.add((A, P, C))
    assert found(store) == [(A, P, C)]
    store.rollback()
    assert found(store) == [(A, P, C)], "it was read"


def test_a_removal_by_pattern_takes_what_is_stated_not_what_is_derived() -> None:
    store = Store()
    store.add((B, RDFS.subClassOf, C))
    store.add((A, RDF.type, B))
    assert (A, RDF.type, C) in found(store, A, None, None)
    store.remove((A, RDF.type, C))
    assert (A, RDF.type, C) in found(store, A, None, None)
    store.remove((A, None, None))
    assert found(store, A, RDF.type, None) == []


def test_a_literal_comes_back_as_it_was_first_written() -> None:
    store = Store()
    written, other = Literal("01", datatype=XSD_INTEGER), Literal("1", datatype=XSD_INTEGER)
    store.add((A, P, written))
    store.add((A, P, other))
    ((_, _, back),) = found(store, A, P, None)  # type: ignore[misc]
    assert back.n3() == written.n3()  # type: ignore[has-type]
    assert found(store, A, P, other) == found(store, A, P, None)
    assert found(store, Literal("x"), None, None) == []


def test_a_binding_is_one_to_one() -> None:
    store = Store()
    store.bind("a", A)
    store.bind("b", A)
    assert (store.prefix(A), store.namespace("a"), store.namespace("b")) == ("b", None, A)
    store.bind("b", B, override=False)
    store.bind("c", A, override=False)
    assert list(store.namespaces()) == [("b", A)]
    store.bind("b", B)
    assert (store.prefix(A), store.prefix(B)) == (None, "b")


def test_queries_are_answered_here_or_left_to_rdflib() -> None:
    store = Store()
    store.bind("x", URIRef("urn:x:"))
    store.add((A, P, B))
    rows = store.query("SELECT ?o WHERE { ?s x:P ?o }", {}, {"s": A}, None)
    assert rows.bindings == [{Variable("o"): B}]
    assert store.query("ASK { x:A y:P ?o }", {"y": "urn:x:"}, {}, None).askAnswer is True
    construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    for left in (construct, "SELECT nonsense", "SELECT ?o { GRAPH ?g { ?s ?p ?o } }"):
        with pytest.raises(NotImplementedError):
            store.query(left, {}, {}, None)
    graph = Graph(store=store)
    assert len(graph.query(construct).graph or ()) == 1  # type: ignore[union-attr]


def test_what_was_committed_is_saved_at_its_path(tmp_path: Path) -> None:
    path = str(tmp_path / "kb")
    store = Store()
    assert store.open(path) == NO_STORE
    assert store.open(path, create=True) == VALID_STORE
    store.add((A, P, B))
    store.commit()
    store.add((A, P, C))
    store.close()
    again = Store()
    assert again.open(path) == VALID_STORE
    assert found(again) == [(A, P, B)]
    again.add((A, P, C))
    again.close(commit_pending_transaction=True)
    third = Store()
    third.open(path)
    assert len(third) == 2
    third.destroy(path)
    assert len(third) == 0


def test_a_store_over_a_knowledge_base_shows_its_triples() -> None:
    kb = KnowledgeBase(terms="canonical", blank_nodes="label")
    store = Store.over(kb)
    store.add((A, P, B))
    assert len(kb) == 0
    assert store.knowledge_base is kb
    assert len(kb) == 1, "asking for it commits"
