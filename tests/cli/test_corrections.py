"""`dotr run --corrections` and `dotr convert --consolidate`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyoxigraph as ox
import pytest

from tests.cli.conftest import Dotr

RULES = """PREFIX : <ex:>
QUERY Value := { SELECT ?s ?v WHERE { ?s :value ?v } }
QUERY Check := { SELECT ?s WHERE { ?s :check ?x } }
RULE Quiet DEFINE { dotr_x a :Quiet ; :s ?s } FROM Check
AND NOT Value WITHIN 10 s FROM Check ON Value.?s = Check.?s WITH ?s := Check.?s
RULE Total DEFINE { dotr_x a :Total ; :n ?n } FROM Check
AND SUM(Value.?v) AS ?n OVER Value WITHIN 30 s FROM Check ON Value.?s = Check.?s WITH ?n := ?n
"""

COME = ((1, "a", 3), (20, "a", None), (25, "a", 1), (40, "a", None), (15, "a", 4), (12, "b", 7), (50, "b", 1))
"""(time, subject, value; None: a check), as they come; those at 15 and 12 are late."""


@pytest.fixture
def late(dotr: Dotr) -> Dotr:
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    for name, rows in (("come", COME), ("sorted", sorted(COME, key=lambda row: row[0]))):
        lines = [
            {"time": time, "graph": f"<ex:{s}> <ex:{'check' if v is None else 'value'}> {v or 0} ."}
            for time, s, v in rows
        ]
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return dotr


def test_lines_say_what_changes_when_and_why(late: Dotr) -> None:
    ran = late("run", "rules.dotr", "come.jsonl", "--corrections", "1h")
    assert ran.code == 0, ran.err
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [next(iter(event)) for event in found] == ["change"] * len(found)
    assert [(e["change"], e["rule"], e["time"], "corrected_at" in e) for e in found] == [
        (1, "Quiet", 20, False),
        (1, "Total", 20, False),
        (1, "Quiet", 40, False),
        (1, "Total", 40, False),
        (-1, "Quiet", 20, True),
        (-1, "Total", 20, True),
        (1, "Total", 20, True),
        (-1, "Total", 40, True),
        (1, "Total", 40, True),
    ]
    assert found[-1]["corrected_at"] == 50
    assert found[-1]["cause"] == [
        {"time": 12, "place": "come.jsonl:6"},
        {"time": 15, "place": "come.jsonl:5"},
    ]
    assert "2 late graphs in 1 correction (+2 −3 events, 7 graphs replayed)" in ran.err


def test_what_remains_is_the_run_in_order(late: Dotr) -> None:
    assert late("run", "rules.dotr", "come.jsonl", "--corrections", "1h", "-o", "changes.jsonl").code == 0
    ran = late("convert", "--consolidate", "changes.jsonl", "-o", "-")
    assert (ran.code, "3 events to standard output" in ran.err) == (0, True)
    assert ran.out == late("run", "rules.dotr", "sorted.jsonl").out
    assert late("convert", "--consolidate", "changes.jsonl", "-o", "final.jsonl", "-q").code == 0
    assert Path("final.jsonl").read_text(encoding="utf-8") == ran.out


def test_text_has_signs_and_a_table_has_columns(late: Dotr) -> None:
    text = late("run", "rules.dotr", "come.jsonl", "--corrections", "1h", "--format", "text").out
    assert [line[:4] for line in text.splitlines()] == ["+ { "] * 4 + ["− { "] * 2 + ["+ { ", "− { ", "+ { "]
    table = late("run", "rules.dotr", "come.jsonl", "--corrections", "1h", "--format", "csv").out
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["change"] for row in rows] == ["1"] * 4 + ["-1"] * 2 + ["1", "-1", "1"]
    assert {row["cause"] for row in rows} == {"", "come.jsonl:6 come.jsonl:5"}


@pytest.mark.parametrize(("format_", "kind"), [("trig", ox.RdfFormat.TRIG), ("nquads", ox.RdfFormat.N_QUADS)])
def test_graphs_are_invalidated(late: Dotr, format_: str, kind: ox.RdfFormat) -> None:
    text = late("run", "rules.dotr", "come.jsonl", "--corrections", "1h", "--format", format_).out
    quads = list(ox.parse(text, kind))
    prov = "http://www.w3.org/ns/prov#"
    by = [quad for quad in quads if quad.predicate.value == f"{prov}wasInvalidatedBy"]
    at = [quad for quad in quads if quad.predicate.value == f"{prov}invalidatedAtTime"]
    assert (len(by), len(at)) == (6, 3)
    labels = {quad.object.value for quad in quads if quad.predicate.value.endswith("#label")}
    assert labels == {"come.jsonl:5", "come.jsonl:6"}


def test_a_graph_later_than_the_period_is_late(late: Dotr) -> None:
    ran = late("run", "rules.dotr", "come.jsonl", "--corrections", "5s", "--late", "file=late.jsonl")
    assert ran.code == 0
    assert "correction" not in ran.err
    assert len(Path("late.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "code", "exit_"),
    [
        (["--corrections", "1h", "--emit-state", "state.jsonl"], "D4165", 2),
        (["--corrections", "1h", "--explain"], "D4165", 2),
        (["--corrections", "1h", "--format", "jelly", "-o", "x.jelly"], "D4151", 2),
        (["--corrections", "1h", "-o", "x.parquet"], "D4151", 2),
        (["--corrections", "5s", "--lateness", "5s"], "D4167", 2),
        (["--corrections-budget", "0.5"], "--corrections-budget needs --corrections", 2),
        (["--corrections", "1h", "--corrections-budget", "1"], "0.05<=x<=0.95", 2),
    ],
)
def test_what_does_not_go_with_corrections_is_refused(
    late: Dotr, options: list[str], code: str, exit_: int
) -> None:
    ran = late("run", "rules.dotr", "come.jsonl", *options)
    assert (ran.code, code in ran.err) == (exit_, True), ran.err
    assert ran.out == ""
    assert not [path for path in Path().iterdir() if path.suffix in (".part", ".parquet", ".jelly")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"time":1,"graph":""}', "is no event"),
        ('{"change":2,"rule":"A","id":"a","time":1}', "neither 1 nor -1"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        (r'{"rule":"A","id":"\ud800","time":1}', "half a character"),
        ('{"change":-1,"rule":"A","id":"a","time":1}', "takes back an event that is not there"),
        (
            '{"rule":"A","id":"a","time":1}\n{"rule":"A","id":"a","time":"2026-01-01T00:00:00Z"}',
            "of two kinds",
        ),
    ],
)
def test_another_log_is_refused(dotr: Dotr, content: str, message: str) -> None:
    Path("log.jsonl").write_text(content, encoding="utf-8")
    ran = dotr("convert", "--consolidate", "log.jsonl", "-o", "out.jsonl")
    assert (ran.code, "D4166" in ran.err, message in ran.err) == (3, True, True), ran.err
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        (["batch", "rules.dotr", "come.jsonl", "--out", "out"], "a batch sorts its log"),
        (
            ["stream", "rules.dotr", "--source", "files", "in", "--checkpoint", "c", "--out", "out"],
            "take nothing back",
        ),
    ],
)
def test_who_makes_no_corrections_says_why(late: Dotr, verb: list[str], reason: str) -> None:
    ran = late(*verb, "--corrections", "1h")
    assert (ran.code, "D4165" in ran.err, reason in ran.err) == (2, True, True), ran.err
    assert not Path("out").exists()
