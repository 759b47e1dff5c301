"""What costs nothing: silence, what is over, what nobody asks about. Counts, not seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dotr.events import Time
from dotr.program.program import LarsProgram, Modality
from dotr.windows.engine import LarsEngine
from dotr.windows.rules import strata
from dotr.windows.windows import _at_least
from tests.windows.building import CLOCK, atom, last, now, program, row, rule, sometime, window

DAY = 86_400


def silent_points(rules: LarsProgram, facts: int = 3, until: Time = DAY) -> tuple[list[Time], LarsEngine]:
    """The points that are due through `until` without input, after some points with facts of `p`."""
    layers = strata(rules)
    engine = LarsEngine(rules, layers, 0, 1, CLOCK)
    found = []
    point: Time | None = 0
    while point is not None and point <= until:
        engine.begin(point)
        if point < facts:
            engine.facts("p", [(point, row(f"x{point}"))])
        else:
            found.append(point)
        for stratum in range(len(layers)):
            engine.evaluate(stratum)
        engine.end()
        point = point + 1 if point + 1 < facts else engine.due()
    return found, engine


def test_a_day_of_silence_is_a_few_points() -> None:
    lasts = rule(atom("a", "?x"), sometime(10, "p", "?x"))
    stands = rule(atom("calm"), sometime(30, "a", "?x", negated=True))
    always = rule(atom("long"), window(Modality.ALWAYS, 60, "calm"))
    points, _ = silent_points(program(lasts, stands, always))
    assert points == [11, 12, 13, 41, 42, 43, 103]


def test_recursion_through_a_window_stands_without_being_looked_at() -> None:
    rules = program(rule(atom("a", "?x"), now("p", "?x")), rule(atom("a", "?x"), sometime(5, "a", "?x")))
    points, engine = silent_points(rules)
    assert max(points) <= 3 + 5
    assert engine.due() is None
    assert engine.holding("a") == [row("x0"), row("x1"), row("x2")]


def test_what_holds_at_every_point_is_entered_at_every_point_only_where_points_are_asked_for() -> None:
    stands = rule(atom("on"), now("p", "off", negated=True))
    assert silent_points(program(stands))[0] == [3]
    each = rule(atom("when", "?t"), window(Modality.AT, 2, "on", at="t"))
    assert len(silent_points(program(stands, each), until=600)[0]) == 600 - 2


def test_what_is_over_leaves_nothing() -> None:
    rules = program(
        rule(atom("a", "?x"), sometime(10, "p", "?x")),
        rule(atom("b", "?x"), window(Modality.ALWAYS, 2, "a", "?x"), sometime(4, "p", "?x")),
        rule(atom("c", "?x"), window(Modality.AT_LEAST, 4, "a", "?x", count=2), now("b", "?x", negated=True)),
        rule(atom("d", "?x"), window(Modality.AT, 3, "p", "?x", at="t"), at="t", offset=6),
    )
    _, engine = silent_points(rules, facts=40)
    empty = LarsEngine(rules, strata(rules), 0, 1, CLOCK)
    assert engine.due() is None
    engine.begin(DAY)
    for stratum in range(4):
        engine.evaluate(stratum)
    assert len(json.dumps(engine.snapshot())) <= len(json.dumps(empty.snapshot())) + 100


def test_a_window_of_facts_keeps_as_many() -> None:
    rules = program(rule(atom("a", "?x"), last(3, ("p",), "p", "?x")))
    _, engine = silent_points(rules, facts=100)
    _, short = silent_points(rules, facts=3)
    assert engine.holding("a") == [row("x97"), row("x98"), row("x99")]
    assert len(json.dumps(engine.snapshot())) <= len(json.dumps(short.snapshot())) + 50


def test_counting_points_looks_at_as_many_runs_as_are_asked_for_not_at_the_window() -> None:
    runs: list[list[int]] = [[point, point] for point in range(0, 4_000, 2)]
    looked = 0

    class Counted(list[list[int]]):
        def __reversed__(self) -> Iterator[list[int]]:
            nonlocal looked
            for run in super().__reversed__():
                looked += 1
                yield run

    assert _at_least(Counted(runs), 4_000, 3, 3_999) == (3_999, 3_994 + 4_000)
    assert looked <= 9
