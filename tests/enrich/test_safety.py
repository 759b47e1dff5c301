"""Safety and termination of Datalog rules: what binds, what may stand where, and which BIND flows back."""

from __future__ import annotations

import pytest

from dotr.enrich.analysis import check_safety, check_termination, near
from dotr.errors import Diagnostics
from dotr.lang import parse_datalog
from dotr.program import DatalogRule


def rules(text: str) -> tuple[DatalogRule, ...]:
    return parse_datalog(f"PREFIX : <urn:x:>\n{text}")


def unsafe(text: str) -> list[tuple[str, str]]:
    found = Diagnostics()
    for rule in rules(text):
        check_safety(rule, found)
    return [(one.code, one.message.rpartition(": ")[2]) for one in found.found]


@pytest.mark.parametrize(
    "text",
    [
        "[?x, :q, ?y] :- [?x, :p, ?y], NOT [?x, :r, ?z] .",
        "[?x, :q, ?w] :- [?x, :p, ?y], BIND(?v + 1 AS ?w), BIND(?y + 1 AS ?v) .",
        "[?x, :q, ?n] :- AGGREGATE([?y, :p, ?x] ON ?x BIND COUNT(?y) AS ?n), FILTER(?n > 1) .",
        "[:a, :q, :b] .",
    ],
)
def test_rules_whose_variables_are_all_bound(text: str) -> None:
    assert unsafe(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[?x, :q, ?z] :- [?x, :p, ?y] .", [("D3001", "`?z` of the head is not bound")]),
        ("[?x, :q, ?z] :- [?x, :p, ?y], NOT [?x, :r, ?z] .", [("D3001", "`?z` of the head is not bound")]),
        ("[?x, :q, ?x] :- [?x, :p, ?y], FILTER(?z > 1) .", [("D3001", "`?z` of FILTER is not bound")]),
        ("[?x, :q, ?w] :- [?x, :p, ?y], BIND(?z + 1 AS ?w) .", [("D3001", "`?z` of BIND is not bound")]),
        (
            "[?x, :q, ?v] :- [?x, :p, ?y], BIND(?w + 1 AS ?v), BIND(?v + 1 AS ?w) .",
            [("D3001", "`?v` is computed from itself"), ("D3001", "`?w` is computed from itself")],
        ),
        ("[?x, :q, ?y] :- [?x, :p, ?y], BIND(?y + 1 AS ?y) .", [("D3007", "`?y` already has a value")]),
        (
            "[?x, :q, ?v] :- [?x, :p, ?y], BIND(1 AS ?v), BIND(2 AS ?v) .",
            [("D3007", "`?v` already has a value")],
        ),
        (
            "[?x, :q, ?n] :- AGGREGATE([?y, :p, ?z] ON ?x BIND SUM(?v) AS ?n) .",
            [("D3001", "`?x` of ON is not bound"), ("D3001", "`?v` of SUM is not bound")],
        ),
        (
            "[?x, :q, ?y] :- AGGREGATE([?y, :p, ?x] ON ?x BIND COUNT(?y) AS ?y) .",
            [("D3007", "`?y` already has a value")],
        ),
        ("[?x, :q, ?y] :- [?x, :p, ?y], FILTER(NOW() > 1) .", [("D3008", "`NOW` is not allowed in Datalog")]),
        ("['a', :q, ?y] :- [?x, :p, ?y] .", [("D3009", "a literal cannot be a subject")]),
        ("[?x, :q, ?y] :- [?x, :p, ?y], ['a', :p, ?y] .", [("D3009", "this atom never holds")]),
    ],
)
def test_what_is_reported_and_no_more(text: str, found: list[tuple[str, str]]) -> None:
    assert unsafe(text) == found


def test_the_most_similar_variable_is_named() -> None:
    assert near("roam", ["room", "sensor"]) == "did you mean `?room`?"
    assert near("x", ["room"]) == ""


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("[?x, :c, ?m] :- [?x, :c, ?n], BIND(?n + 1 AS ?m) .", 1),
        ("[?x, :d, ?m] :- [?x, :c, ?n], BIND(?n + 1 AS ?m) .", 0),
        ("[?x, :d, ?m] :- [?x, :c, ?n], BIND(?n + 1 AS ?m) . [?x, :c, ?n] :- [?x, :d, ?n] .", 1),
        ("[?x, :c, ?m] :- [?x, :c, ?n], BIND(?n AS ?m) .", 0),
        ("[?x, :c, ?m] :- [?x, :c, ?n], BIND(?n + 1 AS ?v), BIND(?v AS ?m) .", 1),
        ("[?x, :c, ?m] :- [?x, :c, ?n], BIND(?n AS ?v), BIND(?v + 1 AS ?m) .", 1),
        ("[?x, :c, ?m] :- [?x, :c, ?n], [?x, :e, ?v], BIND(?v + 1 AS ?m) .", 0),
        ("[?m, :c, ?x] :- [?x, :c, ?n], BIND(IRI(?n) AS ?m) .", 1),
        ("[?x, ?p, ?m] :- [?x, :c, ?n], [?x, :e, ?p], BIND(?n + 1 AS ?m) .", 1),
        ("[?x, :d, ?m] :- [?x, ?p, ?n], BIND(?n + 1 AS ?m) .", 1),
        ("[?x, :c, ?n] :- [?x, :c, ?n] .", 0),
    ],
)
def test_a_bind_may_not_flow_into_what_it_is_computed_from(text: str, reported: int) -> None:
    found = Diagnostics()
    check_termination(rules(text), found)
    assert [one.code for one in found.found] == ["D3004"] * reported


def test_a_rule_is_reported_once() -> None:
    found = Diagnostics()
    text = "[?x, :c, ?m], [?x, :d, ?m] :- [?x, :c, ?n], [?x, :d, ?o], BIND(?n + ?o AS ?m) ."
    check_termination(rules(text), found)
    assert len(found.found) == 1
