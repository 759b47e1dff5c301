"""What the pipeline asks of small modules: units of time, versions of snapshots, closed times, counts."""

import gc
from contextlib import suppress

import pytest

from dotr.collecting import RARELY, rarely
from dotr.core.instants import check_units
from dotr.core.pipeline import VERSION, RunCounts, refuse_closed, refuse_version
from dotr.errors import EngineError, ProgramError, UsageError
from dotr.events import Clock
from dotr.lang import parse_program

SECONDS, DATES = Clock(True, 1_000_000), Clock(False)
TICKS = """
PREFIX : <urn:x:>
RULE Slow DEFINE { dotr_x a :Slow } FROM EVERY 2 s AS Tick
RULE Quick DEFINE { dotr_x a :Quick } FROM EVERY 1500 ms AS Tick
HOLD :p FOR 250 ms
"""


def test_the_collector_is_as_it_was_behind_a_run_also_one_that_fails() -> None:
    before = gc.get_threshold()
    with rarely():
        assert gc.get_threshold() == RARELY
    with suppress(ZeroDivisionError), rarely():
        _ = 1 / 0
    assert gc.get_threshold() == before


def test_lengths_of_time_that_the_unit_does_not_divide_are_all_named() -> None:
    program = parse_program(TICKS)
    with pytest.raises(ProgramError) as raised:
        check_units(program, SECONDS)
    found = raised.value.diagnostics
    assert [one.code for one in found] == ["D1409", "D1409"]
    assert "`EVERY` of rule `Quick`" in found[0].message
    assert "`FOR`" in found[1].message
    check_units(program, DATES)
    check_units(program, Clock(True, 1_000))


@pytest.mark.parametrize("version", [None, 0, VERSION + 1, "2"])
def test_snapshots_of_other_versions_are_refused(version: object) -> None:
    for known in (1, VERSION):
        refuse_version({"version": known})
    with pytest.raises(EngineError, match="this snapshot has version"):
        refuse_version({"version": version})


@pytest.mark.parametrize(
    ("clock", "watermark", "first"),
    [(SECONDS, 5_000_000, "6"), (SECONDS, 5_500_000, "6"), (DATES, 0, "1970-01-01T00:00:00.000001Z")],
)
def test_rules_change_behind_the_watermark_and_the_first_such_time_is_named(
    clock: Clock, watermark: int, first: str
) -> None:
    refuse_closed(watermark + 1, watermark, clock)
    refuse_closed(watermark, None, clock)
    with pytest.raises(UsageError) as raised:
        refuse_closed(watermark, watermark, clock)
    assert raised.value.diagnostics[0].notes == (f"the first time that is not closed is {first}",)


def test_events_are_counted_by_rule_whenever_they_are_settled() -> None:
    program = parse_program(TICKS)
    counts = RunCounts(program, gone={"Before": 3})
    counts.fired[0, 1] = 2
    counts.begin(None)
    assert counts.fired, "not yet"
    counts.fired[(1,)] = 1
    assert counts.total() == 8
    assert not counts.fired
    counters = counts.counters(None, None)
    assert counters.events == {"Before": 3, "Slow": 2, "Quick": 3}
    again = RunCounts(program, counters)
    again.fired[(0,)] = 1
    assert again.counters(None, None).events == {"Slow": 3, "Quick": 3}
