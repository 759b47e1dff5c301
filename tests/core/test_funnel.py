"""What a funnel counts, by the sentences of the manual."""

from __future__ import annotations

import json

import pytest

from dotr import Engine
from dotr.core.funnel import shown

HEAD = """PREFIX : <urn:>
QUERY Temp := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m } }
QUERY Spike := { SELECT ?m ?v WHERE { ?o :vibration ?v ; :of ?m } }
QUERY Never := { SELECT ?m WHERE { ?o :never ?m } }
QUERY Over10 := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m FILTER(?c > 10) } }
QUERY Over20 := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m FILTER(?c > 20) } }
"""
STREAM = [
    ("vibration", 5, "m1"), ("celsius", 15, "m1"), ("celsius", 25, "m2"), ("vibration", 9, "m1"),
    ("celsius", 35, "m1"), ("celsius", 5, "m1"), ("vibration", 1, "m2"), ("celsius", 12, "m2"),
]  # fmt: skip
"""At 1, 2, …: temperatures of m1 at 2, 5, 6, of m2 at 3, 8."""


def funnels(rules: str) -> dict[str, str]:
    """Rule → its funnel over the stream."""
    return {name: shown(found) for name, found in run(rules).counters.funnel.items()}


def run(rules: str, upto: int = len(STREAM)) -> Engine:
    engine = Engine.from_text(HEAD + rules)
    for time, (what, value, machine) in enumerate(STREAM[:upto], 1):
        engine.push(f"<urn:o> <urn:{what}> {value} ; <urn:of> <urn:{machine}> .", at=time)
    if upto == len(STREAM):
        engine.finish()
    return engine


@pytest.mark.parametrize(
    ("rule", "funnel"),
    [
        ("FROM Temp", "Temp 5"),
        ("FROM Temp WHERE Temp.?c > 10", "Temp 5 → WHERE 4"),
        (
            "FROM Temp AND LAST Spike WITHIN 2 s FROM Temp ON Spike.?m = Temp.?m WHERE Temp.?c > 20",
            "Temp 5 → LAST Spike 4 → WHERE 1",
        ),
        ("FROM Temp AND EACH Spike WITHIN 1 min FROM Temp ON Spike.?m = Temp.?m", "Temp 5 → EACH Spike 6"),
        (
            """FROM Temp AND EACH Spike WITHIN 1 min FROM Temp ON Spike.?m = Temp.?m
            AND NOT Other := Temp BETWEEN Spike AND Temp ON Other.?m = Temp.?m""",
            "Temp 5 → EACH Spike 6 → NOT Other 3",
        ),
        (
            """FROM Temp AND COUNT(*) AS ?n OVER Spike WITHIN 1 min FROM Temp
            AND MAX(S.?v) AS ?x OVER S := Spike WITHIN 1 min FROM Temp WHERE ?n > 1 && ?x > 7""",
            "Temp 5 → COUNT, MAX 5 → WHERE 3",
        ),
        ("FROM Temp AND LAST Never WITHIN 1 min FROM Temp WHERE Temp.?c > 90", "Temp 5 → LAST Never 0"),
        (
            "FROM Temp AND LAST Spike WITHIN 1 min FROM Temp AND LAST Never WITHIN 1 min FROM Temp",
            "Temp 5 → LAST Spike, LAST Never 0",
        ),
        ("FROM EVERY 2 s AS T AND EACH Temp WITHIN 1 s FROM T", "ticks 4 → EACH Temp 5"),
    ],
)  # fmt: skip
def test_each_step_counts_what_it_leaves(rule: str, funnel: str) -> None:
    assert funnels(f"RULE R DEFINE {{ dotr_x a :R }} {rule}") == {"R": funnel}


def test_members_of_a_group_that_share_a_threshold_are_counted_apart() -> None:
    rules = "".join(
        f"RULE Of{name} DEFINE {{ dotr_x a :R }} FROM {name} AND LAST Spike WITHIN 1 min FROM {name} "
        f"ON Spike.?m = {name}.?m && Spike.?v > {least}\n"
        for name, least in (("Over10", 2), ("Over20", 7))
    )
    assert funnels(rules) == {"OfOver10": "Over10 4 → LAST Spike 2", "OfOver20": "Over20 2 → LAST Spike 1"}


def test_a_binding_without_a_value_is_named_where_a_group_counts_behind_it() -> None:
    rules = "".join(
        f"RULE Over{least} DEFINE {{ dotr_x :by ?q }} FROM Temp AND LAST Spike WITHIN 1 min FROM Temp "
        f"ON Spike.?v > {least} WITH ?q := 1 / (Temp.?c - Temp.?c)\n"
        for least in (2, 7)
    )
    shown_ = "Temp 5 → LAST Spike, WITH 0"
    assert funnels(rules) == {"Over2": shown_, "Over7": shown_}


def test_trigger_facts_below_a_threshold_are_none_while_the_rule_sleeps() -> None:
    rules = "".join(
        f"RULE Of{name} DEFINE {{ dotr_x a :R }} FROM {name} AND LAST Never WITHIN 1 min FROM {name}\n"
        for name in ("Over10", "Over20")
    )
    assert funnels(rules) == {"OfOver10": "Over10 4 → LAST Never 0", "OfOver20": "Over20 2 → LAST Never 0"}


def test_a_chained_rule_is_triggered_by_events_private_ones_too() -> None:
    rules = (
        "PRIVATE RULE Warm DEFINE {} FROM Temp WHERE Temp.?c > 10 WITH ?m := Temp.?m "
        "RULE Hot DEFINE { dotr_x a :Hot } FROM Warm WHERE Warm.?m = :m2"
    )
    assert funnels(rules) == {"Warm": "Temp 5 → WHERE 4", "Hot": "Warm 4 → WHERE 2"}


def test_a_rule_that_finds_nothing_triggers_nothing() -> None:
    rules = (
        "RULE One DEFINE { dotr_x a :One } FROM Temp AND LAST Never WITHIN 1 min FROM Temp "
        "RULE Two DEFINE { dotr_x a :Two } FROM One"
    )
    assert funnels(rules) == {"One": "Temp 5 → LAST Never 0", "Two": "One 0"}


def test_matches_without_a_value_are_reported() -> None:
    rule = "RULE R DEFINE { dotr_x :by ?q } FROM Temp WITH ?q := 1 / (Temp.?c - 15)"
    assert funnels(rule) == {"R": "Temp 5 → WITH, DEFINE 4"}


def test_an_engine_that_goes_on_counts_on() -> None:
    rule = "RULE R DEFINE { dotr_x a :R } FROM Temp AND LAST Spike WITHIN 2 s FROM Temp ON Spike.?m = Temp.?m"
    whole = run(rule)
    first = run(rule, upto=5)
    blob = first.snapshot()
    assert json.loads(blob)["counters"]["funnel"]["R"][0][1] == 2  # the instant of 5 is open
    again = Engine.from_text(HEAD + rule)
    again.restore(blob)
    for time, (what, value, machine) in list(enumerate(STREAM, 1))[5:]:
        again.push(f"<urn:o> <urn:{what}> {value} ; <urn:of> <urn:{machine}> .", at=time)
    again.finish()
    assert again.counters == whole.counters


def test_the_facts_of_queries_are_counted() -> None:
    counters = run("RULE R DEFINE { dotr_x a :R } FROM Temp AND LAST Never WITHIN 1 min FROM Temp").counters
    assert counters.streams == {"Temp": 5, "Spike": 3, "Never": 0}
    assert (counters.first, counters.last) == (1_000_000, 8_000_000)


@pytest.mark.parametrize(
    ("sequence", "funnel"),
    [
        # temperatures 15, 25, 35, 5, 12; a row of the next match starts none
        ("A+ OF A := Temp AND A ON A.?c > PREV.?c", "rows 5 (ON not true: A 2) → starts 2 → matches 1"),
        ("A+ OF A := Temp AND A ON A.?c < 0", "rows 5 (ON not true: A 5) → starts 0"),
        ("A B OF A := Temp, B := Spike AND A ON A.?c / 0 > 1", "rows 8 (ON not true: A 5) → starts 0"),
        ("A OF A := Temp", "rows 5 → starts 5 → matches 5"),
        ("A OF A := Temp AND A ON A.?c > 0", "rows 5 → starts 5 → matches 5"),
        (
            "A B OF Temp PER ?m AND A ON A.?c > 10 AND B ON B.?c < A.?c",
            "rows 5 (ON not true: A 1, B 1) → starts 3 → matches 2",
        ),
    ],
)
def test_what_elements_refuse_is_counted(sequence: str, funnel: str) -> None:
    found = funnels(f"SEQUENCE S := {sequence} WITHIN 1 min RULE R DEFINE {{ dotr_r a :R }} FROM S")
    assert found["S"] == funnel
