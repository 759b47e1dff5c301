"""Explanations of a run that goes on: in Python, and as "because" in the lines of `dotr run --explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import rdflib

import dotr as package
from dotr.errors import UsageError
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

HELD = """PREFIX : <urn:>
HOLD :in LATEST
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
"""
PAIR = """PREFIX : <urn:>
RULE Pair DEFINE { dotr_p a :Pair } FROM B := { SELECT ?x WHERE { ?x a :B } }
AND LAST A := { SELECT ?x WHERE { ?x a :A } } WITHIN 5 s FROM B ON A.?x = B.?x
WITH ?x := B.?x
"""


def test_an_event_explains_itself_while_it_is_kept() -> None:
    engine = package.Engine.from_text(PAIR, keep="horizon")
    engine.push("<urn:o> a <urn:A> .", at=1)
    events = [*engine.push("<urn:o> a <urn:B> .", at=3), *engine.advance(3)]
    explanation = events[0].explain()
    assert str(explanation).startswith("Pair  urn:dotr:Pair:")
    assert "LAST A  @ 1   ?x :o" in str(explanation)
    assert explanation.to_dict()["steps"][0]["fact"]["values"] == {"x": "<urn:o>"}
    graph = explanation.to_rdf()
    assert (rdflib.URIRef(events[0].id), rdflib.RDF.type, rdflib.PROV.Entity) in graph
    assert "<details open>" in explanation._repr_html_()
    assert explanation.to_mermaid().startswith("flowchart TD")


def test_what_lies_behind_the_horizon_is_forgotten() -> None:
    engine = package.Engine.from_text(PAIR, keep="horizon")
    longer = package.Engine.from_text(PAIR, keep="1 h")
    events = []
    for one in (engine, longer):
        one.push("<urn:o> a <urn:A> .", at=1)
        events.append([*one.push("<urn:o> a <urn:B> .", at=3), *one.advance(3)][0])
        for time in range(10, 10 + 200):
            one.push("<urn:o> a <urn:C> .", at=time)
    record = engine.explaining._record  # type: ignore[union-attr]
    assert len(record.times()) < 80
    assert "LAST A  @ 1" in str(events[1].explain())
    record.events.clear()
    with pytest.raises(UsageError, match="D4173"):
        events[0].explain()


def test_why_not_takes_values_of_the_program_and_of_rdflib() -> None:
    engine = package.Engine.from_text(PAIR, keep="horizon")
    engine.push("<urn:o> a <urn:B> . <urn:p> a <urn:B> .", at=3)
    engine.advance(3)
    found = engine.why_not("Pair", at=3, x=":p")
    assert "Pair did not fire @ 3" in str(found)
    assert found.to_dict() == engine.why_not("Pair", at=3, x=rdflib.URIRef("urn:p")).to_dict()
    assert len(engine.why_not("Pair", at=3).to_dict()["all"]) == 2
    with pytest.raises(UsageError, match="D4172"):
        engine.why_not("Pear", at=3)
    with pytest.raises(UsageError, match="D4174"):
        engine.why_not("Pair", at=3, x="no term")


def test_an_engine_that_keeps_nothing_says_so() -> None:
    engine = package.Engine.from_text(PAIR)
    engine.push("<urn:o> a <urn:A>, <urn:B> .", at=1)
    (event,) = engine.advance(1)
    with pytest.raises(UsageError, match="D4176"):
        event.explain()
    with pytest.raises(UsageError, match="D4176"):
        engine.why_not("Pair", at=1)
    with pytest.raises(UsageError, match="D4101"):
        package.Engine.from_text(PAIR, keep="some time")


def test_what_lasts_is_explained_also_behind_a_snapshot() -> None:
    engine = package.Engine.from_text(HELD, keep="horizon")
    engine.push("<urn:a> <urn:in> <urn:r> .", at=1)
    engine.advance(1)
    state = engine.snapshot()
    again = package.Engine.from_text(HELD, keep="horizon")
    again.restore(state)
    texts = []
    for one in (engine, again):
        one.push("<urn:a> <urn:in> <urn:s> .", at=4)
        (event,) = one.advance(4)
        texts.append(str(event.explain()))
    assert "held since 1 until 4: replaced" in texts[0]
    assert "held since before what was kept until 4: replaced" in texts[1]


def test_a_run_puts_the_proof_into_each_line(dotr: Dotr, folder: Path) -> None:
    (folder / "pair.dotr").write_text(PAIR)
    lines = [{"time": t, "graph": f"<urn:o> a <urn:{k}> ."} for t, k in ((1, "A"), (3, "B"), (4, "B"))]
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    plain = dotr("run", "pair.dotr", "s.jsonl", "--format", "jsonl")
    reported = dotr("run", "pair.dotr", "s.jsonl", "--format", "jsonl", "--explain")
    assert reported.code == 0, reported.err
    found = list(map(json.loads, reported.out.splitlines()))
    for line in found:
        because = line.pop("because")
        assert because["steps"][0]["fact"]["because"][0]["place"] == "s.jsonl:1"
    assert found == list(map(json.loads, plain.out.splitlines()))
    asked = dotr("explain", "pair.dotr", "s.jsonl", "--format", "json")
    last = json.loads(reported.out.splitlines()[-1])["because"]
    assert last == {key: json.loads(asked.out)[key] for key in ("trigger", "steps")}
    refused = dotr("run", "pair.dotr", "s.jsonl", "--format", "text", "--explain")
    assert (refused.code, "D4177" in refused.err) == (2, True)
