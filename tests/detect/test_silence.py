"""Ticks that can match nothing are not stepped through: that loses nothing, and all runners count alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dotr
from dotr.detect.analysis import ENDLESS, IdleTicks, Ticking, idle_ticks
from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match
from dotr.lang import parse_program
from dotr.program import Every, Program, Rule
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import CLOCK
from tests.detect.worlds import World, worlds
from tests.whole import Graph, Whole, wholes

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECOND = 1_000_000
X = "{ SELECT ?v { ?s :v ?v } }"


def program(*rules: str) -> Program:
    return parse_program("PREFIX : <urn:x:>\n" + "\n".join(rules))


def ticking(text: str, *without_graph: str) -> IdleTicks:
    """Of one rule that begins with FROM EVERY, given what follows."""
    rule = f"RULE R DEFINE {{ dotr_r :at ?t }} FROM {text}"
    return idle_ticks(program(rule if "WITH ?" in rule else f"{rule} WITH ?t := T.time"), without_graph)


def reach(text: str, *without_graph: str) -> int:
    """How many seconds after the last graph its ticks may match; -1: without end."""
    found = ticking(text, *without_graph).ticking
    if not found:
        return 0
    return -1 if found[0].reach == ENDLESS else found[0].reach // SECOND


def test_a_window_to_choose_from_ends_with_its_last_fact() -> None:
    assert reach(f"EVERY 1 s AS T AND LAST X := {X} WITHIN 3 s FROM T") == 3
    assert (
        reach(f"EVERY 1 s AS T AND LAST X := {X} WITHIN 9 s FROM T AND EACH Y := X WITHIN 5 s BEFORE T") == 5
    )
    assert (
        reach(f"EVERY 1 s AS T AND EACH X := {X} WITHIN 3 s FROM T AND FIRST Y := {X} WITHIN 2 s FROM X") == 3
    )


def test_not_and_count_alone_hold_for_ever() -> None:
    assert reach("EVERY 1 s AS T") == -1
    assert reach(f"EVERY 1 s AS T AND NOT X := {X} WITHIN 3 s FROM T") == -1
    assert reach(f"EVERY 1 s AS T AND COUNT(*) AS ?n OVER X := {X} WITHIN 3 s FROM T") == -1
    assert reach(f"EVERY 1 s AS T AND COUNT(*) AS ?n OVER X := {X} WITHIN 3 s FROM T WHERE ?n < 2") == -1


@pytest.mark.parametrize(
    "text",
    [
        f"COUNT(*) AS ?n OVER X := {X} WITHIN 3 s FROM T WHERE ?n > 1",
        f"SUM(X.?v) AS ?n OVER X := {X} WITHIN 3 s FROM T WHERE BOUND(?n) && ?n + 1 > 1",
        f"AVG(X.?v) AS ?n OVER X := {X} WITHIN 3 s FROM T WITH ?t := ?n",
        f"MAX(X.?v) AS ?n OVER X := {X} WITHIN 3 s FROM T WHERE ?n > 1 || ?n < 0",
    ],
)
def test_what_is_required_of_aggregates_must_hold_over_nothing(text: str) -> None:
    assert reach(f"EVERY 1 s AS T AND {text}") == 3
    assert reach(f"EVERY 1 s AS T AND {text}", "R.X") == -1


def test_a_condition_on_the_time_may_come_to_hold() -> None:
    total = f"EVERY 1 s AS T AND COUNT(*) AS ?n OVER X := {X} WITHIN 3 s FROM T"
    assert reach(f"{total} WHERE ?n > 1 || T.time > 100") == -1


def test_what_the_background_answers_alone_is_there_at_every_tick() -> None:
    rule = f"EVERY 1 s AS T AND EACH X := {X} WITHIN 3 s FROM T"
    assert reach(rule, "R.X") == -1
    both = f"{rule} AND LAST Y := {X} WITHIN 9 s FROM T"
    assert [(t.reach, t.memory) for t in ticking(both, "R.X").ticking] == [(9 * SECOND, 3 * SECOND)]


def test_reach_goes_through_rules_and_stops_where_nothing_carries_it_on() -> None:
    first = "RULE A DEFINE { dotr_a :n ?v } FROM EVERY 2 s AS T AND LAST X WITHIN 4 s FROM T WITH ?v := X.?v"
    first = f"QUERY X := {X} {first}"
    chained = (
        "RULE B DEFINE { dotr_b :n ?v } FROM EVERY 3 s AS T AND LAST A WITHIN 10 s FROM T WITH ?v := A.?v"
    )
    found = idle_ticks(program(first, chained), ())
    assert [(t.every, t.reach, t.rules) for t in found.ticking] == [
        (2 * SECOND, 4 * SECOND, ("A",)),
        (3 * SECOND, 14 * SECOND, ("B",)),
    ]
    itself = (
        "RULE C DEFINE { dotr_c :n ?v } FROM EVERY 1 s AS T AND LAST C WITHIN 10 s BEFORE T WITH ?v := C.?v"
    )
    assert idle_ticks(program(itself), ()).ticking[0].reach == ENDLESS
    cooled = f"{first} RULE D DEFINE {{ dotr_d :n ?v }} FROM A AND NOT D WITHIN 9 s BEFORE A WITH ?v := A.?v"
    assert [t.reach for t in idle_ticks(program(cooled), ()).ticking] == [4 * SECOND]


def test_ticks_of_a_multiple_are_among_those_of_its_divisor() -> None:
    rules = [
        f"RULE R{n} DEFINE {{ dotr_r :at ?t }} FROM EVERY {n} s AS T WITH ?t := T.time" for n in (2, 3, 4, 6)
    ]
    assert [t.every // SECOND for t in idle_ticks(program(*rules), ()).ticking] == [2, 3]


@settings(max_examples=2_000 if DEEP else 200)
@given(st.randoms(use_true_random=False))
def test_counting_is_stepping(r: Random) -> None:
    found = IdleTicks(
        tuple(
            Ticking(r.randint(1, 7), r.choice((0, 3, 20, ENDLESS)), r.choice((0, 0, 4, 30)), ("R",))
            for _ in range(r.randint(0, 3))
        )
    )
    graph = r.randint(-30, 30)
    after = graph + r.choice((0, 0, 5, 40))
    bound = after + r.randint(1, 60)
    steps: set[int] = set()
    at: int | None = after
    while at is not None:
        at = found.next(at, graph, bound)
        steps |= {at} - {None}
    wanted = [
        [
            t
            for t in range(after + 1, bound)
            if t % one.every == 0 and (t <= graph + one.reach or t >= bound - one.memory)
        ]
        for one in found.ticking
    ]
    assert steps == {t for ticks in wanted for t in ticks}
    count = found.count(after, graph, bound)
    assert 0 <= count - sum(map(len, wanted)) <= sum(one.memory > 0 for one in found.ticking)
    assert count <= found.count(after, graph, bound + r.randint(1, 20))
    assert found.count(graph, graph, graph + min(10_000, found.allows(50))) <= 50


# -- what is skipped had nothing to say ---------------------------------------------------------------


@st.composite
def silent_worlds(draw: st.DrawFn) -> tuple[World, list[Fact]]:
    """A world with a rule that ticks and long silences, and what P answers at every instant."""
    world = draw(worlds(odd=False))
    r = draw(st.randoms(use_true_random=False))
    rules = [
        replace(rule, trigger=Every(r.choice((1, 2, 3, 5)), "Start"))
        if _may_tick(rule) and r.random() < 0.6
        else rule
        for rule in world.program.rules
    ]
    instants, added = [], 0
    for instant in world.instants:
        added += r.choice((0, 0, 1, 9, 40))
        streams = {name: list(found) for name, found in instant.facts.items() if name != "P"}
        moved = {n: [(instant.time + added, *f[1:]) for f in found] for n, found in streams.items()}
        instants.append(replace(instant, time=instant.time + added, facts=moved))
    without_graph = next((list(i.facts["P"]) for i in world.instants if "P" in i.facts), [])
    ticking = replace(world.program, rules=tuple(rules), dependencies=())
    return replace(world, program=ticking, instants=instants), without_graph if r.random() < 0.4 else []


def _may_tick(rule: Rule) -> bool:
    """Whether nothing asks its trigger for an attribute, or for the time after it."""
    return "Attribute(position='Start'" not in repr(rule) and "Due" not in repr(rule)


def driven(
    detector: LiteralTesla | TeslaDetector, world: World, without_graph: list[Fact], skip: IdleTicks | None
) -> list[Match]:
    """Every match; ticks are stepped through one by one, or as `skip` says."""
    found: list[Match] = []
    last: int | None = None
    for instant in world.instants:
        at = graph = last
        while at is not None:
            if skip is None:
                at = detector.next_tick(at)
            else:
                assert isinstance(detector, TeslaDetector)
                at = detector.next_idle(skip, at, graph, instant.time)
            if at is None or at >= instant.time:
                break
            found += detector.at(at, background(without_graph, at), False)
        found += detector.at(instant.time, {**instant.facts, **background(without_graph, instant.time)}, True)
        last = instant.time
    return found


def background(without_graph: list[Fact], time: int) -> dict[str, list[Fact]]:
    return {"P": [(time, *fact[1:]) for fact in without_graph]} if without_graph else {}


@settings(max_examples=10_000 if DEEP else 60)
@given(silent_worlds())
def test_skipping_ticks_loses_no_match(case: tuple[World, list[Fact]]) -> None:
    world, without_graph = case
    expected = driven(LiteralTesla(world.program, CLOCK), world, without_graph, None)
    skip = idle_ticks(world.program, ("P",) if without_graph else ())
    assert driven(TeslaDetector(world.program, CLOCK), world, without_graph, skip) == expected
    event(f"{len(expected) > 0}: {any(ticking.reach < ENDLESS for ticking in skip.ticking)}")


def pushed(whole: Whole, steps: IdleTicks | None = None, cut: bool = False) -> list[str]:
    """The events of a run, which steps through all ticks of `steps` if it is given."""

    def engine() -> dotr.Engine:
        made = dotr.Engine.from_text(whole.rules, datalog=whole.datalog, background=whole.background)
        if steps is not None:
            made.pipeline._idle_ticks = steps
        return made

    running = engine()
    found = []
    for graph in whole.stream:
        if cut and graph.cut:
            state = running.snapshot()
            running = engine()
            running.restore(state)
        found += running.push(graph.text, at=graph.time)
    found += running.finish()
    return [event.to_json() for event in found]


def with_silences(r: Random, stream: Sequence[Graph]) -> list[Graph]:
    added, found = 0, []
    for graph in stream:
        added += r.choice((0, 0, 1, 7, 30))
        found.append(replace(graph, time=graph.time + added))
    return found


def test_skipping_ticks_changes_nothing_in_whole_programs() -> None:
    skipped = 0
    for seed in range(100_000 if DEEP else 600):
        r = Random(seed)
        whole = wholes(r)
        if "EVERY" not in whole.rules:
            continue
        whole = replace(whole, stream=with_silences(r, whole.stream))
        try:
            running = dotr.Engine.from_text(whole.rules, datalog=whole.datalog, background=whole.background)
        except dotr.ProgramError:
            continue
        triggers = [rule.trigger for rule in running.program.rules]
        durations = {trigger.duration for trigger in triggers if isinstance(trigger, Every)}
        always = IdleTicks(tuple(Ticking(every, ENDLESS, 0, ()) for every in sorted(durations)))
        try:
            expected = pushed(whole, always)
            assert pushed(whole) == expected
            assert pushed(whole, cut=True) == expected
        except (AssertionError, dotr.DotrError) as error:
            pytest.fail(f"seed {seed}: {error}\n{whole}")
        ours = running.pipeline._idle_ticks
        skipped += bool(expected) and ours.count(0, 0, 100 * SECOND) < always.count(0, 0, 100 * SECOND)
    assert skipped > 8
