"""What lasts in explanations: since when, until when, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
HOLD :in LATEST FOR 1 min
HOLD :noise FOR 5 s
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
QUERY Quiet := { SELECT ?x WHERE { ?x a :Room MINUS { ?x :noise ?n } } }
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
RULE Calm DEFINE { dotr_c a :Calm } FROM C := ISTREAM Quiet WITH ?x := C.?x
RULE Rang DEFINE { dotr_r a :Rang }
FROM B := { SELECT ?b ?y WHERE { ?b a :Bell . :ann :in ?y } } WITH ?y := B.?y
"""


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "in.dotr").write_text(RULES)
    (folder / "map.ttl").write_text("<urn:r> a <urn:Room> .\n<urn:bob> <urn:in> <urn:hall> .\n")
    (folder / "s.jsonl").write_text(
        "".join(
            json.dumps(line) + "\n"
            for line in (
                {"time": 1, "graph": "<urn:ann> <urn:in> <urn:r> . <urn:r> <urn:noise> <urn:drill> ."},
                {"time": 3, "graph": "<urn:b> a <urn:Bell> ."},
                {"time": 8, "graph": "<urn:ann> <urn:in> <urn:hall> ."},
                {"time": 9, "delete": "<urn:bob> <urn:in> <urn:hall> ."},
                {"time": 80, "graph": ""},
            )
        )
    )


def reported(dotr: Dotr, *question: str) -> str:
    ran = dotr("explain", "in.dotr", "s.jsonl", *question)
    assert ran.code == 0, ran.err
    return ran.out


def test_what_was_replaced_says_so(dotr: Dotr) -> None:
    assert ":ann :in :r   s.jsonl:1   held since 1 until 8: replaced" in reported(
        dotr, "--rule", "Left", "--at", "8"
    )


def test_a_deleted_line_of_the_background_says_until_when(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Left", "--at", "9")
    assert ":bob :in :hall   background  map.ttl:2   until 9: deleted" in out


def test_what_ended_by_time_says_until_when(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Left")
    assert "held since 8 until another value, at most until 68" in out
    assert "DSTREAM: the answer ends @ 68   1 such answer before, 0 from then on" in out


def test_what_begins_because_something_ended_names_what_ended(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Calm")
    assert "Calm" in out.splitlines()[0]
    assert "@ 6" in out.splitlines()[0]
    assert "ended then: :r :noise :drill   s.jsonl:1   held since 1 until 6" in out
    assert "MINUS: no :r :noise ?n" in out


def test_a_plain_query_stands_on_what_is_held_and_on_the_graph(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Rang")
    assert ":b a :Bell   s.jsonl:2" in out
    assert ":ann :in :r   s.jsonl:1   held since 1 until another value, at most until 61" in out


def test_values_have_the_period(dotr: Dotr) -> None:
    found = json.loads(reported(dotr, "--rule", "Left", "--at", "8", "--format", "json"))
    (leaf,) = found["trigger"]["because"]
    assert {k: leaf[k] for k in ("stated", "since", "until", "ends", "place")} == {
        "stated": "held",
        "since": "1",
        "until": "8",
        "ends": "replaced",
        "place": "s.jsonl:1",
    }
    assert (found["trigger"]["before"], found["trigger"]["after"]) == (1, 0)


def test_provenance_says_when_it_was_invalidated(dotr: Dotr) -> None:
    assert "prov:invalidatedAtTime 8" in reported(dotr, "--rule", "Left", "--at", "8", "--format", "ttl")


def test_a_triple_that_lasts_is_explained_between_graphs(dotr: Dotr) -> None:
    assert reported(dotr, "--triple", ":ann :in :r", "--at", "2").startswith(
        ":ann :in :r   s.jsonl:1   held since 1"
    )
    assert dotr("explain", "in.dotr", "s.jsonl", "--triple", ":ann :in :r", "--at", "70").code == 1


PERMITS = """PREFIX : <urn:>
HOLD :permits LATEST FROM :from UNTIL :until
QUERY Permits := { SELECT ?x ?y WHERE { ?x :permits ?y } }
RULE Opened DEFINE { dotr_o a :Opened } FROM O := ISTREAM Permits WITH ?x := O.?x, ?y := O.?y
RULE Shut DEFINE { dotr_s a :Shut } FROM S := DSTREAM Permits WITH ?x := S.?x, ?y := S.?y
"""
ANNOUNCED = (
    (1, "<urn:p> <urn:permits> <urn:door> ; <urn:from> 4 ; <urn:until> 9 ."),
    (5, "<urn:p> <urn:permits> <urn:gate> ; <urn:from> 7 ; <urn:until> 12 ."),
    (20, ""),
)


def test_what_was_announced_has_its_period(dotr: Dotr, folder: Path) -> None:
    (folder / "in.dotr").write_text(PERMITS)
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in ANNOUNCED]
    (folder / "s.jsonl").write_text("\n".join(lines))
    assert "held since 4 until another value, at most until 9" in reported(
        dotr, "--rule", "Opened", "--at", "4"
    )
    assert "s.jsonl:1   held since 4 until 7: replaced" in reported(dotr, "--rule", "Shut", "--at", "7")
    assert "s.jsonl:2   held since 7 until another value, at most until 12" in reported(
        dotr, "--rule", "Opened", "--at", "7"
    )
    assert "1 such answer before, 0 from then on" in reported(dotr, "--rule", "Shut", "--at", "12")
    for triple, at, code in (("door", 3, 1), ("door", 6, 0), ("gate", 6, 1), ("gate", 8, 0), ("gate", 12, 1)):
        ran = dotr("explain", "in.dotr", "s.jsonl", "--triple", f":p :permits :{triple}", "--at", str(at))
        assert ran.code == code, (triple, at)
    ran = dotr("explain", "in.dotr", "s.jsonl", "--verify")
    assert ran.code == 0, ran.err


def test_why_not_of_a_stream_of_changes(dotr: Dotr) -> None:
    ran = dotr("explain", "in.dotr", "s.jsonl", "--why-not", "Left", "--at", "3")
    assert ran.code == 1
    assert "DSTREAM: no answer over what lasts changes then" in ran.out


def test_a_late_graph_is_named(dotr: Dotr) -> None:
    with open("s.jsonl", "a") as file:
        file.write('{"time": 3, "graph": "<urn:b> a <urn:Bell> ."}\n')
    ran = dotr("explain", "in.dotr", "s.jsonl", "--why-not", "Calm", "--at", "3")
    assert "one came too late, or was refused   s.jsonl:6" in ran.out


def test_what_holds_has_what_lasts(dotr: Dotr) -> None:
    ran = dotr("state", "in.dotr", "s.jsonl", "--at", "9", "--format", "turtle")
    assert ":ann :in :hall ." in ran.out
    assert ":bob" not in ran.out


def test_all_solutions_are_numbered(dotr: Dotr) -> None:
    Path("two.dotr").write_text(
        "PREFIX : <urn:>\nHOLD :in\nQUERY Full := { SELECT DISTINCT ?y WHERE { ?x :in ?y } }\n"
        "RULE Open DEFINE { dotr_o a :Open } FROM F := ISTREAM Full WITH ?y := F.?y\n"
    )
    Path("two.jsonl").write_text(
        '{"time": 1, "graph": "<urn:a> <urn:in> <urn:r> . <urn:b> <urn:in> <urn:r> ."}\n'
    )
    out = dotr("explain", "two.dotr", "two.jsonl", "--all").out
    assert "also, solution 2 of 2:" in out
    assert ":b :in :r" in out
    assert ":b :in :r" not in dotr("explain", "two.dotr", "two.jsonl").out


def test_changes_since_an_instant(dotr: Dotr) -> None:
    ran = dotr("state", "in.dotr", "s.jsonl", "--at", "9", "--changes-since", "3")
    assert ran.code == 0, ran.err
    assert ran.out.split("<urn:dotr:ended>")[1] == (
        " {\n    :ann :in :r .\n    :b a :Bell .\n    :bob :in :hall .\n    :r :noise :drill .\n}\n"
        "<urn:dotr:begun> {\n    :ann :in :hall .\n}\n"
    )
    assert dotr("state", "in.dotr", "s.jsonl", "--at", "3", "--changes-since", "9").code == 2
    assert (
        dotr("state", "in.dotr", "s.jsonl", "--at", "9", "--changes-since", "3", "--format", "turtle").code
        == 2
    )


def test_what_not_exists_looked_for_is_named_and_what_was_deleted(dotr: Dotr) -> None:
    folder = Path(__file__).parents[2] / "examples" / "presence"
    asked = ["explain", str(folder / "presence.dotr"), str(folder / "moves.jsonl"), "--rule", "Trapped"]
    out = dotr(*asked).out
    assert "no :lab :leadsTo :exit" in out
    assert "0 such answers before, 1 from then on" in out
    assert "ended then: :lab :door :hall" in out
    first = json.loads(dotr(*asked, "--format", "json").out)["trigger"]["moved"][0]
    assert (first["stated"], first["until"]) == ("background", "2026-03-03T09:30:00Z")
