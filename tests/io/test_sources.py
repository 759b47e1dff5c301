"""Sources give time-annotated graphs in time order, or say which document is bad."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io import reader
from dotr.io.decode.documents import Format
from dotr.io.decode.plain import BatchParser
from dotr.io.decode.quads import quad_blocks
from dotr.io.errors import ErrorPolicy
from dotr.io.sources import Bookmark, Item, ReadEvent, SourceOptions, Sources, TimedGraph
from dotr.rdf.terms import Triple, integer

PROV = "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX : <urn:x:>\n"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of a folder; the folder's path."""

    def write(**files: str | bytes) -> str:
        for name, content in files.items():
            path = tmp_path / "in" / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / "in")

    return write


def times(graphs: Sources | Iterator[TimedGraph]) -> list[int]:
    return [graph.time // 1_000_000 for graph in graphs]


def subjects(graphs: Sources) -> list[tuple[int, list[str]]]:
    return [
        (g.time // 1_000_000, [s.removeprefix("<urn:x:").rstrip(">") for s, _p, _o in g.triples])
        for g in graphs
    ]


def quads(*graphs: tuple[int, str]) -> str:
    """N-Quads of graphs named by their number, stamp first."""
    return "".join(
        f"<urn:g{i}> {STAMP} {integer(time)} .\n<urn:x:{subject}> <urn:p> <urn:o> <urn:g{i}> .\n"
        for i, (time, subject) in enumerate(graphs)
    )


def refused(sources: Sources, code: str) -> str:
    with pytest.raises(DataError) as caught:
        list(sources)
    assert caught.value.diagnostics[0].code == code, str(caught.value)
    return str(caught.value)


def test_a_folder_is_replayed_in_time_order_not_in_name_order(write: Write) -> None:
    folder = write(
        **{"10_ttl": "<urn:x:b> <urn:p> 1 .", "9_ttl": "<urn:x:a> <urn:p> 1 .", "sub__100_ttl": ""}
    )
    assert subjects(Sources([folder])) == [(9, ["a"]), (10, ["b"]), (100, [])]


def test_graphs_of_one_time_from_several_files_are_neighbours(write: Write) -> None:
    folder = write(
        a_nq=quads((1, "a1"), (3, "a3")),
        b_nq=quads((3, "b3"), (2, "b2"), (1, "b1")),
        **{"3_ttl": "", "2_ttl": ""},
    )
    assert times(Sources([folder])) == [1, 1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("cache", [0, 200, 10_000_000])
def test_the_replay_does_not_depend_on_what_is_kept_in_memory(write: Write, cache: int) -> None:
    folder = write(
        a_nq=quads((1, "a1"), (3, "a3"), (5, "a5")),
        b_nq=quads((4, "b4"), (2, "b2")),
        c_jsonl='{"time":3,"graph":"<urn:x:c3> <urn:p> 1 ."}\n',
        **{"2_ttl": "<urn:x:d2> <urn:p> 1 ."},
    )
    sources = Sources([folder], SourceOptions(cache=cache))
    assert subjects(sources) == [
        (1, ["a1"]), (2, ["d2"]), (2, ["b2"]), (3, ["a3"]), (3, ["c3"]), (4, ["b4"]), (5, ["a5"]),
    ]  # fmt: skip
    assert sources.extractor.time_sources == {
        "file name": 1,
        "prov:generatedAtTime": 5,
        "the line's own time": 1,
    }


def test_one_stream_alone_is_read_as_it_stands(write: Write) -> None:
    folder = write(a_nq=quads((3, "a"), (1, "b")))
    assert times(Sources([f"{folder}/a.nq"])) == [3, 1]


def test_blank_nodes_keep_their_document_labels_but_not_their_names(write: Write) -> None:
    folder = write(
        a_trig=PROV
        + ":g { _:b0 :p 1 } :h { _:b0 :p 2 } :g prov:generatedAtTime 1 . :h prov:generatedAtTime 2 ."
    )
    assert [[s for s, _p, _o in graph.triples] for graph in Sources([folder])] == [["_:b0"], ["_:b0"]]


@pytest.mark.parametrize(
    "text",
    [
        ":g prov:generatedAtTime 7 . :g { :a :p 1 . :b :p 2 }",
        ":g { :a :p 1 . :b :p 2 } :g prov:generatedAtTime 7 .",
        ":g { :a :p 1 } :h prov:generatedAtTime 8 . :h { } :g { :b :p 2 } :g prov:generatedAtTime 7 .",
    ],
)
def test_the_stamp_of_a_graph_stands_anywhere_in_a_small_file(write: Write, text: str) -> None:
    folder = write(a_trig=PROV + text)
    assert (7, ["a", "b"]) in subjects(Sources([folder]))


def test_a_stamp_without_quads_is_an_empty_graph(write: Write) -> None:
    folder = write(a_nq=f"<urn:g> {STAMP} {integer(4)} .\n")
    assert subjects(Sources([folder])) == [(4, [])]


def test_what_the_default_graph_says_about_a_graph_is_not_in_the_graph(write: Write) -> None:
    folder = write(a_trig=PROV + ":g prov:generatedAtTime 7 ; :from :sensor . :g { :a :p 1 }")
    assert subjects(Sources([folder])) == [(7, ["a"])]


def test_graphs_of_a_small_file_come_in_the_order_of_their_first_mention(write: Write) -> None:
    text = f"<urn:e> {STAMP} {integer(5)} .\n{quads((6, 'a'), (7, 'b'))}"
    assert subjects(Sources([write(a_nq=text)])) == [(5, []), (6, ["a"]), (7, ["b"])]


def test_a_stray_triple_in_the_default_graph_is_refused(write: Write) -> None:
    folder = write(a_trig=PROV + ":g prov:generatedAtTime 7 . :g { :a :p 1 } :lost :p 1 .")
    assert "urn:x:lost" in refused(Sources([folder]), "D2012")


def test_quads_without_a_named_graph_are_refused(write: Write) -> None:
    folder = write(a_nq="<urn:a> <urn:b> <urn:c> .\n")
    assert ".nt" in refused(Sources([folder]), "D2012")


def test_json_lines_have_their_own_time(write: Write) -> None:
    lines = [
        {"time": 12, "graph": "<urn:x:a> <urn:p> 1 ."},
        {"graph": "", "time": 13},
        {"time": 14, "graph": ""},
    ]
    folder = write(a_jsonl="\n\n".join(map(json.dumps, lines)))
    assert subjects(Sources([folder])) == [(12, ["a"]), (13, []), (14, [])]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nonsense", "D2014"),
        ("[]", "D2014"),
        ('{"time":1}', "D2014"),
        ('{"time":1,"graph":7}', "D2014"),
        ("[" * 100_000, "D2014"),
        ('{"time":1.5,"graph":""}', "D2105"),
        ('{"time":true,"graph":""}', "D2105"),
        ('{"time":"2026-01-01T00:00:00","graph":""}', "D2103"),
        ('{"graph":""}', "D2101"),
        ('{"time":1,"graph":":a :b"}', "D2001"),
        ('{"time":1,"graph":"<urn:a> <urn:b> \'\\ud800\' ."}', "D2002"),
        ('{"time":"\\ud800","graph":""}', "D2105"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(write: Write, line: str, code: str) -> None:
    folder = write(a_jsonl='{"time":0,"graph":""}\n' + line + "\n")
    assert "a.jsonl:2" in refused(Sources([f"{folder}/a.jsonl"]), code)


LOG = """VERSION "1.2-messages"
PREFIX : <urn:x:> PREFIX prov: <http://www.w3.org/ns/prov#>
<> prov:generatedAtTime 1 . :a1 :says \"""MESSAGE
MESSAGE\""" , "@message ." .
MESSAGE
MESSAGE
PREFIX : <urn:y:>
:g { :a2 :p "}" . } :g prov:generatedAtTime 2 .
# @message
_:b :p 1 . <> prov:generatedAtTime 3 . @message . <> prov:generatedAtTime 4 ; :MESSAGE 1 ; :message 2 .message
"""


def test_a_message_log_is_cut_at_every_kind_of_delimiter(write: Write) -> None:
    folder = write(log_ttl=LOG)
    graphs = list(Sources([folder]))
    assert [graph.time // 1_000_000 for graph in graphs] == [1, 2, 3, 4]
    assert graphs[1].triples == [("<urn:y:a2>", "<urn:y:p>", '"}"')]
    assert [len(graph.triples) for graph in graphs] == [3, 1, 2, 3]
    assert [graph.line for graph in graphs] == [2, 7, 10, 10]


@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_message_log_may_come_in_pieces_of_any_size(step: int) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(step)

        read1 = read

    graphs = list(Sources(["-"], stdin=Slow(LOG.encode())))
    assert graphs == [
        graph._replace(file="<stdin>") for graph in Sources(["-"], stdin=io.BytesIO(LOG.encode()))
    ]
    assert len(graphs) == 4


@pytest.mark.parametrize(
    "parts",
    [
        ['{"time":1,"graph":""}\n{"time":2,"graph":""}\n', '{"time":3,"graph":""}\n'],
        [
            f'VERSION "1.2-messages"\n<> {STAMP} 1 .\nMESSAGE\n<> {STAMP} 2 .\nMESSAGE\n',
            f"<> {STAMP} 3 .\nMESSAGE\n",
        ],
    ],
    ids=["JSON lines", "message log"],
)
def test_graphs_that_are_in_hand_do_not_wait_for_the_next_read(parts: list[str]) -> None:
    left = [part.encode() for part in parts]

    class Pipe(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return left.pop(0) if left else b""

        read1 = read

    graphs = iter(Sources(["-"], stdin=Pipe()))
    assert [next(graphs).time for _ in range(2)] == [1_000_000, 2_000_000]
    assert len(left) == 1
    assert [graph.time for graph in graphs] == [3_000_000]


def test_a_delimiter_inside_a_graph_block_is_an_error(write: Write) -> None:
    text = 'VERSION "1.2-messages"\n<urn:g> {\n<urn:a> <urn:b> 1 .\nMESSAGE\n<urn:c> <urn:d> 1 }\n'
    assert "log.trig:4" in refused(Sources([write(log_trig=text)]), "D2015")


def test_an_error_in_a_message_says_the_line_of_the_log(write: Write) -> None:
    text = 'VERSION "1.2-messages"\nPREFIX : <urn:x:>\n<> <http://www.w3.org/ns/sosa/resultTime> 1 .\n'
    text += "\nMESSAGE\n\n:a :b .\n"
    assert "log.ttl:7:7" in refused(Sources([f"{write(log_ttl=text)}/log.ttl"]), "D2001")


def test_n_quads_may_be_a_message_log(write: Write) -> None:
    text = f'VERSION "1.2-messages"\n{quads((1, "a"))}MESSAGE\n{quads((2, "b"))}'
    assert subjects(Sources([write(log_nq=text)])) == [(1, ["a"]), (2, ["b"])]


def test_gzip_of_any_format_is_read(write: Write) -> None:
    folder = write(a_nq_gz=gzip.compress(quads((1, "a")).encode()), b_ttl_gz=gzip.compress(LOG.encode()))
    assert times(Sources([folder])) == [1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (quads((1, "a"), (2, "b")), [1, 2]),
        (LOG, [1, 2, 3, 4]),
        ('{"time":5,"graph":""}\n', [5]),
        (PROV + ":g { :a :p 1 } :g prov:generatedAtTime 7 .", [7]),
        (PROV + "<> prov:generatedAtTime 8 .", [8]),
        (f"<urn:g> {STAMP} {integer(9)} .\n" * 3 + quads((9, "a")), [9, 9]),
        ("", []),
    ],
)
def test_standard_input_is_known_by_its_content(content: str, expected: list[int]) -> None:
    if not expected:
        refused(Sources(["-"], stdin=io.BytesIO(b"")), "D2101")
        return
    assert sorted(times(Sources(["-"], stdin=io.BytesIO(content.encode())))) == expected


def test_a_file_of_a_folder_is_read_and_parsed_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(**{f"{i}_ttl": f"<urn:a> <urn:b> {i} ." for i in range(5)})
    seen: list[str] = []
    open_file = os.open

    def opened(path: str, flags: int) -> int:
        seen.append(f"open {Path(path).name}")
        return open_file(path, flags)

    def parsed(parser: BatchParser, texts: list[str], head: str) -> list[list[Triple]] | None:
        seen.append(f"parse {len(texts)}")
        return parse(parser, texts, head)

    parse = BatchParser.parse
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(reader, "open_document", None)
    monkeypatch.setattr(BatchParser, "parse", parsed)
    assert times(Sources([folder])) == [0, 1, 2, 3, 4]
    assert seen == [*(f"open {i}.ttl" for i in range(5)), "parse 5"]


@pytest.mark.parametrize("size", [10, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 18])
@pytest.mark.parametrize("name", ["7.ttl", "7.ttl.gz", "7.nt"])
def test_a_document_of_any_size_is_read_whole(tmp_path: Path, size: int, name: str) -> None:
    body = b"<urn:a> <urn:b> <urn:c> .\n#"
    content = body + b"-" * (size - len(body))
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (graph,) = Sources([str(tmp_path)])
    assert (graph.time, graph.triples, graph.how, graph.end) == (
        7_000_000,
        [("<urn:a>", "<urn:b>", "<urn:c>")],
        "whole",
        max(size, len(body)),
    )


def test_globs_and_folders_may_be_mixed(write: Write) -> None:
    folder = write(**{"1_ttl": "", "2_ttl": "", "sub__3_nt": "", "sub__notes_txt": "", "sub__hidden_ttl": ""})
    (Path(folder) / "sub" / "hidden.ttl").rename(Path(folder) / "sub" / ".4.ttl")
    assert times(Sources([f"{folder}/[12].ttl", f"{folder}/sub"])) == [1, 2, 3]


@pytest.mark.parametrize(
    ("path", "code"), [("none.ttl", "D2003"), ("*.nothing", "D2009"), ("empty", "D2009"), ("x.txt", "D2008")]
)
def test_a_source_that_is_none_is_refused(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("")
    refused(Sources([str(tmp_path / path)]), code)


def test_mixed_kinds_of_time_are_refused_with_their_place(write: Write) -> None:
    folder = write(**{"12_ttl": "", "2026-01-01T08-00-12Z_ttl": ""})
    assert "2026-01-01T08-00-12Z.ttl" in refused(Sources([folder]), "D2102")


def test_integer_time_counts_its_unit(write: Write) -> None:
    sources = Sources([write(**{"12_ttl": ""})], SourceOptions(unit=1000))
    assert [graph.time for graph in sources] == [12_000]
    assert sources.clock == Clock(integer=True, unit=1000)


def test_skipping_leaves_out_the_bad_document_and_nothing_else(write: Write) -> None:
    folder = write(
        a_jsonl='{"time":1,"graph":""}\nbad\n{"time":3,"graph":""}\n',
        log_ttl=LOG.replace(":g { :a2", ":g { :a2 ;"),
        **{"2_ttl": ":a :b", "4_ttl": ""},
    )
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    assert times(Sources([folder], refusals=refusals)) == [1, 1, 3, 3, 4, 4]
    found: list[dict[str, Any]] = [json.loads(letter) for letter in letters]
    assert refusals.count == 3
    assert [Path(letter["place"].split(":")[0]).name for letter in found] == ["2.ttl", "a.jsonl", "log.ttl"]
    assert [letter["code"] for letter in found] == ["D2001", "D2014", "D2001"]
    assert found[0]["document"] == ":a :b"
    assert found[1]["document"] == "bad"
    assert "cannot be read" in found[0]["diagnostic"]


def test_bytes_that_are_no_text_reach_the_dead_letters_whole(write: Write) -> None:
    letters: list[str] = []
    folder = write(**{"2_ttl": b"\xff\xfe"})
    assert list(Sources([folder], refusals=ErrorPolicy(fail=False, sink=letters.append))) == []
    assert json.loads(letters[0])["base64"] == "//4="


def test_a_large_quad_file_is_streamed_and_knows_its_places(write: Write) -> None:
    folder = write(a_nq=quads(*((i, f"s{i}") for i in range(50))))
    graphs = list(Sources([folder], SourceOptions(whole=10)))
    assert [graph.time // 1_000_000 for graph in graphs] == list(range(50))
    assert [graph.line for graph in graphs] == list(range(1, 100, 2))
    text = (Path(folder) / "a.nq").read_bytes()
    assert [text[: graph.end].count(b"\n") for graph in graphs] == list(range(2, 102, 2))


@st.composite
def documents(draw: st.DrawFn) -> list[tuple[int, list[str], bool]]:
    """Graphs of a quad document: time, subjects, whether the stamp stands behind them."""
    graph = st.tuples(
        st.integers(0, 3), st.lists(st.sampled_from("abc"), max_size=3, unique=True), st.booleans()
    )
    return draw(st.lists(graph, max_size=6))


def written(graphs: list[tuple[int, list[str], bool]], trig: bool) -> str:
    text = ""
    for i, (time, subjects_, behind) in enumerate(graphs):
        stamp = f"<urn:g{i}> {STAMP} {integer(time)} .\n"
        triples = [f"<urn:x:{s}> <urn:p> <urn:o>" for s in subjects_]
        if trig:
            body = f"<urn:g{i}> {{ {' . '.join(triples)} }}\n" if triples else ""
        else:
            body = "".join(f"{triple} <urn:g{i}> .\n" for triple in triples)
        text += body + stamp if behind else stamp + body
    return text


@given(documents(), st.booleans())
def test_streamed_and_whole_quads_are_the_same_graphs(
    graphs: list[tuple[int, list[str], bool]], trig: bool
) -> None:
    text = written(graphs, trig).encode()
    name = "x.trig" if trig else "x.nq"
    format_ = Format.TRIG if trig else Format.NQUADS
    whole = list(quad_blocks(io.BytesIO(text), format_, name))
    streamed = list(quad_blocks(io.BytesIO(text), format_, name, whole=0))
    seen = sorted((b.name, b.triples, b.about) for b in streamed)
    assert seen == sorted((b.name, b.triples, b.about) for b in whole)
    assert [b.name for b in streamed if b.triples] == [f"<urn:g{i}>" for i, g in enumerate(graphs) if g[1]]
    assert len(seen) == len(graphs)


def test_scattered_quads_of_a_large_file_are_read_whole_when_it_begins_so(write: Write) -> None:
    stamps = "".join(f"<urn:g{i}> {STAMP} {integer(i)} .\n" for i in range(3))
    body = "".join(f"<urn:x:s> <urn:p> {integer(k)} <urn:g{i}> .\n" for k in range(2) for i in range(3))
    folder = write(a_nq=stamps + body)
    assert subjects(Sources([folder], SourceOptions(whole=10))) == [(i, ["s", "s"]) for i in range(3)]
    refused(Sources([folder], SourceOptions(whole=10, max_document=100)), "D2006")


def test_quads_of_a_streamed_graph_that_come_apart_are_refused_not_taken_for_a_new_graph(
    write: Write,
) -> None:
    apart = quads((1, "a"), (2, "b"), (3, "c")) + "<urn:x:late> <urn:p> 1 <urn:g0> .\n".replace(
        " 1 ", " <urn:o> "
    )
    refused(Sources([write(a_nq=apart)], SourceOptions(whole=10)), "D2101")


MIXED = {
    "a_nq": quads((1, "a1"), (4, "a4"), (6, "a6")),
    "b_nq": quads((5, "b5"), (2, "b2"), (3, "b3")),
    "c_trig": written([(1, ["a"], False), (2, ["b", "c"], True), (7, [], False)], trig=True),
    "log_ttl": LOG,
    "d_jsonl": '{"time":2,"graph":""}\n\nbroken\n{"time":9,"graph":""}',
    "5_ttl": "<urn:x:e> <urn:p> 1 .",
    "6_ttl": ":refused",
}


@pytest.mark.parametrize("whole", [0, 1 << 24])
@pytest.mark.parametrize("cache", [0, 1 << 24])
def test_going_on_behind_any_bookmark_gives_exactly_the_rest(write: Write, whole: int, cache: int) -> None:
    folder = write(**MIXED)
    options = SourceOptions(whole=whole, cache=cache)

    def items(bookmarks: dict[str, Bookmark], paths: list[str]) -> list[Item]:
        return list(Sources(paths, options, ErrorPolicy(fail=False), bookmarks=bookmarks).items())

    def reported(many: list[Item]) -> list[object]:
        return [
            (item.time, item.triples, item.file, item.line)
            if isinstance(item, TimedGraph)
            else (item.file, item.error and item.error.diagnostics[0].place)
            for item in many
            if isinstance(item, TimedGraph) or item.error
        ]

    everything = items({}, [folder])
    assert len(reported(everything)) == 18
    bookmarks: dict[str, Bookmark] = {}
    done: set[str] = set()
    for number, item in enumerate(everything, 1):
        bookmarks[item.file] = Bookmark(item.how, item.end, item.carried)
        if item.how == "whole":
            done.add(item.file)
        left = [f for f in sorted({i.file for i in everything}) if f not in done]
        if left:
            assert reported(items(bookmarks, left)) == reported(everything[number:])


def test_a_limit_keeps_what_was_appended_for_later(write: Write) -> None:
    first, more = quads((1, "a"), (2, "b")), quads((3, "c"))
    folder = write(a_nq=first + more)
    limited = Sources([folder], bookmarks={f"{folder}/a.nq": Bookmark("graph", 1, "", len(first))})
    items = list(limited.items())
    assert [item.time for item in items] == [2_000_000, 2_000_000]
    (*_graphs, end) = items
    assert isinstance(end, ReadEvent)
    assert (end.how, end.end) == ("byte", len(first))
    rest = Sources([folder], bookmarks={f"{folder}/a.nq": Bookmark("byte", len(first))})
    assert [(graph.time // 1_000_000, graph.line) for graph in rest] == [(3, 5)]


@pytest.mark.parametrize("whole", [0, 1 << 22])
@pytest.mark.parametrize(
    ("at", "lost"),
    [
        (0, {0}),  # before the first stamp: it may have been about the first graph
        (1, {0}),  # between a stamp and its quads
        (2, {0, 1}),  # behind the quads of one graph, before the stamp of the next
        (3, {1}),
        (6, {2}),  # at the end
    ],
)
def test_an_unreadable_quad_takes_only_the_graphs_beside_it_with_it(
    write: Write, whole: int, at: int, lost: set[int]
) -> None:
    lines = quads((0, "a"), (1, "b"), (2, "c")).splitlines()
    lines.insert(at, "un\udcffreadable")
    content = "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    sources = Sources([write(a_nq=content)], SourceOptions(whole=whole), refusals)
    assert set(times(sources)) == {0, 1, 2} - lost
    found = [json.loads(letter) for letter in letters]
    first = [letter["code"] for letter in found].index("D2002")
    assert [letter["code"] for letter in found] == ["D2019"] * first + ["D2002"]
    assert found[first]["place"].endswith(f"a.nq:{at + 1}:3")
    kept = base64.b64decode(found[first]["base64"])
    assert kept in content
    assert b"un\xffreadable\n" in kept
    assert len(found) == max(len(lost), first + 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=6), st.sets(st.integers(0, 14)))
def test_no_graph_beside_an_unreadable_line_gets_through(
    graphs: list[tuple[int, str]], bad: set[int]
) -> None:
    lines = [(line, i // 2) for i, line in enumerate(quads(*graphs).splitlines())]
    for place in sorted(bad):
        lines.insert(place, ("unreadable", -1))
    around = zip(lines, [("", -1), *lines], [*lines[1:], ("", -1)], strict=False)
    beside = {graph for (line, _), *others in around for _, graph in others if line == "unreadable"}
    text = "".join(f"{line}\n" for line, _ in lines).encode()
    for whole in (0, 1 << 22):
        blocks = list(quad_blocks(io.BytesIO(text), Format.NQUADS, "x.nq", whole=whole, forgiving=True))
        clean = {int(b.name[6:-1]) for b in blocks if not b.spoiled}
        assert not clean & beside
        assert clean >= set(range(len(graphs))) - beside - {graph for graph in beside if graph < 0}
        reported = [number for b in blocks for _, number in b.unreadable]
        assert reported == [number for number, (line, _) in enumerate(lines, 1) if line == "unreadable"]


ODD = (  # written as nobody's serializer writes it
    f'# the first\n<urn:g0>\t{STAMP}   "1"^^<http://www.w3.org/2001/XMLSchema#integer>.\n'
    '<urn:a> <urn:p> "\\u0061" <urn:g0> .\n\n'
    '# no time\n<urn:b>   <urn:p>\t"01"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g1>.\r\n'
    "<urn:b> <urn:q> <urn:c> <urn:g1> . # two\n"
    f"<urn:g2> {STAMP} {integer(2)} .\n<urn:a> <urn:p> <urn:o> <urn:g2> .\n"
)


@pytest.mark.parametrize("whole", [1, 1 << 22])
@pytest.mark.parametrize("way", ["plain", "zipped", "piped"])
def test_a_refused_graph_of_n_quads_keeps_its_lines_as_they_were(
    write: Write, tmp_path: Path, whole: int, way: str
) -> None:
    content = ODD.encode()
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    options = SourceOptions(whole=whole)
    match way:
        case "plain":
            sources = Sources([write(a_nq=content)], options, refusals)
        case "zipped":
            sources = Sources([write(a_nq_gz=gzip.compress(content))], options, refusals)
        case _:
            sources = Sources(["-"], options, refusals, io.BytesIO(content))
    assert times(sources) == [1, 2]
    (letter,) = [json.loads(letter) for letter in letters]
    assert letter["code"] == "D2101"
    begin = ODD.index("# no time")
    end = ODD.index("<urn:g2>")
    comments = "\n# no time\n" if letter["document"].startswith("\n") else "# no time\n"
    assert letter["document"].removeprefix(comments) == ODD[begin:end].removeprefix("# no time\n")


TRIG = """@prefix : <urn:x:> . # { not a block
BASE <urn:base:>
PREFIX prov: <http://www.w3.org/ns/prov#>
:g1 prov:generatedAtTime 1 .
:g1 { :a :p "a } brace" }
# :g9 { in a comment }
GRAPH <g2> {
  :b :p '''} and { ''', <#x> ;   # no time
     :q 1.50 .
}
<g3> prov:generatedAtTime 3 .  <g3> { :c :p 2 }
<g2> { :b :r :again }
"""


def test_a_refused_graph_of_trig_keeps_its_blocks_as_they_were(write: Write) -> None:
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    assert times(Sources([write(a_trig=TRIG)], refusals=refusals)) == [1, 3]
    (letter,) = [json.loads(letter) for letter in letters]
    assert letter["code"] == "D2101"
    first = TRIG[TRIG.index("<g2> {") : TRIG.index("<g3>")].rstrip()
    assert letter["document"] == f"{first}\n<g2> {{ :b :r :again }}"


def test_a_syntax_error_in_trig_refuses_the_rest_of_the_file_with_the_whole_of_it(write: Write) -> None:
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    text = TRIG + ":g4 { nonsense }"
    folder = write(a_trig=text, b_jsonl='{"time":9,"graph":""}')
    assert times(Sources([folder], refusals=refusals)) == [9]
    (letter,) = [json.loads(letter) for letter in letters]
    assert (letter["code"], letter["document"]) == ("D2001", text)
    assert letter["place"].endswith("a.trig:13:7")


def test_a_refused_graph_of_a_long_trig_document_is_written_as_n_quads(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.io.graphs.WHOLE", 10)
    letters: list[str] = []
    refusals = ErrorPolicy(fail=False, sink=letters.append)
    text = TRIG.replace(":g1 prov:generatedAtTime 1 .", "")
    assert times(Sources([write(a_trig=text)], SourceOptions(whole=10), refusals)) == [3]
    assert json.loads(letters[0])["document"] == '<urn:x:a> <urn:x:p> "a } brace" <urn:x:g1> .\n'
