"""`dotr plan`: what will run, in four formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr.cli.main import run
from dotr.cli.plan import as_text, dot, mermaid
from dotr.cli.planning import interval, overview
from dotr.ir import Between, Within
from dotr.lang import parse_program

ROOT = Path(__file__).parent.parent.parent
MINUTE = 60_000_000
PROGRAM = """PREFIX : <http://example.org/>
QUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }
QUERY Temp := { SELECT ?room ?val WHERE { ?o a :Temp ; :room ?room ; :val ?val } }

RULE Fire
DEFINE { dotr_x a :Fire ; :room ?room }
FROM Smoke
AND LAST Temp WITHIN 5 min FROM Smoke ON Temp.?room = Smoke.?room && Temp.?val > 60
AND NOT Earlier := Temp WITHIN 1 h BEFORE Temp ON Earlier.?room = Temp.?room
WITH ?room := Smoke.?room
CONSUMING Temp

RULE Again
DEFINE { dotr_x a :Again }
FROM Fire
AND COUNT(*) AS ?n OVER Before2 := Fire WITHIN 1 d BEFORE Fire ON Before2.?room = Fire.?room
WHERE ?n > 1
"""


def shown() -> dict[str, object]:
    return overview(parse_program(PROGRAM), [])


def test_intervals_show_which_end_is_open() -> None:
    assert interval(Within(5 * MINUTE, "A")) == "[A - 5 min, A]"
    assert interval(Within(5 * MINUTE, "A", before=True)) == "[A - 5 min, A)"
    assert interval(Within(0, "A")) == "[A, A]"
    assert interval(Between("A", "B")) == "(A, B)"


def test_the_text_shows_the_tree_of_windows_keys_horizon_and_state() -> None:
    text = "\n".join(as_text(shown()))
    assert (
        """RULE Fire
  Smoke  each fact of query Smoke ?room
  └─ LAST Temp  [Smoke - 5 min, Smoke]  of query Temp
        key Temp.?room = Smoke.?room
        on Temp.?val > 60
"""
        in text
    )
    assert (
        "     └─ NOT Earlier  [Temp - 1 h, Temp)  of query Temp\n           key Earlier.?room = Temp.?room"
        in text
    )
    assert "consumed when used" in text
    assert "  horizon: 65 min\n" in text
    assert "  horizon: 1505 min (1 d of its own)\n  reads the events of Fire" in text
    assert "QUERY Smoke ?room\n  used by Fire\n  compiled" in text
    assert "not by time: `Fire` consumes `Temp`" in text


def test_pruned_rules_and_background_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.dotr").write_text(
        "PREFIX : <http://example.org/>\nBACKGROUND <b.ttl>\nRULES <r.dlog>\n"
        "RULE R DEFINE { dotr_x a :R } FROM Q := { SELECT ?x WHERE { ?o :by ?x . ?x a :Lab } }\n",
        encoding="utf-8",
    )
    (tmp_path / "r.dlog").write_text(
        "PREFIX : <http://example.org/>\n:Lab(?x) :- :has(?x, :bench) .\n:Other(?x) :- :has(?x, :desk) .\n",
        encoding="utf-8",
    )
    (tmp_path / "b.ttl").write_text(
        "@prefix : <http://example.org/> . :r :has :bench ; :name 'x' ; a :Room .", encoding="utf-8"
    )
    assert run(["plan", str(tmp_path / "p.dotr"), "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["datalog"]["reachable"] == [":Lab(?x) :- :has(?x, :bench) ."]
    assert plan["datalog"]["pruned"] == [":Other(?x) :- :has(?x, :desk) ."]
    assert plan["background"] == {
        "triples": 3,
        "reachable": {":has": 1},
        "pruned": {":name": 1, "a :Room": 1},
    }


def test_queries_say_who_shares_them() -> None:
    query = "{ SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }"
    text = PROGRAM.replace("FROM Fire", f"FROM Heat := {query}").replace(
        "Before2.?room = Fire.?room", "Before2.?room = Heat.?room"
    ).replace("BEFORE Fire", "BEFORE Heat")  # fmt: skip
    plan = overview(parse_program(text), [])
    smoke = next(query for query in plan["queries"] if query["name"] == "Smoke")
    assert smoke["shared_with"] == ["Again.Heat"]


def test_graphs_name_every_rule_and_query_once() -> None:
    plan = shown()
    graph = "\n".join(dot(plan))
    assert graph.startswith("digraph plan {")
    assert graph.count('"query Smoke" [') == 1
    assert '"query Temp" -> "rule Fire" [label="NOT [Temp - 1 h, Temp)", style=dashed];' in graph
    chart = list(mermaid(plan))
    assert chart[0] == "flowchart LR"
    assert any(line.endswith('(["Fire · 65 min"])') for line in chart)


@pytest.mark.parametrize("form", ["text", "json", "dot", "mermaid"])
def test_the_building_has_a_plan_in_every_format(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "examples" / "building" / "libraries.dotr"), "--format", form]) == 0
    assert "Lost_Alarm" in capsys.readouterr().out


def test_the_code_of_queries_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "examples" / "fire" / "fire.dotr"), "--code"]) == 0
    assert "    | def " in capsys.readouterr().out
