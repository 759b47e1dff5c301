"""A trigger fact over the budget is left out, counted and named by every way of running, and by none else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dotr as library
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment, Settings
from dotr.errors import ProgramError
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import Serial, output, quiet
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

RULES = """PREFIX : <urn:x:>
RULE Pairs
DEFINE { dotr_id a :Pair ; :of ?a, ?b }
FROM Smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }
AND EACH A := { SELECT ?v ?room { ?o :val ?v ; :room ?room } } WITHIN 30 s FROM Smoke ON A.?room = Smoke.?room
AND EACH B := { SELECT ?w ?room { ?o :val ?w ; :room ?room } } WITHIN 30 s FROM Smoke ON B.?room = Smoke.?room
WHERE A.?v < B.?w
WITH ?a := A.?v, ?b := B.?w
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room }
FROM Smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }
WITH ?room := Smoke.?room
RULE Again
DEFINE { dotr_id a :Again ; :of ?a }
FROM Alarm AND EACH P := Pairs WITHIN 20 s FROM Alarm
WITH ?a := P.?a
"""
BUDGET = "400"


def lines() -> list[str]:
    """Quiet rooms, and at 40 to 49 one with twenty readings; smoke every 10 s, once as the last instant."""
    found = []
    for time in range(71):
        graph = f"<urn:x:r{time}> <urn:x:val> {time % 7} ; <urn:x:room> {time % 10} ."
        if 40 <= time < 50:
            graph += "".join(f"<urn:x:q{time}{i}> <urn:x:val> {i} ; <urn:x:room> 0 ." for i in range(1, 4))
        if time % 10 == 0:
            graph += f"<urn:x:s{time}> a <urn:x:Smoke> ; <urn:x:room> 0, 1 ."
        found.append(json.dumps({"time": time, "graph": graph}))
    return found


@pytest.fixture
def story(dotr: Dotr) -> tuple[list[str], str]:  # noqa: F811  # the fixture
    """What `dotr run` says of a log that has too much at some instants, checked against the literal reading:
    its events, and who was left out.
    """
    Path("r.dotr").write_text(RULES)
    Path("log.jsonl").write_text("\n".join(lines()))
    ran = dotr("run", "r.dotr", "log.jsonl", "--budget", BUDGET, "--on-error", "skip", "--verify")
    assert ran.code == 0, ran.err
    assert ran.err.count("warning[D4010]") == 1
    assert "`Pairs` takes more than 400 units of work for one fact of `Smoke`" in ran.err
    assert '"rule":"Pairs"' in ran.out
    return sorted(ran.out.splitlines()), left_out(ran.err)


def left_out(err: str) -> str:
    """What a summary says was left out."""
    found = re.search(r"; ([^;]* left out as too much [^;]*);", err)
    assert found, err
    return found[1]


def test_rules_that_take_too_much_end_a_run_behind_their_instant(
    dotr: Dotr,  # noqa: F811  # the fixture
    story: tuple[list[str], str],
) -> None:
    assert story[1] == "4 facts left out as too much (Pairs 4)"
    ran = dotr("run", "r.dotr", "log.jsonl", "--budget", BUDGET)
    assert ran.code == 3
    assert "error[D4010]" in ran.err
    times = [json.loads(line)["time"] for line in ran.out.splitlines()]
    assert max(times) == 40, "what other rules found at that instant is told"
    assert dotr("run", "r.dotr", "log.jsonl").code == 0, "the budget is 10,000,000"


def test_what_is_left_out_is_no_dead_letter_as_its_graphs_were_taken(
    dotr: Dotr,  # noqa: F811  # the fixture
    story: tuple[list[str], str],
) -> None:
    options = ("--budget", BUDGET, "--on-error", "file=dead.jsonl")
    ran = dotr("run", "r.dotr", "log.jsonl", *options)
    assert (ran.code, sorted(ran.out.splitlines()), left_out(ran.err)) == (0, *story)
    assert Path("dead.jsonl").read_text() == ""
    assert "are not dead letters" in ran.err
    again = dotr(
        "run", "r.dotr", "log.jsonl", "--only", "Pairs", "--on-error", "file=dead.jsonl", "--overwrite"
    )
    assert again.code == 0, (
        "with the budget that there is without the option all of the rule's events are found"
    )
    assert {json.loads(line)["time"] for line in again.out.splitlines()} >= {40, 50, 60}


def test_a_feed_leaves_out_the_same_however_it_is_cut(dotr: Dotr, story: tuple[list[str], str]) -> None:  # noqa: F811  # the fixture
    assert dotr("deploy", "r.dotr", "--budget", BUDGET).code == 0
    all_lines = lines()
    for number, part in enumerate((all_lines[:48], all_lines[48:55], all_lines[55:])):
        Path(f"{number}.jsonl").write_text("\n".join(part))
        fed = dotr("feed", f"{number}.jsonl", "-o", "out.jsonl", "--on-error", "skip", "--budget", BUDGET)
        assert fed.code == 0, fed.err
        if number == 1:
            assert left_out(fed.err) == "1 fact left out as too much (Pairs 1)"
    assert sorted(Path("out.jsonl").read_text().splitlines()) == story[0]
    status = json.loads(dotr("status", "--format", "json").out)
    assert status["left_out"] == {"Pairs": 4}
    assert story[1] in dotr("status").out
    Path("3.jsonl").write_text("\n".join(all_lines[40:50]).replace('"time": ', '"time": 1'))
    Path("4.jsonl").write_text(
        json.dumps({"time": 160, "graph": "<urn:x:s> a <urn:x:Smoke> ; <urn:x:room> 0 ."})
    )
    fed = dotr("feed", "3.jsonl", "4.jsonl", "-o", "out.jsonl", "--budget", BUDGET)
    assert fed.code == 3, "and under fail it ends"
    assert "error[D4010]" in fed.err


def test_an_engine_raises_and_goes_on_without_the_fact(story: tuple[list[str], str]) -> None:
    engine = library.Engine("r.dotr", budget=int(BUDGET))
    found, raised = [], 0
    for line in lines():
        graph = json.loads(line)
        try:
            found += [event.to_json() for event in engine.push(graph["graph"], graph["time"])]
        except ProgramError:
            raised += 1
    with pytest.raises(ProgramError, match="D4010"):
        engine.finish()
    found += [event.to_json() for event in engine.finish()]
    assert raised == 3, "and the last one at the end"
    assert engine.counters.left_out == {"Pairs": 4}
    assert sorted(found) == story[0]


def files(out: Path) -> list[str]:
    """The events of a finished batch, sorted."""
    return sorted(line for part in out.glob("part-*") for line in part.read_text().splitlines())


@pytest.mark.parametrize("options", [(), ("--by", "time", "--slice", "12s"), ("--by", "key")])
def test_a_batch_leaves_out_the_same_however_it_is_parted(
    dotr: Dotr,  # noqa: F811  # the fixture
    story: tuple[list[str], str],
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    batch = (
        "batch",
        "r.dotr",
        "--engine",
        "local",
        "log.jsonl",
        "--out",
        "out",
        "--budget",
        BUDGET,
        *options,
    )
    ran = dotr(*batch, "--on-error", "skip", "--verify")
    assert ran.code == 0, ran.err
    assert files(Path("out")) == story[0]
    assert left_out(ran.err) == story[1]
    assert ran.err.count("warning[D4010]") == 1
    assert json.loads(Path("out/_dotr_run.json").read_text())["left_out"] == {"Pairs": 4}
    failed = dotr(*batch, "--overwrite")
    assert failed.code == 3
    assert "error[D4010]" in failed.err


@pytest.mark.spark
def test_spark_leaves_out_the_same(story: tuple[list[str], str], spark: Any) -> None:
    program = load_program(["r.dotr"], read_rules_text)
    log = open_log(["log.jsonl"], SourceOptions(), fail=False)
    deployment = Deployment(program, (), Settings(budget=int(BUDGET)))
    Path("out").mkdir()
    request = Request(deployment, log, treatment=Treatment(forgiving=True))
    report = SparkRunner().run(request, str(Path("out").resolve()), quiet)
    assert report.left_out == {"Pairs": 4}
    assert [finding.code for finding in report.findings] == ["D4010"]
    assert output(Path("out"), report) == story[0]
