"""What is not an error is reported all the same, whoever runs the rules: warnings, and notes of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dotr as library
from tests.batch.test_local import Serial
from tests.cli.conftest import Dotr

RULES = """PREFIX : <urn:x:>
BACKGROUND <schema.ttl>
ENTAILMENT owl2rl
RULE At
DEFINE { dotr_e a :At ; :room ?r }
FROM Place := { SELECT ?x ?rom ?r { ?x a :Watched ; :in ?r } }
WITH ?r := Place.?r
"""
SCHEMA = """@prefix : <urn:x:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:in a owl:FunctionalProperty .
:InHall owl:onProperty :in ; owl:hasValue :hall ; rdfs:subClassOf :Watched ."""
TWO = "<urn:x:a> <urn:x:in> <urn:x:hall>, <urn:x:foyer> ."
HELD = RULES.replace("ENTAILMENT", "HOLD :in FOR 1 s\nENTAILMENT")
LOG = [(1, TWO), (2, "<urn:x:b> <urn:x:in> <urn:x:hall> ."), (3, TWO)]


def write(rules: str) -> None:
    """Rules, schema and log, in the working directory."""
    Path("r.dotr").write_text(rules)
    Path("schema.ttl").write_text(SCHEMA)
    lines = [json.dumps({"time": time, "graph": graph}) + "\n" for time, graph in LOG]
    Path("log.jsonl").write_text("".join(lines))


@pytest.fixture(autouse=True, params=[RULES, HELD], ids=["", "held"])
def story(dotr: Dotr, request: pytest.FixtureRequest) -> None:
    write(request.param)


def codes(err: str) -> list[str]:
    return [line.split(":")[0] for line in err.splitlines() if line.startswith(("warning[", "info["))]


FOUND = ["warning[D1217]", "info[D2602]"]


def test_run_reports_warnings_and_what_it_finds_in_the_stream(dotr: Dotr) -> None:
    ran = dotr("run", "r.dotr", "log.jsonl")
    assert (ran.code, codes(ran.err)) == (0, FOUND)
    assert "@ 1" in ran.err
    assert len(ran.out.splitlines()) == 5


def test_feed_reports_warnings_and_what_it_finds_in_the_stream(dotr: Dotr) -> None:
    assert codes(dotr("deploy", "r.dotr").err) == FOUND[:1]
    ran = dotr("feed", "log.jsonl")
    assert (ran.code, codes(ran.err)) == (0, FOUND)


def test_batch_reports_warnings_and_what_it_finds_in_the_log(
    dotr: Dotr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    ran = dotr("batch", "r.dotr", "--log", "log.jsonl", "--engine", "local", "--out", "out")
    assert (ran.code, codes(ran.err)) == (0, FOUND)
    assert "@ 1" in ran.err


def test_an_engine_holds_them() -> None:
    engine = library.Engine("r.dotr")
    assert [d.code for d in engine.diagnostics] == ["D1217"]
    assert engine.program.warnings == tuple(engine.diagnostics)
    for time, graph in LOG:
        engine.push(graph, at=time)
    engine.finish()
    assert [d.code for d in engine.diagnostics] == ["D1217", "D2602"]
    assert engine.diagnostics[1].place == "@ 1"
