"""An instant in error is set aside in a batch as `dotr run` sets it aside, ticks included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import Serial, output, quiet
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

RULES = """PREFIX : <urn:x:>
BACKGROUND <disjoint.ttl>
ENTAILMENT owl2rl
RULE Quiet
DEFINE { dotr_id a :Quiet ; :count ?n }
FROM EVERY 2 s AS Tick
AND COUNT(*) AS ?n OVER Smoke := { SELECT ?o { ?o a :Smoke } } WITHIN 6 s FROM Tick
WITH ?n := ?n
RULE Alarm
DEFINE { dotr_id a :Alarm ; :by ?o }
FROM Smoke := { SELECT ?o { ?o a :Smoke } } WITH ?o := Smoke.?o
"""
SMOKE = "<urn:x:o> a <urn:x:Smoke> ."
SCHEMA = "<urn:x:Smoke> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Event> ."
CLASH = "<urn:x:o> a <urn:x:Smoke>, <urn:x:Calm> ."
LOG = [(0, SCHEMA), (2, CLASH), (3, SMOKE), (6, SMOKE), (6, SCHEMA), (9, SMOKE), (15, CLASH), (16, SCHEMA)]


@pytest.fixture
def story(dotr: Dotr) -> list[str]:  # noqa: F811  # the fixture
    """Rules and a log in the folder of the test; what `dotr run` says of them."""
    Path("r.dotr").write_text(RULES)
    Path("disjoint.ttl").write_text(
        "<urn:x:Smoke> <http://www.w3.org/2002/07/owl#disjointWith> <urn:x:Calm> ."
    )
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in LOG]
    Path("log.jsonl").write_text("\n".join(lines))
    ran = dotr("run", "r.dotr", "log.jsonl", "--on-error", "file=dead.jsonl", "-q")
    assert ran.code == 0
    assert {json.loads(line)["code"] for line in Path("dead.jsonl").read_text().splitlines()} == {
        "D2601",
        "D3101",
    }
    return sorted(ran.out.splitlines())


def letters(text: str) -> list[tuple[Any, ...]]:
    """What letters say but for the place, which a batch does not know."""
    found = (json.loads(line) for line in text.splitlines())
    return sorted((letter["code"], letter["time"], letter["graph"]) for letter in found)


def test_the_local_engine_goes_on_as_if_the_graphs_had_never_come(
    dotr: Dotr,  # noqa: F811  # the fixture
    story: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    arguments = ("batch", "r.dotr", "--log", "log.jsonl", "--engine", "local", "-q", "--slice", "4s")
    ran = dotr(*arguments, "--out", "out", "--on-error", "file=batch.jsonl")
    assert ran.code == 0
    assert letters(Path("batch.jsonl").read_text()) == letters(Path("dead.jsonl").read_text())
    found = [line for file in Path("out").glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(found) == story
    run = json.loads(Path("out/_dotr_run.json").read_text())
    assert (run["graphs"], run["instants"], run["refused"]) == (8, 2, 6)
    ran = dotr(*arguments, "--out", "fails")
    assert (ran.code, Path("fails").exists()) == (3, False)
    assert "@ 0" in ran.err or "@ 2" in ran.err


@pytest.mark.spark
def test_spark_goes_on_as_if_the_graphs_had_never_come(story: list[str], spark: Any) -> None:
    program = load_program(["r.dotr"], read_rules_text)
    background = [("<urn:x:Smoke>", "<http://www.w3.org/2002/07/owl#disjointWith>", "<urn:x:Calm>")]
    log = open_log(["log.jsonl"], SourceOptions(), fail=False)
    Path("out").mkdir()
    request = Request(Deployment(program, background), log, treatment=Treatment(forgiving=True))
    report = SparkRunner().run(request, str(Path("out").resolve()), quiet)
    assert output(Path("out"), report) == story
    assert letters("\n".join(report.letters)) == letters(Path("dead.jsonl").read_text())
    assert report.instants == 2
