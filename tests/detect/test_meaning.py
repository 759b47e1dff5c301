"""Sentences of the language's table of meaning, held against the oracle and the engine alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from dotr.detect.detector import TeslaDetector
from dotr.errors import DataError
from dotr.events import Clock, Fact, Match
from dotr.program import Const, Every, Fresh, Program, TemplateVar
from dotr.program.names import match_hash, match_id
from dotr.rdf.terms import RDF_TYPE, XSD, Term, integer
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import (
    CLOCK,
    A,
    B,
    C,
    absent,
    at,
    attribute,
    before,
    between,
    both,
    call,
    each,
    equal,
    facts,
    first,
    last,
    program,
    rule,
    times,
    total,
    within,
)

Make = Callable[..., Any]
Rows = Sequence[Sequence[Term | int | None]]


@pytest.fixture(params=[LiteralTesla, TeslaDetector], ids=["oracle", "engine"])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def run(
    make: Make, of: Program, stream: Mapping[int, Mapping[str, Rows]], clock: Clock = CLOCK
) -> list[Match]:
    """The matches of a stream given as time → query → rows, ticks included."""
    detector = make(of, clock)
    found: list[Match] = []
    now: int | None = None
    for time, content in stream.items():
        tick = None if now is None else detector.next_tick(now)
        while tick is not None and tick < time:
            found += detector.at(tick, {}, False)
            tick = detector.next_tick(tick)
        found += detector.at(time, {name: facts(time, *rows) for name, rows in content.items()}, True)
        now = time
    return found


def smoke(*conjuncts: Any, **rest: Any) -> Program:
    return program(rule("Fire", at("Smoke"), *conjuncts, **rest))


HEAT = {t: {"Heat": [(A, t)]} for t in (1, 2, 3)}


def test_within_from_is_closed_at_both_ends(make: Make) -> None:
    of = smoke(each(at("Heat"), within(2, "Smoke")))
    assert times(run(make, of, {**HEAT, 4: {"Heat": [(A, 4)], "Smoke": [(A, 0)]}})) == [
        (4, 2),
        (4, 3),
        (4, 4),
    ]


def test_within_before_leaves_the_reference_time_out(make: Make) -> None:
    of = smoke(each(at("Heat"), before(2, "Smoke")))
    assert times(run(make, of, {**HEAT, 4: {"Heat": [(A, 4)], "Smoke": [(A, 0)]}})) == [(4, 2), (4, 3)]


def test_last_is_the_greatest_in_canonical_order_and_first_the_least(make: Make) -> None:
    stream = {1: {"Heat": [(B, 2), (A, 9), (B, 1)]}, 2: {"Smoke": [(A, 0)]}}
    window = within(5, "Smoke")
    assert run(make, smoke(last(at("Heat"), window)), stream)[0].facts[1][1] == (B, integer(2))
    assert run(make, smoke(first(at("Heat"), window)), stream)[0].facts[1][1] == (A, integer(9))


def test_last_k_gives_one_match_each_in_canonical_order(make: Make) -> None:
    stream = {**HEAT, 4: {"Smoke": [(A, 0)]}}
    assert times(run(make, smoke(last(at("Heat"), within(9, "Smoke"), k=2)), stream)) == [(4, 2), (4, 3)]
    assert times(run(make, smoke(first(at("Heat"), within(9, "Smoke"), k=2)), stream)) == [(4, 1), (4, 2)]


def test_on_is_applied_before_selection(make: Make) -> None:
    stream = {1: {"Heat": [(A, 70)]}, 2: {"Heat": [(A, 20)]}, 3: {"Heat": [(B, 80)]}, 4: {"Smoke": [(A, 0)]}}
    on = both(equal("Heat.k", "Smoke.k"), call(">", "Heat.v", 60))
    assert times(run(make, smoke(last(at("Heat"), within(9, "Smoke"), on)), stream)) == [(4, 1)]


def test_a_choice_is_never_revisited_because_a_later_conjunct_fails(make: Make) -> None:
    stream = {1: {"Heat": [(A, 1)], "Wind": [(A, 1)]}, 2: {"Heat": [(A, 2)]}, 3: {"Smoke": [(A, 0)]}}
    of = smoke(
        last(at("Heat"), within(9, "Smoke")), last(at("Wind"), within(9, "Heat"), equal("Wind.v", "Heat.v"))
    )
    assert run(make, of, stream) == []


def test_the_reference_itself_is_no_candidate_but_for_aggregates(make: Make) -> None:
    stream = {1: {"Smoke": [(A, 1)]}, 2: {"Smoke": [(A, 2)]}}
    again = at("Again", "Smoke")
    window = within(5, "Smoke")
    assert times(run(make, smoke(last(again, window)), stream)) == [(2, 1)]
    assert times(run(make, smoke(first(again, window)), stream)) == [(2, 1)]
    assert times(run(make, smoke(absent(again, window)), stream)) == [(1,)]
    counted = smoke(total("COUNT", None, "n", again, window), give={"n": "?n"})
    assert [m.bindings for m in run(make, counted, stream)] == [(integer(1),), (integer(2),)]


def test_equal_facts_of_one_instant_are_different_facts(make: Make) -> None:
    of = smoke(each(at("Again", "Smoke"), within(0, "Smoke")))
    found = run(make, of, {1: {"Smoke": [(A, 1), (A, 1)]}})
    assert [(m.facts[0][2], m.facts[1][2]) for m in found] == [(0, 1), (1, 0)]


def test_not_between_is_open(make: Make) -> None:
    of = smoke(last(at("Heat"), within(9, "Smoke")), absent(at("Rain"), between("Heat", "Smoke")))
    wet = {1: {"Heat": [(A, 1)], "Rain": [(A, 1)]}, 3: {"Smoke": [(A, 1)], "Rain": [(A, 1)]}}
    assert times(run(make, of, wet)) == [(3, 1)]
    assert run(make, of, {1: wet[1], 2: {"Rain": [(A, 1)]}, 3: wet[3]}) == []


def test_aggregates_of_nothing_and_of_errors(make: Make) -> None:
    def one(function: str, rows: Rows, name: str = "v") -> tuple[Term, ...] | None:
        of = smoke(
            total(function, attribute(f"Heat.{name}"), "n", at("Heat"), within(5, "Smoke")), give={"n": "?n"}
        )
        found = run(make, of, {1: {"Heat": rows, "Smoke": [(A, 0)]}})
        return found[0].bindings if found else None

    assert one("SUM", []) == (integer(0),)
    assert one("COUNT", []) == (integer(0),)
    assert [one(f, []) for f in ("AVG", "MIN", "MAX")] == [None, None, None]
    assert one("SUM", [(A, 1), (B, None)]) is None
    assert one("AVG", [(A, 1), (B, B)]) is None
    assert one("COUNT", [(A, 1), (B, None)]) == (integer(1),)
    assert one("MIN", [(A, 3), (B, None), (C, A)]) == (A,)
    assert one("MAX", [(A, 3), (B, None), (C, A)]) == (integer(3),)


def test_a_sum_of_doubles_does_not_depend_on_what_has_left_the_window(make: Make) -> None:
    big, small = f'"100000000000000000000"^^<{XSD}double>', f'"0.1"^^<{XSD}double>'
    of = smoke(total("SUM", attribute("Heat.v"), "n", at("Heat"), within(1, "Smoke")), give={"n": "?n"})
    stream = {1: {"Heat": [(A, big)]}, 2: {"Heat": [(A, small)]}, 3: {"Smoke": [(A, 0)]}}
    assert [m.bindings for m in run(make, of, stream)] == [(small,)]


def test_on_may_use_an_earlier_aggregate(make: Make) -> None:
    of = smoke(
        total("AVG", attribute("Heat.v"), "mean", at("Heat"), within(9, "Smoke")),
        each(at("Hot", "Heat"), within(9, "Smoke"), call(">", "Hot.v", "?mean")),
    )
    assert times(run(make, of, {**HEAT, 4: {"Smoke": [(A, 0)]}})) == [(4, 3)]


def test_where_and_with_errors_drop_the_match(make: Make) -> None:
    stream = {1: {"Smoke": [(A, None)]}}
    assert run(make, smoke(where=call(">", "Smoke.v", 0)), stream) == []
    assert run(make, smoke(give={"v": "Smoke.v"}), stream) == []
    assert len(run(make, smoke(give={"v": call("COALESCE", "Smoke.v", 0)}), stream)) == 1


def test_consumption_takes_effect_after_the_matches_of_one_trigger_fact(make: Make) -> None:
    of = smoke(last(at("Heat"), within(9, "Smoke"), k=2), consuming=["Heat"])
    found = run(make, of, {**HEAT, 4: {"Smoke": [(A, 0), (B, 0)]}, 5: {"Smoke": [(A, 0)]}})
    assert times(found) == [(4, 2), (4, 3), (4, 1)]


def test_only_emitted_matches_consume(make: Make) -> None:
    of = smoke(last(at("Heat"), within(9, "Smoke")), give={"v": "Smoke.v"}, consuming=["Heat"])
    found = run(make, of, {**HEAT, 4: {"Smoke": [(A, None)]}, 5: {"Smoke": [(A, 1)]}, 6: {"Smoke": [(A, 1)]}})
    assert times(found) == [(5, 3), (6, 2)]


def test_consumption_is_of_its_position_alone(make: Make) -> None:
    of = smoke(
        last(at("Heat"), within(9, "Smoke")),
        last(at("Other", "Heat"), within(9, "Smoke")),
        total("COUNT", None, "n", at("All", "Heat"), within(9, "Smoke")),
        give={"n": "?n"},
        consuming=["Heat"],
    )
    found = run(make, of, {**HEAT, 4: {"Smoke": [(A, 0)]}, 5: {"Smoke": [(A, 0)]}})
    assert times(found) == [(4, 3, 3), (5, 2, 3)]
    assert {m.bindings for m in found} == {(integer(3),)}


def test_ticks_come_from_the_first_instant_on_and_touch_no_other_rule(make: Make) -> None:
    ticking = rule("Tick", Every(5, "Now"), absent(at("Beat"), within(3, "Now")))
    other = rule("Other", at("Beat"))
    found = run(make, program(ticking, other), {4: {"Beat": [(A, 1)]}, 5: {}, 17: {}, 20: {"Beat": [(A, 1)]}})
    assert [(m.rule, m.time) for m in found] == [(1, 4), (0, 10), (0, 15), (1, 20)]


def test_composites_are_facts_of_the_rules_that_name_them(make: Make) -> None:
    fire = rule("Fire", at("Smoke"), give={"room": "Smoke.k"})
    alarm = rule(
        "Alarm",
        at("Fire", variables="room", chained=True),
        absent(
            at("Earlier", "Fire", "room", chained=True), before(5, "Fire"), equal("Earlier.room", "Fire.room")
        ),
        give={"room": "Fire.room"},
    )
    of = program(alarm, fire)
    found = run(make, of, {1: {"Smoke": [(A, 1), (A, 1), (B, 1)]}, 3: {"Smoke": [(A, 1), (C, 1)]}})
    assert [(m.rule, m.time, m.bindings, m.facts[0][2]) for m in found] == [
        (0, 1, (A,), 0),
        (0, 1, (A,), 1),
        (0, 1, (B,), 0),
        (1, 1, (A,), 0),
        (1, 1, (A,), 1),
        (1, 1, (B,), 0),
        (0, 3, (C,), 0),
        (1, 3, (A,), 0),
        (1, 3, (C,), 0),
    ]
    names = {match_id(fire, m) for m in found if m.rule == 1}
    assert {m.facts[0][3] for m in found if m.rule == 0} <= names


def test_a_rule_may_chain_on_its_own_past(make: Make) -> None:
    once = rule(
        "Once",
        at("Smoke"),
        absent(
            at("Before", "Once", "room", chained=True), before(3, "Smoke"), equal("Before.room", "Smoke.k")
        ),
        give={"room": "Smoke.k"},
    )
    stream = {t: {"Smoke": [(A, 1)]} for t in range(1, 9)}
    assert [m.time for m in run(make, program(once), stream)] == [1, 5]


def test_a_template_that_is_no_graph_drops_the_match_and_is_counted(make: Make) -> None:
    fire = rule(
        "Fire",
        at("Smoke"),
        give={"s": "Smoke.k", "p": "Smoke.v"},
        template=[(Fresh("dotr_id"), RDF_TYPE, A), (TemplateVar("s"), TemplateVar("p"), C)],
    )
    alarm = rule("Alarm", at("Fire", variables="s p", chained=True))
    detector = make(program(fire, alarm), CLOCK)
    rows = [(A, B), (1, B), (A, 1), ("_:b", B), (A, "_:b"), (A, None)]
    found = detector.at(1, {"Smoke": facts(1, *rows)}, True)
    assert [m.bindings for m in found if m.rule == 0] == [("_:b", B), (A, B)]
    assert len([m for m in found if m.rule == 1]) == 2
    assert detector.dropped == 3


def test_now_and_times_have_the_form_of_the_data(make: Make) -> None:
    give = {
        "at": "Smoke.time",
        "now": call("NOW"),
        "apart": call("-", "Smoke.time", "Heat.time"),
        "word": Const('"x"'),
    }
    of = smoke(last(at("Heat"), within(5_000_000, "Smoke")), give=give)
    stream = {1_000_000: {"Heat": [(A, 1)]}, 2_500_000: {"Smoke": [(A, 1)]}}
    bindings = run(make, of, stream, Clock(integer=False))[0].bindings
    when = f'"1970-01-01T00:00:02.5Z"^^<{XSD}dateTime>'
    assert bindings == (when, when, f'"1.5"^^<{XSD}decimal>', '"x"')
    bindings = run(make, of, stream, Clock(integer=True, unit=1000))[0].bindings
    assert bindings == (integer(2500), integer(2500), f'"1.5"^^<{XSD}decimal>', '"x"')


def test_keys_are_found_by_value_not_by_text(make: Make) -> None:
    def double(text: str) -> Term:
        return f'"{text}"^^<{XSD}double>'

    def decimal(text: str) -> Term:
        return f'"{text}"^^<{XSD}decimal>'

    of = smoke(each(at("Heat"), within(9, "Smoke"), equal("Heat.k", "Smoke.k")))
    keys = [integer(1), double("1"), double("0.1"), decimal("0.1"), decimal("0.100000000000000001")]

    def equals(key: Term) -> set[Term | None]:
        found = run(make, of, {1: {"Heat": [(k, 0) for k in keys]}, 2: {"Smoke": [(key, 0)]}})
        return {m.facts[1][1][0] for m in found}

    assert equals(decimal("1")) == {integer(1), double("1")}
    assert equals(double("0.1")) == set(keys[2:])
    assert equals(decimal("0.1")) == {double("0.1"), decimal("0.1")}


def test_time_that_does_not_increase_is_refused(make: Make) -> None:
    detector = make(smoke(), CLOCK)
    detector.at(2, {}, True)
    with pytest.raises(DataError, match="time runs backwards: 2 after 2"):
        detector.at(2, {}, True)


def test_names_tell_apart_what_texts_would_mix_up() -> None:
    one: list[Fact] = [(1, (A, B), 0, "")]
    seen = {
        match_hash(1, tuple(one)),
        match_hash(2, tuple(one)),
        match_hash(1, ((1, (A,), 0, ""), (1, (B,), 0, ""))),
        match_hash(1, ((1, (A, B), 1, ""),)),
        match_hash(1, ((1, (A, None), 0, ""),)),
        match_hash(1, ((1, (None, A), 0, ""),)),
    }
    assert len(seen) == 6
    assert all(len(name) == 24 and name.islower() and name.isalnum() for name in seen)
    assert match_hash(1, tuple(one)) == "ofcjexhqovukkynbigp5mix2"
