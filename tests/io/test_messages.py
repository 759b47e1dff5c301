"""Messages that insert and delete: every format says the same, and what is not a message is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.cli.main import run
from dotr.errors import DataError
from dotr.events import GraphOrMessage, Message, Time
from dotr.io.errors import ErrorPolicy
from dotr.io.sources import Bookmark, Item, ReadEvent, SourceOptions, Sources, TimedGraph
from dotr.rdf.blanks import label_stream

STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
A, B, C = (("<urn:a>", "<urn:p>", f"<urn:{name}>") for name in "abc")


def parts(path: Path, **options: object) -> list[tuple[int, GraphOrMessage]]:
    """(time, what came) of a file."""
    sources = Sources([str(path)], SourceOptions(**options))  # type: ignore[arg-type]  # fields of it
    return [(graph.time // 1_000_000, graph.triples) for graph in sources]


def refused(path: Path) -> list[tuple[str, str, bytes]]:
    """(code, place, bytes) of what is refused, everything else read on."""
    items = Sources([str(path)], refusals=ErrorPolicy(fail=False)).items()
    return [
        (item.error.diagnostics[0].code, item.error.diagnostics[0].place.rpartition("/")[2], item.content)
        for item in items
        if isinstance(item, ReadEvent) and item.error is not None
    ]


FILES = {
    "in.jsonl": '{"time": 1, "insert": "<urn:a> <urn:p> <urn:a> .", "delete": "<urn:a> <urn:p> <urn:b> ."}\n'
    '{"time": 2, "graph": "<urn:a> <urn:p> <urn:c> .", "delete": "", "insert": null}\n'
    '{"time": 3, "graph": ""}\n',
    "in.ttl": 'VERSION "1.2-messages"\nPREFIX : <urn:>\n'
    f"<urn:dotr:insert> {STAMP} 1 . <urn:dotr:insert> {{ :a :p :a }} <urn:dotr:delete> {{ :a :p :b }}\n"
    "MESSAGE\n"
    f"<urn:dotr:delete> {STAMP} 2 . <urn:dotr:delete> {{ }} :a :p :c .\nMESSAGE\n"
    f":g {STAMP} 3 . :g {{ }}\n",
    "in.trig": f"<urn:g1> {STAMP} 1 ; a <urn:dotr:Insert> . <urn:g1> {{ <urn:a> <urn:p> <urn:a> }}\n"
    f"<urn:g2> a <urn:dotr:Delete> ; {STAMP} 1 . <urn:g2> {{ <urn:a> <urn:p> <urn:b> }}\n"
    f"<urn:g3> {STAMP} 2 . <urn:g3> {{ <urn:a> <urn:p> <urn:c> }} <urn:g4> {STAMP} 3 .\n",
    "in.nq": f"<urn:g1> {STAMP} 1 .\n<urn:g1> a <urn:dotr:Insert> .\n<urn:a> <urn:p> <urn:a> <urn:g1> .\n"
    f"<urn:g2> {STAMP} 1 .\n<urn:g2> a <urn:dotr:Delete> .\n<urn:a> <urn:p> <urn:b> <urn:g2> .\n"
    f"<urn:g3> {STAMP} 2 .\n<urn:a> <urn:p> <urn:c> <urn:g3> .\n<urn:g4> {STAMP} 3 .\n",
    "in.rdfp": "H id <uuid:1> .\nH time 1 .\nTX .\nPA x <urn:> .\nA x:a x:p x:a .\nD x:a x:p x:b .\nTC .\n"
    "PD x .\nH time 2 .\nTX .\nA <urn:a> <urn:p> <urn:c> .\nTC .\n",
}
for name in ("in.nq", "in.trig"):
    FILES[name] = FILES[name].replace(" 1 ", ' "1"^^<http://www.w3.org/2001/XMLSchema#integer> ')
    FILES[name] = FILES[name].replace(" 2 .", ' "2"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    FILES[name] = FILES[name].replace(" 3 .", ' "3"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    FILES[name] = FILES[name].replace("> a <", "> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <")
EXPECTED: dict[str, list[tuple[int, GraphOrMessage]]] = {
    "in.jsonl": [(1, Message(None, [A], [B])), (2, Message([C], None, [])), (3, [])],
    "in.ttl": [(1, Message(None, [A], [B])), (2, Message([C], None, [])), (3, [])],
    "in.trig": [(1, Message(None, [A], None)), (1, Message(None, None, [B])), (2, [C]), (3, [])],
    "in.nq": [(1, Message(None, [A], None)), (1, Message(None, None, [B])), (2, [C]), (3, [])],
    "in.rdfp": [(1, Message(None, [A], [B])), (2, Message(None, [C], None))],
}


@pytest.mark.parametrize("name", FILES)
def test_a_message_has_the_parts_that_its_format_says(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    assert parts(tmp_path / name) == EXPECTED[name]


@pytest.mark.parametrize("name", FILES)
def test_reading_goes_on_behind_any_message(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    items: list[Item] = list(Sources([str(path)]).items())
    for number, item in enumerate(items):
        bookmark = Bookmark(item.how, item.end, item.carried)
        rest = list(Sources([str(path)], bookmarks={str(path): bookmark}).items())
        came = [i.triples for i in items[number + 1 :] if isinstance(i, TimedGraph)]
        assert [i.triples for i in rest if isinstance(i, TimedGraph)] == came


def test_a_pipe_of_quads_has_messages_too(tmp_path: Path) -> None:
    for name in ("in.nq", "in.trig"):
        (tmp_path / name).write_text(FILES[name])
        assert parts(tmp_path / name, whole=0) == EXPECTED[name]


_terms = st.sampled_from(["<urn:a>", "<urn:b>", "_:x", "_:y"])
_triple = st.tuples(_terms, st.sampled_from(["<urn:p>", "<urn:q>"]), _terms)
_named = st.sampled_from([A, B, C])


@st.composite
def messages(draw: st.DrawFn) -> GraphOrMessage:
    graph = draw(st.lists(_triple, max_size=3, unique=True))
    if draw(st.booleans()):
        return graph
    insert = draw(st.one_of(st.none(), st.lists(_triple, max_size=3, unique=True)))
    delete = draw(st.lists(_named, max_size=2, unique=True))
    return Message(draw(st.sampled_from([graph, None])), insert, delete)


def labelled(part: GraphOrMessage) -> object:
    """The parts with labels from their content: what a document calls its blank nodes is its own."""
    if isinstance(part, Message):
        return [None if p is None else sorted(label_stream([p], 0)[0]) for p in part]
    return sorted(label_stream([part], 0)[0])


def merged(read: list[tuple[Time, GraphOrMessage]]) -> list[object]:
    """What the messages of each instant say together, empty parts aside: a quad stream parts them."""
    found: dict[Time, list[object]] = {}
    for time, part in read:
        pieces = part if isinstance(part, Message) else (part, None, None)
        known = found.setdefault(time, [False, [], []])
        known[0] = known[0] or pieces[0] is not None
        for place, piece in enumerate(pieces[1:], 1):
            known[place] = sorted([*known[place], *(piece or ())])  # type: ignore[misc]  # a list
    return [[time, *known] for time, known in sorted(found.items())]


@pytest.mark.parametrize("suffix", [".jsonl", ".ttl", ".parquet"])
@given(came=st.lists(messages(), min_size=1, max_size=4))
def test_what_is_converted_says_the_same(
    suffix: str, came: list[GraphOrMessage], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    lines = []
    for time, part in enumerate(came):
        pieces = part._asdict() if isinstance(part, Message) else {"graph": part}
        texts = {k: "".join(f"{s} {p} {o} ." for s, p, o in v) for k, v in pieces.items() if v is not None}
        lines.append(json.dumps({"time": time, **texts}))
    (folder / "in.jsonl").write_text("\n".join(lines))
    assert run(["convert", str(folder / "in.jsonl"), "-o", str(folder / f"out{suffix}"), "-q"]) == 0
    again = parts(folder / f"out{suffix}")
    assert [time for time, _ in again] == list(range(len(came)))
    assert [labelled(part) for _, part in again] == [labelled(part) for part in came]


@pytest.mark.parametrize("suffix", [".nq", ".trig"])
def test_quads_have_a_graph_for_each_part(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(FILES["in.jsonl"])
    assert run(["convert", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / f"out{suffix}"), "-q"]) == 0
    assert merged(parts(tmp_path / f"out{suffix}")) == merged(EXPECTED["in.jsonl"])


def test_an_archive_of_graphs_alone_has_no_other_columns(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415  # the one test that looks into the file

    for name, columns in (
        ("in.jsonl", ["time", "graph", "insert", "delete"]),
        ("plain.jsonl", ["time", "graph"]),
    ):
        (tmp_path / "in.jsonl").write_text(FILES["in.jsonl"])
        (tmp_path / "plain.jsonl").write_text('{"time": 3, "graph": ""}\n')
        assert (
            run(["convert", str(tmp_path / name), "-o", str(tmp_path / "out.parquet"), "-q", "--overwrite"])
            == 0
        )
        assert pq.ParquetFile(tmp_path / "out.parquet").schema_arrow.names == columns


def test_an_archive_that_meets_a_message_late_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.io.decode.parquet.ROWS", 2)
    lines = [f'{{"time": {t}, "graph": "<urn:a> <urn:p> {t} ."}}' for t in range(5)]
    lines += ['{"time": 5, "insert": "<urn:a> <urn:p> 5 ."}', '{"time": 6, "graph": ""}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    for target in ("out.parquet", "folder"):
        assert run(["convert", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / target), "-q"]) == 0
        read = parts(tmp_path / target)
        assert [time for time, _ in read] == list(range(7))
        assert isinstance(read[5][1], Message)
    assert [path.name for path in tmp_path.glob("*~")] == []


# -- what is wrong


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"time": 1}', "D2014"),
        ('{"time": 1, "insert": null}', "D2201"),
        ('{"time": 1, "insert": 5}', "D2014"),
        ('{"time": 1, "graph": 5, "delete": ""}', "D2014"),
        ('{"time": 1, "delete": "_:b <urn:p> <urn:o> ."}', "D2202"),
        ('{"time": 1, "graph": "", "delete": "<urn:s> <urn:p> [] ."}', "D2202"),
        ('{"time": 1, "insert": "<urn:s> <urn:p> ."}', "D2001"),
        ('{"insert": "<urn:s> <urn:p> <urn:o> ."}', "D2101"),
    ],
)
def test_a_line_that_is_no_message_is_refused_alone(line: str, code: str, tmp_path: Path) -> None:
    good = '{"time": 2, "insert": "<urn:a> <urn:p> <urn:a> ."}'
    (tmp_path / "in.jsonl").write_text(f"{good}\n{line}\n{good}\n")
    [(reported, place, content)] = refused(tmp_path / "in.jsonl")
    assert (reported, place.split(",")[0].split(":")[:2], content) == (code, ["in.jsonl", "2"], line.encode())
    assert len([*Sources([str(tmp_path / "in.jsonl")], refusals=ErrorPolicy(fail=False))]) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.ttl", 'VERSION "1.2-messages"\n<urn:dotr:delete> { _:b <urn:p> <urn:o> }\n'),
        ("in.trig", f"<urn:g> {STAMP} 1 ; a <urn:dotr:Delete> . <urn:g> {{ _:b <urn:p> <urn:o> }}"),
        ("in.rdfp", "H time 1 .\nTX .\nD _:b <urn:p> <urn:o> .\nTC .\n"),
    ],
)  # fmt: skip
def test_a_blank_node_names_nothing_to_be_deleted(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert [code for code, _, _ in refused(tmp_path / name)] == ["D2202"]


# -- RDF Patch

T = "<urn:a> <urn:p> <urn:a>"


def patch(*rows: str) -> str:
    return "".join(f"{row} .\n" for row in rows)


def test_the_last_row_of_a_triple_counts(tmp_path: Path) -> None:
    file = tmp_path / "in.rdfp"
    file.write_text(patch("H time 1", "TX", f"A {T}", f"D {T}", "TC", "TX", f"D {T}", f"A {T}", "TC"))
    assert parts(file) == [(1, Message(None, None, [A])), (1, Message(None, [A], None))]


def test_a_transaction_without_changes_stamps(tmp_path: Path) -> None:
    (tmp_path / "in.rdfp").write_text("# a comment .\n" + patch("H time 7", "TX", "TC"))
    assert parts(tmp_path / "in.rdfp") == [(7, Message(None, [], None))]


@pytest.mark.parametrize(
    "time",
    [
        '"2026-01-01T08:00:00Z"',
        "2026-01-01T08:00:00Z",
        '"2026-01-01T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    ],
)
def test_a_patch_may_say_a_date_time(time: str, tmp_path: Path) -> None:
    (tmp_path / "in.rdfp").write_text(patch(f"H time {time}", "TX", f"A {T}", "TC"))
    assert [time for time, _ in parts(tmp_path / "in.rdfp")] == [1767254400]


def test_without_a_header_time_is_found_as_in_any_document(tmp_path: Path) -> None:
    (tmp_path / "12.rdfp").write_text(patch("TX", f"A {T}", "TC"))
    assert parts(tmp_path / "12.rdfp") == [(12, Message(None, [A], None))]


def test_terms_of_a_patch_are_those_of_every_format(tmp_path: Path) -> None:
    rows = [
        'A <urn:a> <urn:p> "x y\\n\\"z\\""@EN',
        'A <urn:a> <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "A _:b1 <urn:p> <_:b1>",
        'A <_:x-1> <urn:p> "5"^^xsd:decimal',
    ]
    add = 'PA "xsd" "http://www.w3.org/2001/XMLSchema#"'
    (tmp_path / "in.rdfp").write_text(patch("H time 1", add, "TX", *rows, "TC"))
    [(_, part)] = parts(tmp_path / "in.rdfp")
    assert isinstance(part, Message)
    assert part.insert is not None
    assert [o for _, _, o in part.insert[:2]] == [
        '"x y\\n\\"z\\""@en',
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ]
    assert part.insert[2][0] == part.insert[2][2]
    assert part.insert[3][0] not in part.insert[2]


@pytest.mark.parametrize(
    ("rows", "code", "line"),
    [
        (["TX", f"A {T} <urn:g>", "TC"], "D2205", 3),
        (["TX", f"A {T}", "TA"], "D2205", 4),
        (["TX", "A <urn:a> <urn:p>", "TC"], "D2204", 3),
        (["TX", "X <urn:a>", "TC"], "D2204", 3),
        (["TX", "TX", "TC"], "D2204", 3),
        (["TX", "A ex:a <urn:p> <urn:o>", "TC"], "D2204", 3),
        (["TX", "PA ex", "TC"], "D2204", 3),
        (["TX", 'A "literal" <urn:p> <urn:o>', "TC"], "D2001", 3),
        (["TX", f"A {T}", "A <urn:a> _:p <urn:o>", "TC"], "D2001", 4),
        ([f"A {T}"], "D2204", 2),
    ],
)
def test_what_is_no_patch_is_reported_at_its_line_and_the_rest_is_read(
    rows: list[str], code: str, line: int, tmp_path: Path
) -> None:
    good = ["TX", f"A {T}", "TC"]
    (tmp_path / "in.rdfp").write_text(patch("H time 1", *rows, *good))
    [(reported, place, content)] = refused(tmp_path / "in.rdfp")
    assert (reported, place) == (code, f"in.rdfp:{line}")
    assert content.decode().strip() == patch(*rows).strip()
    assert len([*Sources([str(tmp_path / "in.rdfp")], refusals=ErrorPolicy(fail=False))]) == 1


def test_a_row_without_its_dot_and_a_transaction_without_its_end(tmp_path: Path) -> None:
    (tmp_path / "in.rdfp").write_text("H time 1\n" + patch("TX", f"A {T}"))
    assert [(code, place) for code, place, _ in refused(tmp_path / "in.rdfp")] == [
        ("D2204", "in.rdfp:1"),
        ("D2204", "in.rdfp:2"),
    ]


def test_a_growing_patch_leaves_an_open_transaction_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "in.rdfp"
    path.write_text(patch("H time 1", "TX", f"A {T}", "TC", "TX"))
    items = list(Sources([str(path)], SourceOptions(growing=True)).items())
    assert len(items) == 2
    path.write_text(path.read_text() + patch(f"D {T}", "TC"))
    bookmark = Bookmark(items[-1].how, items[-1].end, items[-1].carried)
    rest = list(Sources([str(path)], bookmarks={str(path): bookmark}))
    assert [graph.triples for graph in rest] == [Message(None, None, [A])]


def test_a_patch_is_no_background(tmp_path: Path) -> None:
    from dotr.io.rules_and_background import read_background  # noqa: PLC0415  # this test's alone

    (tmp_path / "in.rdfp").write_text(patch("TX", f"A {T}", "TC"))
    with pytest.raises(DataError, match="D2010"):
        read_background([str(tmp_path / "in.rdfp")])
