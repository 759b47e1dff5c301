"""EVERY at local times: the two ways to find ticks agree, and engines are the literal reading."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

import dotr
from dotr.detect.analysis import ENDLESS, IdleTicks, Ticking, next_tick, rhythms_in_order
from dotr.expressions.rhythms import DAY, SECOND, first_tick, is_tick, ticks_between
from dotr.program import Calendar, CalendarTick
from dotr.rdf.values import day_number
from dotr.reference.calendars import next_at, ticks_at, ticks_in
from tests.detect.test_silence import pushed as stepped
from tests.test_differential import engine, pushed
from tests.whole import Whole, wholes
from tests.whole_days import in_days

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
ZONES = (
    *("Europe/Brussels", "Europe/Dublin", "Europe/Amsterdam", "America/New_York", "America/Sao_Paulo"),
    *("Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca", "Asia/Gaza", "UTC", "+05:30", "-09:30"),
    *("Asia/Kolkata", "Asia/Kathmandu", "Africa/Monrovia"),
)
LEFT_OUT = ("Pacific/Apia", "Pacific/Kwajalein", "Asia/Manila", "America/Juneau")
"""Zones that left out a day, or had one twice."""
YEARS = (
    1844,
    1867,
    1937,
    1969,
    1970,
    1972,
    1993,
    2011,
    2025,
    2026,
    2100,
    -400,
    0,
    1,
    2,
    9_998,
    9_999,
    12_026,
)


def calendars(r: Random) -> Calendar:
    at = r.choice((0, 0, 2 * 3600, 9_000, 8 * 3600, 86_399, r.randrange(86_400))) * SECOND
    days = r.choice(((1, 0), (1, 0), (2, 0), (7, 0), (7, r.randint(1, 7)), (0, r.randint(1, 31)), (40, 0)))
    return Calendar(r.choice(ZONES + LEFT_OUT), at, *days)


def test_ticks_are_those_of_the_literal_reading() -> None:
    for seed in range(4_000 if DEEP else 100):
        r = Random(seed)
        calendar = calendars(r)
        year = r.choice((*YEARS, r.randint(1800, 2100), r.randint(-9_000, 20_000)))
        time = day_number(year, r.randint(1, 12), r.randint(1, 28)) * DAY + r.choice((0, r.randrange(DAY)))
        tick = next_at(calendar, time)
        assert first_tick(calendar, time) == tick, (seed, calendar, year)
        assert is_tick(calendar, tick)
        assert ticks_at(calendar, tick)
        assert not is_tick(calendar, tick + 1)
        last = time + r.randrange(20) * DAY
        found = ticks_in(calendar, time + 1, last)
        assert ticks_between(calendar, time, last) == len(found), (seed, calendar, year)
        assert [t for t in found if not is_tick(calendar, t)] == []


def test_zones_go_on_in_cycles_of_400_years() -> None:
    brussels = Calendar("Europe/Brussels", 8 * 3600 * SECOND, 1)
    cycle = 146_097 * DAY
    summer = first_tick(brussels, day_number(2300, 7, 1) * DAY)
    for cycles in (1, 10, 40, 1_000):
        assert first_tick(brussels, summer - 5 * SECOND + cycles * cycle) == summer + cycles * cycle
    early = first_tick(brussels, day_number(1700, 7, 1) * DAY)
    assert first_tick(brussels, early - 5 * SECOND - 1_000 * cycle) == early - 1_000 * cycle


def test_counting_at_local_times_is_stepping_but_for_a_few() -> None:
    for seed in range(1_000 if DEEP else 40):
        r = Random(seed)
        calendar = calendars(r)
        reach, memory = r.choice((0, 3, 20, ENDLESS)), r.choice((0, 0, 4, 30))
        one = Ticking(calendar, min(reach * DAY, ENDLESS), memory * DAY, ("R",))
        graph = day_number(r.choice((1993, 2011, 2026)), r.randint(1, 12), r.randint(1, 28)) * DAY
        bound = graph + r.randint(1, 60) * DAY
        steps: list[int] = []
        while (at := IdleTicks((one,)).next(steps[-1] if steps else graph, graph, bound)) is not None:
            steps.append(at)
        wanted = [
            t
            for t in ticks_in(calendar, graph + 1, bound - 1)
            if t <= graph + one.reach or t >= bound - one.memory
        ]
        assert steps == wanted, seed
        assert 0 <= one.count(graph, graph, bound) - len(wanted) <= 4, seed
        assert one.count(graph, graph, bound) <= one.count(graph, graph, bound + r.randint(1, 9) * DAY)
        allowed = IdleTicks((one,)).allows(50)
        far = graph + min(10_000 * DAY, allowed)
        assert one.count(graph, graph, far) <= 50, seed


def test_clocks_of_both_kinds_stand_beside_each_other() -> None:
    daily, weekly = Calendar("UTC", 0, 1), Calendar("UTC", 3600 * SECOND, 7, 4)
    assert rhythms_in_order([weekly, 5, daily, 3]) == [3, 5, daily, weekly]
    assert next_tick([daily, 7 * DAY], 0, 3 * DAY) == 4 * DAY
    assert next_tick([daily, weekly, 10 * DAY], 4 * DAY + 1, 0) == 4 * DAY + 3600 * SECOND
    assert next_tick([daily], None, 0) is None


def compare(whole: Whole, r: Random) -> int:
    """Run it every way; how many events it had at ticks. 0 where the checks refuse it."""
    try:
        rules = engine(whole).program.rules
    except dotr.ProgramError:
        return 0
    graphs = list(whole.stream)
    expected = pushed(whole, graphs, verify=True)
    assert pushed(whole, graphs, cut=True) == expected
    assert pushed(whole, graphs, ahead=True, cut=True) == expected
    backwards = r.sample(graphs, len(graphs))
    assert pushed(whole, backwards, lateness="900 d") == expected
    rhythms = rhythms_in_order({t.rhythm for rule in rules if isinstance(t := rule.trigger, CalendarTick)})
    always = IdleTicks(tuple(Ticking(rhythm, ENDLESS, 0, ()) for rhythm in rhythms))
    assert stepped(whole, always, cut=True) == expected
    ticking = [rule.name for rule in rules if isinstance(rule.trigger, CalendarTick)]
    return sum(f'"rule":"{name}"' in line for line in expected for name in ticking)


def test_engines_are_the_literal_reading_at_local_times() -> None:
    eventful = 0
    for seed in range(3_000 if DEEP else 200):
        r = Random(seed)
        whole = wholes(r)
        if "EVERY" not in whole.rules:
            continue
        whole = in_days(r, whole)
        whole = replace(whole, stream=sorted(whole.stream, key=lambda graph: str(graph.time)))
        try:
            eventful += bool(compare(whole, r))
        except (AssertionError, dotr.DotrError) as error:
            pytest.fail(f"seed {seed}: {error}\n{whole}")
    assert eventful > 3


INTEGERS = 'RULE R DEFINE { dotr_x a <urn:R> } FROM EVERY MONTH AT 08:00 IN "Europe/Brussels" AS Tick'


def test_integers_have_no_local_times() -> None:
    running = dotr.Engine.from_text(INTEGERS)
    with pytest.raises(dotr.ProgramError, match="needs times with days") as raised:
        running.push("", at=3)
    assert [one.code for one in raised.value.diagnostics] == ["D1347"]


def test_rules_replaced_tick_at_their_own_local_times(tmp_path: Path) -> None:
    rule = 'RULE {} DEFINE {{ dotr_x a <urn:R> }} FROM EVERY {} IN "Europe/Brussels" AS Tick\n'
    old, new = tmp_path / "old.dotr", tmp_path / "new.dotr"
    old.write_text(rule.format("A", "1 d AT 02:30"))
    new.write_text(rule.format("A", "1 d AT 03:30") + rule.format("B", "SUNDAY AT 02:30"))
    running = dotr.Engine(str(old), verify=True)
    found = [*running.push("", at="2026-03-27T12:00:00Z"), *running.push("", at="2026-03-28T12:00:00Z")]
    running.replace(str(new), at="2026-03-28T20:00:00Z")
    found += [*running.push("", at="2026-03-30T12:00:00Z"), *running.finish()]
    assert [(event.rule, str(event.time)[:16]) for event in found] == [
        ("A", "2026-03-28 01:30"),
        ("B", "2026-03-29 01:00"),
        ("A", "2026-03-29 01:30"),
        ("A", "2026-03-30 01:30"),
    ]
