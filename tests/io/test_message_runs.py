"""Messages that are read together are those that are read one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.decode import messages as message_logs
from dotr.io.decode import messages as message_reader
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import START, Bookmark, GraphRun, Item, ReadEvent, SourceOptions, TimedGraph, one_by_one
from dotr.io.reader import FileReader

HEAD = (
    'VERSION "1.2-messages"\nPREFIX : <urn:x:>\nPREFIX sosa: <http://www.w3.org/ns/sosa/>\n'
    "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX prov: <http://www.w3.org/ns/prov#>\n"
)
PLAIN = [f":s{n % 3} :v {n} ; sosa:resultTime {n} ." for n in range(1, 7)]
OTHER = [
    *("", "# nothing", ":s :v 1 .", "PREFIX : <urn:y:> :s sosa:resultTime 8 .", ":s :v"),
    *(":s sosa:phenomenonTime 3 .", ":s sosa:resultTime 3 ; sosa:phenomenonTime 4 .", ":s :v 3 ; :w 4 ."),
    *(
        ":s sosa:resultTime 3 , 4 .",
        ":s sosa:resultTime 5 . :t sosa:resultTime 5 .",
        ":s sosa:resultTime :t .",
    ),
    *("<> prov:generatedAtTime 7 .", ":s prov:generatedAtTime 7 .", ':s sosa:resultTime "x" .'),
    *(f':s sosa:resultTime "2026-01-01T08:00:{n}Z"^^xsd:dateTime .' for n in (10, 11, "11.5")),
    *(":s :v _:b ; sosa:resultTime 6 .", f":s sosa:resultTime {10**40} .", ":g { :s sosa:resultTime 9 . }"),
    *(':u sosa:resultTime 9 ; :v "a b" .', "<http://www.w3.org/ns/sosa/resultTime> :v 9 .", "\n\n:s :v 1 ."),
]
logs = st.one_of(
    st.lists(st.sampled_from(PLAIN * 3 + OTHER), max_size=9),
    st.lists(st.lists(st.sampled_from(PLAIN + OTHER[-8:-5]), min_size=2, max_size=5), max_size=3).map(
        lambda lists: [text for texts in lists for text in (*texts, "")]
    ),
)
paths = st.sampled_from(["", "", "", "<urn:x:v>"])


def items(
    content: bytes, path: str = "", start: Bookmark = START, clock: Clock | None = None
) -> tuple[list[Item | GraphRun], dict[str, int]]:
    """What a log gives, and how often times were found where."""
    options = SourceOptions(time_path=path or None)
    extractor = options.extractor(clock)
    reader = FileReader("log.ttl", options, extractor, ErrorPolicy(fail=False), None, start, content)
    return list(reader.runs()), extractor.time_sources


def plain(found: Item) -> Any:
    return (*found[:5], str(found.error), *found[6:]) if isinstance(found, ReadEvent) else found


@given(
    logs,
    paths,
    st.sampled_from(["\nMESSAGE\n", "\nMESSAGE\n", "\n# @message\n"]),
    st.sampled_from([Clock(), Clock(integer=False), None]),
)
def test_messages_that_are_read_together_are_those_read_one_by_one(
    texts: list[str], path: str, between: str, clock: Clock | None
) -> None:
    content = (HEAD + between.join(["", "", "", *texts])).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_logs, "MANY", 3)
        together, time_sources = items(content, path, START, clock)
        patch.setattr(message_reader, "times_in", lambda *_: None)
        alone, expected = items(content, path, START, clock)
    assert not any(isinstance(item, GraphRun) for item in alone)
    assert list(map(plain, one_by_one(together))) == [plain(item) for item in one_by_one(alone)]
    assert time_sources == expected


def test_messages_that_say_their_times_alike_are_runs_and_a_reader_goes_on_behind_each() -> None:
    content = (HEAD + "\nMESSAGE\n".join(f":s :v {n} ; sosa:resultTime {n} ." for n in range(300))).encode()
    found, time_sources = items(content)
    runs = [item for item in found if isinstance(item, GraphRun)]
    assert sum(len(run.times) for run in runs) > 200
    assert time_sources == {"sosa:resultTime": 300}
    graphs = [item for item in one_by_one(found) if isinstance(item, TimedGraph)]
    assert [graph.time for graph in graphs] == [n * 10**6 for n in range(300)]
    for run in runs:
        rest, _ = items(content, "", Bookmark(run.how, run.ends[-1], run.carried))
        left = [item for item in one_by_one(rest) if isinstance(item, TimedGraph)]
        assert left == [graph for graph in graphs if graph.time > run.times[-1]]


def test_where_errors_are_raised_the_graphs_before_them_come_first() -> None:
    content = (HEAD + "\nMESSAGE\n".join([*PLAIN, ":s :v 1 ."])).encode()
    options = SourceOptions()
    reader = FileReader("log.ttl", options, options.extractor(), ErrorPolicy(), None, START, content)
    handed = reader.graphs()
    assert [next(handed).time // 10**6 for _ in PLAIN] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(DataError, match="D2101"):
        next(handed)
