"""What golden cases do not show of AFTER: cuts of a batch, silences, states."""

from __future__ import annotations

import dotr
from dotr.detect.analysis import depths, idle_ticks, last_late, rule_reaches
from dotr.detect.detector import TeslaDetector
from dotr.detect.partitioning import describe, plan_batch
from dotr.lang import parse_program
from dotr.program import After, Program, Rule
from tests.detect.building import CLOCK, absent, at, each, equal, facts, program, rule, times, total, within

SECOND = 1_000_000


def late(name: str = "Late", after: int = 10, stream: str = "Order") -> Rule:
    """An order that is not paid in `after` seconds."""
    unpaid = absent(at("Paid"), within(10 * SECOND, "Due"), equal("Paid.k", f"{stream}.k"))
    return rule(name, After(at(stream), after * SECOND, "Due"), unpaid, give={"k": f"{stream}.k"})


def cuts(whole: Program, *without_graph: str) -> list[str]:
    return describe(whole, plan_batch(whole, without_graph=lambda: without_graph))


def test_a_match_carries_the_key_of_the_event_that_is_followed() -> None:
    assert cuts(program(late())) == ["`Late`: by key ?k and by time (overlap 10 s)"]


def test_facts_at_ticks_without_a_graph_forbid_keys_and_lengthen_slices() -> None:
    """When the ticks are, depends on facts that other parts have, or that lie before the slice."""
    assert cuts(program(late()), "Paid") == [
        "`Late`: by time (overlap 20 s)",
        "    not by key: `Paid` may have facts at ticks without a graph",
    ]
    assert [
        group.sees_all for group in plan_batch(program(late()), without_graph=lambda: ["Paid"]).groups
    ] == [True]
    assert [group.sees_all for group in plan_batch(program(late()), without_graph=list).groups] == [False]


def test_what_triggers_at_ticks_without_a_graph_forbids_keys() -> None:
    recent = each(at("Late", chained=True), within(5 * SECOND, "Known"), equal("Late.k", "Known.k"))
    whole = program(late(), rule("Recent", at("Known"), recent, give={"k": "Known.k"}))
    assert cuts(whole, "Known") == [
        "`Late`, `Recent`: by time (overlap 15 s)",
        "    not by key: `Known` may have facts at ticks without a graph",
    ]
    assert cuts(whole) == ["`Late`, `Recent`: by key ?k and by time (overlap 15 s)"]
    assert cuts(program(late()), "Order") == cuts(program(late()))


def test_the_horizon_includes_the_duration() -> None:
    assert depths(late()) == {"Due": 0, "Order": 10 * SECOND, "Paid": 10 * SECOND}
    chained = rule("Page", After(at("Late", chained=True), 5 * SECOND, "Due"), give={"k": "Late.k"})
    assert [reach.influence for reach in rule_reaches(program(late(), chained))] == [10 * SECOND, 15 * SECOND]
    assert last_late(program(late(), chained), ()) == 15 * SECOND


def test_a_clock_goes_on_for_as_long_as_an_event_may_come_late() -> None:
    clock = "RULE R DEFINE { dotr_r :of ?k } FROM EVERY 1 s AS T AND EACH Late WITHIN 3 s FROM T "
    clock += "WITH ?k := Late.?k"
    follow = "RULE Late DEFINE { dotr_l :of ?k } FROM X AFTER 10 s AS Due WITH ?k := X.?k"
    text = f"PREFIX : <urn:x:> QUERY X := {{ SELECT ?k {{ ?s :k ?k }} }} {follow} {clock}"
    assert [tick.reach for tick in idle_ticks(parse_program(text), ()).ticking] == [13 * SECOND]
    engine = dotr.Engine.from_text(text)
    found = [*engine.push("<urn:a> <urn:x:k> 1 .", at=0), *engine.push("<urn:a> <urn:x:z> 1 .", at=100)]
    assert [(event.rule, event.time) for event in found] == [
        ("Late", 10),
        *(("R", n) for n in (10, 11, 12, 13)),
    ]


def test_a_rule_that_is_new_follows_nothing_that_came_before_it() -> None:
    old = TeslaDetector(program(late("Old")), CLOCK)
    assert old.at(5 * SECOND, {"Order": facts(5 * SECOND, ["<urn:a>", 1])}) == []
    both = TeslaDetector(program(late("Old"), late("New", after=12)), CLOCK)
    restored = both.restore(old.snapshot())
    assert (restored.kept, restored.empty) == (("Old",), ("New",))
    assert both.next_tick(5 * SECOND) == 15 * SECOND
    assert times(both.at(15 * SECOND, {}, graph=False)) == [(5 * SECOND,)]
    assert both.next_tick(15 * SECOND) is None
    assert both.sizes() == {"Old": 1, "New": 0}


def test_rules_of_one_event_and_duration_share_what_they_await() -> None:
    detector = TeslaDetector(program(late("A"), late("B"), late("C", after=3)), CLOCK)
    assert len(detector.network.late) == 2
    detector.at(0, {"Order": facts(0, ["<urn:a>", 1])})
    assert (detector.next_tick(0), detector.next_tick(3 * SECOND)) == (3 * SECOND, 10 * SECOND)


def test_a_program_without_after_lets_facts_wait_as_before() -> None:
    count = total("COUNT", None, "n", at("Paid"), within(SECOND, "Order"))
    plain = TeslaDetector(program(rule("Plain", at("Order"), count, give={"k": "Order.k"})), CLOCK)
    plain.at(0, {})
    assert plain.waking == {"Order"}
    following = TeslaDetector(program(late()), CLOCK)
    following.at(0, {})
    assert following.waking is None
