"""A large background reaches workers as a file, and they find what one process finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.batch import work
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark import session as shipped_files
from dotr.batch.spark.cluster import SparkRunner
from dotr.core.deployment import Deployment
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import Triple
from tests.batch.test_local import Serial, in_one_process, output, quiet

RULES = """PREFIX : <urn:x:>
ENTAILMENT rdfs
BACKGROUND <rooms.ttl>
RULES <near.dlog>
RULE Alarm DEFINE { dotr_id a :Alarm ; :of ?b ; :wing ?w }
FROM Smoke := { SELECT ?b ?w WHERE { ?o a :Sensor ; :near ?b . ?b a :Building . ?w :has ?b } }
WITH ?b := Smoke.?b, ?w := Smoke.?w
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NEAR = "PREFIX : <urn:x:> :near(?o, ?b) :- :seen(?o, ?r), :in(?r, ?b) ."


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dotr.rdf.index.LARGE", 0)
    rooms = [
        f":r{i} :in :b{i % 4} . :b{i % 4} a :House . :w{i % 3} :has :b{i % 4} . :t{i} a :Smoker ."
        for i in range(60)
    ]
    schema = ":House rdfs:subClassOf :Building . :Smoker rdfs:subClassOf :Sensor ."
    prefixes = "@prefix : <urn:x:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    Path("rooms.ttl").write_text("\n".join([prefixes, schema, *rooms]), encoding="utf-8")
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    Path("near.dlog").write_text(NEAR, encoding="utf-8")
    graphs = [
        {"time": i * 7 % 97, "graph": f"<urn:x:t{i % 80}> <urn:x:seen> <urn:x:r{i * 3 % 70}> ."}
        for i in range(200)
    ]
    Path("log.jsonl").write_text("".join(json.dumps(graph) + "\n" for graph in graphs), encoding="utf-8")
    (tmp_path / "out").mkdir()
    return tmp_path


def loaded() -> tuple[Program, list[Triple]]:
    program = load_program(["rules.dotr"], read_rules_text)
    return program, read_background(program.background)


def test_processes_map_one_file(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, background = loaded()
    placed: list[str] = []

    def place(folder: str, name: str, parts: Sequence[Any]) -> work.InFolder:
        placed.append(name)
        return work.into_folder(folder, name, parts)

    monkeypatch.setattr("dotr.batch.local.into_folder", place)
    request = Request(Deployment(program, background), open_log(["log.jsonl"], SourceOptions()))
    report = LocalRunner(2).run(request, str(story / "out"), quiet)
    expected = in_one_process(program, background, ["log.jsonl"], SourceOptions())
    assert len(expected) > 100
    assert output(story / "out", report) == expected
    assert len(placed) == 1


def test_only_what_patterns_reach_is_shipped(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither triples that nothing reads nor what would follow from them; `:House` is read by way of RDFS."""
    program, background = loaded()
    shipped: list[bytes] = []

    def place(folder: str, name: str, parts: Sequence[Any]) -> work.InFolder:
        shipped.append(b"".join(parts))
        return work.into_folder(folder, name, parts)

    monkeypatch.setattr("dotr.batch.local.into_folder", place)
    inside = [(f"<urn:x:r{i}>", "<urn:x:part>", f"<urn:x:r{i + 1}>") for i in range(500)]
    read = [("<urn:x:r9>", "<urn:x:in>", "<urn:x:b9>"), ("<urn:x:b9>", TYPE, "<urn:x:House>")]
    for number, more in enumerate(([], inside, read)):
        (story / f"out{number}").mkdir()
        request = Request(Deployment(program, [*background, *more]), open_log(["log.jsonl"], SourceOptions()))
        LocalRunner(2, Serial).run(request, str(story / f"out{number}"), quiet)
    assert shipped[0] == shipped[1]
    assert len(shipped[2]) > len(shipped[0])


@pytest.mark.spark
def test_executors_are_brought_one_file(story: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program, background = loaded()
    placed: list[str] = []
    add = shipped_files._added

    def added(session: Any, name: str, parts: Sequence[Any]) -> shipped_files.SparkFile:
        placed.append(name)
        return add(session, name, parts)

    monkeypatch.setattr(shipped_files, "_added", added)
    expected = in_one_process(program, background, ["log.jsonl"], SourceOptions())
    request = Request(Deployment(program, background), open_log(["log.jsonl"], SourceOptions()))
    report = SparkRunner().run(request, str(story / "out"), quiet)
    assert output(story / "out", report) == expected
    lines = [json.loads(line) for line in Path("log.jsonl").read_text(encoding="utf-8").splitlines()]
    log = spark.createDataFrame(
        [(line["time"], line["graph"]) for line in lines], "time bigint, graph string"
    )
    found = dotr.spark.detect(log, "rules.dotr", parallelism=2).collect()
    assert sorted(row.id for row in found) == sorted(json.loads(line)["id"] for line in expected)
    assert len(placed) == 2
    assert len(set(placed)) == 1
