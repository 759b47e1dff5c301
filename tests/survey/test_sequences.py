"""What a sample says of sequences: the element whose condition is never true is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

RULES = """PREFIX : <urn:x:>
QUERY Quote := { SELECT ?s ?v WHERE { ?o :of ?s ; :v ?v } }
SEQUENCE Dip := Start Down+ Up
OF Quote PER ?s
AND Down ON Down.?v < PREV.?v
AND Up ON Up.?v > PREV.?v && COUNT(Down) > 1
WITHIN 1 min
WITH ?s := Start.?s
RULE Seen DEFINE { dotr_x a :Seen } FROM Dip
"""
VALUES = (9, 8, 7, 8, 9, 7, 6, 8, 3, 2)


@pytest.fixture
def sample() -> str:
    lines = [
        json.dumps({"time": n, "graph": f"[] <urn:x:of> <urn:x:{key}> ; <urn:x:v> {value} ."})
        for n, value in enumerate(VALUES * 5)
        for key in "ab"
    ]
    Path("sample.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "sample.jsonl"


def test_right_conditions_are_not_reported(dotr: Dotr, sample: str) -> None:
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    assert "D25" not in dotr("check", "rules.dotr", "--sample", sample).out


def test_rows_starts_matches_and_what_elements_refuse_are_counted_as_in_a_run(
    dotr: Dotr, sample: str
) -> None:
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    ran = dotr("run", "rules.dotr", sample, "-o", "out.jsonl", "-v").err
    line = next(line for line in ran.splitlines() if line.startswith("  Dip"))
    funnel = line[line.index("rows") :]
    assert re.fullmatch(r"rows 100 \(ON not true: Down \d+, Up \d+\) → starts \d+ → matches [1-9]\d*", funnel)
    checked = dotr("check", "rules.dotr", "--sample", sample)
    assert f"sequence Dip: {funnel}" in checked.out + checked.err
    as_json = json.loads(dotr("check", "rules.dotr", "--sample", sample, "--format", "json").out)
    assert as_json["sequences"]["Dip"][0] == {"step": "rows", "count": 100}
    assert "sequences" not in json.loads(dotr("check", "rules.dotr", "--format", "json").out)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Up.?v > PREV", "Up.?v > 90 + PREV", "`Up.?v > 90 + PREV.?v` is true in none of"),
        ("COUNT(Down) > 1", "COUNT(Down) > 7", "`COUNT(Down) > 7` is true in none of"),
        ("Down.?v <", "Down.?s <", "`Down.?s` is an IRI"),
    ],
)
def test_a_condition_that_is_never_true_is_named(
    dotr: Dotr, sample: str, old: str, new: str, said: str
) -> None:
    Path("rules.dotr").write_text(RULES.replace(old, new), encoding="utf-8")
    found = dotr("check", "rules.dotr", "--sample", sample).out
    assert said in found, found
    element = "Down" if old.startswith("Down") else "Up"
    assert f"element `{element}` of sequence `Dip`" in found, found
    ran = dotr("run", "rules.dotr", sample, "-o", "out.jsonl").err
    assert said.split("` is")[0] in ran, ran


def test_a_pattern_with_very_many_ways_is_cut_short(dotr: Dotr, sample: str) -> None:
    pattern = "(A | B)* C D"
    text = RULES.replace("Start Down+ Up", pattern).replace("Start.?s", "C.?s")
    text = text.replace("Down", "A").replace("AND Up ON Up.?v > PREV.?v && COUNT(A) > 1\n", "")
    text = text.replace("AND A ON A.?v < PREV.?v", "AND D ON D.?v > 90")
    Path("rules.dotr").write_text(text, encoding="utf-8")
    assert "true in none of the first" in dotr("check", "rules.dotr", "--sample", sample).out


def test_an_element_that_has_no_row_yet_is_named(dotr: Dotr, sample: str) -> None:
    """DEFINE of SQL may look ahead by NEXT; here the later element has the condition."""
    rules = RULES.replace("AND Down ON Down.?v < PREV.?v", "AND Down ON Down.?v < Up.?v")
    Path("rules.dotr").write_text(rules, encoding="utf-8")
    checked = dotr("check", "rules.dotr", "--sample", sample)
    assert "`Up` has no row yet: write this in the ON of" in checked.out + checked.err
