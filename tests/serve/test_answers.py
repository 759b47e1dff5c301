"""What a deployment answers from its journal: as the literal reading has it, at every watermark."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyoxigraph as ox
import pytest

from dotr.enrich.owl import rules_over
from dotr.errors import DotrError
from dotr.events import Message
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.reference.enrich import LiteralEnricher, quad
from dotr.reference.lasting import LiteralStatements
from dotr.serve.answers import (
    Answers,
    difference_lines,
    negotiated,
    request_of,
    snapshot_lines,
)
from dotr.service import journal
from dotr.service.journal import Journal
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <near.dlog>
HOLD :in LATEST FOR 40 s
HOLD :warm FOR 7 s
HOLD :due FROM :from UNTIL :until
QUERY In := { SELECT ?x ?y WHERE { ?x :inside ?y } }
QUERY Many := { SELECT ?y (COUNT(?x) AS ?n) WHERE { ?x :in ?y } GROUP BY ?y }
QUERY When := { SELECT ?x (NOW() AS ?now) WHERE { ?x :warm true } }
RULE Left DEFINE { dotr_l a :Left ; :who ?x } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
"""
NEAR = """PREFIX : <urn:>
:inside(?x, ?r) :- :in(?x, ?r) .
:inside(?x, ?b) :- :inside(?x, ?r), :of(?r, ?b) .
:alone(?x, ?r) :- :in(?x, ?r), NOT :warm(?r, true) .
"""
MAP = "".join(f"<urn:r{n}> <urn:of> <urn:f{n % 2}> .\n" for n in range(6)) + "<urn:f0> <urn:of> <urn:b> .\n"
QUERIES = [
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "PREFIX : <urn:> SELECT ?x ?y { ?x :inside ?y OPTIONAL { ?x :alone ?r } } ORDER BY DESC(?y) ?x LIMIT 7",
    "PREFIX : <urn:> SELECT ?y (COUNT(*) AS ?n) { ?x :inside ?y } GROUP BY ?y",
    "PREFIX : <urn:> SELECT ?x { ?x :in/:of+ :b MINUS { ?x :alone ?r } }",
    "PREFIX : <urn:> ASK { ?x :alone :r1 }",
    "PREFIX : <urn:> CONSTRUCT { ?y :holds ?x } { ?x :inside ?y }",
    "PREFIX : <urn:> DESCRIBE :a1 ?r { ?r :of :f1 }",
]


def stream(seed: int, count: int) -> list[dict[str, Any]]:
    random_ = random.Random(seed)
    lines: list[dict[str, Any]] = []
    for n in range(count):
        graph = f"<urn:a{random_.randrange(5)}> <urn:in> <urn:r{random_.randrange(6)}> ."
        if random_.random() < 0.4:
            graph += f" <urn:r{random_.randrange(6)}> <urn:warm> true ; <urn:seen> [ <urn:by> {n} ] ."
        if random_.random() < 0.3:
            start = 3 * n + random_.randrange(9)
            graph += f" <urn:r{n % 3}> <urn:due> <urn:f1> ; <urn:from> {start} ; <urn:until> {start + 8} ."
        line: dict[str, Any] = {"time": 3 * n + 1, "graph": graph}
        if random_.random() < 0.2:
            line["delete"] = f"<urn:r{random_.randrange(6)}> <urn:of> <urn:f{random_.randrange(2)}> ."
        if random_.random() < 0.2:
            line["insert"] = f"<urn:r{random_.randrange(6)}> <urn:of> <urn:f{random_.randrange(2)}> ."
        lines.append(line)
    return lines


class Literally:
    """Owns every statement that the lines so far made."""

    def __init__(self) -> None:
        self.program: Program = load_program(["town.dotr"], read_rules_text)
        self.background = [
            (str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(path="map.ttl")
        ]
        self.made = LiteralStatements.of(self.background)

    def take(self, line: dict[str, Any]) -> None:
        parts = [_read(line[name]) if name in line else None for name in ("graph", "insert", "delete")]
        self.made, _ = self.made.after(line["time"] * 1_000_000, [Message(*parts)], self.program.holds)

    def state(self, time: int, graph: str = "") -> set[Triple]:
        stated = self.made.at(time * 1_000_000) | set(_read(graph))
        return set(LiteralEnricher(rules_over(self.program, stated), stated).state(()))


def _read(text: str | bytes, format_: ox.RdfFormat = ox.RdfFormat.TURTLE) -> list[Triple]:
    found = ox.parse(text, format=format_)
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in found]


def expected(query: str, state: set[Triple]) -> object:
    """What the full engine answers, without the names of blank nodes."""
    store = ox.Store()
    store.bulk_extend(map(quad, state))
    found = store.query(query)
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    rows = [[_unnamed(term) for term in row] for row in found]
    return rows if "ORDER BY" in query else sorted(rows)


def _unnamed(term: object) -> str:
    return "_:" if isinstance(term, ox.BlankNode) else "" if term is None else str(term)


def answered(answers: Answers, query: str, at: str | None = None) -> object:
    found = answers.sparql(query, at)
    if found.media_type == "text/turtle":
        graph = ox.parse(found.content, format=ox.RdfFormat.TURTLE)
        return sorted([_unnamed(q.subject), _unnamed(q.predicate), _unnamed(q.object)] for q in graph)
    results = ox.parse_query_results(found.content, format=ox.QueryResultsFormat.JSON)
    if isinstance(results, ox.QueryBoolean):
        return bool(results)
    rows = [[_unnamed(term) for term in row] for row in results]
    return rows if "ORDER BY" in query else sorted(rows)


@pytest.fixture
def town(dotr: Dotr, folder: Path) -> Path:
    (folder / "town.dotr").write_text(RULES)
    (folder / "near.dlog").write_text(NEAR)
    (folder / "map.ttl").write_text(MAP)
    return folder


def fed(dotr: Dotr, lines: list[dict[str, Any]], name: str = "s.jsonl") -> None:
    Path(name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ran = dotr("feed", name, "-q", "--commit-graphs", "3")
    assert ran.code == 0, ran.err


def told(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    """Let every feed of this process tell of its commits."""
    follower = Mock()
    answers.knowledge.attach(follower)
    monkeypatch.setattr(journal, "_unfollowed", follower.follower)


@pytest.mark.parametrize("seed", range(4))
def test_queries_are_answered_as_the_literal_reading_at_every_commit(
    dotr: Dotr, town: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    answers, literally = Answers(".dotr"), Literally()
    if seed % 2:
        told(monkeypatch, answers)
    assert answered(answers, QUERIES[0]) == expected(QUERIES[0], literally.state(-1))
    assert answers.sparql(QUERIES[0]).watermark is None
    lines = stream(seed, 40)
    for start in range(0, 40, 8):
        fed(dotr, lines[start : start + 8], f"{start}.jsonl")
        for line in lines[start : start + 8]:
            literally.take(line)
        now = lines[start + 7]["time"]
        state = literally.state(now)
        for query in QUERIES:
            assert answered(answers, query) == expected(query, state), query
            assert answered(Answers(".dotr"), query) == expected(query, state), query
        assert answers.sparql(QUERIES[0]).watermark == str(now)


SCHEMA = """PREFIX : <urn:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
:in rdfs:subPropertyOf :inside ; rdfs:domain :Person ; rdfs:range :Room . :Room rdfs:subClassOf :Place .
:knows a owl:SymmetricProperty , owl:TransitiveProperty .
"""
HALLS = "<urn:r1> a <urn:Hall> . <urn:Hall> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Place> ."


def with_schema(seed: int, count: int) -> list[dict[str, Any]]:
    """People meet, turn out to be the same, and rooms become halls, for a while."""
    random_ = random.Random(seed)
    lines = []
    for n in range(count):
        a, b, c = (f"<urn:a{random_.randrange(5)}>" for _ in range(3))
        graph = f"{a} <urn:in> <urn:r{random_.randrange(6)}> ."
        graph += f" {b} <urn:knows> {c} ." if random_.random() < 0.4 else ""
        graph += f" {a} <http://www.w3.org/2002/07/owl#sameAs> {b} ." if random_.random() < 0.15 else ""
        halls = {name: HALLS for name in ("insert", "delete") if random_.random() < 0.15}
        lines.append({"time": 3 * n + 1, "graph": graph, **halls})
    return lines


@pytest.mark.parametrize("entailment", ["rdfs", "owl2rl"])
@pytest.mark.parametrize("seed", range(2))
def test_what_follows_by_an_ontology_is_followed_too(
    dotr: Dotr, town: Path, seed: int, entailment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = "PREFIX owl: <http://www.w3.org/2002/07/owl#>\nHOLD :knows FOR 20 s\nHOLD owl:sameAs FOR 15 s\n"
    (town / "town.dotr").write_text(RULES.replace("HOLD :in", f"ENTAILMENT {entailment}\n{same}HOLD :in"))
    (town / "near.dlog").write_text("\n".join(line for line in NEAR.splitlines() if "NOT" not in line))
    (town / "map.ttl").write_text(SCHEMA)
    assert dotr("deploy", "town.dotr").code == 0
    answers, literally, lines = Answers(".dotr"), Literally(), with_schema(seed, 24)
    if seed % 2:
        told(monkeypatch, answers)
    with answers.watch("In") as watch:
        known = Counter(dict(watch.snapshot))
        for start in range(0, 24, 6):
            fed(dotr, lines[start : start + 6], f"{start}.jsonl")
            for line in lines[start : start + 6]:
                literally.take(line)
            state = literally.state(lines[start + 5]["time"])
            assert answered(answers, QUERIES[0]) == expected(QUERIES[0], state)
            known.update(dict(watch.changes().rows))
            assert +known == Counter(dict(answers.watch("In").snapshot))


def test_an_instant_that_is_kept_is_that_of_the_literal_reading(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr", "--keep", "1h").code == 0
    lines, answers = stream(7, 60), Answers(".dotr")
    fed(dotr, lines)
    literally = Literally()
    for line in lines:
        literally.take(line)
        if line["time"] % 5 == 1:
            state = literally.state(line["time"], line["graph"])
            for query in QUERIES[:4]:
                assert answered(answers, query, str(line["time"])) == expected(query, state), line
            between = literally.state(line["time"] + 1)
            if line is not lines[-1]:
                assert answered(answers, QUERIES[0], str(line["time"] + 1)) == expected(QUERIES[0], between)


def test_only_what_is_kept_can_be_asked(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    answers = Answers(".dotr")
    assert refused(lambda: answers.sparql("ASK {}", "3")) == "D4189"
    assert refused(lambda: answers.sparql("SELECT (NOW() AS ?n) {}")) == "D4112"
    fed(dotr, stream(1, 20))
    assert refused(lambda: answers.sparql("ASK {}", "3")) == "D4189"
    assert refused(lambda: answers.why("urn:dotr:Left:x")) == "D4189"
    assert refused(lambda: answers.sparql("ASK {}", "3000")) == "D4198"
    assert refused(lambda: answers.sparql("ASK {}", "noon")) == "D4111"
    assert refused(lambda: answers.sparql("ASK {}", "2026-01-01T00:00:00Z")) == "D4111"
    assert dotr("deploy", "town.dotr", "--keep", "8s").code == 0
    late = [{**line, "time": line["time"] + 100} for line in stream(1, 400)]
    fed(dotr, late, "late.jsonl")
    assert refused(lambda: answers.sparql("ASK {}", "110")) == "D4198"
    assert answers.sparql("ASK { ?x <urn:in> ?y }", str(late[-2]["time"])).content.endswith(b"true}\n")


def refused(call: Any) -> str:
    with pytest.raises(DotrError) as found:
        call()
    return found.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("INSERT DATA { <urn:a> <urn:b> 1 }", "D1202"),
        ("LOAD <http://example.org/>", "D1202"),
        ("SELECT * { SERVICE <urn:s> { ?s ?p ?o } }", "D1203"),
        ("CONSTRUCT { ?s ?p ?o } { SERVICE SILENT <urn:s> { ?s ?p ?o } }", "D1203"),
        ("DESCRIBE ?s FROM <urn:g> { ?s ?p ?o }", "D1203"),
        ("CONSTRUCT { ?s ?p } { ?s ?p ?o }", "D1201"),
        ("CONSTRUCT { ?s ?p ?o ", "D1201"),
        ("DESCRIBE", "D1201"),
        ("SELECT ?x {", "D1201"),
        ("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", "D4132"),
        ("CONSTRUCT { ?a ?b ?l } { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", "D4132"),
        ("DESCRIBE ?a { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", "D4132"),
    ],
)
def test_what_is_no_query_asks_elsewhere_or_works_too_much_is_refused(
    dotr: Dotr, town: Path, query: str, code: str
) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    fed(dotr, stream(2, 20))
    assert refused(lambda: Answers(".dotr", budget=20_000).sparql(query)) == code


def test_results_are_written_as_their_specifications_have_them(dotr: Dotr, town: Path) -> None:
    (town / "map.ttl").write_text(
        '<urn:s> <urn:p> "a\\tb\\r\\n\\"<&\\u00e9"@en-gb , _:x , 1.5 , <urn:o> , "x"^^<urn:t> .'
    )
    assert dotr("deploy", "town.dotr").code == 0
    answers = Answers(".dotr")
    select = "SELECT ?o ?none { ?s <urn:p> ?o } ORDER BY ?o"
    formats = {
        "application/sparql-results+json": ox.QueryResultsFormat.JSON,
        "application/sparql-results+xml": ox.QueryResultsFormat.XML,
        "text/tab-separated-values": ox.QueryResultsFormat.TSV,
    }
    read = {}
    for media, format_ in formats.items():
        found = answers.sparql(select, accept=media)
        assert found.media_type == media
        results = ox.parse_query_results(found.content, format=format_)
        assert isinstance(results, ox.QuerySolutions)
        assert [variable.value for variable in results.variables] == ["o", "none"]
        read[media] = [[_unnamed(row["o"]), row["none"]] for row in results]
    first, *others = read.values()
    assert len(first) == 5
    assert all(other == first for other in others)
    csv = answers.sparql(select, accept="text/csv").content.decode()
    assert csv.startswith("o,none\r\n")
    assert '"a\tb\r\n""<&é",' in csv
    for accept in formats:
        if "tab" not in accept:
            yes = ox.parse_query_results(
                answers.sparql("ASK {}", accept=accept).content, format=formats[accept]
            )
            assert isinstance(yes, ox.QueryBoolean)
            assert bool(yes)
    graph = "CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:p> ?o }"
    for media in ("text/turtle", "application/n-triples", "application/ld+json", "application/rdf+xml"):
        format_ = ox.RdfFormat.from_media_type(media)
        assert format_ is not None
        assert len(list(ox.parse(answers.sparql(graph, accept=media).content, format=format_))) == 5
    assert refused(lambda: answers.sparql("ASK {}", accept="text/csv")) == "D4199"
    assert refused(lambda: answers.sparql(graph, accept="application/sparql-results+json")) == "D4199"
    control = 'SELECT ("\\u0001" AS ?x) {}'
    assert refused(lambda: answers.sparql(control, accept="application/sparql-results+xml")) == "D4199"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, "a/b"),
        ("", "a/b"),
        ("*/*", "a/b"),
        ("c/d", "c/d"),
        ("c/d;q=0.5, a/b;q=0.4", "c/d"),
        ("a/*;q=0.2, */*;q=0.1", "a/b"),
        ("*/*, a/b;q=0.1", "c/d"),
        ("a/b;q=0, */*;q=0.1", "c/d"),
        ("C/D; charset=utf-8; q=1.0", "c/d"),
        ("x/y, c/*", "c/d"),
    ],
)
def test_a_client_chooses_by_quality_and_by_what_it_names(accept: str | None, wanted: str) -> None:
    assert negotiated(accept, ["a/b", "c/d"]) == wanted


def test_a_request_is_one_query_over_the_one_graph() -> None:
    assert request_of([("query", "ASK {}"), ("at", "3"), ("x", "y")]).at == "3"
    assert request_of([], "ASK {}").query == "ASK {}"
    for bad in (
        [],
        [("query", "ASK {}"), ("query", "ASK {}")],
        [("update", "CLEAR ALL")],
        [("query", "ASK {}"), ("default-graph-uri", "urn:g")],
        [("query", "ASK {}"), ("named-graph-uri", "urn:g")],
        [("query", "ASK {}"), ("at", "1"), ("at", "2")],
    ):
        assert refused(lambda given=bad: request_of(given)) == "D4199"


def test_what_holds_is_stated_or_derived(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr", "--keep", "1h").code == 0
    lines = stream(3, 20)
    fed(dotr, lines)
    answers, literally = Answers(".dotr"), Literally()
    for line in lines:
        literally.take(line)
    state = literally.state(lines[-1]["time"])
    stated = literally.made.at(lines[-1]["time"] * 1_000_000)
    for format_ in (ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES):
        found = answers.state(accept=format_.media_type)
        assert found.watermark == str(lines[-1]["time"])
        assert set(_read(found.content, format_)) == state
    quads = ox.parse(answers.state(accept="application/n-quads").content, format=ox.RdfFormat.N_QUADS)
    counted = Counter(str(one.graph_name) for one in quads)
    assert counted == {"<urn:dotr:stated>": len(stated), "<urn:dotr:derived>": len(state - stated)}
    ran = dotr("state", "town.dotr", "s.jsonl", "--at", "31", "--format", "nquads")
    kept = answers.state("31", accept="application/n-quads").content.decode()
    assert sorted(kept.splitlines()) == sorted(ran.out.splitlines())


def test_a_proof_is_that_of_the_command_line(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr", "--keep", "1h").code == 0
    lines, answers = stream(4, 40), Answers(".dotr")
    fed(dotr, lines)
    events = [
        json.loads(line) for line in dotr("run", "town.dotr", "s.jsonl", "--format", "jsonl").out.splitlines()
    ]
    assert len(events) > 5
    for event in events[::3]:
        for media, format_ in (("text/plain", "text"), ("text/turtle", "ttl"), ("text/html", "html")):
            found = answers.why(event["id"], accept=media)
            asked = ("explain", "--dir", ".dotr", "--event", event["id"], "--format", format_)
            assert found.content.decode() == dotr(*asked).out
        values = json.loads(answers.why(event["id"]).content)
        assert values == json.loads(dotr("explain", "--event", event["id"], "--format", "json").out)
    cut = answers.why(events[0]["id"], 1, "text/plain").content.decode()
    assert cut == dotr("explain", "--event", events[0]["id"], "--depth", "1").out
    assert refused(lambda: answers.why("urn:dotr:Left:none")) == "D4173"
    found = answers.why_not("Left", "31", ["x=:a1"], accept="text/plain")
    ran = dotr("explain", "--why-not", "Left", "--at", "31", "--where", "x=:a1")
    assert (found.content.decode(), found.watermark) == (ran.out, str(lines[-1]["time"]))
    assert refused(lambda: answers.why_not("Lost", "31")) == "D4172"
    assert refused(lambda: answers.why_not("Left", "31000")) == "D4198"
    assert refused(lambda: answers.why_not("Left", "31", ["x=a1"])) == "D4174"


@pytest.mark.parametrize("query", ["In", "Many", "When"])
@pytest.mark.parametrize("in_process", [False, True], ids=["read", "told"])
def test_differences_of_a_watched_query_lead_from_answers_to_answers(
    dotr: Dotr, town: Path, query: str, in_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    lines = stream(5, 60)
    fed(dotr, lines[:10], "first.jsonl")
    answers = Answers(".dotr")
    if in_process:
        told(monkeypatch, answers)
    select = load_program(["town.dotr"], read_rules_text).written[query]
    with answers.watch(query) as watch:
        assert watch.changes().rows == []
        known = Counter(dict(watch.snapshot))
        for start in range(10, 60, 10):
            fed(dotr, lines[start : start + 10], f"{start}.jsonl")
            found = watch.changes()
            signs = [n > 0 for _, n in found.rows]
            assert signs == sorted(signs)
            assert all(n for _, n in found.rows)
            known.update(dict(found.rows))
            with Answers(".dotr").knowledge.holding() as holding:
                assert +known == Counter(holding.answer(select))
                assert found.number == holding.number
            shown = [json.loads(line) for line in difference_lines(watch, found).splitlines()]
            assert [one["change"] for one in shown] == [n for _, n in found.rows]
            assert all(one["time"] == lines[start + 9]["time"] for one in shown)
        assert len(snapshot_lines(watch).splitlines()) == len(watch.snapshot)


def test_a_watch_goes_on_with_other_rules_and_ends_with_its_query(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    fed(dotr, stream(6, 20))
    answers = Answers(".dotr")
    watch, other = answers.watch("In"), answers.watch("Many")
    known = Counter(dict(watch.snapshot))
    (town / "near.dlog").write_text(NEAR.replace(":of(?r, ?b)", ":of(?r, ?b), :of(?b, ?c)"))
    assert dotr("deploy", "town.dotr").code == 0
    known.update(dict(watch.changes().rows))
    assert +known == Counter(dict(answers.watch("In").snapshot))
    (town / "town.dotr").write_text(RULES.replace("?x :inside ?y }", "?x :in ?y }").replace("?n) W", "?m) W"))
    assert dotr("deploy", "town.dotr").code == 0
    known.update(dict(watch.changes().rows))
    assert +known == Counter(dict(answers.watch("In").snapshot))
    assert refused(other.changes) == "D4197"
    assert refused(lambda: answers.watch("Man")) == "D4179"
    watch.close()


def test_commits_that_are_told_are_not_read_again(
    dotr: Dotr, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    lines, answers, literally = stream(9, 80), Answers(".dotr"), Literally()
    told(monkeypatch, answers)
    for line in lines:
        literally.take(line)
    fed(dotr, lines[:20], "a.jsonl")
    answers.sparql("ASK {}")
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "stated", lambda _: pytest.fail("it is read again"))
        fed(dotr, lines[20:], "b.jsonl")
        assert answered(answers, QUERIES[0]) == expected(QUERIES[0], literally.state(lines[-1]["time"]))
    (town / "near.dlog").write_text(NEAR + ":again(?x) :- :in(?x, ?r) .\n")
    assert dotr("deploy", "town.dotr").code == 0  # which is read
    assert answered(answers, "ASK { ?x <urn:again> ?y }") is False
    assert answers.sparql("ASK { ?x a <urn:again> }").content.endswith(b"true}\n")
    (town / "near.dlog").write_text(NEAR + ":later(?x, ?r) :- :in(?x, ?r) .\n")
    assert dotr("deploy", "town.dotr", "--from", "400").code == 0
    later = "ASK { ?x <urn:later> ?y }"
    assert answered(answers, later) is False
    fed(dotr, [{**line, "time": line["time"] + 390} for line in lines[:2]], "c.jsonl")
    assert answered(answers, later) is False
    fed(dotr, [{**line, "time": line["time"] + 390} for line in lines[2:9]], "d.jsonl")
    assert answered(answers, later) is True


def test_threads_ask_together_while_commits_come(
    dotr: Dotr, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    lines, answers = stream(10, 120), Answers(".dotr")
    told(monkeypatch, answers)
    done = threading.Event()
    failed: list[BaseException] = []
    query = "SELECT ?x (COUNT(?r) AS ?n) { ?x <urn:in> ?r } GROUP BY ?x"

    def ask() -> None:
        try:
            with answers.watch("In") as watch:
                known = Counter(dict(watch.snapshot))
                while not done.is_set():
                    for line in answers.sparql(query, accept="text/csv").content.decode().split()[1:]:
                        assert line.endswith(",1"), line  # LATEST: one place each
                    known.update(dict(watch.changes().rows))
                    assert not -known
                known.update(dict(watch.changes().rows))
                assert +known == Counter(dict(answers.watch("In").snapshot))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(0, 120, 12):
        fed(dotr, lines[start : start + 12], f"{start}.jsonl")
    done.set()
    for thread in threads:
        thread.join(30)
    assert failed == []


def test_the_plan_is_that_of_the_command_line(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    assert Answers(".dotr").plan() == json.loads(dotr("plan", "town.dotr", "--format", "json").out)


def test_an_endpoint_describes_itself(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    found = Answers(".dotr").service_description("http://127.0.0.1:8080/v1/sparql")
    described = {str(q.predicate): str(q.object) for q in ox.parse(found.content, format=ox.RdfFormat.TURTLE)}
    sd = "http://www.w3.org/ns/sparql-service-description#"
    assert described[f"<{sd}endpoint>"] == "<http://127.0.0.1:8080/v1/sparql>"
    assert described[f"<{sd}supportedLanguage>"] == f"<{sd}SPARQL11Query>"


def test_a_look_is_of_one_commit_whatever_is_committed_meanwhile(dotr: Dotr, town: Path) -> None:
    assert dotr("deploy", "town.dotr").code == 0
    lines = stream(8, 30)
    fed(dotr, lines[:15], "a.jsonl")
    with Journal(".dotr", exclusive=False) as look:
        status, stated = look.status(), look.stated()
        fed(dotr, lines[15:], "b.jsonl")
        (town / "town.dotr").write_text(RULES.replace("FOR 40 s", "FOR 50 s"))
        assert dotr("deploy", "town.dotr").code == 0
        assert (look.status(), look.stated()) == (status, stated)
        assert "FOR 40 s" in (look.deployed().texts or {})["town.dotr"]
        assert (look.snapshot() or {})["times"][1] == lines[14]["time"] * 1_000_000
    with Journal(".dotr", exclusive=False) as look:
        assert look.status()["commit"] > status["commit"]


CLOCK = """PREFIX : <urn:>
RULES <double.dlog>
HOLD :at LATEST
HOLD :half LATEST
QUERY Both := { SELECT ?t ?h WHERE { :clock :at ?t ; :half ?h } }
RULE Tick DEFINE { dotr_t a :Tick ; :of ?t } FROM B := ISTREAM Both WITH ?t := B.?t
"""
DOUBLE = "PREFIX : <urn:>\n:same(?x, ?t) :- :at(?x, ?t), :half(?x, ?h), FILTER(?t = 2 * ?h) .\n"
FEED = "import sys; from dotr.cli.main import main; sys.argv[1:1] = ['feed']; main()"


def test_a_deployment_answers_while_another_process_feeds_it(dotr: Dotr, folder: Path) -> None:
    (folder / "clock.dotr").write_text(CLOCK)
    (folder / "double.dlog").write_text(DOUBLE)
    assert dotr("deploy", "clock.dotr", "--keep", "30d").code == 0
    arguments = ["-", "--follow", "--commit-every", "0s", "--commit-graphs", "1", "-o", "out.jsonl", "-q"]
    process = subprocess.Popen([sys.executable, "-c", FEED, *arguments], cwd=folder, stdin=subprocess.PIPE)
    stopped = threading.Event()

    def write() -> None:
        assert process.stdin is not None
        for n in range(1, 100_000):
            if stopped.is_set():
                return
            line = {"time": 2 * n, "graph": f"<urn:clock> <urn:at> {2 * n} ; <urn:half> {n} ."}
            process.stdin.write(json.dumps(line).encode() + b"\n")
            process.stdin.flush()
            time.sleep(0.002)

    writer = threading.Thread(target=write)
    with process:
        writer.start()
        try:
            ask_all_the_time(dotr)
        finally:
            stopped.set()
            writer.join()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    assert process.returncode == 130


def ask_all_the_time(dotr: Dotr) -> None:
    """Every answer is of one commit: what is held of one graph is there together, and as of the watermark."""
    answers = Answers(".dotr")
    query = "SELECT ?t ?h ?same { <urn:clock> <urn:at> ?t ; <urn:half> ?h OPTIONAL { ?x <urn:same> ?same } }"
    seen: list[int] = []
    end = time.monotonic() + 30
    while len(set(seen)) < 25:
        assert time.monotonic() < end, seen
        found = answers.sparql(query, accept="text/csv")
        rows = found.content.decode().split()[1:]
        if not rows:
            time.sleep(0.02)
            continue
        t, h, same = map(int, rows[0].split(","))
        assert (len(rows), t, same) == (1, 2 * h, 2 * h)
        assert found.watermark in (str(t), str(t + 1))  # the next graph closes it
        seen.append(t)
    assert seen == sorted(seen)
    with answers.watch("Both") as watch:
        (row, _), *others = watch.snapshot
        known = Counter({row: 1})
        while not (found_rows := watch.changes().rows):
            assert time.monotonic() < end
        known.update(dict(found_rows))
        assert (len(+known), others) == (1, [])
    for _ in range(3):
        ran = dotr("query", "--dir", ".dotr", "--format", "csv", query)
        t, h, same = map(int, ran.out.split()[1].split(","))
        assert (ran.code, t, same) == (0, 2 * h, 2 * h)
        assert dotr("query", "--dir", ".dotr", "--at", "20", "ASK { <urn:clock> <urn:half> 10 }").code == 0
        status = json.loads(dotr("status", "--format", "json").out)
        assert status["rules"][0]["events"] <= status["graphs"] <= status["rules"][0]["events"] + 1
        ran = dotr("explain", "--dir", ".dotr", "--format", "json")
        assert (ran.code, ran.err) == (0, "")
        event = json.loads(ran.out)["id"]
        assert answers.why(event).content.decode() == ran.out.rstrip("\n")
