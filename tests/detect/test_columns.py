"""Columns: what each kind keeps, what a sweep and a consumption take, and dumps that are loaded again."""

from __future__ import annotations

import pytest

from dotr.detect.columns import Column, open_column
from dotr.detect.digest import FormerColumn
from dotr.detect.plan_step import (
    ColumnSpec,
    Content,
    FactLog,
    LastValue,
    MonotonicStack,
    Ranked,
    RunningTotal,
)
from dotr.detect.thresholds import CARRIED, Measure, Threshold
from dotr.events import Fact
from dotr.program import Attribute
from dotr.rdf.terms import integer
from tests.detect.building import CLOCK, A, B, C, facts

OWN = Attribute("", "0")
SIZE = Measure(1, 1, inclusive=True)


def spec(content: Content, **more: object) -> ColumnSpec:
    return ColumnSpec("S", False, frozenset(), False, (OWN,), (), content, **more)  # type: ignore[arg-type]  # tests


def column(content: Content, retention: int = 5, **more: object) -> Column[object]:
    found: Column[object] = open_column(spec(content, **more), CLOCK, lambda _: None)
    found.retention = retention
    return found


def limit(number: int, measure: Measure = SIZE) -> Threshold:
    return Threshold(measure, number * 10**18)


def kept(of: Column[object]) -> list[tuple[int, object]]:
    return sorted((fact[0], fact[1]) for fact in of.dump()["facts"])


def test_a_last_value_is_the_latest_of_each_key() -> None:
    found = column(LastValue())
    found.insert(facts(1, (A, 1), (B, 1)))
    found.insert(facts(2, (A, 2), (A, 3)))
    assert kept(found) == [(1, (B, integer(1))), (2, (A, integer(3)))]
    assert found.size() == 2


def test_a_sweep_drops_what_is_older_than_the_retention() -> None:
    found = column(FactLog(), retention=5)
    for time in (1, 2, 7):
        found.insert(facts(time, (A, time)))
    found.sweep(7)
    assert [time for time, _ in kept(found)] == [2, 7]
    found.sweep(100)
    assert (kept(found), found.size(), A in found.table) == ([], 0, False)


def test_a_stack_keeps_what_is_the_latest_above_some_threshold() -> None:
    found = column(MonotonicStack(SIZE))
    found.share(limit(2))
    found.share(limit(6))
    for time, value in enumerate((9, 1, 4, 8, 3), 1):
        found.insert(facts(time, (A, value)))
    assert [time for time, _ in kept(found)] == [4, 5], "1 is below all, 9 and 8 are above all"
    found.insert(facts(6, (A, 5)))
    assert [time for time, _ in kept(found)] == [4, 6]
    for time, value in ((7, 8), (8, 7)):
        found.insert(facts(time, (A, value)))
    assert [time for time, _ in kept(found)] == [8], "both are above all"


def test_ranked_facts_pass_the_lowest_threshold() -> None:
    found = column(Ranked(SIZE))
    found.share(limit(2))
    found.share(limit(6))
    for time, value in enumerate((9, 1, 2), 1):
        found.insert(facts(time, (A, value)))
    assert [time for time, _ in kept(found)] == [1, 3]


def test_filters_and_a_size_say_which_facts_are_taken() -> None:
    found = column(FactLog(), size=limit(5))
    found.insert(facts(1, (A, 4), (A, 5), (A, None)))
    assert kept(found) == [(1, (A, integer(5)))]
    base = column(FactLog(), size=limit(5, Measure(CARRIED, 1, inclusive=True)))
    assert base.spec.fed_by_base
    (one,) = facts(1, (A, 1))
    base.insert([(*one, 6 * 10**18), (*one, 10**18)])  # type: ignore[list-item]  # a fact of a base has its size
    assert [tuple(fact) for fact in base.dump()["facts"]] == [one], "without it"


@pytest.mark.parametrize("count", [1, 20])
def test_consuming_takes_the_facts_given_and_no_others(count: int) -> None:
    found = column(FactLog())
    all_of_them: list[Fact] = []
    for time in range(30):
        all_of_them += facts(time, (A, time), (A, time))
    for one in all_of_them:
        found.insert([one])
    gone = all_of_them[5 : 5 + count]
    found.consume(gone)
    left = [fact for fact in all_of_them if fact not in gone]
    assert [tuple(fact) for fact in found.dump()["facts"]] == left
    found.consume(left)
    assert A not in found.table


def test_facts_are_found_by_the_value_of_a_key_however_it_is_written() -> None:
    found = column(FactLog())
    one = '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    found.insert([(1, (integer(1), A), 0, "")])
    found.insert([(2, (one, A), 0, "")])
    assert [fact[0] for fact in found.find(one, 0)] == [1, 2]
    assert found.find(integer(2), 0) is None


def test_a_dump_fills_an_empty_column_and_several_make_their_union() -> None:
    first, second = column(FactLog()), column(FactLog())
    for time in (1, 2):
        first.insert(facts(time, (A, 1)))
    for time in (2, 3):
        second.insert(facts(time, (A, 1)))
    again = column(FactLog())
    again.load([second.dump(), first.dump()])
    assert [fact[0] for fact in again.dump()["facts"]] == [1, 2, 3]
    total = column(RunningTotal("COUNT", False, None, 5))
    for time in (1, 2):
        total.insert(facts(time, (A, 1), (B, 1)))
    copy = column(RunningTotal("COUNT", False, None, 5))
    copy.load([total.dump()])
    assert copy.dump() == total.dump()
    assert copy.find(A, 0).value(2) == integer(1)
    assert copy.find(C, 0) is None


def test_a_column_says_once_that_it_is_filled() -> None:
    said: list[Column[object]] = []
    found: Column[object] = open_column(spec(FactLog()), CLOCK, said.append)
    found.insert([])
    assert said == []
    found.insert(facts(1, (A, 1), (B, 1)))
    found.insert(facts(2, (C, 1)))
    assert said == [found]
    found.filled = False
    found.insert(facts(3, ("<urn:x:new>", 1)))
    assert said == [found, found]


def test_the_past_of_a_position_is_what_passed_its_own_threshold() -> None:
    dump = {"facts": [[1, [A], 0, "", 5], [2, [A], 0, "", 3]]}
    carried = Measure(CARRIED, 1, inclusive=True)
    five, four = Threshold(carried, 5), Threshold(carried, 4)
    plain = spec(FactLog())
    assert FormerColumn(0, None, None).facts(dump, plain) == {"facts": [[1, [A], 0, ""], [2, [A], 0, ""]]}
    assert FormerColumn(0, five, None).facts(dump, plain) == {"facts": [[1, [A], 0, ""]]}
    based = spec(FactLog(), size=four)
    of_on = FormerColumn(0, None, four).facts(dump, based)
    assert of_on == {"facts": [[1, [A], 0, "", 4], [2, [A], 0, "", 4]]}, "measured by ON, not by the query"
    assert FormerColumn(0, four, four).facts(dump, based) == {"facts": [[1, [A], 0, "", 5]]}
    totals = {"totals": [["k", [[1, integer(1)]]]]}
    assert FormerColumn(0, five, four).facts(totals, based) == totals
