"""`dotr watch`: the golden scenarios of what lasts as signed answers, and what is asked wrongly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Dotr

GOLDEN = Path(__file__).parent.parent / "golden" / "lasting"
CASES = sorted(file.parent for file in GOLDEN.glob("*/watch.txt"))


def arguments(case: Path, source: Path) -> list[str]:
    """Of what the rules do not declare nothing is held: the scenarios have no `HOLD *` that is implied."""
    rules = case / "rules.dotr"
    rest = [] if "HOLD *" in rules.read_text() else ["--hold", "* FOR 0 s"]
    return ["watch", str(case / "watch.rq"), str(source), "--rules", str(rules), *rest, "--quiet"]


def with_advance(case: Path, folder: Path) -> Path | None:
    """The stream, with an empty graph where the case advances; None where rules change on the way."""
    file = case / "options.yaml"
    options = yaml.safe_load(file.read_text()) if file.exists() else {}
    if "then" in options:
        return None
    text = (case / "stream.jsonl").read_text()
    if "advance" in options:
        text += json.dumps({"time": options["advance"], "graph": ""}) + "\n"
    (folder / "stream.jsonl").write_text(text)
    return folder / "stream.jsonl"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_golden_scenarios_are_signed_answers(case: Path, dotr: Dotr, folder: Path) -> None:
    source = with_advance(case, folder)
    if source is None:
        return
    expected = (case / "watch.txt").read_text()
    reported = dotr(*arguments(case, source), "--format", "text")
    assert (reported.code, reported.out, reported.err) == (0, expected, "")
    verified = dotr(*arguments(case, source), "--verify", "--format", "text")
    assert (verified.code, verified.out) == (0, expected)
    assert as_text(dotr(*arguments(case, source), "--format", "jsonl").out.splitlines()) == expected


def as_text(lines: Sequence[str]) -> str:
    """JSON lines in the notation of the golden files."""
    reported = []
    for line in map(json.loads, lines):
        row = "".join(f"?{name} {short(term)} " for name, term in line["bindings"].items())
        sign = "+" if line["change"] > 0 else "-"
        reported += [f"{sign} {row}@ {line['time']}\n"] * abs(line["change"])
    return "".join(reported)


def short(term: dict[str, str]) -> str:
    return f":{term['value'].removeprefix('ex:')}" if term["type"] == "uri" else term["value"]


def test_there_is_an_answer_sheet_for_nearly_every_scenario() -> None:
    assert len(CASES) >= 31


@pytest.fixture
def files(folder: Path) -> None:
    (folder / "in.rq").write_text("PREFIX : <urn:>\nSELECT ?x WHERE { ?x :in :lab }\n")
    (folder / "map.ttl").write_text("<urn:ann> <urn:in> <urn:lab> .")
    (folder / "s.jsonl").write_text(
        '{"time": 1, "graph": "<urn:bob> <urn:in> <urn:lab> ."}\n'
        '{"time": 4, "delete": "<urn:ann> <urn:in> <urn:lab> ."}\n'
        '{"time": 9, "graph": ""}\n'
    )


@pytest.mark.usefixtures("files")
def test_what_nothing_declares_is_held_until_it_is_deleted(dotr: Dotr) -> None:
    reported = dotr("watch", "in.rq", "s.jsonl", "--background", "map.ttl", "--initial", "--format", "text")
    assert reported.out == "+ ?x :ann\n+ ?x :bob @ 1\n- ?x :ann @ 4\n"
    assert "3 graphs at 3 instants; 2 events (ended 1, begun 1)" in reported.err


@pytest.mark.usefixtures("files")
def test_a_hold_line_may_be_given_with_the_prefixes_of_the_query(dotr: Dotr) -> None:
    reported = dotr("watch", "in.rq", "s.jsonl", "--hold", ":in FOR 3 s", "--format", "text", "-q")
    assert reported.out == "+ ?x :bob @ 1\n- ?x :bob @ 4\n"
    reported = dotr("watch", "in.rq", "s.jsonl", "--hold", ":in FOR 3", "--format", "text", "-q")
    assert reported.code == 3
    assert "--hold.dotr:1:" in reported.err


@pytest.mark.usefixtures("files")
def test_an_ask_has_the_empty_row(dotr: Dotr, folder: Path) -> None:
    (folder / "ask.rq").write_text("ASK { ?yes <urn:in> <urn:lab> }")
    reported = dotr(
        "watch", "ask.rq", "s.jsonl", "--hold", "<urn:in> FOR 3 s", "--initial", "--format", "jsonl", "-q"
    )
    assert reported.out.splitlines() == [
        '{"time":1,"change":1,"bindings":{}}',
        '{"time":4,"change":-1,"bindings":{}}',
    ]
    reported = dotr(
        "watch", "ask.rq", "s.jsonl", "--background", "map.ttl", "--initial", "--format", "jsonl", "-q"
    )
    assert reported.out == '{"time":null,"change":1,"bindings":{}}\n'


@pytest.mark.usefixtures("files")
def test_equal_rows_are_counted(dotr: Dotr, folder: Path) -> None:
    (folder / "places.rq").write_text("SELECT ?y WHERE { ?x <urn:in> ?y }")
    (folder / "two.jsonl").write_text(
        '{"time": 1, "graph": "<urn:a> <urn:in> <urn:lab> . <urn:b> <urn:in> <urn:lab> ."}\n'
    )
    reported = dotr("watch", "places.rq", "two.jsonl", "--format", "jsonl", "-q")
    assert reported.out == '{"time":1,"change":2,"bindings":{"y":{"type":"uri","value":"urn:lab"}}}\n'
    reported = dotr("watch", "places.rq", "two.jsonl", "--format", "text", "-q")
    assert reported.out == "+ ?y <urn:lab> @ 1\n" * 2


@pytest.mark.usefixtures("files")
def test_now_has_no_value_here(dotr: Dotr, folder: Path) -> None:
    (folder / "now.rq").write_text("SELECT ?x WHERE { ?x <urn:in> ?y FILTER(NOW() > 3) }")
    reported = dotr("watch", "now.rq", "s.jsonl")
    assert reported.code == 3
    assert "D1507" in reported.err


@pytest.mark.usefixtures("files")
def test_rules_may_be_datalog_and_dotr_whose_prologue_counts(dotr: Dotr, folder: Path) -> None:
    (folder / "p.dotr").write_text(
        "PREFIX : <urn:>\nBACKGROUND <map.ttl>\nHOLD :in FOR 2 s\n"
        "RULE R DEFINE { dotr_x a :R } FROM Q := { SELECT ?x WHERE { ?x :in ?y } }\n"
    )
    (folder / "p.dlog").write_text("PREFIX : <urn:>\n:in(?x, :lab) :- :seen(?x, :lab) .\n")
    (folder / "t.jsonl").write_text(
        '{"time": 1, "graph": "<urn:eve> <urn:seen> <urn:lab> . <urn:bob> <urn:in> <urn:lab> ."}\n'
        '{"time": 9, "graph": ""}\n'
    )
    reported = dotr(
        "watch",
        "in.rq",
        "t.jsonl",
        "--rules",
        "p.dotr",
        "--rules",
        "p.dlog",
        "--initial",
        "--format",
        "text",
        "-q",
    )
    assert reported.out == "+ ?x :ann\n+ ?x :bob @ 1\n+ ?x :eve @ 1\n- ?x :bob @ 3\n"


ROOMS = """PREFIX : <urn:>
HOLD :state LATEST
QUERY Motion := { SELECT DISTINCT ?room WHERE { ?m a :Motion ; :in ?room } }
PRIVATE RULE Seen DEFINE { dotr_s a :Seen } FROM Motion WITH ?room := Motion.?room
RULE Enter DEFINE { dotr_e a :Entered } FROM Seen WITH ?room := Seen.?room
INSERT { ?room :state :occupied }
RULE Leave DEFINE { dotr_l a :Left } FROM Seen AFTER 6 s AS Due
AND NOT Again := Motion WITHIN 5 s FROM Due ON Again.?room = Seen.?room
WITH ?room := Seen.?room INSERT { ?room :state :empty }
RULE Ended DEFINE { dotr_x a :Ended } FROM Motion
"""


@pytest.fixture
def rooms(folder: Path) -> None:
    (folder / "rooms.dotr").write_text(ROOMS)
    (folder / "state.rq").write_text("PREFIX : <urn:>\nSELECT ?room ?s WHERE { ?room :state ?s }\n")
    motion = "<urn:m> a <urn:Motion> ; <urn:in> <urn:r> ."
    lines = [{"time": time, "graph": motion} for time in (1, 4, 30)]
    lines += [{"time": 50, "insert": "<urn:q> <urn:state> <urn:odd> ."}, {"time": 60, "graph": motion}]
    (folder / "rooms.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.usefixtures("rooms")
def test_rules_with_effects_run(dotr: Dotr) -> None:
    asked = "watch", "state.rq", "rooms.jsonl", "--rules", "rooms.dotr", "--format", "text", "-q"
    reported = dotr(*asked)
    assert (reported.code, reported.err) == (0, "")
    assert reported.out.splitlines() == [
        "+ ?room :r ?s :occupied @ 2",
        "- ?room :r ?s :occupied @ 11",
        "+ ?room :r ?s :empty @ 11",
        "- ?room :r ?s :empty @ 31",
        "+ ?room :r ?s :occupied @ 31",
        "- ?room :r ?s :occupied @ 37",
        "+ ?room :r ?s :empty @ 37",
        "+ ?room :q ?s :odd @ 50",
    ]
    assert dotr(*asked, "--verify").out == reported.out


@pytest.mark.usefixtures("rooms")
def test_periods_are_maximal_and_open_at_both_ends(dotr: Dotr, folder: Path) -> None:
    (folder / "first.ttl").write_text("<urn:r> <urn:state> <urn:empty> . <urn:o> <urn:state> <urn:odd> .")
    asked = "watch", "state.rq", "rooms.jsonl", "--rules", "rooms.dotr", "--periods", "-q"
    reported = dotr(*asked, "--background", "first.ttl", "--format", "text")
    assert (reported.code, reported.err) == (0, "")
    assert reported.out.splitlines() == [
        "?room :r ?s :occupied [2, 11)",
        "?room :r ?s :occupied [31, 37)",
        "?room :o ?s :odd […, …)",
        "?room :r ?s :empty […, …)",  # LATEST never ends background
        "?room :q ?s :odd [50, …)",
    ]
    plain = [json.loads(line) for line in dotr(*asked, "--format", "jsonl").out.splitlines()]
    assert [(line["from"], line["until"]) for line in plain] == [
        (2, 11),
        (11, 31),
        (31, 37),
        (37, None),
        (50, None),
    ]


@pytest.mark.usefixtures("files")
def test_periods_without_rules(dotr: Dotr, folder: Path) -> None:
    asked = "watch", "in.rq", "s.jsonl", "--background", "map.ttl", "--periods", "--format", "text", "-q"
    assert dotr(*asked).out == "?x :ann […, 4)\n?x :bob [1, …)\n"
    (folder / "ask.rq").write_text("ASK { ?x <urn:in> <urn:lab> }")
    (folder / "gap.jsonl").write_text(
        '{"time": 1, "graph": "<urn:a> <urn:in> <urn:lab> ."}\n'
        '{"time": 3, "graph": "<urn:b> <urn:in> <urn:lab> ."}\n'
        '{"time": 8, "graph": "<urn:a> <urn:in> <urn:lab> ."}\n'
        '{"time": 20, "graph": ""}\n'
    )
    held = "watch", "ask.rq", "gap.jsonl", "--hold", "* FOR 2 s", "--periods", "--format", "text", "-q"
    assert dotr(*held).out == "[1, 5)\n[8, 10)\n"


@pytest.mark.usefixtures("rooms")
def test_a_rule_may_have_the_name_that_an_answer_has(dotr: Dotr, folder: Path) -> None:
    (folder / "rooms.dotr").write_text(ROOMS.replace("Enter", "begun").replace("Leave", "ended"))
    asked = "watch", "state.rq", "rooms.jsonl", "--rules", "rooms.dotr", "--periods", "--format", "text", "-q"
    assert dotr(*asked).out.splitlines()[0] == "?room :r ?s :occupied [2, 11)"


@pytest.mark.usefixtures("rooms")
def test_state_and_query_see_effects_that_wait_at_the_end(dotr: Dotr) -> None:
    before = dotr("state", "rooms.dotr", "rooms.jsonl", "--at", "60", "--format", "turtle").out
    assert ":r :state :empty ." in before
    after = dotr("state", "rooms.dotr", "rooms.jsonl", "--at", "61", "--format", "turtle").out
    assert ":r :state :occupied ." in after
    later = dotr("state", "rooms.dotr", "rooms.jsonl", "--at", "70", "--format", "turtle").out
    assert ":r :state :empty ." in later
    query = "SELECT ?s { <urn:r> <urn:state> ?s }"
    for time, value in ((60, ":empty"), (61, ":occupied"), (70, ":empty")):
        ran = dotr("query", "rooms.dotr", "rooms.jsonl", "--at", str(time), query, "--format", "text", "-q")
        assert ran.out.splitlines()[1:] == [value]
