"""What would open a connection or a file, asked through rdflib: refused, and nothing is opened."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from rdflib import Graph
from rdflib.plugins.sparql import prepareQuery, prepareUpdate

from dotr.errors import ProgramError

QUERIES = [
    "SELECT ?s { SERVICE <http://127.0.0.1:9/sparql> { ?s ?p ?o } }",
    "SELECT ?s { SERVICE SILENT <http://127.0.0.1:9/sparql> { ?s ?p ?o } }",
    "SELECT ?s { ?s ?p ?o . SERVICE ?s { ?s ?p ?o } }",
    "SELECT ?s { ?s ?p ?o FILTER EXISTS { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } }",
    "SELECT ?s { { SELECT ?s { OPTIONAL { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } } } }",
    "SELECT ?s { \\u0053ERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    "ASK { service <http://127.0.0.1:9/> { ?s ?p ?o } }",
    "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    "DESCRIBE ?s { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    "SELECT ?s FROM <http://127.0.0.1:9/data.ttl> { ?s ?p ?o }",
    "SELECT ?s FROM NAMED <http://127.0.0.1:9/data.ttl> { GRAPH ?g { ?s ?p ?o } }",
    "CONSTRUCT { ?s ?p ?o } FROM <FILE> WHERE { ?s ?p ?o }",
    "DESCRIBE ?s FROM <FILE> { ?s ?p ?o }",
    "ASK FROM <FILE> { ?s ?p ?o }",
]
UPDATES = [
    "LOAD <http://127.0.0.1:9/data.ttl>",
    "LOAD SILENT <FILE>",
    "LOAD <FILE> INTO GRAPH <urn:g>",
    "INSERT DATA { <urn:a> <urn:b> <urn:c> } ; LOAD <FILE>",
    "INSERT { ?s <urn:seen> 1 } USING <FILE> WHERE { ?s ?p ?o }",
    "INSERT { ?s <urn:seen> 1 } USING NAMED <FILE> WHERE { GRAPH ?g { ?s ?p ?o } }",
    "INSERT { ?s <urn:seen> 1 } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o . SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
]


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    def refused(*_: Any) -> None:
        raise AssertionError("a connection is opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    graph = Graph(store="dotr")
    graph.parse(data="<urn:x> <urn:p> <urn:y> .", format="turtle")
    return graph


def named(text: str, folder: Path) -> str:
    file = folder / "secret.ttl"
    file.write_text("<urn:s> <urn:of> <urn:file> .")
    return text.replace("FILE", file.as_uri())


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("parsed", [False, True])
def test_a_query_fetches_nothing(graph: Graph, tmp_path: Path, text: str, parsed: bool) -> None:
    query = named(text, tmp_path)
    before = set(graph)
    with pytest.raises(ProgramError, match="D1203"):
        list(graph.query(prepareQuery(query) if parsed else query))
    assert set(graph) == before


@pytest.mark.parametrize("text", UPDATES)
@pytest.mark.parametrize("parsed", [False, True])
def test_an_update_fetches_nothing_and_changes_nothing(
    graph: Graph, tmp_path: Path, text: str, parsed: bool
) -> None:
    update = named(text, tmp_path)
    before = set(graph)
    with pytest.raises(ProgramError, match="D1203"):
        graph.update(prepareUpdate(update) if parsed else update)
    assert set(graph) == before


def test_what_fetches_nothing_goes_on_as_before(graph: Graph) -> None:
    prefixed = "PREFIX x: <urn:from> SELECT ?from { ?from x:service ?service }"
    assert list(graph.query(prefixed)) == []
    graph.update('INSERT DATA { <urn:LOAD> <urn:p> "SERVICE FROM LOAD" }')
    assert len(graph.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }").graph) == len(graph)
    graph.update("DELETE { ?s ?p ?o } INSERT { ?s <urn:q> ?o } WHERE { ?s ?p ?o FILTER(?o = <urn:y>) }")
    assert len(list(graph.triples((None, None, None)))) == len(graph)
    with pytest.raises(Exception, match="Expected"):
        graph.query("SELECT WHERE FROM")
