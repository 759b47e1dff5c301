"""`dotr query`: what holds at one time, and in the background alone."""

from __future__ import annotations

import json
from pathlib import Path

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
