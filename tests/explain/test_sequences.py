"""Explanations of sequences: the element of each row, what made a match certain, how far a mapping came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dotr.cli.main import group

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


def test_a_rule_without_its_sequence_shows_how_far_that_came(files: None) -> None:
    text = explained("--why-not", "Seen", "--at", "201")
    assert "Seen did not fire @ 201: no Rise then" in text
    assert "Rise has no match @ 201" in text
    assert "not true: B.?v < 100   (B.?v = 300)" in text
    plain = json.loads(explained("--why-not", "Seen", "--at", "201", "--format", "json"))
    assert [one["reason"] for one in plain["sequence"]] == ["no match"]
