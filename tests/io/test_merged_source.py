"""Streams that are merged by time: the same order however they are cut and however long they are silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, DocumentSource, Position, PositionOf, together
from dotr.io.graphs import Bookmark, DocumentRun, Item, ReadEvent, SourceOptions, TimedGraph
from dotr.io.merged_source import MergedSource, PartitionState, Silences, merged

Streams = Mapping[str, Sequence[int | None]]
"""Times of graphs; None: a silence."""


def graphs(name: str, times: Sequence[int | None]) -> Iterator[Item | None]:
    for number, time in enumerate(times):
        yield None if time is None else TimedGraph(time, [], name, number)


def order(streams: Streams, silences: Silences | None = None, ends: bool = True) -> list[tuple[str, int]]:
    opened = {name: graphs(name, times) for name, times in streams.items()}
    given = [one for one in merged(opened, {}, silences or Silences(None), lambda _: ends) if one is not None]
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
    mark = ReadEvent(None, "a", "document", 0)
    opened: dict[str, Iterator[Item | None]] = {"a": iter([mark]), "b": graphs("b", [None, 1])}
    assert next(merged(opened, {}, Silences(None))) == ("a", mark)


class Given:
    """A source of ready graphs, in pieces: each call of `items` gives the next one."""

    live, waiting, done, total = True, False, 0, 0

    def __init__(self, name: str, pieces: Sequence[Sequence[int]], ends: bool = True) -> None:
        self.name, self.extractors = name, [SourceOptions().extractor()]
        self._pieces, self._ends = list(pieces), ends
        self.taken: list[int] = []

    @property
    def over(self) -> bool:
        return self._ends and not self._pieces

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        piece = self._pieces.pop(0) if self._pieces else []
        self.extractors[0].accept(True, self.name)
        for number, time in enumerate(piece):
            yield TimedGraph(time, [], self.name, number)

    def begun(self) -> Mapping[str, Bookmark]:
        return {}

    def consumed(self, item: Item) -> None:
        assert isinstance(item, TimedGraph)
        self.taken.append(item.time)

    def partitions(self) -> Sequence[PartitionState]:
        return [PartitionState(self.name, "", max(self.taken, default=None), len(self.taken), False)]

    def changes(self) -> Mapping[tuple[str, str], Position]:
        return {(self.name, ""): len(self.taken)}

    def committed(self) -> None:
        return


def pieces(times: Sequence[int], cuts: Sequence[int]) -> list[Sequence[int]]:
    """Times in order, cut at these places."""
    found, start = [], 0
    for cut in sorted(set(cuts)):
        found.append(times[start:cut])
        start = cut
    return [*found, times[start:]]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 12), max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_sources_however_cut_give_the_order_of_their_graphs(
    sources: list[tuple[list[int], list[int]]],
) -> None:
    opened = [Given(f"s{n}", pieces(sorted(times), cuts)) for n, (times, cuts) in enumerate(sources)]
    source = MergedSource(opened, None)
    given: list[int] = []
    while not source.over:
        for item in source.items(lambda _source, _partition: None):
            assert item is not None
            source.consumed(item)
            assert isinstance(item, TimedGraph)
            given.append(item.time)
    assert given == sorted(time for times, _ in sources for time in times)
    assert [one.taken for one in opened] == [sorted(times) for times, _ in sources]
    assert source.changes() == {(f"s{n}", ""): len(times) for n, (times, _) in enumerate(sources)}
    assert [state.graphs for state in source.partitions()] == [len(times) for times, _ in sources]


class Cut:
    """A transport of lines with these times, in batches."""

    name = "t"

    def __init__(self, partitions: Sequence[Sequence[Sequence[int]]], joined: bool) -> None:
        self._batches, self._joined = {f"p{n}": one for n, one in enumerate(partitions)}, joined

    def partitions(self) -> Sequence[str]:
        return list(self._batches)

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        number = 0
        for batch in self._batches[partition]:
            documents = []
            for time in batch:
                number += 1
                line = b'{"time":%d,"graph":"<urn:x:o> <urn:x:p> %d ."}' % (time, number)
                documents.append(Document(line, number, f"{partition}@{number}"))
            yield together(documents) if self._joined else documents

    def position(self, partition: str, mark: Position) -> Position:
        return mark

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        return


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), max_size=4), min_size=1, max_size=4
    )
)
def test_partitions_that_are_read_by_many_lines_are_merged_as_lines(
    partitions: list[list[list[int]]],
) -> None:
    """The order, the position after each graph, and the state of each partition; by runs and one by one."""
    found = []
    for joined in (False, True):
        source = DocumentSource(Cut(partitions, joined), Format.JSONLINES)
        given = []
        for item in source.items(lambda _source, _partition: None):
            assert isinstance(item, TimedGraph)
            source.consumed(item)
            given.append((item, dict(source.changes()), source.partitions()))
        found.append(given)
    assert found[0] == found[1]
    streams = {f"p{n}": [time for batch in one for time in batch] for n, one in enumerate(partitions)}
    assert [(item.file.partition("@")[0], item.time // 1_000_000) for item, *_ in found[0]] == literal(
        streams
    )
    source = DocumentSource(Cut(partitions, True), Format.JSONLINES)
    count = 0
    for run in source.runs(lambda _source, _partition: None):
        assert run is not None
        source.consumed(run)
        items = run.items() if isinstance(run, DocumentRun) else [run]
        assert items == [item for item, *_ in found[0][count : count + len(items)]]
        count += len(items)
        assert source.changes() == found[0][count - 1][1]
        assert source.partitions() == found[0][count - 1][2]
    assert count == len(found[0])


def test_a_source_that_goes_on_is_waited_for_until_it_is_idle() -> None:
    source = MergedSource([Given("a", [[1, 5]]), Given("b", [[2]], ends=False)], 30.0)
    given = [item.time for item in source.items(lambda _s, _p: None) if item is not None]
    assert given == [1, 2]
    assert not source.over
    source = MergedSource([Given("a", [[1, 5]]), Given("b", [[2]], ends=False)], 0.0)
    given = [item.time for item in source.items(lambda _s, _p: None) if item is not None]
    assert given == [1, 2, 5]


def test_the_kind_of_time_of_the_first_graph_holds_for_all_sources() -> None:
    class Dates(Given):
        def items(self, position_of: PositionOf) -> Iterator[Item | None]:
            self.extractors[0].accept(False, self.name)
            yield None

    source = MergedSource([Given("a", [[1]]), Dates("b", [[2]])])
    with pytest.raises(DataError) as raised:
        list(source.items(lambda _s, _p: None))
    assert raised.value.diagnostics[0].code == "D2102"
