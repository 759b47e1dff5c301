"""Statements and their periods: what holds is what the list of all statements says."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock, Message, Time
from dotr.lasting.periods import FOREVER, Periods, StatedChange
from dotr.program import Hold
from dotr.rdf.terms import Triple
from dotr.reference.lasting import LiteralStatements, unheld
from tests.lasting.histories import UNIT, histories, holds, triples

A: Triple = ("<ex:a>", "<ex:p>", "<ex:b>")
B: Triple = ("<ex:a>", "<ex:p>", "<ex:c>")
TEN = (Hold("<ex:p>", duration=10),)
LATEST = (Hold("<ex:p>", latest=True),)
Holds = tuple[Hold, ...]
History = list[tuple[Time, list[Message]]]


def graph(*triples: Triple) -> list[Message]:
    return [Message(list(triples))]


@given(st.lists(triples, max_size=4), holds(), holds(), histories(), st.integers(0, 14))
def test_what_is_stated_is_what_the_list_of_statements_says(
    background: list[Triple],
    first: tuple[Hold, ...],
    second: tuple[Hold, ...],
    history: History,
    change: Time,
) -> None:
    """Terms change at `change`; at every instant the change says what begins and ends."""
    periods, literally = Periods(background, first), LiteralStatements.of(background)
    came = dict(history)
    last = -1
    for time in range(0, 22 * UNIT, UNIT):
        lines = first if time < change * UNIT else second
        periods.declare(lines)
        ends = literally.ends(last, time + 1)
        if time not in came and time not in ends and periods.next_change() != time:
            continue
        messages = came.get(time, [])
        before = set(periods)
        reported = periods.change(time, messages)
        periods.undo()
        assert set(periods) == before
        reported = periods.change(time, messages)
        literally, useless = literally.after(time, messages, lines)
        assert set(periods) == literally.at(time)
        assert len(list(periods)) == len(set(periods))
        assert reported.useless == useless
        assert [one.triple for one in reported.unheld] == sorted(unheld(time, messages, lines, Clock()))
        assert set(reported.begun) == set(periods) - before
        assert set(reported.ended) == before - set(periods)
        assert all(triple in periods for triple in reported.moved)
        end = periods.next_change()
        assert end is None or end > time
        last = time


@given(st.lists(triples, max_size=4), holds(), histories())
def test_statements_saved_and_loaded_go_on_as_before(
    background: list[Triple], lines: tuple[Hold, ...], history: History
) -> None:
    periods = Periods(background, lines)
    for time, messages in history:
        while (end := periods.next_change()) is not None and end < time:
            periods.change(end)
        periods.change(time, messages)
        copy = Periods(background, lines)
        copy.load(json.loads(json.dumps(periods.save())))
        assert set(copy) == set(periods)
        assert copy.save() == periods.save()
        assert copy.next_change() == periods.next_change()
        periods = copy


def test_a_change_says_when_what_begins_will_end() -> None:
    periods = Periods((), TEN)
    assert periods.change(0, graph(A)) == StatedChange({A: 10}, held=(A,))
    assert periods.change(5, graph(A)) == StatedChange(moved={A: 15})
    assert periods.change(6, [Message(insert=[A])]) == StatedChange(moved={A: FOREVER})
    assert periods.next_change() == 15
    assert periods.change(15) == StatedChange()
    assert periods.change(16, [Message(delete=[A, B])]) == StatedChange(ended=(A,), useless=1)


def test_a_deletion_and_an_insertion_of_one_instant_change_nothing() -> None:
    periods = Periods([A])
    assert not periods.change(1, [Message(insert=[A]), Message(delete=[A])])
    assert A in periods


def test_a_value_of_its_time_is_replaced_after_the_terms_have_changed() -> None:
    periods = Periods((), LATEST)
    periods.change(0, graph(A))
    periods.declare(TEN)
    assert periods.change(3, graph(B)) == StatedChange({B: 13}, (A,), held=(B,))


def test_a_background_that_is_replaced_states_what_it_states_now() -> None:
    periods = Periods([A])
    periods.change(1, [Message(delete=[A])])
    periods.change(2, (), ended=[A], begun=[B])
    periods.rebase([B])
    assert set(periods) == {B}
    assert periods.change(3, [Message(delete=[B])]).ended == (B,)
    assert periods.save() == [[*B, 1, 0, None, None]]


def test_what_came_and_went_is_no_change_and_takes_no_memory() -> None:
    periods = Periods((), [Hold(duration=5)])
    for time in range(100):
        periods.change(time, [Message([(f"<urn:x{time}>", "<urn:p>", "<urn:y>")])])
    assert len(periods.changed()) == 5
    periods.change(200)
    assert list(periods.changed().values()) == [None] * 5
