"""Streams that are merged by time: the same order however they are cut and however long they are silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from dotr.io.graphs import Item, Mark, TimedGraph
from dotr.io.merged_source import Silences, merged

Streams = Mapping[str, Sequence[int | None]]
"""Times of graphs; None: a silence."""


def graphs(name: str, times: Sequence[int | None]) -> Iterator[Item | None]:
    for number, time in enumerate(times):
        yield None if time is None else TimedGraph(time, [], name, number)


def order(streams: Streams, silences: Silences | None = None, ends: bool = True) -> list[tuple[str, int]]:
    opened = {name: graphs(name, times) for name, times in streams.items()}
    given = [one for one in merged(opened, {}, silences or Silences(None), ends) if one is not None]
    return [(name, item.time) for name, item in given if isinstance(item, TimedGraph)]


def literal(streams: Streams) -> list[tuple[str, int]]:
    """The earliest of the first graphs that are left, of equal ones that of the first stream; and again."""
    left = {name: [time for time in times if time is not None] for name, times in streams.items()}
    found = []
    while any(left.values()):
        time, _, name = min(
            (times[0], place, name) for place, (name, times) in enumerate(left.items()) if times
        )
        found.append((name, time))
        del left[name][0]
    return found


TIMES = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12)
STREAMS = st.dictionaries(st.sampled_from("abcd"), TIMES, max_size=4)


@given(STREAMS)
def test_the_order_is_that_of_the_literal_reading_whatever_is_silent(streams: Streams) -> None:
    assert order(streams) == literal(streams)


@given(STREAMS, st.integers(0, 4))
def test_what_is_in_order_up_to_a_lateness_stays_so(streams: Streams, lateness: int) -> None:
    own: dict[str, list[int | None]] = {}
    for name, times in streams.items():
        latest, own[name] = 0, []
        for time in times:
            if time is not None and time >= latest - lateness:
                own[name].append(time)
                latest = max(latest, time)
    latest = 0
    for _, time in order(own):
        assert time >= latest - lateness
        latest = max(latest, time)


class Clock:
    """Goes on by a second whenever it is read."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_a_stream_that_is_silent_for_long_holds_nobody_back_and_joins_again() -> None:
    streams = {"a": [1, 2, 3, 20, 21], "b": [None] * 8 + [2, 22]}
    found = order(streams, Silences(3.0, Clock()))
    assert found[0] == ("a", 1)
    assert found.index(("b", 2)) > found.index(("a", 3)), "late, since time has passed it"
    assert found[-1] == ("b", 22)


def test_a_stream_that_never_came_holds_the_others_back_until_it_counts_as_idle() -> None:
    opened: dict[str, Iterator[Item | None]] = {"a": graphs("a", [1, 2]), "b": graphs("b", [None] * 50)}
    given = [one if one is None else one[1] for one in merged(opened, {}, Silences(10.0, Clock()))]
    first = next(place for place, one in enumerate(given) if one is not None)
    assert given[:first] == [None] * first
    assert first >= 5


def test_a_stream_that_may_go_on_after_its_end_is_waited_for() -> None:
    streams: Streams = {"a": [1, 5], "b": [2]}
    assert order(streams, Silences(None), ends=False) == [("a", 1), ("b", 2)]
    assert order(streams, Silences(0.0), ends=False) == [("a", 1), ("b", 2), ("a", 5)]


def test_a_mark_waits_for_nobody() -> None:
    mark = Mark(None, "a", "document", 0)
    opened: dict[str, Iterator[Item | None]] = {"a": iter([mark]), "b": graphs("b", [None, 1])}
    assert next(merged(opened, {}, Silences(None))) == ("a", mark)
