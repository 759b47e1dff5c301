"""The examples of Laser (Bazoobandi, Beck, Urbani 2017), worked out there by hand."""

from __future__ import annotations

import pytest

from dotr.events import Time
from dotr.ir.lars import LarsProgram, Modality
from dotr.lars.engine import LarsEngine
from dotr.reference.lars import LiteralLars
from tests.lars.building import (
    CLOCK,
    Facts,
    Holding,
    atom,
    held,
    last,
    now,
    program,
    row,
    rule,
    sometime,
    window,
)

EVALUATED_BY = [LiteralLars, LarsEngine]

FIGURE_1: Facts = {
    36: {"a": [row("x1", "y")]},
    38: {"a": [row("x2", "y")], "b": [row("y", "z")]},
    40: {"a": [row("x3", "y")]},
}
EXAMPLE_2 = rule(
    atom("q", "?x", "?y", "?z"), sometime(3, "a", "?x", "?y"), last(3, ("a", "b"), "b", "?y", "?z")
)


@pytest.fixture(params=EVALUATED_BY)
def run(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    def run(rules: LarsProgram, facts: Facts, first: Time, until: Time) -> Holding:
        lars = request.param(rules, [range(len(rules.rules))], first, 1, CLOCK)
        names = list(dict.fromkeys(rule.head.atom.name for rule in rules.rules))
        return held(lars, names, 1, facts, first, until)

    return run


def points(holding: Holding, name: str, *values: str) -> list[Time]:
    return [point for point, atoms in holding.items() if row(*values) in atoms[name]]


def test_example_1_a_time_window_and_a_tuple_window_show_the_same(run) -> None:  # type: ignore[no-untyped-def]
    rules = program(
        rule(atom("time", "?x"), sometime(3, "a", "?x", "y")),
        rule(atom("tuple", "?x"), last(3, ("a", "b"), "a", "?x", "y")),
        rule(atom("b_after_a", "?x"), last(2, ("a", "b"), "a", "?x", "y")),
        rule(atom("a_after_b", "?x"), last(2, ("b", "a"), "a", "?x", "y")),
    )
    at_41 = run(rules, FIGURE_1, 35, 42)[41]
    assert at_41["time"] == at_41["tuple"] == [row("x2"), row("x3")]
    assert at_41["b_after_a"] == [row("x3")]
    assert at_41["a_after_b"] == [row("x2"), row("x3")]


def test_examples_2_and_3_a_join_over_both_windows(run) -> None:  # type: ignore[no-untyped-def]
    holding = run(program(EXAMPLE_2), FIGURE_1, 35, 42)
    assert holding[41]["q"] == [row("x2", "y", "z"), row("x3", "y", "z")]
    assert points(holding, "q", "x1", "y", "z") == [38, 39]
    assert points(holding, "q", "x2", "y", "z") == [38, 39, 40, 41]
    assert points(holding, "q", "x3", "y", "z") == [40, 41, 42]


def test_example_5_a_window_holds_as_long_as_it_reaches(run) -> None:  # type: ignore[no-untyped-def]
    holding = run(program(rule(atom("q", "?x"), sometime(3, "a", "?x", "y"))), FIGURE_1, 35, 42)
    assert points(holding, "q", "x1") == [36, 37, 38, 39]


def test_examples_6_and_7_annotations_overlap(run) -> None:  # type: ignore[no-untyped-def]
    facts = {5: {"a": [row("y")]}, 8: {"a": [row("y")]}}
    holding = run(program(rule(atom("q", "?x"), sometime(9, "a", "?x"))), facts, 0, 20)
    assert points(holding, "q", "y") == list(range(5, 18))


def test_example_8_always_ends_where_the_atom_does(run) -> None:  # type: ignore[no-untyped-def]
    facts = {point: {"a": [row("y")]} for point in (5, 6, 7)}
    holding = run(program(rule(atom("q", "?x"), window(Modality.ALWAYS, 2, "a", "?x"))), facts, 0, 9)
    assert points(holding, "q", "y") == [7]


def test_example_9_a_tuple_window_forgets_by_count(run) -> None:  # type: ignore[no-untyped-def]
    rules = program(rule(atom("q"), last(3, ("a", "b"), "b", "y", "z")))
    facts = {**FIGURE_1, 41: {"a": [row("x4", "y")]}, 43: {"a": [row("x5", "y")]}}
    assert points(run(rules, facts, 35, 45), "q") == [38, 39, 40, 41, 42]


def test_always_can_hold_at_the_beginning_and_a_past_head_is_seen_later_only(run) -> None:  # type: ignore[no-untyped-def]
    rules = program(
        rule(atom("steady"), window(Modality.ALWAYS, 3, "a")),
        rule(atom("back"), window(Modality.AT, 4, "a", at="t"), now("b"), at="t", offset=-1),
        rule(atom("seen"), sometime(4, "back")),
        rule(atom("ahead"), window(Modality.AT, 0, "a", at="t"), at="t", offset=2),
    )
    facts = {0: {"a": [()]}, 1: {"a": [()]}, 4: {"b": [()]}}
    holding = run(rules, facts, 0, 9)
    assert points(holding, "steady") == [0, 1]
    assert points(holding, "back") == []
    assert points(holding, "seen") == [4]
    assert points(holding, "ahead") == [2, 3]
