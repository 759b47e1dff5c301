"""The examples of Laser (Bazoobandi, Beck, Urbani 2017), worked out there by hand."""

from __future__ import annotations

import pytest

from dotr.events import Time
from dotr.program.program import LarsProgram, Modality
from dotr.reference.lars import LiteralLars
from dotr.windows.engine import LarsEngine
from dotr.windows.rules import strata
from tests.windows.building import (
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
        layers = strata(rules)
        lars = request.param(rules, layers, first, 1, CLOCK)
        names = list(dict.fromkeys(rule.head.atom.name for rule in rules.rules))
        return held(lars, names, len(layers), facts, first, until)

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


def test_what_is_put_at_a_point_holds_there_though_what_stood_ends(run) -> None:  # type: ignore[no-untyped-def]
    rules = program(
        rule(atom("a"), window(Modality.AT, 0, "p", at="t"), at="t", offset=1),
        rule(atom("a"), now("q"), now("z", negated=True)),
        rule(atom("always"), window(Modality.ALWAYS, 1, "a")),
        rule(atom("twice"), window(Modality.AT_LEAST, 3, "a", count=2)),
        rule(atom("at", "?t"), window(Modality.AT, 2, "a", at="t"), now("q", negated=True)),
    )
    lars = run(rules, {3: {"q": [()]}, 4: {"p": [()], "q": [()]}}, 0, 9)
    assert points(lars, "a") == [3, 4, 5]
    assert points(lars, "always") == [4, 5]
    assert points(lars, "twice") == [4, 5, 6, 7]
    assert [len(atoms["at"]) for atoms in lars.values()] == [0, 0, 0, 0, 0, 3, 2, 1, 0, 0]


def test_long_bodies_go_on_in_a_second_function(run) -> None:  # type: ignore[no-untyped-def]
    chain = [now("p", f"?x{i}", f"?x{i + 1}") for i in range(24)]
    rules = program(
        rule(atom("lasts", "?x0", "?x24"), *chain),
        rule(atom("stands", "?x0", "?x24"), *chain, now("z", negated=True)),
    )
    facts: Facts = {
        2: {"p": [row(f"n{i}", f"n{i + 1}") for i in range(25)]},
        3: {"p": [row(f"n{i}", f"n{i + 1}") for i in range(24)]},
        4: {"p": [row(f"n{i}", f"n{i + 1}") for i in range(25)], "z": [()]},
    }
    holding = run(rules, facts, 0, 5)
    for name in ("lasts", "stands"):
        assert points(holding, name, "n0", "n24") == [2, 3, *([4] if name == "lasts" else [])]
        assert points(holding, name, "n1", "n25") == [2, *([4] if name == "lasts" else [])]
