"""`dotr plan`: what will run, in four formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from dotr.cli.main import run
from dotr.cli.plan import as_text, dot, mermaid, plan_picture
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.lang import parse_datalog, parse_program
from dotr.program import Between, Within
from dotr.service.overview import interval, overview

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
    return overview(Deployment(parse_program(PROGRAM)))


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
    assert "  horizon: 65 min\n  depends on the whole past: it consumes `Temp`\n" in text
    assert (
        "  horizon: 1 d\n  depends on the whole past: it reads the events of `Fire`\n"
        "  reads the events of Fire" in text
    )
    assert "QUERY Smoke ?room\n  used by Fire\n  compiled" in text
    assert "not by time: all of the past can influence `Fire`, since it consumes `Temp`" in text


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
    plan = overview(Deployment(parse_program(text)))
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


def test_drawings_join_a_query_to_the_rule_of_its_changes() -> None:
    program = """PREFIX : <urn:>
HOLD :in LATEST
QUERY Places := { SELECT ?who WHERE { ?who :in :hall } }
RULE Came DEFINE { dotr_e a :Came ; :who ?who } FROM Begun := ISTREAM Places WITH ?who := Begun.?who
RULE Went DEFINE { dotr_e a :Went ; :who ?who } FROM Ended := DSTREAM Places WITH ?who := Ended.?who
"""
    plan = overview(Deployment(parse_program(program)))
    joined = list(dot(plan))
    assert '  "query Places" -> "rule Came" [label="ISTREAM trigger"];' in joined
    assert '  "query Places" -> "rule Went" [label="DSTREAM trigger"];' in joined
    named = [line.split("[")[0].split("(")[0].strip() for line in mermaid(plan) if "-->" not in line]
    ends = [end for line in mermaid(plan) if "-->" in line for end in (line.split()[0], line.split()[-1])]
    assert set(ends) <= set(named)
    picture = plan_picture(plan)
    assert picture.count("marker-end") == 2
    assert "ISTREAM, DSTREAM" in picture


@pytest.mark.parametrize("form", ["text", "json", "dot", "mermaid"])
def test_the_building_has_a_plan_in_every_format(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "examples" / "building" / "libraries.dotr"), "--format", form]) == 0
    assert "Lost_Alarm" in capsys.readouterr().out


def test_the_code_of_queries_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "examples" / "fire" / "fire.dotr"), "--code"]) == 0
    assert "    | def " in capsys.readouterr().out


LIMITS = (40, 50, 60)
OVER = """RULE Over{0} DEFINE {{ dotr_x :room ?room }} FROM Smoke
AND LAST Hot := {{ SELECT ?room ?val WHERE {{ ?o :room ?room ; :val ?val FILTER(?val > {0}) }} }}
    WITHIN 5 min FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room
"""
THRESHOLDS = PROGRAM.partition("QUERY Temp")[0] + "".join(map(OVER.format, LIMITS))


def test_the_plan_of_rules_that_share_thresholds_is_the_one_that_runs() -> None:
    deployment = Deployment(parse_program(THRESHOLDS))
    running = Pipeline(deployment)
    running.begin(Clock())
    kept = "the facts that are last above some threshold of each key, for 5 min"
    for shown_rule in overview(deployment)["rules"]:
        (hot,) = shown_rule["conjuncts"]
        others = [f"Over{n}" for n in LIMITS if f"Over{n}" != shown_rule["name"]]
        assert (hot["keeps"], hot["shared_with"], hot["sharers"]) == (kept, others, 2)
    text = "\n".join(as_text(overview(deployment)))
    assert f"keeps {kept}\n        shared with Over50, Over60\n" in text
    assert [plan.steps for plan in deployment.rule_plans()] == [
        plan.steps for plan in running._detect.network.plans
    ]


@pytest.mark.parametrize(
    ("rest", "kept"),
    [
        ("", "a running AVG above each of several thresholds of each key, for 5 min"),
        (" && Hot.?val - Smoke.?room < 30", "all facts above some threshold of each key, for 5 min"),
    ],
)
def test_the_plan_of_rules_that_share_totals_says_so(rest: str, kept: str) -> None:
    text = THRESHOLDS.replace("AND LAST Hot", "AND AVG(Hot.?val) AS ?mean OVER Hot")
    program = parse_program(text.replace("Hot.?room = Smoke.?room", f"Hot.?room = Smoke.?room{rest}"))
    for shown_rule in overview(Deployment(program))["rules"]:
        (hot,) = shown_rule["conjuncts"]
        assert (hot["keeps"], hot["sharers"]) == (kept, 2)


def test_what_a_cool_down_keeps_is_its_own_window() -> None:
    """It depends on the whole past all the same: state and influence are two things."""
    program = parse_program("""PREFIX : <http://example.org/>
RULE Warm DEFINE { dotr_x :room ?room }
FROM Hot := { SELECT ?room WHERE { ?o a :Hot ; :room ?room } }
AND NOT Told := Warm WITHIN 20 min BEFORE Hot ON Told.?room = Hot.?room
WITH ?room := Hot.?room
""")
    plan = overview(Deployment(program))
    (warm,) = plan["rules"]
    assert (warm["horizon"], warm["influence"]) == ("20 min", None)
    text = "\n".join(as_text(plan))
    assert "  horizon: 20 min\n  depends on the whole past: it reads its own earlier events\n" in text
    assert "`Warm`: by key ?room" in text
    assert "horizon 20 min" in "\n".join(dot(plan))


def test_influence_is_handed_on_through_the_rules_that_are_read() -> None:
    """Up to a rule on a circle, and no further: what reads nothing of it has a bound."""
    text = "PREFIX : <http://example.org/>\nQUERY Q := { SELECT ?x WHERE { ?x a :Q } }\n"
    for name, rest in {
        "A": "FROM Q AND NOT Old := C WITHIN 1 min BEFORE Q",
        "B": "FROM A AND EACH Q WITHIN 2 min FROM A",
        "C": "FROM B",
        "D": "FROM C AND EACH Q WITHIN 3 min FROM C",
        "E": "FROM Q AND EACH More := Q WITHIN 4 min FROM Q",
        "F": "FROM Q AND EACH E WITHIN 5 min FROM Q",
    }.items():
        text += f"RULE {name} DEFINE {{ dotr_x a :{name} }} {rest}\n"
    found = {
        rule["name"]: (rule["horizon"], rule["influence"], rule["influence_reason"])
        for rule in overview(Deployment(parse_program(text)))["rules"]
    }
    assert found == {
        "A": ("1 min", None, "it reads the events of `C`"),
        "B": ("2 min", None, "it reads the events of `A`"),
        "C": ("0 s", None, "it reads the events of `B`"),
        "D": ("3 min", None, "it reads the events of `C`"),
        "E": ("4 min", "4 min", ""),
        "F": ("5 min", "9 min", ""),
    }


def test_the_plan_of_a_crowd_of_rules_is_linear() -> None:
    """Work, not time: every query is described once for all that share it."""
    rules = 600
    text = "PREFIX : <http://example.org/>\n" + "".join(
        f"RULE R{i} DEFINE {{ dotr_x a :R }} FROM Q := {{ SELECT * WHERE {{ ?x :v ?v FILTER(?v > {i}) }} }}\n"
        for i in range(rules)
    )
    plan = overview(Deployment(parse_program(text)))
    assert {len(query["shared_with"]) for query in plan["queries"]} == {12}
    assert {query["sharers"] for query in plan["queries"]} == {rules - 1}
    lines = list(as_text(plan))
    assert len(lines) < 13 * rules
    assert max(map(len, lines)) < 300


def test_what_bounds_the_state_of_what_lasts_is_said() -> None:
    program = parse_program(
        "PREFIX : <urn:>\nHOLD :in LATEST FOR 1 h\nHOLD :near FOR 10 min\nHOLD :knows\nHOLD :x FOR 0 s\n"
        "QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }\n"
        "RULE Came DEFINE { dotr_c a :Came } FROM C := ISTREAM In WITH ?x := C.?x\n"
        "RULE Seen DEFINE { dotr_s a :Seen } FROM In WITH ?x := In.?x\n"
        "RULE Bell DEFINE { dotr_b a :Bell } FROM B := { SELECT ?x WHERE { ?x a :Ring } } WITH ?x := B.?x\n"
    )
    plan = overview(Deployment(program))
    assert [(entry["what"], entry["bound"]) for entry in plan["lasting"][:4]] == [
        (
            "HOLD :in LATEST FOR 1 h",
            "by the subjects: of each the values stated last and by what comes in 1 h",
        ),
        ("HOLD :near FOR 10 min", "by what comes in 10 min"),
        ("HOLD :knows", "grows until deleted"),
        ("HOLD :x FOR 0 s", "nothing is held"),
    ]
    queries = {query["name"]: query for query in plan["queries"]}
    assert "ISTREAM has each once" in queries["In"]["lasting"]
    assert queries["In"]["rules"] == ["Came (ISTREAM)", "Seen"]
    assert "lasting" not in queries["Bell.B"]
    lines = list(as_text(plan))
    assert "  HOLD :knows: grows until deleted" in lines
    assert "  over held triples it has all its answers at every graph: ISTREAM has each once" in lines


def test_what_follows_from_what_lasts_lasts_in_the_plan() -> None:
    program = replace(
        parse_program(
            "PREFIX : <urn:>\nHOLD :in\nRULE Far DEFINE { dotr_f a :Far }\n"
            "FROM Q := { SELECT ?x WHERE { ?x :under ?y } } WITH ?x := Q.?x\n"
        ),
        datalog=parse_datalog("PREFIX : <urn:>\n:under(?x, ?y) :- :in(?x, ?y) .\n"),
    )
    (query,) = overview(Deployment(program))["queries"]
    assert "lasting" in query
    assert not overview(Deployment(replace(program, holds=())))["lasting"]


def test_what_events_state_and_delete_stands_under_their_rule() -> None:
    program = parse_program(
        "PREFIX : <urn:>\nHOLD :state LATEST\nQUERY In := { SELECT ?x WHERE { ?m :in ?x } }\n"
        "RULE Enter DEFINE { dotr_e a :Entered } FROM In WITH ?x := In.?x\n"
        "INSERT { ?x :state :busy ; :since dotr_e . ?x a :Room } DELETE { ?x :since ?old }\n"
        "RULE Seen DEFINE { dotr_s a :Seen } FROM S := { SELECT ?x WHERE { ?x :since ?e } } WITH ?x := S.?x\n"
    )
    plan = overview(Deployment(program))
    lines = list(as_text(plan))
    start = lines.index("RULE Enter")
    assert [line for line in lines[start : start + 9] if "next moment" in line] == [
        "  at the next moment deletes ?x :since ?old",
        "  at the next moment states ?x :state :busy",
        "  at the next moment states ?x :since dotr_e",
        "  at the next moment states ?x a :Room",
    ]
    assert "  what events state of :since: grows until deleted" in lines
    assert "  what events state of a :Room: grows until deleted" in lines
    queries = {query["name"]: query for query in plan["queries"]}
    assert "lasting" in queries["Seen.S"]
    assert "lasting" not in queries["In"]
