"""What holds, kept as intervals, is read as the list of its facts is."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from dotr.detect.columns import fact_key
from dotr.detect.timeline import HeldTotal, IntervalLog, merged
from dotr.events import Fact, Time, Values
from dotr.expressions.aggregates import summarise
from dotr.rdf.terms import Term, integer
from dotr.rdf.values import values_key

ROWS: list[Values] = [(integer(1),), (integer(2),), ("<a>",)]
Given = list[tuple[range, list[Values]]]


@st.composite
def stretches(draw: st.DrawFn, step: int | None = None) -> Given:
    """Points and what holds at them, in order, often at each point the same."""
    found: Given = []
    time = draw(st.integers(0, 3))
    step = draw(st.integers(1, 3)) if step is None else step
    time *= step
    for _ in range(draw(st.integers(0, 6))):
        rows = sorted(draw(st.lists(st.sampled_from(ROWS), min_size=1, unique=True)), key=values_key)
        points = range(time, time + step * draw(st.integers(1, 5)), step)
        found.append((points, rows))
        time = points[-1] + step * draw(st.sampled_from((1, 1, 1, 2, 5)))
    return found


def log_of(given_: Given, at_once: bool) -> tuple[IntervalLog, list[Fact]]:
    """The log and the list; a stretch at once or point by point."""
    log = IntervalLog()
    facts: list[Fact] = []
    for points, rows in given_:
        of_points: list[Fact] = [(point, row, 0, "") for point in points for row in rows]
        if at_once:
            log.add_stretch(points, list(rows))
        else:
            for fact in of_points:
                log.append(fact)
        facts += of_points
    return log, facts


@given(stretches(), st.booleans(), st.integers(0, 40), st.integers(0, 40))
def test_a_log_is_read_as_a_list(given_: Given, at_once: bool, one: int, other: int) -> None:
    log, facts = log_of(given_, at_once)
    assert list(log) == facts
    assert len(log) == len(facts)
    assert bisect_left(log, (one,)) == bisect_left(facts, (one,))
    low, high = sorted((one, other))
    part = log[low:high]
    assert list(part) == facts[low:high]
    assert list(part[1:]) == facts[low:high][1:]
    del part[:1]
    assert list(part) == facts[low:high][1:]
    if facts:
        assert log[-1] == facts[-1]
        assert (log.oldest, log.newest) == (facts[0][0], facts[-1][0])
    assert list(log.backwards(min(one, len(facts)), True)) == list(range(min(one, len(facts)) - 1, -1, -1))
    assert list(log.forwards(one, True)) == list(range(one, len(facts)))
    again = IntervalLog()
    again.load(log.dump())
    assert list(again) == facts
    log.forget(one)
    assert list(log) == [fact for fact in facts if fact[0] >= one]


@given(stretches(), st.booleans(), st.integers(0, 30), st.sampled_from(ROWS))
def test_what_is_sought_by_value_is_found_where_a_list_has_it(
    given_: Given, at_once: bool, time: Time, row: Values
) -> None:
    log, facts = log_of(given_, at_once)
    place = bisect_left(facts, (time,))  # as windows are cut
    before = [i for i in range(place) if facts[i][1] == row]
    assert next((i for i in log.backwards(place, False) if log[i][1] == row), None) == (
        before[-1] if before else None
    )
    after = [i for i in range(place, len(facts)) if facts[i][1] == row]
    assert next((i for i in log.forwards(place, False) if log[i][1] == row), None) == (
        after[0] if after else None
    )


@given(stretches(), st.booleans(), st.lists(st.integers(0, 99), max_size=9))
def test_facts_are_taken_out(given_: Given, at_once: bool, places: list[int]) -> None:
    log, facts = log_of(given_, at_once)
    for place in places[: len(facts)]:
        log.remove(facts.pop(place % len(facts)))
        assert list(log) == facts


@given(st.lists(stretches(), max_size=3), st.integers(1, 3), st.integers(0, 20), st.data())
def test_several_logs_are_read_as_one(
    apart: list[Given], step: int, since: Time, data: st.DataObject
) -> None:
    together = data.draw(st.lists(stretches(step), max_size=3))
    for which in (apart, together):
        logs = [log_of(given_, True) for given_ in which]
        expected = sorted((f for _, facts in logs for f in facts if f[0] >= since), key=fact_key)
        assert list(merged([log for log, _ in logs], since)) == expected


def test_what_holds_for_years_is_one_interval() -> None:
    year = range(0, 365 * 86_400, 1)
    log, other = IntervalLog(), IntervalLog()
    for each in (log, other):
        each.add_stretch(year, list(ROWS[:1]))
        each.append((year[-1] + 1, ROWS[0], 0, ""))
        each.append((year[-1] + 2, ROWS[0], 0, ""))
        each.append((year[-1] + 3, ROWS[0], 0, ""))
        assert each.kept() == 2
        assert len(each) == len(year) + 3
    assert merged([log, other], 100).kept() <= 4
    assert len(list(log.backwards(len(log), False))) == 2


@given(stretches(), st.booleans(), st.sampled_from(("COUNT", "SUM", "AVG")), st.lists(st.integers(0, 30)))
def test_a_total_is_that_of_what_a_window_shows(
    given_: Given, at_once: bool, function: str, since: list[int]
) -> None:
    total, entries = HeldTotal(function, star=False), list[tuple[Time, Term | None]]()
    terms: dict[Values, Term | None] = {ROWS[0]: integer(1), ROWS[1]: integer(2), ROWS[2]: None}
    for points, rows in given_:
        if at_once:
            total.add_stretch(points, [terms[row] for row in rows])
        else:
            for point in points:
                for row in rows:
                    total.add(point, terms[row])
        entries += [(point, terms[row]) for point in points for row in rows]
    for first in sorted(since):
        inside = [term for time, term in entries if time >= first]
        again = HeldTotal(function, star=False)
        again.load(total.dump())
        both = HeldTotal.joined([total, again], function, star=False)
        assert total.value(first) == summarise(function, False, inside)
        assert again.value(first) == summarise(function, False, inside)
        assert total.entries() == [(time, term) for time, term in entries if time >= first]
        if first == min(since) == 0:
            assert both.value(0) == summarise(function, False, inside * 2)
