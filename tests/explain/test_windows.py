"""From when to when the window of a conjunct lasts, both ends included."""

from __future__ import annotations

import pytest

from dotr.lang import parse_program
from dotr.reference.tesla import window

HEAD = """PREFIX : <urn:x:>
QUERY A := { SELECT ?x WHERE { ?o :a ?x } }
QUERY B := { SELECT ?x WHERE { ?o :b ?x } }
"""
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("conjunct", "first", "last", "itself"),
    [
        ("EACH B WITHIN 3 s FROM A", 7 * SECOND, 10 * SECOND, False),
        ("EACH B WITHIN 3 s BEFORE A", 7 * SECOND, 10 * SECOND - 1, False),
        ("EACH Again := A WITHIN 3 s FROM A", 7 * SECOND, 10 * SECOND, True),
        ("EACH Again := A WITHIN 3 s BEFORE A", 7 * SECOND, 10 * SECOND - 1, False),
        ("COUNT(*) AS ?n OVER Again := A WITHIN 3 s FROM A", 7 * SECOND, 10 * SECOND, False),
    ],
)
def test_a_window_ends_at_its_reference_which_is_no_candidate_but_of_aggregates(
    conjunct: str, first: int, last: int, itself: bool
) -> None:
    rule = parse_program(f"{HEAD}RULE R DEFINE {{ dotr_x a :R }} FROM A AND {conjunct}").rules[0]
    trigger = (10 * SECOND, ("<urn:v>",), 0, "")
    found = window(rule, rule.conjuncts[0], {"A": trigger})
    assert found == (range(first, last + 1), trigger if itself else None)


def test_between_has_neither_end() -> None:
    text = (
        "RULE R DEFINE { dotr_x a :R } FROM A AND LAST B WITHIN 9 s BEFORE A AND NOT C := B BETWEEN B AND A"
    )
    rule = parse_program(HEAD + text).rules[0]
    row = {"A": (10, (), 0, ""), "B": (4, (), 0, "")}
    assert window(rule, rule.conjuncts[1], row) == (range(5, 10), None)
