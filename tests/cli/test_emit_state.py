"""Enriched graphs beside the events: the same from run, local batch and Spark, and of `dotr state`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.batch.conftest import spark as spark  # a fixture
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <ways.dlog>
{held}
RULE Seen DEFINE {{ dotr_s a :Seen ; :who ?x }} FROM S := {{ SELECT ?x WHERE {{ ?x :in ?r . ?r :open true }} }} WITH ?x := S.?x
RULE Busy DEFINE {{ dotr_b a :Busy ; :n ?n }} FROM C := {{ SELECT ?n WHERE {{ ?r :count ?n }} }}
AND LAST D := {{ SELECT ?n WHERE {{ ?r :count ?n }} }} WITHIN 3 s BEFORE C WITH ?n := C.?n
"""  # noqa: E501  # a program as users write it
WAYS = """PREFIX : <urn:>
:near(?x, ?y) :- :in(?x, ?r), :door(?r, ?s), :in(?y, ?s) .
:door(?a, ?b) :- :door(?b, ?a) .
:count(?r, ?n) :- AGGREGATE(:in(?x, ?r) ON ?r BIND COUNT(?x) AS ?n) .
:open(?r, true) :- :door(?r, ?s), NOT :locked(?r, ?s) .
"""
LINES = [
    {"time": 1, "graph": "<urn:ann> <urn:in> <urn:a> . <urn:bob> <urn:in> <urn:b> ."},
    {"time": 1, "graph": "[] <urn:says> 'é' ; <urn:in> <urn:a> ."},
    {"time": 3, "graph": "<urn:a> <urn:locked> <urn:b> ; <urn:door> <urn:b> . <urn:cem> <urn:in> <urn:b> ."},
    {"time": 4, "graph": ""},
    {"time": 6, "graph": "<urn:ann> <urn:in> <urn:b> . <urn:b> <urn:door> <urn:c> ."},
]
CHANGES = [
    {"time": 7, "insert": "<urn:c> <urn:door> <urn:d> ."},
    {"time": 9, "delete": "<urn:a> <urn:door> <urn:b> .", "graph": "<urn:eve> <urn:in> <urn:d> ."},
]


@pytest.fixture(params=["instants", "lasting"])
def case(request: pytest.FixtureRequest, folder: Path) -> Path:
    lasting = request.param == "lasting"
    (folder / "in.dotr").write_text(RULES.format(held="HOLD :in LATEST FOR 4 s" if lasting else ""))
    (folder / "map.ttl").write_text("<urn:a> <urn:door> <urn:b> .\n")
    (folder / "ways.dlog").write_text(WAYS)
    lines = LINES + (CHANGES if lasting else [])
    (folder / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def emitted(dotr: Dotr) -> list[str]:
    ran = dotr(
        "run", "in.dotr", "s.jsonl", "--format", "jsonl", "-o", "events.jsonl", "--emit-state", "k.jsonl"
    )
    assert ran.code == 0, ran.err
    return Path("k.jsonl").read_text(encoding="utf-8").splitlines()


def batched(dotr: Dotr, engine: str) -> list[str]:
    asked = ["batch", "in.dotr", "s.jsonl", "--engine", engine, "--slice", "1s"]
    ran = dotr(*asked, "--out", f"out-{engine}", "--emit-state", f"k-{engine}")
    assert ran.code == 0, ran.err
    files = sorted(Path(f"k-{engine}").glob("part-*.jsonl"))
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def by_time(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: json.loads(line)["time"])


def test_the_events_are_those_of_a_run_without_it(dotr: Dotr, case: Path) -> None:
    emitted(dotr)
    ran = dotr("run", "in.dotr", "s.jsonl", "--format", "jsonl")
    assert Path("events.jsonl").read_text() == ran.out
    assert ran.out


def test_a_line_is_the_state_without_what_the_background_alone_gives(dotr: Dotr, case: Path) -> None:
    lines = emitted(dotr)
    assert [json.loads(line)["time"] for line in lines] == sorted({json.loads(t)["time"] for t in _source()})
    Path("none.jsonl").write_text('{"time": 0, "graph": ""}\n')
    alone = quads(dotr, "none.jsonl", 0)
    for line in lines:
        reported = json.loads(line)
        assert set(reported["graph"].splitlines()) == quads(dotr, "s.jsonl", reported["time"]) - alone
    assert "<urn:cem> <urn:near> <urn:ann> ." not in lines[0]
    assert any("<urn:near>" in line for line in lines)
    assert any("<urn:count>" in line for line in lines)


def _source() -> list[str]:
    return Path("s.jsonl").read_text().splitlines()


def quads(dotr: Dotr, source: str, time: int) -> set[str]:
    ran = dotr("state", "in.dotr", source, "--at", str(time), "--format", "nquads")
    assert ran.code == 0, ran.err
    return {f"{line.rsplit(' <', 1)[0]} ." for line in ran.out.splitlines()}


def test_a_local_batch_writes_the_same_lines(dotr: Dotr, case: Path) -> None:
    assert by_time(batched(dotr, "local")) == emitted(dotr)
    assert (case / "k-local" / "_dotr_run.json").exists()


@pytest.mark.spark
def test_spark_writes_the_same_lines(dotr: Dotr, case: Path, spark: object) -> None:
    assert by_time(batched(dotr, "spark")) == emitted(dotr)


@pytest.mark.parametrize(
    ("rules", "source"),
    [
        ("building/building.dotr", "building/morning.ttl"),
        ("presence/presence.dotr", "presence/moves.jsonl"),
        ("fire/fire.dotr", "fire/events"),
    ],
)
def test_an_example_is_enriched_alike_by_run_and_batch(
    dotr: Dotr, folder: Path, rules: str, source: str
) -> None:
    asked = [str(EXAMPLES / rules), str(EXAMPLES / source)]
    ran = dotr("run", *asked, "-o", "e.jsonl", "--emit-state", "k.jsonl")
    assert ran.code == 0, ran.err
    ran = dotr("batch", *asked, "--engine", "local", "--out", "out", "--emit-state", "k")
    assert ran.code == 0, ran.err
    found = [line for part in Path("k").glob("part-*.jsonl") for line in part.read_text().splitlines()]
    assert by_time(found) == Path("k.jsonl").read_text().splitlines()
    assert found


def test_enriched_graphs_are_a_stream_that_needs_no_rules(dotr: Dotr, case: Path) -> None:
    emitted(dotr)
    Path("near.rq").write_text("SELECT ?x ?y { ?x <urn:near> ?y }")
    at = json.loads(next(line for line in emitted_lines() if "<urn:near>" in line))["time"]
    ran = dotr("explain", "in.dotr", "k.jsonl", "--triple", "<urn:bob> <urn:near> <urn:ann>", "--at", str(at))
    assert "k.jsonl:" in ran.out, ran.out


def emitted_lines() -> list[str]:
    return Path("k.jsonl").read_text(encoding="utf-8").splitlines()


def test_an_instant_in_error_has_no_line(dotr: Dotr, folder: Path) -> None:
    Path("o.dotr").write_text(
        "PREFIX : <urn:>\nPREFIX owl: <http://www.w3.org/2002/07/owl#>\nBACKGROUND <o.ttl>\n"
        "ENTAILMENT owl2rl\n"
        "RULE R DEFINE { dotr_r a :R } FROM A := { SELECT ?x WHERE { ?x a :A } }\n"
    )
    Path("o.ttl").write_text("<urn:A> <http://www.w3.org/2002/07/owl#disjointWith> <urn:B> .\n")
    graphs = [(1, "<urn:x> a <urn:A> ."), (2, "<urn:x> a <urn:A>, <urn:B> ."), (3, "<urn:y> a <urn:B> .")]
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in graphs]
    Path("o.jsonl").write_text("\n".join(lines))
    asked = ["o.dotr", "o.jsonl", "--on-error", "skip"]
    assert dotr("run", *asked, "-o", "e.jsonl", "--emit-state", "k.jsonl").code == 0
    assert [json.loads(line)["time"] for line in emitted_lines()] == [1, 3]
    assert dotr("batch", *asked, "--engine", "local", "--out", "out", "--emit-state", "k").code == 0
    found = [line for part in Path("k").glob("part-*.jsonl") for line in part.read_text().splitlines()]
    assert by_time(found) == emitted_lines()


def test_names_are_refused_before_anything_runs(dotr: Dotr, case: Path) -> None:
    asked = ["run", "in.dotr", "s.jsonl"]
    assert "D4151" in dotr(*asked, "--emit-state", "k.csv").err
    assert "D4113" in dotr(*asked, "-o", "k.jsonl", "--emit-state", "k.jsonl").err
    Path("k.jsonl").write_text("mine")
    assert "D5001" in dotr(*asked, "--emit-state", "k.jsonl").err
    assert Path("k.jsonl").read_text() == "mine"
    local = ["batch", "in.dotr", "s.jsonl", "--engine", "local", "--out", "out"]
    assert "D4127" in dotr(*local, "--emit-state", "hdfs://h/k").err
    assert not Path("out").exists()
