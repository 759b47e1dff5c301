"""Documents made to exhaust a parser are refused as any that cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path

import pyoxigraph as ox
import pytest

from dotr.errors import DataError
from dotr.io.decode import rdf as parsing
from dotr.io.decode.documents import Format
from dotr.io.decode.json_lines import raw_lines
from dotr.io.decode.limits import MAX_NESTING, MAX_TERM, refuse_costly_json
from dotr.io.decode.messages import split_messages
from dotr.io.decode.quads import line_runs
from dotr.io.decode.rdf import parse_quads, parse_triples
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.mapping import read_mapping

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:"'
DEEP = {
    "objects": (Format.JSONLD, '{"urn:p":', "1", "}"),
    "arrays": (Format.JSONLD, '{"urn:p":[', "1", "]}"),
    "lists": (Format.JSONLD, '{"urn:p":{"@list":[', "1", "]}}"),
    "graphs": (Format.JSONLD, '{"@graph":[', '{"urn:p":1}', "]}"),
    "reverse": (Format.JSONLD, '{"@reverse":{"urn:p":', '{"@id":"urn:x"}', "}}"),
    "elements": (Format.RDFXML, f"<e:A {RDF}><e:p>", "<e:A/>", "</e:p></e:A>"),
    "resources": (Format.RDFXML, f'<e:A {RDF}><e:p rdf:parseType="Resource">', "", "</e:p></e:A>"),
    "terms": (Format.TURTLE, "<urn:a> <urn:p> <<( ", "<urn:a> <urn:p> 1", " )>> ."),
    "trig": (Format.TRIG, "<urn:a> <urn:p> <<( ", "<urn:a> <urn:p> 1", " )>> ."),
    "lines": (Format.NTRIPLES, "<urn:a> <urn:p> <<( ", "<urn:a> <urn:p> <urn:o>", " )>> ."),
    "quads": (Format.NQUADS, "<urn:a> <urn:p> <<( ", "<urn:a> <urn:p> <urn:o>", " )>> <urn:g> ."),
}


def nested(kind: str, levels: int) -> str:
    format_, head, inner, tail = DEEP[kind]
    if format_ in (Format.JSONLD, Format.RDFXML):
        return head * levels + inner + tail * levels
    return head.replace("<<( ", "") + "<<( <urn:a> <urn:p> " * levels + "<urn:o>" + " )>>" * levels + tail[4:]


def refused(path: Path, limit: int = 1 << 28) -> tuple[int, list[str]]:
    """(graphs, codes of what is refused) of a folder or file."""
    found: list[str] = []
    policy = ErrorPolicy(fail=False, sink=lambda letter: found.append(json.loads(letter)["code"]))
    graphs = sum(1 for _ in Sources([str(path)], SourceOptions(max_document=limit), policy))
    return graphs, found


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("levels", [5_000, 100_000])
def test_a_document_that_nests_without_measure_is_refused(kind: str, levels: int) -> None:
    parse = parse_quads if DEEP[kind][0] is Format.NQUADS else parse_triples
    with pytest.raises(DataError) as caught:
        parse(nested(kind, levels), DEEP[kind][0])
    assert caught.value.diagnostics[0].code == "D2020"


@pytest.mark.parametrize("kind", [kind for kind, form in DEEP.items() if "<<(" not in form[1]])
def test_a_document_that_nests_as_people_write_is_read(kind: str) -> None:
    if kind == "graphs":
        assert parse_quads(nested(kind, 1), DEEP[kind][0])
    else:
        assert parse_triples(nested(kind, 40), DEEP[kind][0])


def test_collections_and_blank_nodes_of_turtle_have_no_limit() -> None:
    blanks = "[ <urn:p> " * 20_000 + "1" + "]" * 20_000
    assert len(parse_triples(f"<urn:a> <urn:p> {blanks} .")) == 20_001
    assert len(parse_triples("<urn:a> <urn:p> " + "(" * 5_000 + ")" * 5_000 + " .")) > 9_000


def test_brackets_in_strings_and_comments_are_no_levels() -> None:
    brackets = "[{" * MAX_NESTING + '\\"' + "<<( " * MAX_NESTING
    assert len(parse_triples(json.dumps([{"urn:p": brackets}] * 3), Format.JSONLD)) == 3
    for quote in ('"', "'", '"""', "'''"):
        text = f"<urn:a> <urn:p> {quote}{brackets}{quote} . # {'<<( ' * 1000}\n"
        assert len(parse_triples(text * 10)) == 1
    many = f"<e:A {RDF}>" + "<!-- <e:x> -->" * 300 + "<e:p><![CDATA[" + "<x>" * 300 + "]]></e:p></e:A>"
    assert len(parse_triples(many, Format.RDFXML)) == 2


def test_many_shallow_nodes_are_not_deep() -> None:
    assert len(parse_triples(json.dumps([{"urn:p": [{"urn:q": 1}]}] * 1000), Format.JSONLD)) == 2000
    rows = "<e:A><e:p>1</e:p><e:q e:r='>' /></e:A>" * 1000
    assert len(parse_triples(f"<rdf:RDF {RDF}>{rows}</rdf:RDF>", Format.RDFXML)) == 4000


def test_triple_terms_nested_in_a_streamed_document_are_refused(tmp_path: Path) -> None:
    stamp = "<http://www.w3.org/ns/prov#generatedAtTime>"
    graphs = "".join(f"<urn:g{i}> {{ <urn:a> <urn:p> 1 }} <urn:g{i}> {stamp} {i} .\n" for i in range(3))
    filling = f"# {'x' * 1000}\n" * 5000
    (tmp_path / "log.trig").write_text(graphs + filling + nested("trig", 100_000))
    count, found = refused(tmp_path)
    assert (count, found) == (2, ["D2020"])


def test_deep_documents_are_refused_one_by_one(tmp_path: Path) -> None:
    for kind, name in (("objects", "1.jsonld"), ("terms", "2.ttl"), ("elements", "3.rdf"), ("lines", "4.nt")):
        (tmp_path / name).write_text(nested(kind, 5_000))
    lines = [{"time": 5, "graph": nested("terms", 5_000)}, {"time": 6, "graph": "<urn:a> <urn:p> 1 ."}]
    (tmp_path / "5.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    log = f'VERSION "1.2-messages"\n{nested("terms", 5_000)}\nMESSAGE\n'
    (tmp_path / "6.ttl").write_text(log)
    graphs, found = refused(tmp_path)
    assert graphs == 1
    assert found == ["D2020"] * 6


LONG = "x" * MAX_TERM


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1.ttl", f'<urn:a> <urn:p> "{LONG}" .'),
        ("1.ttl", f'<urn:a> <urn:p> """{LONG}'),
        ("1.ttl", f"<urn:a> <urn:{LONG}> 1 ."),
        ("1.ttl", f"# {LONG}\n<urn:a> <urn:p> 1 ."),
        ("1.nt", f'<urn:a> <urn:p> "{LONG}" .'),
        ("1.nq", f'<urn:a> <urn:p> "{LONG}" <urn:g> .\n'),
        ("1.trig", f'<urn:g> {{ <urn:a> <urn:p> "{LONG}" }}'),
        ("1.jsonld", json.dumps({"urn:p": LONG})),
        ("1.rdf", f"<e:A {RDF}><e:p>{LONG}</e:p></e:A>"),
        ("1.jsonl", json.dumps({"time": 1, "graph": f'<urn:a> <urn:p> "{LONG}" .'}) + "\n"),
        ("1.ttl", f'VERSION "1.2-messages"\n<urn:a> <urn:p> "{LONG}" .\nMESSAGE\n'),
    ],
    ids=lambda value: value[:30],
)
def test_a_term_of_16_mib_is_an_ordinary_refused_document(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "2.ttl").write_text("<urn:a> <urn:p> 1 .")
    assert refused(tmp_path) == (1, ["D2021"])


def test_a_long_term_of_a_background_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--max-document"):
        parse_triples(f'<urn:a> <urn:p> "{LONG}" .')


def test_memory_that_runs_out_inside_the_parser_refuses_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serialize = ox.serialize

    def scarce(*arguments: object) -> bytes | None:
        written = serialize(*arguments)  # type: ignore[call-overload]
        if any(b"urn:large" in part.getvalue() for part in arguments if isinstance(part, io.BytesIO)):
            raise MemoryError
        return written  # type: ignore[no-any-return]

    monkeypatch.setattr(parsing, "serialize", scarce)
    filling = "# \n" * 30_000  # so long that each is read by itself
    (tmp_path / "1.ttl").write_text(f"{filling}<urn:large> <urn:p> 1 .")
    (tmp_path / "2.ttl").write_text(f"{filling}<urn:small> <urn:p> 1 .")
    assert refused(tmp_path) == (1, ["D2022"])


LONG_PREFIX = f"urn:{'x' * 200_000}:"
NUMBERS = range(3000)


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        (Format.TURTLE, f"PREFIX : <{LONG_PREFIX}> :a :p {','.join(f':{i}' for i in NUMBERS)} ."),
        (Format.TURTLE, f"BASE <{LONG_PREFIX}> <#a> <#p> {','.join(f'<#{i}>' for i in NUMBERS)} ."),
        (Format.JSONLD, json.dumps({"@context": {"@vocab": LONG_PREFIX}, "p": list(NUMBERS)})),
        (
            Format.RDFXML,
            f'<rdf:RDF {RDF} xmlns:x="{LONG_PREFIX}">{"<x:A><x:p>1</x:p></x:A>" * 3000}</rdf:RDF>',
        ),
    ],
    ids=["prefix", "base", "context", "namespace"],
)
def test_a_short_document_does_not_become_a_large_one(format_: Format, text: str) -> None:
    with pytest.raises(DataError, match="D2007"):
        parse_triples(text, format_)


def test_numbers_in_a_collection_are_no_bomb() -> None:
    numbers = " ".join("1" for _ in range(30_000))
    assert len(parse_triples(f"<urn:a> <urn:p> ({numbers}) .")) == 60_001


def test_an_entity_is_declared_once() -> None:
    entities = '<!ENTITY a "xxxx"><!ENTITY b "&a;&a;"><!-- <!ENTITY a "y"> -->'
    text = f"<!DOCTYPE r [{entities}]><e:A {RDF}><e:p>&b;</e:p></e:A>"
    with pytest.raises(DataError, match="declared twice"):
        parse_triples(text, Format.RDFXML)


def test_an_element_has_not_thousands_of_attributes() -> None:
    attributes = " ".join(f'e:p{i}="1"' for i in range(20_000))
    with pytest.raises(DataError, match="D2020"):
        parse_triples(f"<e:A {RDF} {attributes}/>", Format.RDFXML)


@pytest.mark.parametrize("key", ["@context", "\\u0040context", "@\\u0063ontext"])
def test_contexts_do_not_multiply(key: str) -> None:
    terms = ",".join(f'"t{i}":"urn:t:{i}"' for i in range(10_000))
    nodes = ",".join(f'{{"{key}":{{}},"t1":{i}}}' for i in range(10_000))
    with pytest.raises(DataError, match="contexts"):
        refuse_costly_json(f'{{"@context":{{{terms}}},"urn:p":[{nodes}]}}', "x")
    scoped = f'"@context":{{{terms},"T":{{"@id":"urn:T","{key}":{{}}}}}}'
    nodes = ",".join('{"@type":"T"}' for _ in range(10_000))
    with pytest.raises(DataError, match="contexts"):
        refuse_costly_json(f'{{{scoped},"urn:p":[{nodes}]}}', "x")
    same = ",".join(f'{{"@context":{{"t":"urn:t"}},"t":{i}}}' for i in range(10_000))
    refuse_costly_json(f"[{same}]", "x")


def small_reads(content: bytes) -> io.BufferedIOBase:
    """A file that gives a kilobyte at a time."""

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(1024, size or 0))

    return Slow(content)


LINEAR = 5.0
"""Seconds; what is copied, or looked at again, at every read takes minutes."""


@pytest.mark.parametrize("character", [b" ", b"#", b"x"])
def test_a_long_line_is_read_in_linear_time(character: bytes) -> None:
    content = character * ((16 << 20) - 1024)  # the limit on what says nothing is 16 MiB
    begun = time.process_time()
    assert len(list(raw_lines(small_reads(content), "x"))) == (character != b" ")
    list(line_runs(small_reads(content).read, "x", 1, 0, forgiving=True))
    list(split_messages(small_reads(b'VERSION "1.2-messages"\n' + content), "x"))
    assert time.process_time() - begun < LINEAR


@pytest.mark.parametrize(
    "content",
    [
        b'<urn:a> <urn:p> """\n' + b"a message\n" * (1 << 20),
        b"<urn:g> {\n" + b"<urn:a> <urn:p> 1 .\n" * (1 << 19),
        b"<urn:a> <urn:p> 1 .\n" * (1 << 19),
        b"@message\n" + b"\n" * (16 << 20),
    ],
    ids=["string", "block", "plain", "half a delimiter"],
)
def test_a_long_message_is_read_in_linear_time(content: bytes) -> None:
    begun = time.process_time()
    log = b'VERSION "1.2-messages"\n' + content
    assert sum(map(len, split_messages(small_reads(log), "x"))) == 1
    assert time.process_time() - begun < LINEAR


NAMES = ["1.jsonl.gz", "1.nq.gz", "1.trig.gz", "1.ttl.gz", "1.nt.gz", "1.rdf.gz"]
FILLED = [(name, filling) for name in NAMES for filling in ("\n", "#\n", " ")]
FILLED.remove(("1.jsonl.gz", "#\n"))  # each of these lines is a document: see below


@pytest.mark.parametrize(("name", "filling"), FILLED)
def test_what_is_decompressed_without_a_graph_is_bounded(tmp_path: Path, name: str, filling: str) -> None:
    content = filling.encode() * (12_000_000 // len(filling))
    (tmp_path / name).write_bytes(gzip.compress(content, 1))
    (tmp_path / "2.ttl").write_text("<urn:a> <urn:p> 1 .")
    graphs, found = refused(tmp_path, limit=6_000_000)
    assert graphs == 1
    assert "D2006" in found


STAMP = b'<urn:%s> <urn:t> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'
NQ = b'%s\n<urn:a> <urn:p> "1" <urn:g> .\n%s\n<urn:a> <urn:p> "1" <urn:h> .\n' % (STAMP % b"g", STAMP % b"h")
TRIG = b"%s <urn:g> { <urn:a> <urn:p> 1 } %s <urn:h> { <urn:a> <urn:p> 1 }\n" % (STAMP % b"g", STAMP % b"h")
PATCH = b'H time "1" .\nTX .\nA <urn:a> <urn:p> "1" .\nTC .\n'
LOG = b'VERSION "1.2-messages"\n%s\nMESSAGE\n' % (STAMP % b"a")
FLOODS = {
    "1.jsonl": (b'{"time": 1, "graph": "<urn:a> <urn:p> 1 ."}\n', b"\n", "D2023"),
    "1.nq": (NQ, b"# nothing\n", "D2023"),
    "2.nq": (NQ, b"\r\n", "D2023"),
    "1.trig": (TRIG, b"# nothing\n", "D2023"),
    "2.trig": (TRIG, b" \n", "D2023"),
    "1.rdfp": (PATCH, b"# nothing\n", "D2023"),
    "2.rdfp": (PATCH, b'H x "y" .\n', "D2023"),
    "3.rdfp": (PATCH + b"TX .\n", b"# nothing\n", "D2023"),
    "4.rdfp": (PATCH + b"TX .\n", b'A <urn:a> <urn:p> "1" .\n', "D2006"),
    "1.nt": (LOG, b"# nothing\n", "D2023"),
    "2.nt": (LOG + b"@message\n", b"\n", "D2023"),
}
"""A file → its graphs (of quads the last may go on behind the flood), what floods it, and the code."""


def flooded(folder: Path, name: str, size: int, after: bytes = b"") -> tuple[int, list[str]]:
    head, unit, _code = FLOODS[name]
    (folder / name).write_bytes(head + unit * (size // len(unit)) + after)
    options = SourceOptions(max_document=6_000_000, time_path="<urn:t>", whole=1 << 16)
    found: list[str] = []
    policy = ErrorPolicy(fail=False, sink=lambda letter: found.append(json.loads(letter)["code"]))
    return sum(1 for _ in Sources([str(folder / name)], options, policy)), found


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_lines_that_say_nothing_ends(tmp_path: Path, name: str) -> None:
    graphs, found = flooded(tmp_path, name, 12_000_000)
    assert graphs == 1
    assert found == [FLOODS[name][2]]


@pytest.mark.parametrize("name", ["1.jsonl", "1.nq", "2.nq", "1.trig", "2.trig", "1.rdfp"])
def test_lines_that_say_nothing_may_be_as_many_as_a_document_has_bytes(tmp_path: Path, name: str) -> None:
    head, unit, _code = FLOODS[name]
    again = head.replace(b"urn:g", b"urn:i").replace(b"urn:h", b"urn:j")
    graphs, found = flooded(tmp_path, name, 5_500_000, again + unit * 200_000)
    assert graphs == (4 if head in (NQ, TRIG) else 2)
    assert found == []


@pytest.mark.parametrize("filling", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", ["1.csv", "1.jsonl"])
def test_a_table_of_blank_lines_ends(tmp_path: Path, name: str, filling: bytes) -> None:
    (tmp_path / "m.ttl").write_text("# time: {t}\n# files: 1.*\n<urn:{a}> <urn:v> {v} .\n")
    head = b"t,a,v\n1,a,2\n" if name == "1.csv" else b'{"t": 1, "a": "a", "v": 2}\n'
    (tmp_path / name).write_bytes(head + filling * 8_000_000)
    mappings = (read_mapping(str(tmp_path / "m.ttl")),)
    options = SourceOptions(max_document=6_000_000, mappings=mappings)
    with pytest.raises(DataError, match="D2023"):
        list(Sources([str(tmp_path / name)], options, ErrorPolicy(fail=True)))


@pytest.mark.parametrize("name", ["1.ttl", "1.rdfp"])
def test_prefixes_that_are_carried_on_do_not_multiply(tmp_path: Path, name: str) -> None:
    if name == "1.ttl":
        head, unit = (
            'VERSION "1.2-messages"\n',
            "PREFIX p{i}: <urn:p:{i}>\n<urn:a> <urn:t> 1 .\nMESSAGE\n<x MESSAGE\n",
        )
    else:
        head, unit = 'H time "1" .\n', 'PA p{i} <urn:p{i}> .\nTX .\nA p{i}:a <urn:p> "1" .\nTC .\n'
    (tmp_path / name).write_text(head + "".join(unit.format(i=i) for i in range(6_000)))
    found: list[str] = []
    policy = ErrorPolicy(fail=False, sink=lambda letter: found.append(json.loads(letter)["code"]))
    options = SourceOptions(time_path="<urn:t>")
    begun = time.process_time()
    graphs = sum(1 for _ in Sources([str(tmp_path / name)], options, policy))
    assert time.process_time() - begun < 6 * LINEAR  # minutes if each message copies all names
    assert 2_000 < graphs < 5_500
    assert found.count("D2020") == 6_000 - graphs


def test_of_many_prefixes_a_message_gets_those_that_it_uses(tmp_path: Path) -> None:
    names = ["", "p", "pp", "e5p", "a.b", "é", *(f"x{i}" for i in range(60))]
    head = "".join(f"PREFIX {name}: <urn:{number}:> " for number, name in enumerate(names))
    said = [
        f'<urn:a> <urn:t> 1 . :a pp:b 1 .p:x a.b:y é:z, "p:no" .\nMESSAGE\n<urn:c> <urn:t> 2 ; {name}:n 1 .'
        for name in names
    ]
    text = 'VERSION "1.2-messages"\n' + head + "\nMESSAGE\n".join(said)
    (tmp_path / "1.ttl").write_text(text)
    graphs = list(
        Sources([str(tmp_path / "1.ttl")], SourceOptions(time_path="<urn:t>"), ErrorPolicy(fail=True))
    )
    assert len(graphs) == 2 * len(names)
    said_of = [
        [p for s, p, _o in graph.triples if s == "<urn:c>" and p != "<urn:t>"] for graph in graphs[1::2]
    ]
    assert said_of == [[f"<urn:{number}:n>"] for number in range(len(names))]


def test_documents_that_are_refused_are_no_graphs(tmp_path: Path) -> None:
    lines = (b"#" * 9_999 + b"\n") * 1_200
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    graphs, found = refused(tmp_path / "1.jsonl.gz", limit=6_000_000)
    assert graphs == 0
    assert set(found[:-1]) == {"D2014"}
    assert found[-1] == "D2006"
    assert 400 < len(found) < 620


def test_a_message_log_of_blank_lines_is_bounded(tmp_path: Path) -> None:
    content = b'VERSION "1.2-messages"\n<urn:a> <urn:p> 1 .\n' + b"MESSAGE\n" * 1_000_000
    (tmp_path / "1.ttl.gz").write_bytes(gzip.compress(content, 1))
    assert refused(tmp_path, limit=4_000_000) == (1, ["D2006"])


def test_graphs_far_apart_in_a_compressed_log_are_read(tmp_path: Path) -> None:
    line = b'{"time": %d, "graph": "<urn:a> <urn:p> 1 ."}\n'
    content = b"".join(line % number + b"\n" * 1_000_000 for number in range(5))
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(content, 1))
    assert refused(tmp_path, limit=2_000_000) == (5, [])
