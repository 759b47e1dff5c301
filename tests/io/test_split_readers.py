"""Tables row by row and dumps graph by graph: where reading goes on, and what is refused alone."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.dumps import DumpReader, short
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import (
    START,
    Bookmark,
    Item,
    ReadEvent,
    SourceOptions,
    StreamReader,
    TimedGraph,
    one_by_one,
)
from dotr.io.tables.mapping import parse_mapping
from dotr.io.tables.rows import TableReader, without_mapping

MAPPING = """# time: {t|epoch(s)}
PREFIX : <urn:x:>
[] :v {v}^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
CSV = b'\xef\xbb\xbft,v\n1,10\n2,x\n3\n\n4,"40"\n'


def table(
    content: bytes,
    name: str = "f.csv",
    bookmark: Bookmark = START,
    line: int = 1,
    mapping: str = MAPPING,
    forgiving: bool = True,
    **more: object,
) -> list[Item]:
    options = SourceOptions(**more)  # type: ignore[arg-type]  # tests
    policy = ErrorPolicy(fail=not forgiving)
    reader = TableReader(name, parse_mapping(mapping, "m"), options, options.extractor(), policy, bookmark)
    start = bookmark.end
    return list(one_by_one(reader.lines(StreamReader(io.BytesIO(content[start:]), name, count=start), line)))  # type: ignore[arg-type]  # none is undecided


def shown(items: Sequence[Item]) -> list[object]:
    return [
        (item.time // 1_000_000, item.line)
        if isinstance(item, TimedGraph)
        else item.error.diagnostics[0].code
        for item in items
        if isinstance(item, TimedGraph) or item.error is not None
    ]


def test_a_row_in_error_is_a_mark_in_its_place() -> None:
    items = table(CSV)
    assert shown(items) == [(1, 2), "D2404", "D2403", (4, 6)]
    assert isinstance(items[1], ReadEvent)
    assert (items[1].content, items[1].time) == (b"2,x\n", 1_000_000)
    end = items[-1]
    assert isinstance(end, ReadEvent)
    assert (end.error, end.how, end.end, end.carried) == (None, "byte", len(CSV), '["t", "v"]')
    with pytest.raises(DataError):
        table(CSV, forgiving=False)


def test_every_row_is_a_place_to_go_on_from_with_the_header_carried() -> None:
    items = table(CSV)
    for place, item in enumerate(items[:-1]):
        bookmark = Bookmark(item.how, item.end, item.carried)
        line = 1 + CSV[: item.end].count(b"\n")
        assert shown(table(CSV, bookmark=bookmark, line=line)) == shown(items[place + 1 :])


def test_a_file_that_grows_is_read_to_its_last_line_end() -> None:
    *rows, end = table(b"t,v\n1,1\n2,2", growing=True)
    assert shown(rows) == [(1, 2)]
    assert end.end == 8
    *rows, end = table(b'{"t": 1, "v": 1}\n{"t": 2', "f.jsonl", growing=True)
    assert (shown(rows), end.end) == ([(1, 1)], 17)
    assert shown(table(b"t,v\n1,1\n2,2")) == [(1, 2), (2, 3)]


def test_json_lines_are_refused_one_by_one() -> None:
    content = b'\xef\xbb\xbf{"t": 1, "v": 1}\n[1]\n{"t": 2, "v": "\xff"}\n{"v": 3, "t": 3, "w": {}}\n'
    assert shown(table(content, "f.jsonl")) == [(1, 1), "D2408", "D2405", (3, 4)]


def test_a_file_is_refused_whole_where_its_header_or_bytes_say_nothing() -> None:
    assert shown(table("t,v\n1,2\n".encode("utf-16"))) == ["D2002"]
    assert shown(table(b"t,w\n1,2\n")) == ["D2402"]
    assert shown(table(b"\n" * 60, max_document=50)) == ["D2023"]
    wrong = MAPPING.replace("epoch(s)", "epoch(h)")
    with pytest.raises(DataError) as raised:
        table(CSV, mapping=wrong)
    assert raised.value.diagnostics[0].code == "D2401", "no policy for documents passes over a mapping"
    assert "--map" in without_mapping("a.csv").diagnostics[0].hint


DUMP = """@prefix : <urn:x:> . @prefix sosa: <http://www.w3.org/ns/sosa/> .
:o3 a :Obs ; sosa:resultTime 3 ; :of [ :v 3 ] .
:bad a :Obs .
:o1 a :Obs ; sosa:resultTime 1 .
:beside :p :o1 .
"""
OBS = "<urn:x:Obs>"


def dump(
    content: str = DUMP,
    format_: Format = Format.TURTLE,
    bookmark: Bookmark = START,
    split: str = OBS,
    forgiving: bool = True,
    **more: object,
) -> tuple[list[Item], dict[str, int]]:
    options = SourceOptions(split=split, **more)  # type: ignore[arg-type]  # tests
    extractor = options.extractor()
    reader = DumpReader("d.ttl", options, extractor, ErrorPolicy(fail=not forgiving), bookmark)
    return list(reader.items(io.BytesIO(content.encode()), format_)), extractor.beside


def test_graphs_of_a_dump_come_in_time_order_refused_ones_first_or_last() -> None:
    items, beside = dump()
    times = [item.time for item in items if isinstance(item, TimedGraph)]
    assert times == [1_000_000, 3_000_000]
    refused = [item for item in items if isinstance(item, ReadEvent) and item.error is not None]
    assert [b"<urn:x:bad>" in item.content for item in refused] == [True]
    assert items.index(refused[0]) == 0
    assert len([item for item in items if isinstance(item, TimedGraph)][1].triples) == 4
    assert [item.end for item in items] == [1, 2, 3, 3]
    assert beside == {"all": 1, "shared": 0}
    with pytest.raises(DataError):
        dump(forgiving=False)


def test_a_dump_is_gone_on_with_by_the_number_of_its_graphs() -> None:
    whole, _ = dump()
    for number in range(4):
        rest, _ = dump(bookmark=Bookmark("graph", number))
        assert [item.end for item in rest] == [item.end for item in whole[number:]]


def test_nothing_to_split_by_and_documents_that_are_too_long_are_refused() -> None:
    (mark,), _ = dump(split="<http://www.w3.org/ns/sosa/Observation>")
    assert isinstance(mark, ReadEvent)
    assert mark.error is not None
    (said,) = mark.error.diagnostics
    assert (said.code, said.label, said.hint) == ("D2410", "it has urn:x:Obs (3)", "--split urn:x:Obs")
    assert "class sosa:Observation" in said.message
    (mark,), _ = dump("[" + " " * 99 + "]", Format.JSONLD, max_document=50)
    assert isinstance(mark, ReadEvent)
    assert mark.error is not None
    assert mark.error.diagnostics[0].code == "D2006"
    assert short("<http://www.w3.org/2001/XMLSchema#int>") == "xsd:int"
