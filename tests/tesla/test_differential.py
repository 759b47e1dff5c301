"""The engine is the literal oracle: on random programs and streams, whole or cut anywhere."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings

from dotr.events import Match
from dotr.tesla.engine import TeslaDetector
from dotr.tesla.oracle import LiteralDetector
from tests.tesla.building import CLOCK
from tests.tesla.worlds import World, worlds

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def run_oracle(world: World) -> tuple[list[Match], int]:
    detector = LiteralDetector(world.program, CLOCK)
    return _drive(detector, world), detector.dropped


def _drive(detector: LiteralDetector | TeslaDetector, world: World, cuts: bool = False) -> list[Match]:
    found: list[Match] = []
    last: int | None = None
    for instant in world.instants:
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < instant.time:
            background = {"P": instant.facts["P"]} if "P" in instant.facts else {}
            own = {n: [(tick, *fact[1:]) for fact in facts] for n, facts in background.items()}
            found += detector.at(tick, own, False)
            tick = detector.next_tick(tick)
        if cuts and instant.cut:
            value = json.loads(json.dumps(detector.snapshot()))
            assert isinstance(detector, TeslaDetector)
            detector = TeslaDetector(world.program, CLOCK)
            assert detector.restore(value).empty == ()
            assert _in_any_order(json.loads(json.dumps(detector.snapshot()))) == _in_any_order(value)
        found += detector.at(instant.time, instant.facts, True)
        last = instant.time
    if isinstance(detector, TeslaDetector):
        found.append(Match(-1, detector.dropped, (), ()))
    return found


def _in_any_order(state: dict[str, Any]) -> dict[str, Any]:
    columns = [
        {kind: sorted(entries, key=json.dumps) for kind, entries in c.items()} for c in state["columns"]
    ]
    return {**state, "columns": columns}


def compare(world: World) -> None:
    expected, dropped = run_oracle(world)
    expected.append(Match(-1, dropped, (), ()))
    for cuts in (False, True):
        actual = _drive(TeslaDetector(world.program, CLOCK), world, cuts)
        if actual != expected:
            missing = [m for m in expected if m not in actual]
            extra = [m for m in actual if m not in expected]
            pytest.fail(f"cuts={cuts}\nmissing {missing}\nextra {extra}\nengine {actual}\noracle {expected}")


@given(worlds())
@settings(max_examples=5_000 if DEEP else 150)
def test_engine_equals_oracle_on_random_programs_and_streams(world: World) -> None:
    compare(world)
