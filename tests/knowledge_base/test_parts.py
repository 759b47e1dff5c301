"""The parts of a knowledge base alone: its lock, its times, the ends of its statements, its blank nodes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dotr.errors import DataError, DotrError
from dotr.events import Clock
from dotr.knowledge_base.knowledge_base import ReadWriteLock, Scopes, read_time, same_kind
from dotr.lasting.periods import Expiry

A, B = ("<a>", "<p>", "<x>"), ("<b>", "<p>", "<x>")


def test_readers_are_together_and_a_writer_alone() -> None:
    lock, both = ReadWriteLock(), threading.Barrier(3)
    inside: list[str] = []

    def read() -> None:
        with lock.reading():
            both.wait(10)  # passes only if both readers are inside at once
            inside.append("reader")

    def write() -> None:
        with lock.writing():
            inside.append("writer")

    readers = [threading.Thread(target=read) for _ in range(2)]
    with lock.reading():
        assert lock.is_reading
        for thread in readers:
            thread.start()
        both.wait(10)
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(0.05)
        assert "writer" not in inside, "somebody reads"
    for thread in (*readers, writer):
        thread.join(10)
    assert sorted(inside) == ["reader", "reader", "writer"]
    assert not lock.is_reading


def test_a_thread_may_nest_reading_in_reading_and_in_writing() -> None:
    lock = ReadWriteLock()
    with lock.reading(), lock.reading():
        assert lock.is_reading
    with lock.writing():
        assert lock.is_writing
        with lock.reading():
            assert lock.is_writing
    assert (lock.is_reading, lock.is_writing) == (False, False)
    with lock.writing():
        pass  # nothing was left locked


def test_a_writer_that_waits_goes_before_a_reader_that_comes_later() -> None:
    lock, order = ReadWriteLock(), list[str]()

    def enter(name: str, write: bool) -> None:
        with lock.writing() if write else lock.reading():
            order.append(name)

    with lock.reading():
        writer = threading.Thread(target=enter, args=("writer", True))
        writer.start()
        while not lock._waiting:
            threading.Event().wait(0.001)
        reader = threading.Thread(target=enter, args=("reader", False))
        reader.start()
        with lock.reading():
            pass  # who reads already is not held up
    writer.join(10)
    reader.join(10)
    assert order == ["writer", "reader"]


def test_times_are_integers_of_the_unit_aware_datetimes_or_text() -> None:
    assert read_time(7, 1_000) == (7_000, Clock(True, 1_000))
    aware = datetime(1970, 1, 1, 1, 0, 1, tzinfo=timezone(timedelta(hours=1)))
    assert read_time(aware, 1)[0] == 1_000_000
    assert read_time("1970-01-01T00:00:02Z", 1) == (2_000_000, Clock(False, 1))


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (True, "D4104"),
        (1.5, "D4104"),
        (datetime(2026, 1, 1), "D2103"),  # without a zone
        ("2026-01-01T00:00:00", "D2103"),
        (2**63, "D2105"),
        (-(2**63) - 1, "D2105"),
    ],
)
def test_times_that_are_refused(at: object, code: str) -> None:
    with pytest.raises(DotrError) as raised:
        read_time(at, 1)  # type: ignore[arg-type]  # that is the point
    assert raised.value.diagnostics[0].code == code


def test_a_knowledge_base_has_times_of_one_kind() -> None:
    first = read_time(1, 1)[1]
    dates = read_time(datetime(2026, 1, 1, tzinfo=UTC), 1)[1]
    assert same_kind(None, first) is first
    assert same_kind(first, Clock(True, 1)) is first
    with pytest.raises(DataError, match="a dateTime"):
        same_kind(first, dates)


def test_of_the_statements_of_a_triple_the_last_to_end_counts() -> None:
    expiry = Expiry()
    expiry.begin([A], 5)
    expiry.begin([A], 9)
    expiry.begin([A, B], 7)
    assert expiry.until == {A: 9, B: 7}
    assert expiry.due(6) == []
    assert expiry.due(7) == [B], "periods are half open"
    assert expiry.due(9) == [B, A], "asking changes nothing"
    expiry.end([B])
    assert expiry.due(9) == [A]


def test_a_statement_without_an_end_is_never_due_and_state_comes_back() -> None:
    expiry = Expiry({A: 5, B: 6})
    expiry.begin([A], None)
    assert expiry.due(100) == [B]


def test_labels_are_local_to_a_call_unless_they_were_handed_out() -> None:
    scopes = Scopes()
    part = [("_:x", "<p>", "<o>")]
    first = scopes.labelled(part, is_text=False)
    scopes.keep(first)
    second = scopes.labelled(part, is_text=False)
    assert first[0][0] != "_:x"
    assert first[0][0] != second[0][0], "another call, another node"
    assert scopes.labelled(first, is_text=False) == first, "what was handed out means that node"
    assert scopes.labelled(first, is_text=True)[0][0] != first[0][0], "in text every label is local"
    assert scopes.labelled([A], is_text=False) == [A]


def test_only_nodes_that_were_handed_out_can_be_deleted() -> None:
    scopes = Scopes(["_:known"])
    known = [("_:known", "<p>", "<o>")]
    assert scopes.named(known, is_text=False) == known
    with pytest.raises(DataError) as raised:
        scopes.named(known, is_text=True)
    assert raised.value.diagnostics[0].code == "D2202"
    assert Scopes(exact=True).named([("_:any", "<p>", "<o>")], is_text=True) == [("_:any", "<p>", "<o>")]
    assert Scopes(exact=True).labelled([("_:any", "<p>", "<o>")], is_text=False) == [("_:any", "<p>", "<o>")]
