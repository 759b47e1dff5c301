"""Texts that expressions make have a limit; past it nothing is silently unbound."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from dotr.budget import TEXT, Overlong
from dotr.expressions.functions import FUNCTIONS
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

CONCAT, REPLACE, ENCODE = (FUNCTIONS[name].apply for name in ("CONCAT", "REPLACE", "ENCODE_FOR_URI"))


def test_a_text_of_the_limit_is_made_and_one_of_a_character_more_is_not() -> None:
    half = "a" * (TEXT // 2)
    assert CONCAT(half, half) == half + half
    with pytest.raises(Overlong):
        CONCAT(half, half, "b")
    assert ENCODE("a" * TEXT) == "a" * TEXT
    with pytest.raises(Overlong):
        ENCODE("ä" * (TEXT // 2))


def test_replace_is_refused_before_it_is_made_and_only_then() -> None:
    text, long = "ab" * 1_000, "x" * 2_000
    begun = time.process_time()
    with pytest.raises(Overlong):
        REPLACE(text, "a", long)  # 1,000 places of 2,000 characters
    assert time.process_time() - begun < 1
    assert len(REPLACE(text, "a", "x" * 1_000)) == 1_001_000
    assert REPLACE(text, "c", long) == text
    assert REPLACE(text, "(a)", "$1" * 100) == text.replace("a", "a" * 100)
    with pytest.raises(Overlong):
        REPLACE(text, "(ab)+", "$0$1" * 1_000)
    assert REPLACE(text, "(", long) is None, "that is not a pattern"
    assert REPLACE("a" * (2 * TEXT), "a", "") == ""


STREAM = [
    json.dumps({"time": t, "graph": f'<urn:x:a{t}> <urn:x:log> "{"t" * n}" .'})
    for t, n in enumerate((3, 900, 4))
]
CHAIN = (
    "BIND(CONCAT(?t, ?t, ?t, ?t, ?t, ?t, ?t, ?t) AS ?u) BIND(CONCAT(?u, ?u, ?u, ?u, ?u, ?u, ?u, ?u) AS ?v) "
)
CHAIN += "BIND(CONCAT(?v, ?v, ?v, ?v, ?v, ?v, ?v, ?v) AS ?w) BIND(CONCAT(?w, ?w, ?w, ?w) AS ?y)"
QUERY = f"""PREFIX : <urn:x:>
RULE Long DEFINE {{ dotr_l a :Long ; :is ?n }}
FROM L := {{ SELECT ?y {{ ?x :log ?t {CHAIN} }} }} WITH ?n := STRLEN(L.?y)
"""
OPTIONAL = QUERY.replace("?x :log ?t", "?x :log ?t OPTIONAL { ?z :none ?t }")
DATALOG = """PREFIX : <urn:x:>
RULES <long.dlog>
RULE Long DEFINE { dotr_l a :Long ; :is ?n } FROM L := { SELECT ?y { ?x :long ?y } } WITH ?n := STRLEN(L.?y)
"""
LONG = f"PREFIX : <urn:x:>\n[?x, :long, ?y] :- [?x, :log, ?t], {CHAIN.replace(') BIND', '), BIND')} ."


@pytest.mark.parametrize("rules", [QUERY, OPTIONAL, DATALOG], ids=["query", "optional", "datalog"])
def test_an_instant_whose_texts_are_too_long_is_in_error(dotr: Dotr, rules: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(rules)
    Path("long.dlog").write_text(LONG)
    Path("s.jsonl").write_text("\n".join(STREAM))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "file=dead", "--verify")
    assert ran.code == 0, ran.err
    assert [json.loads(line)["time"] for line in ran.out.splitlines()] == [0, 2]
    assert [json.loads(line)["code"] for line in Path("dead").read_text().splitlines()] == ["D4133"]
    failed = dotr("run", "r.dotr", "s.jsonl")
    assert failed.code == 3
    assert "error[D4133]" in failed.err
    assert "string of more than 1,048,576 characters at 1" in failed.err or rules is DATALOG


RULE = """PREFIX : <urn:x:>
RULE Long DEFINE { dotr_l a :Long ; :is ?n }
FROM L := { SELECT ?x ?t { ?x :log ?t } }
WITH ?n := STRLEN(%s)
RULE All DEFINE { dotr_l a :All ; :is ?t } FROM L := { SELECT ?x ?t { ?x :log ?t } } WITH ?t := L.?t
"""
IN_WITH = RULE % "REPLACE(L.?t, 't', REPLACE(L.?t, 't', 'tttttt'))"
IN_ON = RULE.replace(
    "WITH ?n", "AND EACH M := { SELECT ?x ?t { ?x :log ?t } } WITHIN 9 s FROM L\n  ON %s\nWITH ?n", 1
) % (
    "REPLACE(M.?t, 't', REPLACE(M.?t, 't', 'tttttt')) != L.?t",
    "L.?t",
)
IN_SUM = RULE.replace(
    "WITH ?n",
    "AND SUM(STRLEN(%s)) AS ?m OVER M := { SELECT ?x ?t { ?x :log ?t } } WITHIN 0 s FROM L\nWITH ?n",
    1,
) % ("REPLACE(M.?t, 't', REPLACE(M.?t, 't', 'tttttt'))", "L.?t")


@pytest.mark.parametrize("rules", [IN_WITH, IN_SUM, IN_ON], ids=["with", "sum", "on"])
def test_a_trigger_fact_whose_texts_are_too_long_is_left_out(dotr: Dotr, rules: str) -> None:  # noqa: F811  # fixture
    Path("r.dotr").write_text(rules)
    Path("s.jsonl").write_text("\n".join(STREAM))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip", "--verify")
    assert ran.code == 0, ran.err
    found = [(event["rule"], event["time"]) for event in map(json.loads, ran.out.splitlines())]
    assert [time for rule, time in found if rule == "All"] == [0, 1, 2]
    assert ("Long", 1) not in found
    left = 2 if rules is IN_ON else 1  # the long text is a candidate afterwards, too
    assert f"{left} fact{'s' * (left > 1)} left out as too much (Long {left})" in ran.err
    failed = dotr("run", "r.dotr", "s.jsonl")
    assert failed.code == 3
    assert "error[D4133]: rule `Long` makes a string of more than 1,048,576 characters" in failed.err
