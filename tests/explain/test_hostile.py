"""Explanations of what nobody meant to explain: huge, cyclic, shared, escaping, gone, or never there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import rdflib

from dotr.explain.proofs import Derived
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture
from tests.explain.proving import explainer_of, history_of

FORMATS = ("text", "json", "ttl", "mermaid", "html")
CHAIN = """PREFIX : <urn:>
:reached(?x) :- :start(?x) .
:reached(?y) :- :reached(?x), :next(?x, ?y) .
"""
LAST = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <a.dlog>
RULE End DEFINE { dotr_e a :End } FROM E := { SELECT ?x WHERE { ?x a :End ; :reached ?y } } WITH ?x := E.?x
"""


def written(folder: Path, rules: str, datalog: str, background: str, *graphs: tuple[int, str]) -> None:
    (folder / "a.dotr").write_text(rules)
    (folder / "a.dlog").write_text(datalog)
    (folder / "map.ttl").write_text(background)
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in graphs]
    (folder / "s.jsonl").write_text("".join(f"{line}\n" for line in lines))


LONG = 10_000


@pytest.fixture
def long_chain(folder: Path) -> Path:
    """A triple that stands on ten thousand derivations, one upon the other."""
    background = "".join(f"<urn:n{i}> <urn:next> <urn:n{i + 1}> .\n" for i in range(LONG))
    rules = LAST.replace("?x a :End ; :reached ?y", "?x a :Reached ; a :End")
    datalog = "PREFIX : <urn:>\n:Reached(?x) :- :Start(?x) .\n:Reached(?y) :- :Reached(?x), :next(?x, ?y) .\n"
    graph = f"<urn:n0> a <urn:Start> . <urn:n{LONG}> a <urn:End> ."
    written(folder, rules, datalog, background, (1, graph))
    return folder


@pytest.mark.parametrize("format_", FORMATS)
def test_ten_thousand_steps_upon_each_other_are_explained(long_chain: Path, dotr: Dotr, format_: str) -> None:
    ran = dotr("explain", "a.dotr", "s.jsonl", "--format", format_)
    assert ran.code == 0, ran.err[-500:]
    if format_ == "ttl":
        graph = rdflib.Graph().parse(data=ran.out, format="turtle")
        assert len(set(graph.subjects(rdflib.RDF.type, rdflib.RDF.Statement))) == 2 * LONG + 3
    elif format_ == "json":
        assert f'"below": {2 * (LONG - 100) + 1}' in ran.out
        json.loads(ran.out)
    elif format_ == "text":
        assert f"… {2 * (LONG - 24) + 1:,} steps below, not shown" in ran.out
        assert max(map(len, ran.out.splitlines())) < 160


def test_ten_thousand_steps_are_checked(long_chain: Path) -> None:
    history = history_of(long_chain / "a.dotr", [long_chain / "s.jsonl"])
    explainer = explainer_of(history)
    proof = explainer.event(history.events[0])
    with explainer.instants.open(1_000_000) as derivations:
        triple = (f"<urn:n{LONG}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:Reached>")
        (found,) = derivations.proofs(triple)
        assert isinstance(found, Derived)
        assert derivations.sharing.size(found) == 2 * LONG + 2
    assert proof.id == history.events[0].id


@pytest.mark.parametrize("format_", FORMATS)
def test_a_proof_that_uses_each_part_twice_is_as_small_as_its_parts(
    folder: Path, dotr: Dotr, format_: str
) -> None:
    """As a tree it has 2 ** 60 leaves."""
    datalog = "PREFIX : <urn:>\n" + "".join(
        f":L{i}(?x) :- :K{i}(?x) .\n:M{i}(?x) :- :K{i}(?x) .\n:K{i + 1}(?x) :- :L{i}(?x), :M{i}(?x) .\n"
        for i in range(60)
    )
    rules = LAST.replace("?x a :End ; :reached ?y", "?x a :K60")
    written(folder, rules, datalog, "", (1, "<urn:a> a <urn:K0> ."))
    ran = dotr("explain", "a.dotr", "s.jsonl", "--format", format_, "--verify")
    assert ran.code == 0, ran.err
    assert len(ran.out) < 200_000


def test_events_that_stand_on_two_earlier_ones_each_are_opened_once(folder: Path, dotr: Dotr) -> None:
    rules = """PREFIX : <urn:>
RULE S DEFINE { dotr_s a :S } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND COUNT(*) AS ?n OVER S3 := S WITHIN 1 h BEFORE T WHERE ?n < 2 WITH ?t := T.?t
RULE U DEFINE { dotr_u a :U } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND EACH U1 := V WITHIN 1 s BEFORE T AND EACH U2 := V WITHIN 1 s BEFORE T WITH ?t := T.?t
RULE V DEFINE { dotr_v a :V } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND EACH U3 := S WITHIN 1 h FROM T AND LAST U4 := W WITHIN 0 s FROM T WITH ?t := T.?t
RULE W DEFINE { dotr_w a :W } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND COUNT(*) AS ?n OVER U5 := U WITHIN 1 h BEFORE T WITH ?t := T.?t
"""
    written(folder, rules, "", "", *((time, "<urn:a> a <urn:T> .") for time in range(60)))
    ran = dotr("explain", "a.dotr", "s.jsonl", "--format", "json", "--rule", "U")
    assert ran.code == 0, ran.err
    assert len(ran.out) < 500_000


def test_what_holds_because_it_held_is_opened_once_at_each_point(folder: Path, dotr: Dotr) -> None:
    (folder / "h.lars").write_text(
        "lit(?x) :- a(?x) .\nmore(?x) :- lit(?x) ALWAYS WITHIN 3 s .\n"
        "lit(?x) :- more(?x) WITHIN 3 s, lit(?x) WITHIN 2 s .\n"
    )
    rules = """PREFIX : <urn:>
LARS <h.lars>
QUERY a := { SELECT ?x WHERE { ?x a :A } }
RULE R DEFINE { dotr_r a :R } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND LAST more WITHIN 1 s FROM T WITH ?x := more.?x
"""
    graphs = [(time, "<urn:x> a <urn:A> .") for time in range(5)]
    written(folder, rules, "", "", *graphs, (60, "<urn:t> a <urn:T> ."))
    for format_ in FORMATS:
        ran = dotr("explain", "a.dotr", "s.jsonl", "--format", format_)
        assert ran.code == 0, ran.err
        assert len(ran.out) < 200_000


def test_datalog_that_goes_in_circles_is_explained_without_one(folder: Path, dotr: Dotr) -> None:
    datalog = "PREFIX : <urn:>\n:p(?x, ?y) :- :p(?y, ?x) .\n:p(?x, ?z) :- :p(?x, ?y), :p(?y, ?z) .\n"
    rules = LAST.replace("?x a :End ; :reached ?y", "?x :p ?x ; a :End")
    written(folder, rules, datalog, "", (1, "<urn:a> <urn:p> <urn:b> ; a <urn:End> ."))
    ran = dotr("explain", "a.dotr", "s.jsonl", "--verify", "--all")
    assert ran.code == 0, ran.err
    assert ran.out.count(":a :p :a") == 1
    found = dotr("explain", "a.dotr", "s.jsonl", "--triple", ":b :p :b", "--at", "1", "--all", "--verify")
    assert found.code == 0, found.err


NASTY = '<script>alert(1)</script>"]; n0 --> x["`#quot; \\u001B[31m</title>'


@pytest.mark.parametrize("format_", FORMATS)
def test_literals_stay_text(folder: Path, dotr: Dotr, format_: str) -> None:
    rules = LAST.replace("?x a :End ; :reached ?y", "?o :says ?x")
    literal = json.dumps(NASTY.encode().decode("unicode_escape"))
    written(folder, rules, "PREFIX : <urn:>\n", "", (1, f"<urn:o> <urn:says> {literal} ."))
    ran = dotr("explain", "a.dotr", "s.jsonl", "--format", format_)
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out or format_ == "ttl"  # which says what the literal has
    if format_ == "html":
        tags: list[str] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
        parser.feed(ran.out)
        assert "script" not in tags
        assert not re.search(r"(?:src=|href=|url\()", ran.out)
    elif format_ == "mermaid":
        for line in ran.out.splitlines()[1:]:
            assert re.fullmatch(r'  n\d+\["[^"`<>]*(?:<br/>[^"`<>]*)?"\]|  n\d+ --> n\d+', line), line
    elif format_ == "ttl":
        graph = rdflib.Graph().parse(data=ran.out, format="turtle")
        assert any("<script>" in str(o) for o in graph.objects())
    elif format_ == "json":
        assert "<script>" in json.loads(ran.out)["trigger"]["values"]["x"]


def test_questions_that_have_no_answer_are_diagnostics(folder: Path, dotr: Dotr) -> None:
    rules = LAST.replace("?x a :End ; :reached ?y", "?x a :End")
    written(folder, rules, "PREFIX : <urn:>\n", "", (1, "<urn:a> a <urn:End> ."))
    (folder / "b.dotr").write_text(rules.replace("RULE End", "RULE Other"))
    other = json.loads(dotr("run", "b.dotr", "s.jsonl", "--format", "jsonl", "-q").out)["id"]
    wrong = []
    for asked, code, word in (
        (("--event", "urn:nothing"), 3, "D4173"),
        (("--event", other), 3, "D4173"),
        (("--event", ""), 3, "D4173"),
        (("--event", "<script>"), 3, "D4173"),
        (("--rule", "Pear"), 2, "D4172"),
        (("--why-not", "Pear", "--at", "1"), 2, "D4172"),
        (("--why-not", "End"), 2, "D4171"),
        (("--why-not", "End", "--at", "soon"), 2, "D4111"),
        (("--rule", "End", "--at", "99"), 3, "D4173"),
        (("--triple", ":a :b :c"), 2, "D4171"),
        (("--triple", ":a :b ?x", "--at", "1"), 2, "D4174"),
        (("--triple", "no triple", "--at", "1"), 2, "D4174"),
        (("--triple", ":a :b", "--at", "1"), 2, "D4174"),
        (("--where", "x"), 2, "D4174"),
        (("--where", "y=:a"), 3, "D4173"),
        (("--format", "pdf"), 2, "pdf"),
        (("--depth", "-1"), 2, "depth"),
        (("--depth", "100000"), 2, "depth"),
        (("--event", other, "--triple", ":a :b :c"), 2, "D4171"),
        (("--then", "1", "gone.dotr"), 3, "D1000"),
    ):
        ran = dotr("explain", "a.dotr", "s.jsonl", *asked)
        if (ran.code, word in ran.out + ran.err) != (code, True):
            wrong.append((asked, ran))
        assert "Traceback" not in ran.err
    assert wrong == []
    assert dotr("explain", "a.dotr", "gone.jsonl").code == 3
    assert "Traceback" not in dotr("explain", "a.dotr", "gone.jsonl").err
    assert dotr("explain", "gone.dotr", "s.jsonl").code == 3


def test_a_reader_who_leaves_is_no_failure(long_chain: Path) -> None:
    command = [sys.executable, "-m", "dotr", "explain", "a.dotr", "s.jsonl", "--format", "ttl"]
    piped = subprocess.Popen(command, cwd=long_chain, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert piped.stdout is not None
    assert piped.stderr is not None
    piped.stdout.read(10)
    piped.stdout.close()
    said = piped.stderr.read().decode()
    piped.wait()
    piped.stderr.close()
    assert "Traceback" not in said


def test_blank_nodes_are_named_as_in_the_event(folder: Path, dotr: Dotr) -> None:
    rules = LAST.replace("?x a :End ; :reached ?y", "?x a :End ; :of [ :name ?y ]")
    graph = '[] a <urn:End> ; <urn:of> [ <urn:name> "n" ] .'
    written(folder, rules, "PREFIX : <urn:>\n", "", (1, graph), (1, graph.replace('"n"', '"m"')))
    for format_ in FORMATS:
        ran = dotr("explain", "a.dotr", "s.jsonl", "--format", format_, "--verify")
        assert ran.code == 0, ran.err
    text = dotr("explain", "a.dotr", "s.jsonl").out
    assert len(re.findall(r':name "[nm]"   s.jsonl:[12]\n', text)) == 1
    node = re.search(r"\?x (_:\S+)", text)
    assert node is not None
    assert f"{node[1]} a :End" in text


def test_a_not_without_any_fact_and_an_aggregate_over_none(folder: Path, dotr: Dotr) -> None:
    rules = """PREFIX : <urn:>
RULE R DEFINE { dotr_r a :R } FROM T := { SELECT ?t WHERE { ?t a :T } }
AND NOT N := { SELECT ?n WHERE { ?n a :N } } WITHIN 1 h FROM T ON N.?n = T.?t
AND COUNT(*) AS ?c OVER M := { SELECT ?n WHERE { ?n a :M } } WITHIN 1 h FROM T
AND SUM(S.?n) AS ?s OVER S := { SELECT ?n WHERE { ?n a :M } } WITHIN 1 h FROM T
WITH ?c := ?c, ?s := ?s
"""
    written(folder, rules, "", "", (1, "<urn:t> a <urn:T> ."))
    out = dotr("explain", "a.dotr", "s.jsonl", "--verify").out
    assert "NOT N within 1 h from T   no N in the window" in out
    assert "= 0   0 of 0 facts" in out
