"""A trigger fact that takes a rule too much work: left out, wherever and however the rule runs."""

from __future__ import annotations

import json
import os

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match
from dotr.program import Expression, Rule
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import CLOCK, A, at, call, each, equal, facts, program, rule, within
from tests.detect.chain_worlds import chains
from tests.detect.total_worlds import totals
from tests.detect.worlds import World, families, kin, worlds

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"

SkippedTriggers = list[tuple[int, Fact]]


def _run(world: World, budget: int, *, shared: bool, cuts: bool) -> tuple[list[Match], SkippedTriggers]:
    """Matches and what was left out; the literal reading agrees once it knows that."""
    left_out: SkippedTriggers = []

    def engine() -> TeslaDetector:
        return TeslaDetector(
            world.program,
            CLOCK,
            budget=budget,
            on_refused=lambda rule, fact, error: left_out.append((rule, fact)),
            filtered=world.filtered if shared else None,
            same=world.same if shared else None,
        )

    detector, oracle = engine(), LiteralTesla(world.program, CLOCK)
    found: list[Match] = []
    last_time: int | None = None

    def step(time: int, own: dict[str, list[Fact]], graph: bool) -> None:
        before_ = len(left_out)
        matches = detector.at(time, world.shared(own) if shared else world.literal(own), graph)
        assert matches == oracle.at(time, world.literal(own), graph, left_out[before_:])
        found.extend(matches)

    for instant in world.instants:
        tick = None if last_time is None else detector.next_tick(last_time)
        while tick is not None and tick < instant.time:
            background = {"P": instant.facts["P"]} if "P" in instant.facts else {}
            step(tick, {n: [(tick, *f[1:]) for f in some] for n, some in background.items()}, False)
            tick = detector.next_tick(tick)
        if cuts and instant.cut:
            value = json.loads(json.dumps(detector.snapshot()))
            detector = engine()
            detector.restore(value)
        step(instant.time, instant.facts, True)
        last_time = instant.time
    assert detector.dropped == oracle.dropped
    return found, sorted(left_out, key=lambda one: (one[1][0], one[0], repr(one[1])))


def test_what_an_instant_leaves_out_is_reported_from_its_first_rule_on() -> None:
    def above(limit: int) -> Expression:
        return call(">", "A.v", limit)

    def pairs(name: str, condition: Expression) -> Rule:
        return rule(name, at("T"), each(at("A"), within(9, "T"), condition))

    rules = [pairs("First", above(1)), pairs("Other", equal("T.k", "A.k")), pairs("Third", above(2))]
    reported: list[int] = []
    detector = TeslaDetector(
        program(*rules), CLOCK, budget=1, on_refused=lambda number, fact, error: reported.append(number)
    )
    assert [len(group.plans) for group in detector.network.connected] == [2, 1]
    detector.at(1, {"A": facts(1, *[(A, size) for size in range(3, 9)])})
    detector.at(2, {"T": facts(2, (A, 1))})
    assert reported == [0, 2, 1]


@given(st.one_of(worlds(), families(), kin(), totals(), chains()), st.integers(1, 150))
@settings(max_examples=5_000 if DEEP else 200)
def test_the_same_is_left_out_however_rules_share_and_wherever_the_stream_is_cut(
    world: World, budget: int
) -> None:
    alone = _run(world, budget, shared=False, cuts=False)
    assert _run(world, budget, shared=True, cuts=False) == alone
    assert _run(world, budget, shared=True, cuts=True) == alone
    assert _run(world, budget, shared=False, cuts=True) == alone
    chained = any(p.chained for one in world.program.rules for p in one.positions)
    if not chained:
        apart: SkippedTriggers = []
        for number, one in enumerate(world.program.rules):
            solo = replace(world, program=replace(world.program, rules=(one,), dependencies=()))
            apart += [(number, fact) for _, fact in _run(solo, budget, shared=False, cuts=False)[1]]
        assert sorted(apart, key=lambda left: (left[1][0], left[0], repr(left[1]))) == alone[1]
