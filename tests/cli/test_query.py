"""`dotr query`: what holds at one time, and in the background alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Dotr


@pytest.fixture(autouse=True)
def queries(folder: Path) -> None:
    (folder / "where.rq").write_text("SELECT ?x ?room { ?x :is_in_room ?room }")
    (folder / "hot.rq").write_text("ASK { ?r :val ?v FILTER(?v > 60) }")
    (folder / "now.rq").write_text("SELECT (NOW() AS ?now) {}")


def test_the_background_is_closed_and_prefixes_are_the_programs(dotr: Dotr) -> None:
    ran = dotr("query", "fire.dotr", "where.rq", "--format", "text")
    assert ran.out == "?x     ?room\n:locA  :roomA\n:locB  :roomA\n"


def test_an_instant_is_enriched(dotr: Dotr) -> None:
    ran = dotr("query", "fire.dotr", "events", "--at", "10", "where.rq")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["x"]["value"].rpartition("#")[2] for row in rows] == ["locA", "locB", "s1"]
    assert rows[0]["room"] == {"type": "uri", "value": "http://example.org/building#roomA"}


def test_the_answer_of_an_ask_is_the_exit_code(dotr: Dotr) -> None:
    assert dotr("query", "fire.dotr", "events", "--at", "10", "hot.rq")[:2] == (0, '{"boolean":true}\n')
    assert dotr("query", "fire.dotr", "events", "--at", "12", "hot.rq", "--format", "text")[:2] == (
        1,
        "false\n",
    )


def test_an_instant_without_graph_is_the_background_with_a_note(dotr: Dotr) -> None:
    ran = dotr("query", "fire.dotr", "events", "--at", "11", "where.rq")
    assert ran.out.count("\n") == 2
    assert "no graph came at 11" in ran.err


def test_rules_may_be_datalog_or_plain_rdf(dotr: Dotr) -> None:
    absolute = "SELECT ?x { ?x <http://example.org/building#is_in_room> ?y }"
    Path("q.rq").write_text(absolute)
    assert dotr("query", "building.ttl", "q.rq").out.count("\n") == 2
    assert dotr("query", "rooms.dlog", "--background", "building.ttl", "q.rq").out.count("\n") == 2


def test_now_is_the_instant_and_needs_one(dotr: Dotr) -> None:
    out = dotr("query", "fire.dotr", "events", "--at", "10", "now.rq").out
    assert json.loads(out)["now"]["value"] == "10"
    assert dotr("query", "fire.dotr", "now.rq").code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fire.dotr", "events", "where.rq"), 2),
        (("fire.dotr", "--at", "10", "where.rq"), 2),
        (("fire.dotr", "events", "--at", "noon", "where.rq"), 2),
        (("fire.dotr", "events", "--at", "2026-01-01T00:00:00Z", "where.rq"), 3),
        (("fire.dotr", "none.rq"), 3),
        (("fire.dotr", "fire.dotr"), 3),
    ],
)
def test_bad_questions_are_refused(dotr: Dotr, arguments: tuple[str, ...], code: int) -> None:
    ran = dotr("query", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert "rror" in ran.err
    assert "Traceback" not in ran.err


def test_entailment_holds_in_queries_too(dotr: Dotr) -> None:
    Path("onto.ttl").write_text(
        "PREFIX : <urn:x:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        ":Lab rdfs:subClassOf :Room . :in rdfs:range :Lab ."
    )
    Path("onto.dotr").write_text("PREFIX : <urn:x:> BACKGROUND <onto.ttl> ENTAILMENT rdfs")
    Path("1.ttl").write_text("<urn:x:ann> <urn:x:in> <urn:x:lab1> .")
    Path("rooms.rq").write_text("SELECT ?r { ?r a :Room }")
    ran = dotr("query", "onto.dotr", "1.ttl", "--at", "1", "rooms.rq", "--format", "text", "--verify")
    assert ran.out == "?r\n:lab1\n"


def test_refused_documents_go_where_they_are_asked_to(dotr: Dotr) -> None:
    Path("log.jsonl").write_text('{"time": 10, "graph": ""}\nnonsense\n')
    ran = dotr("query", "fire.dotr", "log.jsonl", "--at", "10", "hot.rq", "--on-error", "file=dead.jsonl")
    assert (ran.code, json.loads(Path("dead.jsonl").read_text())["document"]) == (1, "nonsense")
    assert "1 document refused" in ran.err


def test_a_query_may_be_given_as_text(dotr: Dotr) -> None:
    asked = "SELECT ?x { ?x :is_in_room :roomA }"
    assert dotr("query", "fire.dotr", asked, "--format", "text").out == "?x\n:locA\n:locB\n"


def test_a_query_of_the_rules_is_asked_by_its_name(dotr: Dotr) -> None:
    ran = dotr("query", "fire.dotr", "events", "--at", "12", "--query", "Fire.Smoke", "--format", "text")
    assert ran.out == "?room\n:roomA\n"
    ran = dotr("query", "fire.dotr", "events", "--at", "12", "--query", "Fire.Smok")
    assert ran.code == 2
    assert "D4179" in ran.err
    assert "did you mean `Fire.Smoke`?" in ran.err


def test_a_construct_gives_a_graph_in_the_form_of_the_name(dotr: Dotr, folder: Path) -> None:
    asked = "CONSTRUCT { ?room :has ?x } WHERE { ?x :is_in_room ?room }"
    assert ":roomA :has :locA .\n:roomA :has :locB .\n" in dotr("query", "fire.dotr", asked).out
    assert dotr("query", "fire.dotr", asked, "-o", "k.nt").code == 0
    lines = (folder / "k.nt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("<http://example.org/building#roomA> ")
    assert dotr("query", "fire.dotr", asked, "-o", "k.ttl").code == 0
    assert (folder / "k.ttl").read_text(encoding="utf-8") == dotr("query", "fire.dotr", asked).out
    refused = dotr("query", "fire.dotr", asked, "-o", "k.jsonl")
    assert (refused.code, "D4151" in refused.err) == (2, True)
    refused = dotr("query", "fire.dotr", "SELECT * { ?s ?p ?o }", "-o", "k2.ttl")
    assert (refused.code, "D4151" in refused.err) == (2, True)


def test_a_description_goes_on_through_blank_nodes(dotr: Dotr, folder: Path) -> None:
    (folder / "b.ttl").write_text("<urn:a> <urn:p> [ <urn:q> [ <urn:r> 1 ] ] . <urn:z> <urn:p> <urn:a> .")
    out = dotr("query", "b.ttl", "DESCRIBE <urn:a>", "--format", "ntriples").out
    assert out.count("\n") == 3
    assert "urn:z" not in out


@pytest.mark.parametrize("word", ["SERVICE <urn:s> { ?s ?p ?o }", "BIND(NOW() AS ?o)"])
def test_a_graph_is_made_of_the_state_alone(dotr: Dotr, word: str) -> None:
    ran = dotr("query", "fire.dotr", f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?x {word} }}")
    assert (ran.code, "D4178" in ran.err) == (2, True)
    assert "D1201" in dotr("query", "fire.dotr", "CONSTRUCT { ?s ?p } WHERE").err


def test_rows_are_written_as_tables(dotr: Dotr, folder: Path) -> None:
    (folder / "some.rq").write_text(
        "SELECT ?x ?room ?none { ?x :is_in_room ?room OPTIONAL { ?x :none ?none } }"
    )
    building = "http://example.org/building#"
    header, *rows = dotr("query", "fire.dotr", "some.rq", "--format", "csv").out.splitlines()
    assert (header, rows[0]) == ("x,room,none", f"{building}locA,{building}roomA,")
    assert dotr("query", "fire.dotr", "some.rq", "-o", "x.csv").code == 0
    assert (folder / "x.csv").read_text().splitlines() == [header, *rows]
    assert dotr("query", "fire.dotr", "some.rq", "-o", "x.parquet").code == 0
    first = pq.read_table(folder / "x.parquet").to_pylist()[0]
    assert first == {"x": f"<{building}locA>", "room": f"<{building}roomA>", "none": None}
    assert dotr("query", "fire.dotr", "some.rq", "-o", "x.parquet").code == 5
    (folder / "empty.rq").write_text("SELECT ?x { ?x :none ?none }")
    assert dotr("query", "fire.dotr", "empty.rq", "-o", "empty.parquet").code == 0
    assert pq.read_table(folder / "empty.parquet").column_names == ["x"]


@pytest.mark.parametrize("wanted", [("--format", "csv"), ("-o", "x.parquet")])
def test_an_ask_has_no_table(dotr: Dotr, wanted: tuple[str, str]) -> None:
    ran = dotr("query", "fire.dotr", "events", "--at", "10", "hot.rq", *wanted)
    assert (ran.code, "D4151" in ran.err) == (2, True)


def test_parquet_of_rows_needs_a_file(dotr: Dotr) -> None:
    assert "D4151" in dotr("query", "fire.dotr", "where.rq", "--format", "parquet").err


HELD = """PREFIX : <urn:>
HOLD :in LATEST
RULES <up.dlog>
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
"""


@pytest.fixture
def deployed(dotr: Dotr, folder: Path) -> None:
    (folder / "held.dotr").write_text(HELD)
    (folder / "up.dlog").write_text("PREFIX : <urn:>\n:within(?x, ?y) :- :in(?x, ?y) .\n")
    moves = [{"time": t, "graph": f"<urn:a{t % 3}> <urn:in> <urn:r{t}> ; <urn:seen> {t} ."} for t in range(9)]
    (folder / "moves.jsonl").write_text("".join(f"{json.dumps(move)}\n" for move in moves))
    assert dotr("deploy", "held.dotr", "--keep", "1h").code == 0


def test_a_deployment_is_asked_what_holds_at_its_last_commit(dotr: Dotr, deployed: None) -> None:
    asked = "SELECT ?x ?y { ?x :within ?y }"
    assert dotr("query", "--dir", ".dotr", asked, "--format", "text").out == "?x  ?y\n"
    assert dotr("feed", "moves.jsonl", "-q").code == 0
    ran = dotr("query", "--dir", ".dotr", asked, "--format", "text")
    assert (ran.code, ran.out) == (0, "?x   ?y\n:a0  :r6\n:a1  :r7\n:a2  :r8\n")
    same = dotr("query", "--dir", ".dotr", "--query", "In", "--format", "text")
    assert same.out == ran.out
    now = dotr("query", "--dir", ".dotr", "SELECT (NOW() AS ?now) {}", "--format", "csv")
    assert now.out == "now\n8\n"
    assert dotr("query", "--dir", ".dotr", "ASK { :a0 :in :r5 }").code == 1
    assert dotr("query", "--dir", ".dotr", "ASK { ?x :seen ?when }").code == 1  # of single instants
    graph = dotr(
        "query", "--dir", ".dotr", "CONSTRUCT { ?y :has ?x } WHERE { ?x :in ?y }", "--format", "ntriples"
    )
    assert graph.out == "".join(f"<urn:r{n + 6}> <urn:has> <urn:a{n}> .\n" for n in range(3))
    assert "<urn:r6>" not in dotr("query", "--dir", ".dotr", "DESCRIBE :a1").out


def test_a_deployment_is_asked_of_an_instant_as_its_sources_are(dotr: Dotr, deployed: None) -> None:
    assert dotr("feed", "moves.jsonl", "-q").code == 0
    for query in ("SELECT ?x ?y ?t { ?x :within ?y OPTIONAL { ?x :seen ?t } }", "ASK { ?x :seen 4 }"):
        for at in ("3", "4"):
            mine = dotr("query", "--dir", ".dotr", "--at", at, query)
            assert mine[:2] == dotr("query", "held.dotr", "moves.jsonl", "--at", at, query)[:2]
    assert dotr("deploy", "held.dotr", "--keep", "0s").code == 0
    again = dotr("query", "--dir", ".dotr", "--at", "4", "ASK { ?x :seen 4 }")  # the sources are read again
    assert (again.code, again.err) == (0, "")
    Path("moves.jsonl").unlink()
    assert "D4189" in dotr("query", "--dir", ".dotr", "--at", "4", "ASK { ?x :seen 4 }").err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "name one query"),
        (("moves.jsonl", "ASK {}"), "name one query"),
        (("ASK {}", "--query", "In"), "name one query"),
        (("ASK {}", "--background", "building.ttl"), "D4171"),
        (("ASK {}", "--verify"), "D4171"),
        (("ASK {}", "--at", "9"), "D4198"),
        (("ASK {}", "--at", "2026-01-01T00:00:00Z"), "D4111"),
        (("--query", "Inn"), "D4179"),
        (("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", "--budget", "300"), "D4132"),
        (("INSERT DATA { :a :b :c }",), "D1202"),
        (("ASK {}", "--format", "csv"), "D4151"),
    ],
)
def test_bad_questions_to_a_deployment_are_refused(
    dotr: Dotr, deployed: None, arguments: tuple[str, ...], code: str
) -> None:
    assert dotr("feed", "moves.jsonl", "-q").code == 0
    ran = dotr("query", "--dir", ".dotr", *arguments)
    assert ran.code > 1
    assert code in ran.err
    assert "D5201" in dotr("query", "--dir", "none", "ASK {}").err
