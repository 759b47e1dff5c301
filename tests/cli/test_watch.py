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
