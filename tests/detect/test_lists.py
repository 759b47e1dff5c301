"""What lists of COLLECT cost: a trigger fact may not make more triples than its budget has units."""

from __future__ import annotations

import pytest

import dotr

RULES = """
PREFIX : <urn:>
QUERY Seen := { SELECT ?v WHERE { ?s :v ?v } }
QUERY Ask := { SELECT ?a WHERE { ?a a :Ask } }
RULE All DEFINE { dotr_e :all ?all } FROM Ask
AND EACH One := Seen WITHIN 9 s BEFORE Ask
AND COLLECT(Seen.?v) AS ?list OVER Seen WITHIN 9 s BEFORE Ask
WITH ?v := One.?v, ?all := ?list
"""


def events(values: int, budget: int) -> int:
    """How many events have a list, each of as many members as there are events."""
    engine = dotr.Engine.from_text(RULES, budget=budget)
    engine.push("@prefix : <urn:> . " + " ".join(f"[] :v {n} ." for n in range(values)), at=0)
    engine.push("@prefix : <urn:> . :q a :Ask .", at=1)
    found = engine.finish()
    assert all(len(event["all"]) == values for event in found)
    return len(found)


def test_each_match_is_charged_for_the_members_of_its_list() -> None:
    assert events(100, 30_000) == 100
    with pytest.raises(dotr.ProgramError, match=r"the list \?all: 200 rows"):
        events(200, 30_000)
