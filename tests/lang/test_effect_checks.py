"""What `dotr check` says of effects: circles, what cannot be deleted, what graphs and background state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr.cli.main import run
from dotr.lang import check_program

PREFIX = "PREFIX : <http://example.org/>\n"
IN = PREFIX + "QUERY In := { SELECT ?x WHERE { ?o :in ?x } }\n"


def rule(name: str, trigger: str, effect: str, more: str = "", value: str = "") -> str:
    return (
        f"RULE {name} DEFINE {{ dotr_x a :{name} }} FROM T := {trigger} {more}"
        f"WITH ?x := T.?x{value} {effect}\n"
    )


def codes(text: str) -> list[str]:
    return [one.code for one in check_program(["x.dotr"], lambda _: PREFIX + text)[1]]


ON = "ISTREAM { SELECT ?x WHERE { ?x :s :on } }"
COUNT = "ISTREAM { SELECT ?x ?n WHERE { ?x :s ?n } }"
ENDS = "DSTREAM { SELECT ?x WHERE { ?x :s :on } }"


@pytest.mark.parametrize(
    "rules",
    [
        rule("A", ENDS, "INSERT { ?x :s :on }") + rule("B", ON, "DELETE { ?x :s ?y }"),
        "HOLD :s LATEST\n"
        + rule("A", ON, "INSERT { ?x :s :off }")
        + rule("B", ON.replace("on", "off"), "INSERT { ?x :s :on }"),
        rule(
            "A", "ISTREAM { SELECT ?x ?n WHERE { ?x :s ?n } }", "INSERT { ?x :s ?m }", "", ", ?m := T.?n + 1"
        ),
        rule("A", "ISTREAM { SELECT ?x WHERE { ?y :s ?x } }", "INSERT { ?x :s dotr_x }"),
        rule("A", "ISTREAM { SELECT ?x WHERE { ?x a :C MINUS { ?x :s :on } } }", "INSERT { ?x :s :on }")
        + rule("B", ON, "DELETE { ?x :s :on }"),
    ],
)
def test_effects_that_trigger_one_another_are_a_warning(rules: str) -> None:
    assert codes(rules) == ["D1515"]


@pytest.mark.parametrize(
    "rules",
    [
        rule("A", ON, "INSERT { ?x :t :on }"),
        rule("A", ON, "INSERT { ?x :s :off }"),
        rule("A", ON, "INSERT { ?x :s :on }"),
        rule("A", ENDS, "DELETE { ?x :s :on }"),
        "HOLD :s LATEST\n" + rule("A", ON, "INSERT { ?x :s :off }"),
        rule("A", ENDS, "INSERT { ?x :s :on }", "WHERE T.?x != :d ") + rule("B", ON, "DELETE { ?x :s ?y }"),
        rule("A", ENDS, "INSERT { ?x :s :on }")
        + rule("B", "{ SELECT ?x WHERE { ?x :u 1 } }", "DELETE { ?x :s ?y }"),
    ],
)
def test_effects_that_come_to_rest_are_none(rules: str) -> None:
    assert codes(rules) == []


def test_what_events_state_is_known_and_meets_the_window_again() -> None:
    stated = rule("A", "{ SELECT ?x WHERE { ?o :in ?x } }", "INSERT { ?x :state :busy }")
    many = (
        "QUERY Busy := { SELECT ?x WHERE { ?x :state :busy } }\n"
        "RULE M DEFINE { dotr_x :n ?n } FROM EVERY 1 min AS Tick "
        "AND COUNT(*) AS ?n OVER Busy WITHIN 5 min FROM Tick WITH ?n := ?n\n"
    )
    assert codes(stated + many) == ["D1329"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rooms.dlog").write_text(PREFIX + "[?x, :busy, true] :- [?x, :state, :full] .\n")
    (tmp_path / "rooms.ttl").write_text("@prefix : <http://example.org/> . :r1 :state :empty .\n")
    (tmp_path / "sample.jsonl").write_text(
        "".join(
            json.dumps({"time": time, "graph": f"{PREFIX}[] :in :r1 . :r2 :level {time} ."}) + "\n"
            for time in (1, 2)
        )
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(folder: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    (folder / "rooms.dotr").write_text(PREFIX + text)
    assert run(["check", "rooms.dotr", "--format", "json", *options]) == 0
    diagnostics = json.loads(capsys.readouterr().out)["diagnostics"]
    return [one["code"] for one in diagnostics if one["severity"] != "info"]


IS_IN = "{ SELECT ?x WHERE { ?o :in ?x } }"


def test_a_delete_of_what_only_follows_ends_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = "RULES <rooms.dlog>\n" + rule("A", IS_IN, "DELETE { ?x :busy true }")
    assert found(folder, rules, capsys) == ["D1513"]
    assert found(folder, "HOLD :busy\n" + rules, capsys) == []
    assert found(folder, rules + rule("B", IS_IN, "INSERT { ?x :busy true }"), capsys) == []
    assert found(folder, rules.replace(":busy true", ":state ?y"), capsys) == []


def test_background_of_what_latest_replaces_is_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "BACKGROUND <rooms.ttl>\nHOLD :state LATEST\n" + rule("A", IS_IN, "INSERT { ?x :state :full }")
    assert found(folder, rules, capsys) == ["D1514"]
    assert found(folder, rules.replace(" LATEST", ""), capsys) == []


def test_graphs_that_state_what_events_state_are_a_warning_with_integer_time(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "HOLD :level LATEST\n" + rule("A", IS_IN, "INSERT { ?x :level 0 }")
    assert found(folder, rules, capsys, "--sample", "sample.jsonl") == ["D1516"]
    assert found(folder, rules, capsys) == []


def test_a_query_of_what_only_events_state_is_no_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = rule("A", IS_IN, "INSERT { ?x :state :full ; a :Full }") + rule(
        "B", "ISTREAM { SELECT ?x WHERE { ?x :state :full ; a :Full } }", "DELETE { ?x a :Full }"
    )
    assert found(folder, rules, capsys, "--sample", "sample.jsonl") == []
