"""The choice of cuts, and the reasons given for it."""

from __future__ import annotations

import re
import sys

import pytest
from msgspec.structs import replace

from dotr.batch.runs import COPIES, LEAST, MOST, lay_out
from dotr.batch.time_cuts import Even, balanced_slices
from dotr.detect.partitioning import By, bucket, computed_heads, describe, plan_batch, sequential, stream_keys
from dotr.lang import parse_program
from dotr.program import Every, Expression, Program
from dotr.program.program import LarsProgram, TimeWindow, WindowAggregate
from dotr.program.queries import Var
from dotr.rdf.terms import XSD_FLOAT
from tests.detect.building import (
    absent,
    at,
    before,
    both,
    call,
    each,
    equal,
    last,
    program,
    rule,
    within,
)
from tests.windows.building import atom, now
from tests.windows.building import rule as lars_rule

SECOND = 1_000_000


def strategies(whole: Program, by: By = By.AUTO) -> list[str]:
    return [line for line in describe(whole, plan_batch(whole, by)) if not line.startswith(" ")]


def test_a_rule_whose_events_all_carry_the_room_goes_by_room_and_by_time() -> None:
    fire = rule(
        "Fire",
        at("Smoke"),
        last(at("Heat"), within(5 * SECOND, "Smoke"), equal("Heat.k", "Smoke.k")),
        absent(at("Drill"), within(60 * SECOND, "Smoke"), equal("Smoke.k", "Drill.k")),
    )
    assert strategies(program(fire)) == ["`Fire`: by key ?k and by time (overlap 1 min)"]
    assert strategies(program(fire), By.KEY) == ["`Fire`: by key ?k"]
    assert strategies(program(fire), By.TIME) == ["`Fire`: by time (overlap 1 min)"]


def test_a_key_may_come_through_a_chain_of_events() -> None:
    rules = rule(
        "R",
        at("A"),
        each(at("B"), within(SECOND, "A"), equal("B.v", "A.k")),
        each(at("C"), within(SECOND, "B"), equal("B.v", "C.k")),
        consuming=["C"],
    )
    assert stream_keys(program(rules), [0]) == {"A": (0,), "B": (1,), "C": (0,)}
    assert strategies(program(rules)) == ["`R`: by key ?k"]


def test_two_equations_make_a_key_of_two_parts() -> None:
    on = both(equal("B.k", "A.k"), equal("B.v", "A.v"))
    rules = rule("R", at("A"), each(at("B"), within(SECOND, "A"), on))
    assert stream_keys(program(rules), [0]) == {"A": (0, 1), "B": (0, 1)}


def test_an_equation_of_an_absence_carries_no_key_to_others() -> None:
    rules = rule(
        "R",
        at("A"),
        absent(at("B"), within(SECOND, "A"), equal("B.k", "A.k")),
        each(at("C"), within(SECOND, "A"), equal("C.k", 1)),
    )
    assert stream_keys(program(rules), [0]) is None


def test_a_disjunction_is_no_equation() -> None:
    either = call("||", equal("B.k", "A.k"), equal("B.v", 1))
    assert stream_keys(program(rule("R", at("A"), each(at("B"), within(SECOND, "A"), either))), [0]) is None


def test_a_stream_in_two_positions_has_one_key() -> None:
    crossed = rule("R", at("A"), each(at("Again", "A"), before(SECOND, "A"), equal("Again.v", "A.k")))
    straight = rule("R", at("A"), each(at("Again", "A"), before(SECOND, "A"), equal("Again.k", "A.k")))
    assert stream_keys(program(crossed), [0]) is None
    assert stream_keys(program(straight), [0]) == {"A": (0,)}


def chained(value: Expression | str) -> Program:
    one = rule("One", at("A"), give={"x": value})
    position = at("One", variables="x", chained=True)
    two = rule("Two", at("B"), each(position, within(SECOND, "B"), equal("One.x", "B.k")))
    return program(one, two)


def test_a_chained_rule_must_hand_its_key_on() -> None:
    assert stream_keys(chained("A.v"), [0, 1]) == {"A": (1,), "B": (0,), "One": (0,)}
    assert stream_keys(chained(call("STR", "A.v")), [0, 1]) is None


def test_a_float_carries_no_key() -> None:
    cast = call(f"<{XSD_FLOAT}>", "B.k")
    one = rule(
        "One", at("A"), each(at("B"), within(SECOND, "A"), equal("B.k", "A.k")), give={"k": "A.k", "x": cast}
    )
    link = at("One", variables="k x", chained=True)
    two = rule(
        "Two",
        at("D"),
        each(link, within(SECOND, "D"), equal("One.x", "D.k")),
        each(at("E"), within(SECOND, "D"), equal("E.k", "One.x")),
    )
    assert stream_keys(program(one, two), [0, 1]) is None


def test_of_a_head_only_what_comes_from_a_fact_is_not_computed() -> None:
    seen = now("seen", "?x", "?y")
    count = WindowAggregate(
        "COUNT", None, False, Var("n"), atom("seen", "?x", "?o"), TimeWindow(60), (Var("x"),)
    )
    heads = LarsProgram(
        (
            lars_rule(atom("pair", "?x", "?y"), seen),
            lars_rule(atom("busy", "?x", "?n"), count),
            lars_rule(atom("fixed", "?x", "c"), seen),
        ),
        1,
        {"pair": ("x", "y"), "busy": ("x", "n"), "fixed": ("x", "_2")},
    )
    whole = replace(program(rule("R", at("seen", variables="k v"))), lars=heads)
    assert {("busy", "n"), ("fixed", "_2")} == {
        found for found in computed_heads(whole, frozenset()) if " " not in found[0]
    }
    computed = set(computed_heads(whole, {("seen", "v")}))
    assert ("pair", "y") in computed
    assert ("DSTREAM pair", "y") in computed
    assert ("pair", "x") not in computed


def test_equal_values_share_a_bucket_whatever_their_texts() -> None:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    for one, other in [
        (f'"1"^^<{integer}>', '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        (f'"0"^^<{integer}>', '"-0"^^<http://www.w3.org/2001/XMLSchema#double>'),
        (f'"9007199254740993"^^<{integer}>', '"9007199254740992"^^<http://www.w3.org/2001/XMLSchema#double>'),
        (
            '"2026-01-01T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
            '"2026-01-01T09:00:00+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
    ]:
        assert bucket((one,), (0,), 1_000_003) == bucket((other,), (0,), 1_000_003)


def test_chained_rules_share_one_strategy_and_the_sum_of_their_horizons() -> None:
    one = rule("One", at("A"), each(at("B"), within(2 * SECOND, "A")), give={"k": "A.k", "v": "A.v"})
    two = rule("Two", at("C"), each(at("One", chained=True), within(3 * SECOND, "C")))
    alone = rule("Alone", at("A"))
    assert strategies(program(one, alone, two)) == [
        "`One`, `Two`: by time (overlap 5 s)",
        "`Alone`: by key ?k ?v and by time (overlap 0 s)",
    ]


def fire_and_evacuation() -> Program:
    """A fire of a room, reported once, with drills by floor; who is on the floor then."""
    fire = rule(
        "Fire",
        at("Smoke"),
        last(at("Heat"), within(5 * SECOND, "Smoke"), equal("Heat.k", "Smoke.k")),
        absent(at("Drill"), within(9 * SECOND, "Smoke"), equal("Drill.k", "Smoke.v")),
        absent(at("Told", "Fire", chained=True), before(60 * SECOND, "Smoke"), equal("Told.k", "Smoke.k")),
        give={"k": "Smoke.k", "v": "Smoke.v"},
    )
    evacuate = rule(
        "Evacuate",
        at("Fire", chained=True),
        each(at("Entry"), within(60 * SECOND, "Fire"), equal("Entry.k", "Fire.v")),
    )
    return program(fire, evacuate)


def test_streams_without_the_key_are_copied_where_nothing_else_parts_a_rule() -> None:
    """A rule that reads its own events of the same key is not one task because of what else it looks at."""
    whole = fire_and_evacuation()
    plan = plan_batch(whole)
    assert stream_keys(whole, [0, 1]) is None
    assert plan.components[0].keys == {
        "Smoke": (0,), "Heat": (0,), "Fire": (0,), "Drill": (), "Entry": ()
    }  # fmt: skip
    assert describe(whole, plan) == [
        "`Fire`, `Evacuate`: by key ?k, each part with all of `Drill`, `Entry`",
        "    not by time: all of the past can influence `Fire`, since it reads its own earlier events",
        (
            "    not by key alone: no single attribute of the trigger reaches every event "
            "and every chained rule's WITH"
        ),
    ]
    assert sequential(whole, plan) == []
    assert [cut.buckets for cut in lay_out(plan, 8, [0, 9], 9, None).cuts] == [8]
    assert [cut.buckets for cut in lay_out(plan, 500, [0, 9], 9, None).cuts] == [COPIES]


def test_what_is_consumed_or_triggers_a_rule_is_copied_to_nobody() -> None:
    consuming = rule(
        "R",
        at("A"),
        each(at("B"), within(SECOND, "A"), equal("B.k", "A.k")),
        last(at("C"), within(SECOND, "A")),
        consuming=["C"],
    )
    assert strategies(program(consuming)) == ["`R`: one task between gaps longer than 1 s"]
    loop = absent(at("R", chained=True), before(SECOND, "A"), equal("R.k", "A.k"))
    one = rule("R", at("A"), loop, each(at("B"), within(SECOND, "A")), give={"k": "A.k", "v": "A.v"})
    assert strategies(program(one)) == ["`R`: by key ?k, each part with all of `B`"]
    two = rule("S", at("B"), each(at("R", chained=True), within(SECOND, "B")))
    assert strategies(program(one, two)) == ["`R`, `S`: one task between gaps longer than 1 s"]


def test_consuming_without_a_key_is_one_task_and_says_why() -> None:
    rules = rule("R", at("A"), last(at("B"), within(SECOND, "A")), consuming=["B"])
    plan = plan_batch(program(rules))
    assert describe(program(rules), plan) == [
        "`R`: one task between gaps longer than 1 s",
        "    not by time: all of the past can influence `R`, since it consumes `B`",
        "    not by key: no equation in ON links `B` of `R` with an attribute of `A`",
    ]
    assert sequential(program(rules), plan) == ["R"]


def test_a_consuming_rule_forbids_slices_to_what_is_chained_on_it() -> None:
    one = rule(
        "One", at("A"), last(at("B"), within(SECOND, "A")), give={"k": "A.k", "v": "A.v"}, consuming=["B"]
    )
    two = rule("Two", at("C"), each(at("One", chained=True), within(SECOND, "C")))
    assert strategies(program(one, two)) == ["`One`, `Two`: one task between gaps longer than 1 s"]


def test_a_cycle_of_references_is_not_cut_by_time() -> None:
    beat = rule(
        "Beat", at("A"), absent(at("Beat", chained=True), before(SECOND, "A")), give={"k": "A.k", "v": "A.v"}
    )
    whole = program(beat)
    assert describe(whole, plan_batch(whole))[1:2] == [
        "    not by time: all of the past can influence `Beat`, since it reads its own earlier events"
    ]


def test_every_has_no_key() -> None:
    tick = rule("R", Every(SECOND, "Tick"), absent(at("A"), within(SECOND, "Tick")))
    assert strategies(program(tick)) == ["`R`: by time (overlap 1 s)"]


def test_rules_with_agreeing_cuts_travel_together() -> None:
    one = rule("One", at("A"), last(at("B"), within(SECOND, "A"), equal("B.k", "A.k")), consuming=["B"])
    two = rule("Two", at("B"), last(at("C"), within(SECOND, "B"), equal("C.k", "B.k")), consuming=["C"])
    other = rule("Other", at("B"), last(at("C"), within(SECOND, "B"), equal("C.v", "B.v")), consuming=["C"])
    assert [group.rules for group in plan_batch(program(one, two)).groups] == [(0, 1)]
    assert [group.rules for group in plan_batch(program(one, two, replace(other, name="Three"))).groups] == [
        (0, 1),
        (2,),
    ]


def test_a_busy_hour_is_cut_into_more_slices() -> None:
    quiet = [3600 * SECOND * hour for hour in range(12)]
    busy = [3600 * SECOND * 6 + 200 * SECOND * i for i in range(1, 18)]
    slices = balanced_slices(quiet + busy, 5 * SECOND)
    inside = [start for start in slices.starts if 6 * 3600 * SECOND < start < 7 * 3600 * SECOND]
    assert len(inside) == 17


def test_a_slice_far_shorter_than_the_horizon_or_the_log_is_made_longer() -> None:
    """A day's window in slices of two seconds sent every fact to 43,200 of them."""
    day = 86_400_000_000
    plan = plan_batch(program(rule("R", at("A"), each(at("B"), within(day, "A")))))
    (cut,) = lay_out(plan, 2, [0, day], day, 2_000_000).cuts
    assert cut.slices == Even(day // LEAST)
    plan = plan_batch(program(rule("R", at("A"), each(at("B"), within(5, "A")))))
    (cut,) = lay_out(plan, 2, [0, day], day, 1).cuts
    assert cut.slices == Even(day // MOST)


@pytest.mark.parametrize("every", [False, True])
def test_a_plan_takes_work_in_proportion_to_the_rules(every: bool) -> None:
    trigger = "FROM EVERY 5 s AS T_" if every else "FROM T_ := { SELECT ?r { ?o a :S_ ; :room ?r } }"
    parts = ("RULE R_ DEFINE { dotr_r :n ?r }", trigger, "AND LAST L_ :=", "{ SELECT ?r")
    parts += ("{ ?o :t ?v ; :room ?r FILTER(?v > _) } } WITHIN 5 min FROM T_ ON",)
    parts += ("true" if every else "L_.?r = T_.?r", "WITH ?r := L_.?r\n")
    one = " ".join(parts)

    def rules(count: int) -> str:
        numbered = (re.sub(r"(?<!dotr)_", str(number), one) for number in range(count))
        return "PREFIX : <urn:x:>\n" + "".join(numbered)

    def calls(count: int) -> int:
        program, counted = parse_program(rules(count)), [0]

        def count_one(_frame: object, event: str, _argument: object) -> None:
            counted[0] += event in ("call", "c_call")

        sys.setprofile(count_one)
        try:
            plan_batch(program)
        finally:
            sys.setprofile(None)
        return counted[0]

    assert calls(200) < 5 * calls(50)
