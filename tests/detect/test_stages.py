"""What was counted of a rule is summed and subtracted, also where one count has fewer steps."""

from __future__ import annotations

from dotr.program.names import subtracted, summed

LONG = {"R": [("Temp", 5), ("WHERE", 3), ("NOT", None)]}
SHORT = {"R": [("Temp", 2), ("WHERE", 1)]}


def test_what_was_counted_since_is_the_difference() -> None:
    assert subtracted(LONG, SHORT) == {"R": [("Temp", 3), ("WHERE", 2), ("NOT", None)]}
    assert subtracted(LONG, {}) == LONG
    assert subtracted(SHORT, SHORT) == {"R": [("Temp", 0), ("WHERE", 0)]}
    assert subtracted({"R": [("Temp", 5), ("WHERE", 3)]}, {"R": [("Temp", None)]}) == {
        "R": [("Temp", None), ("WHERE", None)]
    }


def test_what_lacks_steps_at_its_end_passed_them_all() -> None:
    assert subtracted({"R": [("Temp", 5), ("WHERE", 4)]}, {"R": [("Temp", 2)]}) == {
        "R": [("Temp", 3), ("WHERE", 2)]
    }
    assert summed({"R": [("Temp", 5), ("WHERE", 4)]}, {"R": [("Temp", 2)]}) == {
        "R": [("Temp", 7), ("WHERE", 6)]
    }


def test_trigger_facts_that_came_while_a_rule_slept_passed_no_step() -> None:
    slept, woke = {"R": [("", 3)]}, {"R": [("", 4), ("LAST", 2)]}
    assert summed(slept, woke) == summed(woke, slept) == {"R": [("", 7), ("LAST", 2)]}
    assert summed(slept, slept) == {"R": [("", 6)]}
    assert subtracted(summed(slept, woke), slept) == woke
    assert subtracted({"R": [("", 5)]}, slept) == {"R": [("", 2)]}
