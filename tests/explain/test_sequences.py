"""Explanations of sequences: the element of each row, what made a match certain, how far a mapping came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dotr.cli.main import group
from dotr.reference.sequences import LiteralSequence

RULES = """PREFIX : <http://example.org/>
QUERY Row := { SELECT ?v WHERE { ?o :v ?v } }
SEQUENCE Rise := A B+
OF Row
AND B ON B.?v > PREV.?v && B.?v < 100
WITHIN 50 s
WITH ?from := A.?v, ?to := B.?v, ?n := COUNT(B)
RULE Seen DEFINE { dotr_x a :Seen ; :n ?n } FROM Rise WITH ?n := Rise.?n
"""
ROWS = ((1, 5), (2, 6), (3, 1), (10, 2), (200, 0), (201, 300))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    lines = (f'{{"time": {t}, "graph": "<x:{t}> <http://example.org/v> {v} ."}}\n' for t, v in ROWS)
    Path("stream.jsonl").write_text("".join(lines), encoding="utf-8")


def explained(*options: str) -> str:
    result = CliRunner().invoke(group, ["explain", "rules.dotr", "stream.jsonl", "--verify", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.output


def test_each_row_has_its_element_and_the_row_that_ended_it(files: None) -> None:
    text = explained("--rule", "Seen", "--at", "3")
    assert "A: Row  @ 1   ?v 5" in text
    assert "B: Row  @ 2   ?v 6" in text
    assert "certain when the next row was no B, @ 3" in text
    assert "WITH ?n := COUNT(B) = 1" in text


def test_a_deadline_is_named(files: None) -> None:
    assert "certain at the deadline of B, @ 53" in explained("--rule", "Seen", "--at", "53")


def test_the_row_that_ends_a_mapping_is_shown_with_its_condition(files: None) -> None:
    text = explained("--why-not", "Rise", "--at", "201")
    assert "A: Row  @ 200   ?v 0" in text
    assert "no B: Row  @ 201   ?v 300" in text
    assert "not true: B.?v < 100   (B.?v = 300)" in text
    assert "PREV" not in text


def test_what_is_open_says_until_when(files: None) -> None:
    text = explained("--why-not", "Rise", "--at", "10")
    assert "B: Row  @ 10   ?v 2" in text
    assert "it waits for B until 53" in text


@pytest.mark.parametrize("format_", ["json", "ttl", "mermaid", "html"])
def test_every_format_shows_a_match_and_none(files: None, format_: str) -> None:
    assert explained("--rule", "Seen", "--at", "3", "--format", format_)
    assert explained("--why-not", "Rise", "--at", "201", "--format", format_)


@pytest.mark.parametrize("format_", ["text", "json", "ttl", "mermaid", "html"])
def test_a_sequence_of_a_sequence_whose_value_is_unbound_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.chdir(tmp_path)
    inner = "SEQUENCE One := X OF X := Row WITHIN 0 s WITH ?v := X.?v, ?n := COUNT(*)"
    outer = "SEQUENCE Run := One+ OF One WITHIN 5 s WITH ?n := COUNT(One)"
    prefix, rule = "PREFIX : <http://example.org/>", "RULE Seen DEFINE { dotr_x a :Seen } FROM Run"
    row = "QUERY Row := { SELECT ?v { ?o :a ?a OPTIONAL { ?o :v ?v } } }"
    Path("rules.dotr").write_text("\n".join([prefix, row, inner, outer, rule]), encoding="utf-8")
    line = '{"time": 1, "graph": "<x:o> <http://example.org/a> 1 ."}\n{"time": 9, "graph": ""}\n'
    Path("stream.jsonl").write_text(line, encoding="utf-8")
    shown = explained("--rule", "Seen", "--at", "6", "--format", format_)
    assert "Traceback" not in shown
    assert "One" in shown


@pytest.mark.parametrize("pattern", ["A+ B SKIPPING", "A B+"])
def test_a_furthest_mapping_is_found_among_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """The limit of the literal reading of `--verify` once ended explanations, which have one of their own."""
    monkeypatch.chdir(tmp_path)
    text = (
        RULES.replace("A B+", pattern)
        .replace("50 s", "900 s")
        .replace("B.?v > PREV.?v && B.?v < 100", "B.?v > 600")
    )
    Path("rules.dotr").write_text(text, encoding="utf-8")
    lines = (f'{{"time": {t}, "graph": "<x:{t}> <http://example.org/v> {t} ."}}\n' for t in range(500))
    Path("stream.jsonl").write_text("".join(lines), encoding="utf-8")
    result = CliRunner().invoke(
        group, ["explain", "rules.dotr", "stream.jsonl", "--why-not", "Rise", "--at", "499"]
    )
    assert "D4999" not in result.output
    assert "Rise has no match @ 499" in result.output


@pytest.mark.parametrize("second", ["Row", "Other"])
def test_equal_facts_of_two_sources_begin_matches_of_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    """Both matches had one name, and the proof of one event showed the rows of the other (D4090)."""
    monkeypatch.chdir(tmp_path)
    queries = [f"QUERY {name} := {{ SELECT ?v {{ ?o :v ?v }} }}" for name in ("Row", "Other")]
    pattern = f"SEQUENCE Run := Any+ OF A := Row, B := {second} WITHIN 0 s OVERLAPPING WITH ?n := COUNT(*)"
    rule = "RULE Seen DEFINE { dotr_x a :Seen ; :n ?n } FROM Run WITH ?n := Run.?n"
    text = "\n".join(["PREFIX : <http://example.org/>", *queries, pattern, rule])
    Path("rules.dotr").write_text(text, encoding="utf-8")
    Path("stream.jsonl").write_text(
        '{"time": 1, "graph": "<x:o> <http://example.org/v> 1 ."}\n{"time": 9, "graph": ""}\n',
        encoding="utf-8",
    )
    result = CliRunner().invoke(group, ["run", "rules.dotr", "stream.jsonl", "--format", "jsonl"])
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["bindings"]["n"]["value"] for event in events] == ["1", "2"]
    assert len({event["match"]["Run"]["id"] for event in events}) == 2
    for event in events:
        rows = explained("--event", event["id"]).count("Any: ")
        assert str(rows) == event["bindings"]["n"]["value"]


def test_a_rule_without_its_sequence_shows_how_far_that_came(files: None) -> None:
    text = explained("--why-not", "Seen", "--at", "201")
    assert "Seen did not fire @ 201: no Rise then" in text
    assert "Rise has no match @ 201" in text
    assert "not true: B.?v < 100   (B.?v = 300)" in text
    plain = json.loads(explained("--why-not", "Seen", "--at", "201", "--format", "json"))
    assert [one["reason"] for one in plain["sequence"]] == ["no match"]


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [("A+ B SKIPPING", "A.?v > 0"), ("((A+)+)+ B", "A.?v > 0"), ("((A+)+)+ B", "A.?v >= FIRST(A).?v")],
)
def test_ways_that_take_the_same_rows_are_gone_once(
    files: None, monkeypatch: pytest.MonkeyPatch, pattern: str, condition: str
) -> None:
    """Of 40 rows there are 2⁴⁰ ways; the search counts its steps."""
    steps = 0
    satisfies = LiteralSequence.satisfies

    def counted(*given: Any) -> bool:
        nonlocal steps
        steps += 1
        assert steps < 50_000, "too many ways"
        return satisfies(*given)

    monkeypatch.setattr(LiteralSequence, "satisfies", counted)
    rules = RULES.replace("A B+", pattern).replace("B ON B.?v > PREV.?v && B.?v < 100", f"A ON {condition}")
    Path("rules.dotr").write_text(rules.replace("WITHIN", "AND B ON B.?v = 9\nWITHIN"), encoding="utf-8")
    values = [*[1] * 40, 9, 1]
    graphs = [(t, f"<x:{t}> <http://example.org/v> {v} .") for t, v in enumerate(values)]
    lines = (json.dumps({"time": t, "graph": graph}) + "\n" for t, graph in graphs)
    Path("stream.jsonl").write_text("".join(lines), encoding="utf-8")
    command = ["explain", "rules.dotr", "stream.jsonl", "--why-not", "Rise", "--at", "39"]
    result = CliRunner().invoke(group, command)
    assert "A: Row  @ 39   ?v 1" in result.output
    assert "it waits for A until 50" in result.output


def test_a_match_among_more_ways_than_are_searched_says_so(
    files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.explain.sequences.MOST", 3)
    Path("rules.dotr").write_text(RULES.replace("B.?v < 100", "B.?v > FIRST(A).?v"), encoding="utf-8")
    command = ["explain", "rules.dotr", "stream.jsonl", "--rule", "Seen", "--at", "3"]
    result = CliRunner().invoke(group, command)
    assert "it has more ways than are searched for its rows" in result.output
