"""An instant in error is set aside as if its graphs had never come, once, whatever else happens."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from dotr.core.deployment import Deployment
from dotr.core.instant import Instants
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.enrich.materialiser import Limits
from dotr.errors import DataError
from dotr.events import Clock
from dotr.lang import parse_program
from dotr.service.journal import Journal
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures
from tests.service.deployments import RULES, deploy, feed, stream
from tests.service.test_feed import Stop, write_lines

SCHEMA = "<urn:x:Smoke> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Event> ."
RULES_RDFS = RULES.replace("PREFIX", "ENTAILMENT rdfs PREFIX", 1)


def spoiled(lines: list[str], every: int = 11) -> tuple[list[str], list[str], list[int]]:
    """A stream with graphs that say schema, the same without what stands at their times, and those times."""
    times, bad = [], []
    for number, line in enumerate(lines):
        time = json.loads(line)["time"]
        times.append(time)
        if number % every == 5:
            bad.append(time)
    mixed = []
    for line, time in zip(lines, times, strict=True):
        mixed.append(line)
        if time in bad and (not mixed[:-1] or json.loads(mixed[-2])["time"] != time):
            mixed.append(json.dumps({"time": time, "graph": SCHEMA}))
    good = [line for line, time in zip(lines, times, strict=True) if time not in bad]
    return mixed, good, bad


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return deploy(tmp_path, RULES_RDFS)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_the_run_goes_on_as_if_the_graphs_had_never_come(state: str, tmp_path: Path, after: int) -> None:
    mixed, good, bad = spoiled(stream(150, bad=False))
    write_lines("in.jsonl", mixed)
    write_lines("good.jsonl", good)
    (tmp_path / "other").mkdir()
    feed(deploy(tmp_path / "other", RULES_RDFS), ["good.jsonl"], ["good.nq"])
    stops = 0
    while True:
        try:
            feed(state, ["in.jsonl"], ["out.nq"], letters="dead.jsonl", stopping=Stop(after + stops % 3))
        except KeyboardInterrupt:
            stops += 1
        else:
            break
    assert stops > 20
    assert Path("out.nq").read_bytes() == Path("good.nq").read_bytes()
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert {letter["code"] for letter in letters} == {"D2601"}
    assert {letter["time"] for letter in letters} == set(bad)
    assert [letter["document"] for letter in letters] == [
        line for line in mixed if json.loads(line)["time"] in bad
    ]
    for letter in letters:
        file, _, number = letter["place"].partition(":")
        assert (file, mixed[int(number) - 1]) == ("in.jsonl", letter["document"])
    with Journal(state, exclusive=False) as journal:
        assert journal.status()["refused"] == len(letters)


def test_a_letter_is_a_line_that_can_be_fed_once_it_is_mended(state: str) -> None:
    write_lines("in.jsonl", [json.dumps({"time": 3, "graph": SCHEMA})])
    feed(state, ["in.jsonl"], letters="dead.jsonl")
    with pytest.raises(DataError, match="D2301"):
        feed(state, ["dead.jsonl"], fail_on_late=True)
    letter = json.loads(Path("dead.jsonl").read_text())
    assert letter["graph"] == SCHEMA + "\n"


def test_without_a_policy_the_error_names_the_documents(state: str) -> None:
    Path("events").mkdir()
    Path("events/3.ttl").write_text(SCHEMA)
    Path("events/4.ttl").write_text("")
    Path("events/a@3.ttl").write_text("")
    for _ in range(2):
        with pytest.raises(DataError, match=r"D2601(.|\n)*note: .*`events/3.ttl`, `events/a@3.ttl`"):
            feed(state, ["events"])
    assert feed(state, ["events"], letters="dead.jsonl").totals.refused == 2
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert [(letter["place"], letter["document"]) for letter in letters] == [
        ("events/3.ttl", SCHEMA),
        ("events/a@3.ttl", ""),
    ]


def test_a_document_that_changed_since_is_not_taken_for_the_original(state: str) -> None:
    Path("3.ttl").write_text(SCHEMA)
    feed(state, ["3.ttl"], letters="dead.jsonl", keep_open=True)
    Path("3.ttl").write_text("# mended")
    write_lines("4.jsonl", ['{"time":4,"graph":""}'])
    feed(state, ["4.jsonl"], letters="dead.jsonl")
    (letter,) = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert letter["place"] == "3.ttl"
    assert "document" not in letter
    assert letter["graph"] == SCHEMA + "\n"


def test_events_before_an_instant_in_error_are_reported(dotr: Dotr) -> None:  # noqa: F811
    Path("schema.ttl").write_text(DISJOINT)
    Path("cats.dotr").write_text(CLASH)
    line = '{"time":%d,"graph":"<urn:x:%d> a <urn:x:Cat>%s ."}'
    write_lines("in.jsonl", [line % (t, t, ", <urn:x:Dog>" if t == 9 else "") for t in range(200)])
    ran = dotr("run", "cats.dotr", "in.jsonl")
    assert (ran.code, "D3101" in ran.err, "`in.jsonl:10`" in ran.err) == (3, True, True)
    assert [json.loads(event)["time"] for event in ran.out.splitlines()] == list(range(9))


CLASH = """PREFIX : <urn:x:> PREFIX owl: <http://www.w3.org/2002/07/owl#>
BACKGROUND <schema.ttl>
ENTAILMENT owl2rl
RULE Seen DEFINE { dotr_s :of ?x } FROM Cat := { SELECT ?x { ?x a :Cat } } WITH ?x := Cat.?x
"""
DISJOINT = "<urn:x:Cat> <http://www.w3.org/2002/07/owl#disjointWith> <urn:x:Dog> ."


def test_a_contradiction_is_set_aside_by_run_and_feed_alike(dotr: Dotr) -> None:  # noqa: F811
    Path("schema.ttl").write_text(DISJOINT)
    Path("cats.dotr").write_text(CLASH)
    graphs = ["a :Cat", "a :Cat, :Dog", "a :Cat"]
    write_lines(
        "in.jsonl",
        [
            json.dumps({"time": t, "graph": f"@prefix : <urn:x:> . :x{t} {graph} ."})
            for t, graph in enumerate(graphs)
        ],
    )
    assert dotr("run", "cats.dotr", "in.jsonl").code == 3
    ran = dotr("run", "cats.dotr", "in.jsonl", "--on-error", "file=run.jsonl")
    assert ran.code == 0
    assert [json.loads(line)["time"] for line in ran.out.splitlines()] == [0, 2]
    assert "1 document refused" in ran.err
    assert dotr("run", "cats.dotr", "in.jsonl", "--on-error", "skip", "--verify").out == ran.out
    dotr("deploy", "cats.dotr")
    fed = dotr("feed", "in.jsonl", "--on-error", "file=feed.jsonl")
    assert (fed.code, fed.out) == (0, ran.out)
    assert Path("feed.jsonl").read_text() == Path("run.jsonl").read_text()
    assert json.loads(Path("feed.jsonl").read_text())["code"] == "D3101"
    assert "1 refused documents" in dotr("status").out


EXPLODING = """PREFIX : <urn:x:>
RULE One DEFINE { dotr_o :of ?a } FROM A := { SELECT ?a { ?a :is ?x } } WITH ?a := A.?a
RULE Two DEFINE { dotr_o :of ?a } FROM B := { SELECT ?a ?b { PAIRS } } WITH ?a := B.?a
RULE Three DEFINE { dotr_o :of ?a } FROM C := { SELECT ?a { ?a :at ?x } } WITH ?a := C.?a
"""


@pytest.mark.parametrize(
    "pairs",
    [
        "?a :near ?x . ?b :near ?x",
        "?a :near ?x . ?b :near ?y",
        "?a :near ?x . ?b :near ?x MINUS { ?a :far ?b }",
        "{ ?a :near ?x . ?b :near ?x } UNION { ?a :at ?x . ?b :is ?x }",
    ],
)
def test_an_explosion_leaves_nothing_behind(pairs: str) -> None:
    """Half-evaluated queries of the refused instant must not show at the next one."""
    program = parse_program(EXPLODING.replace("PAIRS", pairs))
    refused: list[tuple[int, str]] = []

    def run(times: list[int]) -> list[str]:
        deployment = Deployment(program)
        deployment.instants = Instants(program, deployment.enrich, limit=30)
        pipeline = Pipeline(
            deployment,
            PipelineObserver(
                refused=lambda time, _, error: refused.append((time, error.diagnostics[0].code))
            ),
        )
        pipeline.begin(Clock(integer=True, unit=1))
        events = []
        for time in times:
            size = 9 if time == 5 else 2
            graph = [
                (f"<urn:x:{time}-{i}>", f"<urn:x:{predicate}>", "<urn:x:v>")
                for predicate in ("is", "near", "at")
                for i in range(size)
            ]
            events += pipeline.push(time, graph)
        events += pipeline.finish()
        return [f"{event.rule} {event.time} {event.bindings}" for event in events]

    whole = run([1, 2, 5, 7, 9])
    assert refused == [(5, "D4130")]
    assert whole == run([1, 2, 7, 9])
    assert {line.split()[0] for line in whole} == {"One", "Two", "Three"}


def test_a_rule_that_explodes_at_an_instant_leaves_nothing_behind(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("dotr.core.") and hasattr(module, "Limits"):
            monkeypatch.setattr(module, "Limits", partial(Limits, 1_000, 30))
    Path("near.dlog").write_text("PREFIX : <urn:x:> :pair(?a, ?b) :- :in(?a, ?r), :in(?b, ?r) .")
    rules = """PREFIX : <urn:x:>
    RULES <near.dlog>
    QUERY P := { SELECT ?a ?b { ?a :pair ?b } }
    RULE Pair DEFINE { dotr_p :of ?a ; :and ?b } FROM P WITH ?a := P.?a, ?b := P.?b
    RULE Number DEFINE { dotr_c :n ?n } FROM P
    AND COUNT(*) AS ?n OVER Any := P WITHIN 9 s FROM P WITH ?n := ?n"""

    def line(time: int, size: int) -> str:
        graph = " ".join(f"<urn:x:{time}-{i}> <urn:x:in> <urn:x:r> ." for i in range(size))
        return json.dumps({"time": time, "graph": graph})

    write_lines("in.jsonl", [line(1, 2), line(2, 1), line(5, 6), line(7, 2)])
    write_lines("good.jsonl", [line(1, 2), line(2, 1), line(7, 2)])
    for name in ("in", "good"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "near.dlog").write_text(Path("near.dlog").read_text())
        feed(deploy(tmp_path / name, rules), [f"{name}.jsonl"], [f"{name}.nq"], letters=f"{name}.dead")
    assert json.loads(Path("in.dead").read_text())["code"] == "D4001"
    assert Path("in.nq").read_bytes() == Path("good.nq").read_bytes()
    assert Path("in.nq").read_text().count("urn:dotr:Pair:") > 9
