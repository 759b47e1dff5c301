"""/v1/sparql by the SPARQL 1.1 Protocol, and as the SERVICE of other engines: rdflib and Apache Jena.

Jena comes from Maven's repository; it is kept in the user's cache.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyoxigraph as ox
import pytest
import rdflib

from .servers import Server, serving

RULES = """PREFIX : <urn:x:>
HOLD :in LATEST
RULE Came DEFINE { dotr_c a :Arrival ; :of ?who } FROM In := ISTREAM { SELECT ?who { ?who :in ?room } }
WITH ?who := In.?who
"""
ROWS = "SELECT ?who ?room { ?who <urn:x:in> ?room } ORDER BY ?who"
FORM = {"content-type": "application/x-www-form-urlencoded"}
QUERY = {"content-type": "application/sparql-query"}
JENA = "org.apache.jena:jena-cmds:4.10.0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), RULES) as one:
        graph = '<urn:x:ann> <urn:x:in> <urn:x:r1> . <urn:x:bob> <urn:x:in> "the \\"attic\\", ü"@en .'
        lines = [
            json.dumps({"time": time, "graph": graph if time == 1 else "[] a <urn:x:Tick> ."})
            for time in (1, 2, 3)
        ]
        one.post(lines, wait="committed")
        yield one


def test_a_query_is_sent_in_three_ways(server: Server) -> None:
    client = server.client
    answers = [
        client.get("/v1/sparql", params={"query": ROWS}),
        client.post("/v1/sparql", data={"query": ROWS}),
        client.post("/v1/sparql", content=ROWS.encode(), headers=QUERY),
        client.post(
            "/v1/sparql",
            content=ROWS.encode(),
            headers={"content-type": "application/sparql-query; charset=utf-8"},
        ),
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].headers["content-type"] == "application/sparql-results+json"


@pytest.mark.parametrize(
    ("media", "format_"),
    [
        ("application/sparql-results+json", ox.QueryResultsFormat.JSON),
        ("application/sparql-results+xml", ox.QueryResultsFormat.XML),
        ("text/tab-separated-values", ox.QueryResultsFormat.TSV),
    ],
)
def test_solutions_come_in_every_format(server: Server, media: str, format_: ox.QueryResultsFormat) -> None:
    answer = server.client.get("/v1/sparql", params={"query": ROWS}, headers={"accept": media})
    assert answer.headers["content-type"].partition(";")[0] == media
    read = ox.parse_query_results(answer.content, format=format_)
    assert isinstance(read, ox.QuerySolutions)
    assert [(str(row["who"]), str(row["room"])) for row in read] == [
        ("<urn:x:ann>", "<urn:x:r1>"),
        ("<urn:x:bob>", '"the \\"attic\\", ü"@en'),
    ]


def test_csv_is_that_of_the_recommendation(server: Server) -> None:
    answer = server.client.get("/v1/sparql", params={"query": ROWS}, headers={"accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert rows == [["who", "room"], ["urn:x:ann", "urn:x:r1"], ["urn:x:bob", 'the "attic", ü']]
    assert answer.text.count("\r\n") == 3


@pytest.mark.parametrize(
    ("media", "format_"),
    [
        ("text/turtle", ox.RdfFormat.TURTLE),
        ("application/n-triples", ox.RdfFormat.N_TRIPLES),
        ("application/ld+json", ox.RdfFormat.JSON_LD),
        ("application/rdf+xml", ox.RdfFormat.RDF_XML),
    ],
)
@pytest.mark.parametrize(
    "query", ["CONSTRUCT WHERE { ?who <urn:x:in> ?room }", "DESCRIBE <urn:x:ann> <urn:x:bob>"]
)
def test_graphs_come_in_every_format(server: Server, media: str, format_: ox.RdfFormat, query: str) -> None:
    answer = server.client.get("/v1/sparql", params={"query": query}, headers={"accept": media})
    assert answer.headers["content-type"].partition(";")[0] == media
    assert len(list(ox.parse(answer.content, format=format_))) == 2


@pytest.mark.parametrize("media", ["application/sparql-results+json", "application/sparql-results+xml"])
def test_booleans_come_in_every_format(server: Server, media: str) -> None:
    kind = ox.QueryResultsFormat.JSON if "json" in media else ox.QueryResultsFormat.XML
    for query, expected in (("ASK { <urn:x:ann> ?p ?o }", True), ("ASK { <urn:x:eve> ?p ?o }", False)):
        answer = server.client.get("/v1/sparql", params={"query": query}, headers={"accept": media})
        read = ox.parse_query_results(answer.content, format=kind)
        assert isinstance(read, ox.QueryBoolean)
        assert bool(read) is expected


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", "application/sparql-results+json"),
        ("text/*", "text/csv"),
        ("application/xml;q=0.2, text/csv;q=0.1", "application/xml"),
        ("text/csv;q=0, text/tab-separated-values", "text/tab-separated-values"),
        ("application/sparql-results+xml, application/rdf+xml;q=0.9", "application/sparql-results+xml"),
    ],
)
def test_accept_chooses(server: Server, accept: str, media: str) -> None:
    answer = server.client.get("/v1/sparql", params={"query": ROWS}, headers={"accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == media


def test_without_a_query_it_describes_itself(server: Server) -> None:
    for path, base in (("/v1/sparql", server.url),):
        answer = server.client.get(path, headers={"accept": "text/turtle"})
        graph = rdflib.Graph().parse(data=answer.text, format="turtle")
        sd = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
        assert [str(found) for found in graph.objects(None, sd.endpoint)] == [f"{base}/v1/sparql"]


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ({"params": {"query": "SELECT"}}, 400),
        ({"params": {"query": ROWS, "default-graph-uri": "urn:g"}}, 400),
        ({"params": [("query", ROWS), ("query", ROWS)]}, 400),
        ({"params": {"query": ROWS}, "headers": {"accept": "image/png"}}, 406),
        ({"params": {"query": "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"}}, 400),
        ({"params": {"query": "SELECT * FROM <urn:g> { ?s ?p ?o }"}}, 400),
        ({"method": "POST", "content": "update=DELETE+WHERE+%7B%7D", "headers": FORM}, 400),
        ({"method": "POST", "content": "", "headers": FORM}, 400),
        ({"method": "POST", "content": ROWS, "headers": {"content-type": "application/sparql-update"}}, 415),
        ({"method": "POST", "content": ROWS, "headers": {"content-type": "text/plain"}}, 415),
        ({"method": "POST", "content": b"\xff\xfe", "headers": QUERY}, 400),
        ({"method": "PUT", "content": ROWS, "headers": QUERY}, 405),
        ({"params": {"query": "ASK {}", "at": "99"}}, 400),
    ],
)
def test_errors(server: Server, call: dict[str, object], status: int) -> None:
    method = str(call.get("method", "GET"))
    more = {name: value for name, value in call.items() if name != "method"}
    answer = httpx.request(method, f"{server.url}/v1/sparql", trust_env=False, **more)  # type: ignore[arg-type]  # of the table
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"].startswith("D")


def federated(server: Server) -> str:
    return (
        "PREFIX : <urn:y:> SELECT ?name ?room "
        f"{{ ?who :name ?name SERVICE <{server.url}/v1/sparql> {{ ?who <urn:x:in> ?room }} }} ORDER BY ?name"
    )


LOCAL = '<urn:x:ann> <urn:y:name> "Ann" . <urn:x:bob> <urn:y:name> "Bob" . <urn:x:eve> <urn:y:name> "Eve" .'


def test_rdflib_asks_it_as_a_service(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    graph = rdflib.Graph().parse(data=LOCAL, format="turtle")
    found = [(str(row[0]), str(row[1])) for row in graph.query(federated(server))]
    assert found == [("Ann", "urn:x:r1"), ("Bob", 'the "attic", ü')]


@pytest.fixture(scope="module")
def jena() -> list[str]:
    """How Jena's programs are called."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        pytest.skip("Jena needs java and mvn")
    jars = Path.home() / ".cache" / "dotr-tests" / JENA.replace(":", "-")
    if not jars.exists():
        group, artifact, version = JENA.split(":")
        made = jars.with_suffix(f".{os.getpid()}")
        made.mkdir(parents=True)
        (made / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>dotr</groupId><artifactId>peer</artifactId><version>1</version><dependencies><dependency>"
            f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            "</dependency></dependencies></project>"
        )
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        fetched = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=600, check=False)
        if fetched.returncode:
            shutil.rmtree(made)
            pytest.skip(f"Maven cannot fetch {JENA}: {fetched.stdout[:300]}")
        made.rename(jars)
    return [java, "-cp", f"{jars}/jars/*"]


def test_jena_asks_it_as_a_service(server: Server, jena: list[str], tmp_path: Path) -> None:
    (tmp_path / "local.ttl").write_text(LOCAL)
    (tmp_path / "what.rq").write_text(federated(server))
    command = [*jena, "arq.sparql", "--data=local.ttl", "--query=what.rq", "--results=csv"]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert asked.returncode == 0, asked.stderr
    rows = list(csv.reader(io.StringIO(asked.stdout)))
    assert rows == [["name", "room"], ["Ann", "urn:x:r1"], ["Bob", 'the "attic", ü']]


@pytest.mark.parametrize("media", ["xml", "json"])
def test_jena_reads_its_answers(server: Server, jena: list[str], tmp_path: Path, media: str) -> None:
    command = [*jena, "arq.rsparql", f"--service={server.url}/v1/sparql", f"--results={media}", ROWS]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert asked.returncode == 0, asked.stderr
    kind = ox.QueryResultsFormat.XML if media == "xml" else ox.QueryResultsFormat.JSON
    read = ox.parse_query_results(asked.stdout, format=kind)
    assert isinstance(read, ox.QuerySolutions)
    assert [str(row["who"]) for row in read] == ["<urn:x:ann>", "<urn:x:bob>"]
