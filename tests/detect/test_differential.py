"""The engine is the literal oracle: on random programs and streams, whole or cut anywhere."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.core.funnel import Funnel, funnels, joined
from dotr.core.instant import FactBatch
from dotr.detect import detector as batch_loop
from dotr.detect.detector import TeslaDetector
from dotr.detect.scope import Passed
from dotr.events import Fact, Match, Time, in_order
from dotr.program.names import TRIGGER, counts
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import CLOCK
from tests.detect.chain_worlds import chains
from tests.detect.total_worlds import totals
from tests.detect.worlds import World, families, kin, worlds

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


Instant: TypeAlias = tuple[Time, object, Mapping[str, Sequence[Fact]], bool]


def run_oracle(world: World) -> tuple[list[Match], int]:
    detector = LiteralTesla(world.program, CLOCK)
    return drive(detector, world), detector.dropped


def engine(world: World) -> TeslaDetector:
    return TeslaDetector(world.program, CLOCK, filtered=world.filtered, same=world.same)


def drive(detector: LiteralTesla | TeslaDetector, world: World, cuts: bool = False) -> list[Match]:
    found: list[Match] = []
    literal = isinstance(detector, LiteralTesla)
    last: int | None = None
    for instant in world.instants:
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < instant.time:
            background = {"P": instant.facts["P"]} if "P" in instant.facts else {}
            own = {n: [(tick, *fact[1:]) for fact in facts] for n, facts in background.items()}
            found += detector.at(tick, world.literal(own) if literal else world.shared(own), False)
            tick = detector.next_tick(tick)
        if cuts and instant.cut:
            value = json.loads(json.dumps(detector.snapshot()))
            assert isinstance(detector, TeslaDetector)
            detector = engine(world)
            assert detector.restore(value).empty == ()
            again = json.loads(json.dumps(detector.snapshot()))
            if not world.filtered:  # else what passes no rule's filter is gone
                assert _in_any_order(again) == _in_any_order(value)
        found += detector.at(
            instant.time, world.literal(instant.facts) if literal else world.shared(instant.facts), True
        )
        last = instant.time
    if isinstance(detector, TeslaDetector):
        found.append(Match(-1, detector.dropped, (), ()))
    return found


def in_batches(detector: TeslaDetector, known: list[Instant], size: int) -> tuple[list[Match], Counter[str]]:
    """What is found when several instants are given at once, facts that trigger nothing with later ones, and
    how many facts streams had.
    """
    found: list[Match] = []
    seen, quiet = counts(), counts()
    for start in range(0, len(known), size):
        event("facts wait" if detector.waking is not None else "facts do not wait")
        batch = FactBatch(detector.waking, size)
        for time, _, facts, graph in known[start : start + size]:
            batch.put((time, (), facts, graph))
        batch.closed()
        for place, matches in detector.detected(iter(batch.known), seen, quiet):
            assert batch.known[place][0] == detector.now
            found += [Match(number, *raw[1:]) for number, raw in in_order(matches)]
    found.append(Match(-1, detector.dropped, (), ()))
    totals = Counter[str]()
    for counted in (seen, quiet):
        totals += Counter({name: count for name, (count,) in counted.items()})
    return found, totals


class Recorded(TeslaDetector):
    """Remembers the instants."""

    known: list[Instant]

    def at(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> list[Match]:
        self.known.append((time, None, facts, graph))
        return super().at(time, facts, graph)


def funnel_of(world: World, detector: TeslaDetector, came: Mapping[str, int]) -> dict[str, Funnel]:
    """How far each rule got; `came`: facts by stream. The step that nothing passed has no name: whether
    a rule was evaluated in vain, or asleep, depends on when what cannot be read any more is swept.
    """
    found = joined(world.program, {}, funnels(world.program, came, detector.passed(), 0, detector.now), {})
    return {rule: [(name if count else "", count) for name, count in steps] for rule, steps in found.items()}


@given(
    st.one_of(worlds(), families(), kin(), totals(), chains()),
    st.integers(1, 9),
    st.sampled_from([(8, 64), (99, 64), (99, 64), (0, 64), (0, 1)]),
)
@settings(max_examples=5_000 if DEEP else 200)
def test_instants_are_detected_together_as_one_by_one(world: World, size: int, most: tuple[int, int]) -> None:
    looks, sets = most
    with patch.object(batch_loop, "LOOKS", looks), patch.object(batch_loop, "SETS", sets):
        one = Recorded(world.program, CLOCK, filtered=world.filtered, same=world.same)
        one.known = []
        expected = drive(one, world)
        together = engine(world)
        found, counted = in_batches(together, one.known, size)
        assert found == expected
        came = Counter(name for _, _, facts, _ in one.known for name in facts for _ in facts[name])
        asked = together.network.queries
        assert {name: counted[name] for name in asked} == {name: came[name] for name in asked}
        assert funnel_of(world, together, came) == funnel_of(world, one, came)
        assert _in_any_order(together.snapshot()) == _in_any_order(one.snapshot())


def _in_any_order(state: dict[str, Any]) -> dict[str, Any]:
    columns = [
        {kind: sorted(entries, key=json.dumps) for kind, entries in c.items()} for c in state["columns"]
    ]
    return {**state, "columns": columns}


def compare(world: World) -> None:
    expected, dropped = run_oracle(world)
    expected.append(Match(-1, dropped, (), ()))
    for cuts in (False, True):
        actual = drive(engine(world), world, cuts)
        if actual != expected:
            missing = [m for m in expected if m not in actual]
            extra = [m for m in actual if m not in expected]
            pytest.fail(f"cuts={cuts}\nmissing {missing}\nextra {extra}\nengine {actual}\noracle {expected}")


@given(worlds())
@settings(max_examples=5_000 if DEEP else 150)
def test_engine_equals_oracle_on_random_programs_and_streams(world: World) -> None:
    compare(world)


@given(chains())
@settings(max_examples=3_000 if DEEP else 300)
def test_dead_ends_are_left_out_and_nothing_else(world: World) -> None:
    compare(world)


@given(families())
@settings(max_examples=5_000 if DEEP else 100)
def test_rules_answered_together_are_rules_answered_one_by_one(world: World) -> None:
    compare(world)


@given(st.one_of(kin(), totals()))
@settings(max_examples=5_000 if DEEP else 200)
def test_rules_that_begin_alike_find_and_count_what_each_does_alone(world: World) -> None:
    compare(world)
    together = engine(world)
    drive(together, world)
    for one in world.program.rules:
        solo = replace(world, program=replace(world.program, rules=(one,), dependencies=()))
        alone = engine(solo)
        drive(alone, solo)
        counted, own = together.passed()[one.name], alone.passed()[one.name]
        if [name for name, _ in own if name != TRIGGER]:
            assert _agree(counted, own), (one.name, counted, own)
        else:  # it slept throughout, where here what others remember longer kept it awake
            assert counted[: len(own)] == own, (one.name, counted, own)
            assert not any(n for _, n in counted[len(own) :]), (one.name, counted, own)


def _agree(counted: Passed, own: Passed) -> bool:
    """Whether as many are left where the same steps are done, though they may be done in another order and
    several be counted together; and whether nothing is left in the end here if nothing is there. (Bindings
    that are computed before a step can be counted are named with it, and may leave less.)
    """
    here, there = _done(counted), _done(own)
    less = any("WITH" in step.split(", ") for step, _ in counted)
    if not less and (0 in here.values()) != (0 in there.values()):
        return False
    alike = here.keys() & there.keys()
    return all(here[done] == there[done] or (less and here[done] < there[done]) for done in alike)


def _done(passed: Passed) -> dict[tuple[str, ...], float]:
    """The steps that are done → what is left; all, if that is not counted."""
    done: list[str] = []
    left = {}
    for step, count in passed:
        done += [name for name in step.split(", ") if name != "WITH"]
        left[tuple(sorted(done))] = inf if count is None else count
    return left
